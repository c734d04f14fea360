/** `peerdns serve --config F`: runs the server until it is told to stop. */
import type { Command } from 'commander'
import type { CommandIo } from './command-io.ts'
import { withExamples } from './shared-options.ts'
import { startServing } from './start-serving.ts'

export function addServe(program: Command, io: CommandIo): void {
  const serve = program
    .command('serve')
    .description('serve DNS; stops gracefully on SIGTERM, reads the configuration again on SIGHUP')
    .requiredOption('--config <file>', 'configuration file (YAML)')
  withExamples(serve, 'serve --config config/cluster-b.yaml').action(async ({ config }: { config: string }) => {
    await startServing(io, config)
  })
}
