/** What `peerdns serve` does: runs the server until it is told to stop. */
import { ListenError } from '../base/errors.ts'
import { ConfigError, problemToText } from '../config/problem.ts'
import { buildServer } from '../main.ts'
import { answerIsNo, type CommandIo } from './command-io.ts'
import { loadForServing } from './load.ts'
import type { ServeSignals } from './serve-signals.ts'

/** @throws CommandFailure where the configuration is wrong, or an address cannot be listened on. */
export async function runServer(io: CommandIo, file: string, signals: ServeSignals): Promise<void> {
  const config = loadForServing(file)
  if (config instanceof ConfigError) {
    for (const problem of config.problems) io.err(`${problemToText(problem)}\n`)
    throw answerIsNo(`${file} is wrong, so nothing was started`)
  }
  const server = buildServer(config)
  signals.starting(server)
  try {
    await server.start()
  } catch (error) {
    if (error instanceof ListenError) throw answerIsNo(error.message)
    throw error
  }
  signals.started()
}
