/**
 * What queries cost while the cluster changes: peerdns on an API server of ours that tells 500 changes of endpoints a
 * second, and on the same one while nothing changes, round by round. Rivals are left out: they need a real API server,
 * which takes fewer changes than that (see scale.ts for those).
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { setTimeout as sleep } from 'node:timers/promises'
import { RCODE } from '../../src/wire/iana.ts'
import { nameToText } from '../../src/wire/name.ts'
import { writeKubeconfig } from '../../test/e2e/support/kubeconfig.ts'
import { stringify } from 'yaml'
import type { PeerdnsProgram } from '../rivals/peerdns.ts'
import type { ServerPlan } from '../rivals/server-plan.ts'
import type { ReplayCommand } from '../scale/replay-server.ts'
import { ownerOf } from '../scale/objects.ts'
import { medianRatio } from '../statistics.ts'
import { peeredWorkload, type Workload } from '../workloads.ts'
import type { Workspace } from '../workspace.ts'
import { LoadOn, type Repeat, type RunAtRate } from './throughput.ts'

const services = 1_000
const endpoints = 10
const changesPerSecond = 500
const queriesPerSecond = 30_000
/** How long changes go on before they are measured. */
const settleMs = 1_000

export type ChangesResult = Readonly<{
  title: string
  quiet: readonly (RunAtRate | null)[]
  changing: readonly (RunAtRate | null)[]
  /** That were told, a second; less than asked for where the machine did not keep up. */
  changesPerSecond: number
  /** CPU per query while changes come, by that while none come. */
  ratio: number | null
}>

export async function measureUnderChanges(
  workspace: Workspace,
  program: PeerdnsProgram,
  { seconds, rounds }: Repeat
): Promise<ChangesResult> {
  const worker = new Worker(new URL('../scale/replay-server.ts', import.meta.url), {
    workerData: { services, endpoints }
  })
  // Threads of this process: there are no origins.
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  const tell = (command: ReplayCommand): void => worker.postMessage(command)
  const said = async (): Promise<string> =>
    new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))
  const plan = await planOf(workspace, program, await said())
  // The first half has addresses that never change, the other one changes.
  const names = Array.from({ length: 200 }, (_, at) => nameToText(ownerOf(at * (services / 200) + (at % 2))))
  const workload: Workload = {
    ...peeredWorkload,
    questions: names.map((name) => ({ name, type: 'A' })),
    expected: { rcode: RCODE.NOERROR, answers: null }
  }
  try {
    const child = await workspace.start(plan, { question: workload.questions[0]!, expected: workload.expected })
    const server = { plan, child }
    const load = new LoadOn(workspace, workload)
    await load.problemOf(server)
    await load.maximum(server, Math.min(2, seconds))
    const quiet: (RunAtRate | null)[] = []
    const changing: (RunAtRate | null)[] = []
    let [changes, changedMs] = [0, 0]
    for (let round = 1; round <= rounds; round++) {
      workspace.say(`round ${round} of ${rounds}: changes`)
      quiet.push(await load.atRate(server, queriesPerSecond, seconds))
      tell({ kind: 'change', perSecond: changesPerSecond })
      const startedAtMs = performance.now()
      await sleep(settleMs)
      changing.push(await load.atRate(server, queriesPerSecond, seconds))
      changedMs += performance.now() - startedAtMs
      const told = said()
      tell({ kind: 'stop' })
      changes = Number(await told)
      await sleep(settleMs)
    }
    await child.stop()
    return {
      title: `While endpoints change: A of 200 of ${services} Services with ${services * endpoints} endpoints`,
      quiet,
      changing,
      changesPerSecond: (changes * 1000) / changedMs,
      ratio: medianRatio(cpuOf(changing), cpuOf(quiet))
    }
  } finally {
    await worker.terminate()
  }
}

const cpuOf = (runs: readonly (RunAtRate | null)[]): (number | null)[] =>
  runs.map((run) => run?.cpuMicroseconds ?? null)

async function planOf(workspace: Workspace, program: PeerdnsProgram, server: string): Promise<ServerPlan> {
  const { folder, port, adminPort } = await workspace.place()
  const kubeconfig = join(folder, 'kubeconfig')
  writeKubeconfig(kubeconfig, { context: 'replay', server, caFile: '', user: { token: 'none' } })
  const config = {
    cluster: { name: 'bench-a', source: { kubernetes: { kubeconfig } } },
    listen: [`127.0.0.1:${port}`],
    admin: `127.0.0.1:${adminPort}`,
    forward: [],
    log: { level: 'warn' }
  }
  const file = join(folder, 'config.yaml')
  writeFileSync(file, stringify(config))
  const args = [...program.nodeOptions, program.main, 'serve', '--config', file]
  return { id: 'peerdns', title: 'peerdns', setUp: 'API server, one thread', command: program.node, args, port }
}
