/**
 * What a configuration may say and this version does not do yet. `serve` and `check` refuse it with a clear line: an
 * option that is silently ignored would be believed to work.
 */
import type { Config, PolicyConfig } from './config.ts'
import type { ConfigProblem, Position } from './problem.ts'

/** Every such option that is set to something else than "off". */
export function unsupported(config: Config): ConfigProblem[] {
  const problems: ConfigProblem[] = []
  const add = (path: string, position: Position, what: string): void => {
    const message = `this version does not do it yet: ${what}`
    problems.push({ file: config.file, ...position, path, message })
  }
  const addSection = (path: string, what: string): void =>
    add(path, config.positions.get(path) ?? { line: 1, column: 1 }, what)

  const { cluster } = config
  if (cluster.probes) addSection('cluster.probes', 'probes of endpoints')
  if (config.threads > 1) addSection('threads', 'more than one thread')
  for (const [index, policy] of config.policies.entries()) {
    for (const [option, what] of unsupportedOfPolicy(policy)) add(`policies[${index}].${option}`, policy.position, what)
  }
  return problems
}

type Unsupported = [option: string, what: string][]

function unsupportedOfPolicy(policy: PolicyConfig): Unsupported {
  const found: Unsupported = []
  if (policy.allDown !== 'next') found.push(['allDown', 'probes of endpoints'])
  return found
}
