/**
 * peerdns alone, on an API server of ours that replays changes faster than a real one takes them: latency of queries
 * meanwhile, and the longest delay while everything is listed.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { setTimeout as sleep } from 'node:timers/promises'
import { nameToText } from '../../src/wire/name.ts'
import { writeKubeconfig } from '../../test/e2e/support/kubeconfig.ts'
import { Part } from '../../test/e2e/support/part.ts'
import { aRdata } from '../../src/wire/rdata.ts'
import { runDnsperf, type DnsperfRun } from '../dnsperf.ts'
import type { PeerdnsProgram } from '../rivals/peerdns.ts'
import { latencyFigures, type LatencyFigures } from './figures.ts'
import { firstAddresses, ownerOf } from './objects.ts'
import { addressQuery, Prober, untilMs } from './prober.ts'
import type { ReplayCommand } from './replay-server.ts'
import { writeConfig } from './servers.ts'

const askEveryMs = 2
const giveUpAfterMs = 120_000

export type ReplayFigures = Readonly<{
  services: number
  changesPerSecond: number
  dnsperf: Pick<DnsperfRun, 'sent' | 'lost' | 'latency'>
  /** Delay of answers from when the first one came until all was listed, and while all was listed again. */
  firstList: LatencyFigures
  relist: LatencyFigures
}>

export async function measureReplay(options: {
  program: PeerdnsProgram
  folder: string
  services: number
  endpoints: number
  changesPerSecond: number
  queriesPerSecond: number
  seconds: number
}): Promise<ReplayFigures> {
  const { program, folder, services, endpoints, changesPerSecond, queriesPerSecond, seconds } = options
  const worker = new Worker(new URL('replay-server.ts', import.meta.url), { workerData: { services, endpoints } })
  const listens = new Promise<string>((resolve, reject) => worker.once('message', resolve).once('error', reject))
  // Threads of this process: there are no origins.
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  const tell = (command: ReplayCommand): void => worker.postMessage(command)
  const kubeconfig = join(folder, 'replay.kubeconfig')
  const server = await listens
  writeKubeconfig(kubeconfig, { context: 'replay', server, caFile: '', user: { token: 'none' } })
  const { port, file } = await writeConfig(folder, `{kubeconfig: ${kubeconfig}}`)
  const part = new Part({
    name: 'peerdns-replay',
    folder,
    command: program.node,
    args: [...program.nodeOptions, program.main, 'serve', '--config', file],
    isReady: async () => true
  })
  try {
    part.launch()
    const last = {
      query: addressQuery(ownerOf(services - 2)),
      octets: aRdata(firstAddresses(services - 2, endpoints)[0]!)
    }
    const prober = await Prober.to(port)
    const firstList = await delaysUntil(prober, last.query, () => prober.ask(last.query, last.octets))
    await sleep(2_000)
    const listed = nextMessage(worker)
    tell({ kind: 'relist' })
    let isListed = false
    void listed.then(() => (isListed = true))
    const relist = await delaysUntil(prober, last.query, async () => isListed)
    prober.close()
    await sleep(2_000)
    const queryFile = join(folder, 'replay.queries')
    const names = Array.from({ length: 1_000 }, (_, at) => nameToText(ownerOf(Math.floor((at * services) / 1_000))))
    writeFileSync(queryFile, names.map((name) => `${name} A\n`).join(''))
    tell({ kind: 'change', perSecond: changesPerSecond })
    const dnsperf = await runDnsperf({
      port,
      queryFile,
      seconds,
      queriesPerSecond,
      outstanding: 200,
      core: null,
      folder
    })
    const changed = nextMessage(worker)
    tell({ kind: 'stop' })
    const changes = Number(await changed)
    const { sent, lost, latency } = dnsperf
    return {
      services,
      changesPerSecond: changes / dnsperf.seconds,
      dnsperf: { sent, lost, latency },
      firstList,
      relist
    }
  } finally {
    await part.kill()
    await worker.terminate()
  }
}

const nextMessage = async (worker: Worker): Promise<string> => new Promise((resolve) => worker.once('message', resolve))

/** Asks every 2 ms, whatever the earlier questions do, until it is done; how long each answer took. */
async function delaysUntil(prober: Prober, query: Buffer, isDone: () => Promise<boolean>): Promise<LatencyFigures> {
  const delaysMs: number[] = []
  const startedAtMs = performance.now()
  const progress = { isDone: false }
  const look = async (): Promise<void> => {
    while (!(await isDone()) && performance.now() - startedAtMs < giveUpAfterMs) await sleep(20)
    progress.isDone = true
  }
  const looking = look()
  while (!progress.isDone) {
    const askedAtMs = performance.now()
    const wasAnswering = delaysMs.length > 0
    void prober.ask(query, null).then((isAnswered) => {
      // Before the first answer nobody listens; after it, silence is a delay like any other.
      if (isAnswered || wasAnswering) delaysMs.push(performance.now() - askedAtMs)
    })
    await untilMs(askedAtMs + askEveryMs)
  }
  await looking
  return latencyFigures(delaysMs)
}
