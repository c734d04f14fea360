/** `peerdns serve --config F`: runs the server until it is told to stop. */
import type { Command } from 'commander'
import type { CommandIo } from './command-io.ts'
import { withExamples } from './shared-options.ts'

export function addServe(program: Command, io: CommandIo): void {
  const serve = program
    .command('serve')
    .description('serve DNS; stops gracefully on SIGTERM, reads the configuration again on SIGHUP')
    .requiredOption('--config <file>', 'configuration file (YAML)')
  withExamples(serve, 'serve --config config/cluster-b.yaml').action(async ({ config }: { config: string }) => {
    // Only this command needs the server, and all of it takes a while to load.
    const { runServer } = await import('./run-server.ts')
    await runServer(io, config)
  })
}
