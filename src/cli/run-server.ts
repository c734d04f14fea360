/**
 * What `peerdns serve` does: runs the server until it is told to stop.
 *
 * SIGTERM and SIGINT drain it and end with 0; a second one ends it at once. SIGHUP reads the configuration again.
 */
import { ListenError } from '../base/errors.ts'
import { problemToText } from '../config/problem.ts'
import { startServer } from '../main.ts'
import { answerIsNo, exitCode, type CommandIo } from './command-io.ts'
import { loadForServing } from './load.ts'

/** 128 and the signal's number, as shells report it. */
const forcedExitCodes = { SIGINT: 130, SIGTERM: 143 } as const

/** @throws CommandFailure where the configuration is wrong, or an address cannot be listened on. */
export async function runServer(io: CommandIo, file: string): Promise<void> {
  const config = loadForServing(file)
  if (!('cluster' in config)) {
    for (const problem of config) io.err(`${problemToText(problem)}\n`)
    throw answerIsNo(`${file} is wrong, so nothing was started`)
  }
  let stop: (() => Promise<void>) | null = null
  let isStopping = false
  for (const signal of ['SIGTERM', 'SIGINT'] as const) {
    process.on(signal, () => {
      if (isStopping) process.exit(forcedExitCodes[signal])
      isStopping = true
      // Nothing is in flight before the start is over.
      if (stop === null) process.exit(exitCode.done)
      void stop().then(() => process.exit(exitCode.done))
    })
  }
  try {
    const server = await startServer(config)
    stop = () => server.stop()
    process.on('SIGHUP', () => void server.reload())
  } catch (error) {
    if (error instanceof ListenError) throw answerIsNo(error.message)
    throw error
  }
}
