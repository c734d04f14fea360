/**
 * What queries cost while the cluster changes: peerdns and CoreDNS, each on an API server of ours of its own that tells
 * changes of endpoints, and on the same one while nothing changes, in the same rounds.
 *
 * A real API server takes fewer changes than that (scale.ts measures with one).
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { setTimeout as sleep } from 'node:timers/promises'
import { stringify } from 'yaml'
import { writeKubeconfig } from '../../test/e2e/support/kubeconfig.ts'
import { bindThreads } from '../children.ts'
import { allowedCores } from '../process-usage.ts'
import { corednsOnApiServer } from '../rivals/coredns.ts'
import type { Rivals } from '../rivals/find.ts'
import { serverTitles, type Place, type ServerPlan } from '../rivals/server-plan.ts'
import type { PeerdnsProgram } from '../rivals/peerdns.ts'
import type { ReplayCommand } from '../scale/replay-server.ts'
import { changesPerSecond, changingEndpoints, changingServices, type Workload } from '../workloads.ts'
import type { Workspace } from '../workspace.ts'
import type { RunningServer, Surroundings } from './throughput.ts'

/** How long changes go on before they are measured, and how long a server gets to work off the last ones. */
const settleMs = 1_000
/** A share of the changes that were to be told: below it the figures are for fewer, and the report says so. */
const toldShare = 0.95

/** An API server in a thread of its own. */
class ChangingApiServer {
  readonly url: string
  readonly #worker: Worker
  #startedAtMs = 0
  #changes = 0
  #changedMs = 0

  private constructor(worker: Worker, url: string) {
    this.#worker = worker
    this.url = url
  }

  static async start(): Promise<ChangingApiServer> {
    const workerData = { services: changingServices, endpoints: changingEndpoints }
    const worker = new Worker(new URL('../scale/replay-server.ts', import.meta.url), { workerData })
    return new ChangingApiServer(worker, await saidBy(worker))
  }

  async begin(): Promise<void> {
    this.#tell({ kind: 'change', perSecond: changesPerSecond })
    this.#startedAtMs = performance.now()
    await sleep(settleMs)
  }

  async end(): Promise<void> {
    const told = saidBy(this.#worker)
    this.#changedMs += performance.now() - this.#startedAtMs
    this.#tell({ kind: 'stop' })
    this.#changes += Number(await told)
    await sleep(settleMs)
  }

  /** That were told; less than asked for where the machine did not keep up. */
  get changesPerSecond(): number {
    return (this.#changes * 1000) / this.#changedMs
  }

  async close(): Promise<void> {
    await this.#worker.terminate()
  }

  #tell(command: ReplayCommand): void {
    // Threads of this process: there are no origins.
    // oxlint-disable-next-line unicorn/require-post-message-target-origin
    this.#worker.postMessage(command)
  }
}

const saidBy = async (worker: Worker): Promise<string> =>
  new Promise((resolve, reject) => worker.once('message', resolve).once('error', reject))

export type ChangesFleet = Readonly<{
  fleet: Readonly<{ workloads: readonly Workload[]; plans: () => Promise<ServerPlan[]>; surroundings: Surroundings }>
  close: () => Promise<void>
}>

/** Each server has an API server of its own: while one is measured, nothing changes for the others on its core. */
export async function changesFleet(
  workspace: Workspace,
  { peerdns, coredns }: Rivals,
  workloads: readonly Workload[]
): Promise<ChangesFleet> {
  const apiServers = new Map<string, ChangingApiServer>()
  // The API servers are threads of this process, and belong beside the client.
  const { client } = workspace.cores
  const cores = allowedCores()
  const kubeconfigFor = async (id: string, place: Place): Promise<string> => {
    const apiServer = await ChangingApiServer.start()
    if (client !== null) bindThreads(process.pid, client)
    apiServers.set(id, apiServer)
    const file = join(place.folder, 'kubeconfig')
    writeKubeconfig(file, { context: 'replay', server: apiServer.url, caFile: '', user: { token: 'none' } })
    return file
  }
  const plans = async (): Promise<ServerPlan[]> => {
    const place = await workspace.place()
    const all = [peerdnsOnApiServer(peerdns, place, await kubeconfigFor('peerdns', place))]
    if (coredns === null) return all
    const itsPlace = await workspace.place()
    all.push(corednsOnApiServer(coredns.path, itsPlace, await kubeconfigFor('coredns', itsPlace), 'replay'))
    return all
  }
  const surroundings = ({ plan }: RunningServer, id: string) =>
    id === 'changes' ? (apiServers.get(plan.id) ?? null) : null
  const close = async (): Promise<void> => {
    for (const [id, apiServer] of apiServers) {
      const told = apiServer.changesPerSecond
      if (told < changesPerSecond * toldShare)
        workspace.note(`${id} was told ${told.toFixed(0)} changes a second in place of ${changesPerSecond}.`)
      await apiServer.close()
    }
    if (client !== null) bindThreads(process.pid, ...cores)
  }
  return { fleet: { workloads, plans, surroundings }, close }
}

function peerdnsOnApiServer(
  program: PeerdnsProgram,
  { folder, port, adminPort }: Place,
  kubeconfig: string
): ServerPlan {
  const config = {
    cluster: { name: 'bench-a', source: { kubernetes: { kubeconfig } } },
    listen: [`127.0.0.1:${port}`],
    admin: `127.0.0.1:${adminPort}`,
    forward: [],
    batching: program.batching ?? 'auto',
    threads: program.threads ?? 1,
    log: { level: 'warn' }
  }
  const file = join(folder, 'config.yaml')
  writeFileSync(file, stringify(config))
  const args = [...program.nodeOptions, program.main, 'serve', '--config', file]
  const setUp = 'list and watch of an API server of ours'
  return { id: 'peerdns', title: serverTitles.peerdns, setUp, command: program.node, args, port }
}
