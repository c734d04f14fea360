/** Runs the command line; what becomes of its failures: one clear line and an exit code. */
import { CommandFailure, exitCode, type CommandIo, type ExitCode } from './command-io.ts'
import { startServing } from './start-serving.ts'

/** Runs one command line (without node and script). Never rejects but for bugs. */
export async function run(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  try {
    const file = configOfServe(args)
    if (file === null) return await (await import('./program.ts')).runProgram(args, io)
    await startServing(io, file)
    return exitCode.done
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error
    io.err(`peerdns: ${error.message}\n`)
    return error.code
  }
}

/**
 * The file where this is `serve --config FILE` and nothing else, as every container has it: a server starts sooner
 * without the code of the other commands. Null: whatever it is, the parser of all commands knows.
 */
function configOfServe([command, option, ...more]: readonly string[]): string | null {
  if (command !== 'serve' || option === undefined) return null
  const [file, ...rest] = option.startsWith('--config=') ? [option.slice('--config='.length), ...more] : more
  if (!/^--config(=|$)/.test(option) || file === undefined || rest.length > 0) return null
  return file === '' || file.startsWith('-') ? null : file
}
