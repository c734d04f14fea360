/**
 * What a configuration may say and this version does not do yet. `serve` and `check` refuse it with a clear line: an
 * option that is silently ignored would be believed to work.
 */
import type { Config } from './config.ts'
import type { ConfigProblem } from './problem.ts'

/** Every such option that is set to something else than "off". */
export function unsupported(config: Config): ConfigProblem[] {
  const problems: ConfigProblem[] = []
  const addSection = (path: string, what: string): void => {
    const position = config.positions.get(path) ?? { line: 1, column: 1 }
    const message = `this version does not do it yet: ${what}`
    problems.push({ file: config.file, ...position, path, message })
  }

  if (config.threads > 1) addSection('threads', 'more than one thread')
  return problems
}
