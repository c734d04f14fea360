/**
 * `peerdns demo`: clusters A, B and C peered on loopback, from the files in config/, and the story of a dead endpoint
 * and a dead cluster, told live by B's own answers.
 */
import type { Command } from 'commander'
import { ConfigError } from '../config/problem.ts'
import { ListenError } from '../base/errors.ts'
import { answerIsNo, wrongUse, type CommandIo } from './command-io.ts'
import { problemToText } from '../config/problem.ts'
import { withExamples } from './shared-options.ts'

type DemoFlags = Readonly<{ story: boolean; once?: true; basePort: string }>

/** DNS on base + 1 to 3, admin on base + 4001 to 4003. */
const defaultBasePort = 5300
const highestBasePort = 65_535 - 4_003

export function addDemo(program: Command, io: CommandIo): void {
  const demo = program
    .command('demo')
    .description('start clusters A, B and C peered on loopback, and show live what happens when things die')
    .option('--no-story', 'only serve, until Ctrl-C')
    .option('--once', 'play the story once, then end (within 90 seconds)')
    .option('--base-port <port>', 'DNS on this + 1 to 3, admin on this + 4001 to 4003', String(defaultBasePort))
  withExamples(demo, 'demo', 'demo --once', 'demo --no-story --base-port 15300').action(async (flags: DemoFlags) =>
    runDemo(io, flags)
  )
}

async function runDemo(io: CommandIo, flags: DemoFlags): Promise<void> {
  const basePort = Number(flags.basePort)
  if (!Number.isInteger(basePort) || basePort < 1024 || basePort > highestBasePort) {
    throw wrongUse(`--base-port: a number from 1024 to ${highestBasePort}`)
  }
  const [{ DemoClusters }, { tellStory, printWelcome }] = await Promise.all([
    import('./demo-clusters.ts'),
    import('./demo-story.ts')
  ])
  const clusters = new DemoClusters(basePort)
  const interrupted = Promise.withResolvers<void>()
  const interrupt = (): void => interrupted.resolve()
  process.once('SIGINT', interrupt)
  process.once('SIGTERM', interrupt)
  try {
    await clusters.start()
    await printWelcome(io, clusters)
    if (flags.story) await Promise.race([tellStory(io, clusters), interrupted.promise])
    if (flags.once !== true) {
      io.out('\nA, B and C go on serving; Ctrl-C ends them.\n')
      await interrupted.promise
    }
  } catch (error) {
    if (error instanceof ListenError) throw answerIsNo(`${error.message}; --base-port moves all ports of the demo`)
    if (error instanceof ConfigError) throw answerIsNo(error.problems.map(problemToText).join('\n'))
    throw error
  } finally {
    process.off('SIGINT', interrupt)
    process.off('SIGTERM', interrupt)
    await clusters.stop()
  }
}
