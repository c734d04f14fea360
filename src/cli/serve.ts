/**
 * `peerdns serve --config F`: runs the server until it is told to stop.
 *
 * SIGTERM and SIGINT drain it and end with 0; a second one ends it at once. SIGHUP reads the configuration again.
 */
import type { Command } from 'commander'
import { ListenError } from '../base/errors.ts'
import { answerIsNo, exitCode, type CommandIo } from './command-io.ts'
import { withExamples } from './shared-options.ts'

/** 128 and the signal's number, as shells report it. */
const forcedExitCodes = { SIGINT: 130, SIGTERM: 143 } as const

export function addServe(program: Command, io: CommandIo): void {
  const serve = program
    .command('serve')
    .description('serve DNS; stops gracefully on SIGTERM, reads the configuration again on SIGHUP')
    .requiredOption('--config <file>', 'configuration file (YAML)')
  withExamples(serve, 'serve --config config/cluster-b.yaml').action(async ({ config }: { config: string }) =>
    runServer(io, config)
  )
}

async function runServer(io: CommandIo, file: string): Promise<void> {
  // Only this command needs the server, and all of it takes a while to load.
  const [{ startServer }, { loadForServing }, { problemToText }] = await Promise.all([
    import('../main.ts'),
    import('./load.ts'),
    import('../config/problem.ts')
  ])
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
