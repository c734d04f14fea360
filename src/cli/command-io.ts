/** What a command may touch of the outside, so that tests give it their own; and the two ways in which one fails. */

export type CommandIo = Readonly<{
  out(text: string): void
  err(text: string): void
  env: Readonly<Record<string, string | undefined>>
  /** Whether colors are wanted: a terminal, and no NO_COLOR. */
  colors: boolean
}>

/** Exit codes: what was asked was done; the answer is no; the command was used wrongly. */
export const exitCode = { done: 0, no: 1, wrongUse: 2 } as const

export type ExitCode = (typeof exitCode)[keyof typeof exitCode]

/** Ends a command with one line on standard error. */
export class CommandFailure extends Error {
  readonly code: ExitCode
  constructor(code: 1 | 2, message: string) {
    super(message)
    this.name = 'CommandFailure'
    this.code = code
  }
}

/** The command was right, and the answer to it is no: nothing found, nobody there, something refused. */
export const answerIsNo = (message: string): CommandFailure => new CommandFailure(exitCode.no, message)

export const wrongUse = (message: string): CommandFailure => new CommandFailure(exitCode.wrongUse, message)
