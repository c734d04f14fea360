/** What is wrong with a configuration, told so that an operator can mend it without reading the documents. */

/** A place in a file; both count from 1, the column in UTF-16 code units as editors do. */
export type Position = Readonly<{ line: number; column: number }>

export type ConfigProblem = Readonly<{
  /** The file as it was named to us. */
  file: string
  line: number
  column: number
  /** Where in the configuration: `policies[0].targets[1]`; empty for the file as a whole. */
  path: string
  message: string
  /** The right key or word that is most like the wrong one. */
  nearest?: string
  /** What would be right here. */
  expected?: string
}>

/**
 * A wrong configuration: every problem that was found, in the file's order, what is only worth a warning, and the
 * absolute paths of those manifests that it names all the same.
 */
export class ConfigError extends Error {
  readonly problems: readonly ConfigProblem[]
  readonly warnings: readonly ConfigProblem[]
  readonly manifests: readonly string[]
  constructor(
    problems: readonly ConfigProblem[],
    warnings: readonly ConfigProblem[] = [],
    manifests: readonly string[] = []
  ) {
    super(problems.map(problemToText).join('\n'))
    this.name = 'ConfigError'
    this.problems = problems
    this.warnings = warnings
    this.manifests = manifests
  }
}

/** One line: `file:line:column: path: message (did you mean ...?); expected ...`. */
export function problemToText(problem: ConfigProblem): string {
  const { file, line, column, path, message, nearest, expected } = problem
  const where = path === '' ? '' : `${path}: `
  const hint = nearest === undefined ? '' : ` (did you mean \`${nearest}\`?)`
  const right = expected === undefined ? '' : `; expected ${expected}`
  return `${file}:${line}:${column}: ${where}${message}${hint}${right}`
}

export type PathStep = string | number

/** `['policies', 0, 'dnsName']` as `policies[0].dnsName`. */
export function pathToText(path: readonly PathStep[]): string {
  let text = ''
  for (const step of path) {
    if (typeof step === 'number') text += `[${step}]`
    else text += text === '' ? step : `.${step}`
  }
  return text
}
