/** All commands as commander knows them. */
import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { addCache } from './cache.ts'
import { addCheck } from './check.ts'
import { exitCode, type CommandIo, type ExitCode } from './command-io.ts'
import { addDemo } from './demo.ts'
import { addEvents } from './events.ts'
import { addHealth } from './health.ts'
import { addPeers } from './peers.ts'
import { addPolicies } from './policies.ts'
import { addPropagation } from './propagation.ts'
import { addQuery } from './query.ts'
import { addRecords } from './records.ts'
import { addServe } from './serve.ts'
import { addStatus } from './status.ts'
import { addTrace } from './trace.ts'

/** Runs one command line (without node and script). @throws CommandFailure, and bugs. */
export async function runProgram(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  try {
    await buildProgram(io).parseAsync(args, { from: 'user' })
    return exitCode.done
  } catch (error) {
    // Its line is printed already; help and version end like this too.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCode.done : exitCode.wrongUse
    throw error
  }
}

function buildProgram(io: CommandIo): Command {
  const program = new Command('peerdns')
    .description("The DNS server with which Kubernetes clusters find each other's services.")
    .version(readVersion(), '--version', 'print the version')
    .exitOverride()
    .configureOutput({
      writeOut: (text) => io.out(text),
      writeErr: (text) => io.err(text),
      getOutHasColors: () => io.colors,
      getErrHasColors: () => io.colors,
      outputError: (text, write) =>
        write(
          `${text
            .trim()
            .replace(/^error: /, 'peerdns: ')
            .replaceAll(/\s*\n\s*/g, ' ')}\n`
        )
    })
    .addHelpText(
      'after',
      '\nExit codes: 0 done, 1 the answer is no (nothing found, nobody there, a wrong file), 2 wrong use.\n\n' +
        'Examples:\n  $ peerdns serve --config config/cluster-b.yaml\n  $ peerdns query api.backend.svc.cluster.local\n' +
        '  $ peerdns policies describe backend-from-a --admin http://127.0.0.1:9302\n'
    )
  for (const add of [
    addServe,
    addCheck,
    addDemo,
    addQuery,
    addTrace,
    addStatus,
    addRecords,
    addPolicies,
    addPeers,
    addPropagation,
    addCache,
    addEvents,
    addHealth
  ]) {
    add(program, io)
  }
  return program
}

const readVersion = (): string =>
  (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }).version
