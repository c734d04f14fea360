/**
 * CPU per query, latency under a fixed load, and the maximum, of several servers that take turns.
 *
 * All servers of one fleet run all the time, bound to one core, and dnsperf is bound to another. In every round each
 * workload and load goes to one server after the other, so that what else the machine does hits all of them.
 */
import { isAsExpected, Asker } from '../ask.ts'
import type { Child } from '../children.ts'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { queryFileOf } from '../dataset.ts'
import { runDnsperf, type DnsperfRun, type Latency } from '../dnsperf.ts'
import { cpuSecondsBetween, readCoreBusySeconds, readCpu, readRssOctets } from '../process-usage.ts'
import { isEcho, type ServerId, type ServerPlan } from '../rivals/server-plan.ts'
import type { Workload, WorkloadId } from '../workloads.ts'
import { endOfLog, type Workspace } from '../workspace.ts'

/**
 * Queries under way at a fixed rate: enough for a pause of some milliseconds, few enough for everybody's receive
 * buffer.
 */
const outstandingAtRate = 200
/** Queries under way when the maximum is looked for; halved while more than `maxLostShare` of them are lost. */
const outstandingAtMaximum = 100
const leastOutstanding = 25
/** Questions of a workload that are asked one by one first; the others come with the load. */
const checkedQuestions = 1_000
const maxLostShare = 0.001
/**
 * Caches, and the compilers of those whose code is compiled while it runs, are part of every server's life, but not of
 * a run of some seconds: on one core, V8's compilers take it from the server for milliseconds in the first seconds.
 */
const warmUpSeconds = 1
const warmUpSecondsOfNode = 4
const runOnNode: ReadonlySet<ServerId> = new Set(['peerdns', 'dns2', 'echo'])

export type RunAtRate = Readonly<{
  cpuMicroseconds: number
  answeredPerSecond: number
  lostShare: number
  responseOctets: number
  latency: Latency | null
  /** What others used of the server's core meanwhile, 0 to 1. */
  foreignShare: number | null
}>

export type RunAtMaximum = Readonly<{
  answeredPerSecond: number
  cpuMicroseconds: number
  lostShare: number
  outstanding: number
  foreignShare: number | null
}>

/** What one server did in one workload; null in a round where a run failed. */
export type ServerRuns = {
  id: ServerId
  title: string
  setUp: string
  atRate: (RunAtRate | null)[]
  /** Empty where the workload does not ask for it. */
  atMaximum: (RunAtMaximum | null)[]
  rssOctets: number
}

/** A server that is not measured in a workload, and why. */
export type Absence = Readonly<{ title: string; why: string }>

export type ThroughputResult = Readonly<{
  id: WorkloadId
  title: string
  shortTitle: string
  rate: number
  servers: readonly ServerRuns[]
  absent: readonly Absence[]
}>

export type RunningServer = Readonly<{ plan: ServerPlan; child: Child }>

export type Repeat = Readonly<{ seconds: number; rounds: number }>

/** What goes on around each run of one server in one workload; null: nothing. */
export type Surroundings = (
  server: RunningServer,
  id: WorkloadId
) => Readonly<{
  begin: () => Promise<void>
  end: () => Promise<void>
}> | null

type Measured = {
  workload: Workload
  load: LoadOn
  runs: { server: RunningServer; runs: ServerRuns }[]
  absent: Absence[]
}

/** @param absent servers that are not in the fleet, and why */
export async function measureThroughput(
  workspace: Workspace,
  fleet: readonly RunningServer[],
  workloads: readonly Workload[],
  repeat: Repeat,
  absent: readonly Absence[] = [],
  surroundings: Surroundings = () => null
): Promise<ThroughputResult[]> {
  const measured: Measured[] = []
  for (const workload of workloads) {
    const one: Measured = { workload, load: new LoadOn(workspace, workload), runs: [], absent: [...absent] }
    for (const server of fleet) {
      const { plan } = server
      if (plan.onlyIn?.includes(workload.id) === false) continue
      const why = plan.leftOut?.[workload.id] ?? (await one.load.problemOf(server))
      if (why === null) one.runs.push({ server, runs: emptyRuns(plan) })
      else {
        workspace.say(`${plan.title} is left out of \`${workload.id}\`: ${why}.`)
        one.absent.push({ title: plan.title, why })
      }
    }
    measured.push(one)
  }
  for (const { load, runs } of measured) {
    for (const { server } of runs) {
      await load.maximum(server, runOnNode.has(server.plan.id) ? warmUpSecondsOfNode : warmUpSeconds)
    }
  }
  for (let round = 1; round <= repeat.rounds; round++) {
    for (const { workload, load, runs: all } of measured) {
      workspace.say(`round ${round} of ${repeat.rounds}: ${workload.id}`)
      for (const { server, runs } of all) {
        const around = surroundings(server, workload.id)
        await around?.begin()
        runs.atRate.push(await load.atRate(server, workload.rate, repeat.seconds))
        await around?.end()
      }
      for (const { server, runs } of all) {
        if (workload.hasMaximum) runs.atMaximum.push(await load.maximum(server, repeat.seconds))
        if (!server.child.hasEnded()) runs.rssOctets = readRssOctets(server.child.pid)
      }
    }
  }
  return measured.map(({ workload: { id, title, shortTitle, rate }, runs, absent }) => ({
    id,
    title,
    shortTitle,
    rate,
    servers: runs.map(({ runs }) => runs),
    absent
  }))
}

const emptyRuns = ({ id, title, setUp }: ServerPlan): ServerRuns => ({
  id,
  title,
  setUp,
  atRate: [],
  atMaximum: [],
  rssOctets: 0
})

/** One workload as load on any server. */
export class LoadOn {
  readonly #workspace: Workspace
  readonly #workload: Workload
  readonly #queryFile: string

  constructor(workspace: Workspace, workload: Workload) {
    this.#workspace = workspace
    this.#workload = workload
    this.#queryFile = join(workspace.folder, `${workload.id}.queries`)
    writeFileSync(this.#queryFile, queryFileOf(workload.questions))
  }

  /** Asks the questions once: fills caches, and shows a server that answers wrongly. The echo answers nothing. */
  async problemOf({ plan, child }: RunningServer): Promise<string | null> {
    if (isEcho(plan.id)) return null
    if (child.hasEnded()) return 'it ended'
    const asker = await Asker.to(plan.port)
    try {
      for (const question of this.#workload.questions.slice(0, checkedQuestions)) {
        const answer = (await asker.ask(question, 2_000)) ?? (await asker.ask(question, 2_000))
        if (answer === null) return `no answer for ${question.name}`
        if (isAsExpected(answer.message, this.#workload.expected)) continue
        return `RCODE ${answer.message.rcode} with ${answer.message.answer.length} answers for ${question.name}`
      }
      return null
    } finally {
      asker.close()
    }
  }

  async atRate(server: RunningServer, rate: number, seconds: number): Promise<RunAtRate | null> {
    const run = await this.#run(server, seconds, rate, outstandingAtRate)
    if (run === null) return null
    const { responseOctets, latency, ...shares } = run
    return { responseOctets, latency, ...sharesOf(shares) }
  }

  async maximum(server: RunningServer, seconds: number): Promise<RunAtMaximum | null> {
    for (let outstanding = outstandingAtMaximum; outstanding >= leastOutstanding; outstanding /= 2) {
      const run = await this.#run(server, seconds, null, outstanding)
      if (run === null) return null
      const shares = sharesOf(run)
      if (shares.lostShare < maxLostShare) return { outstanding: Math.round(outstanding), ...shares }
    }
    return null
  }

  /** Null where the run failed; why is said at once. */
  async #run({ plan, child }: RunningServer, seconds: number, rate: number | null, outstanding: number) {
    const { cores, folder, say } = this.#workspace
    if (child.hasEnded()) {
      say(`${plan.title} has ended${endOfLog(child.logFile)}`)
      return null
    }
    await this.#workspace.untilQuiet()
    const busyBefore = cores.server === null ? null : readCoreBusySeconds(cores.server)
    const cpuBefore = readCpu(child.pid)
    let run: DnsperfRun
    try {
      run = await runDnsperf({
        port: plan.port,
        queryFile: this.#queryFile,
        seconds,
        queriesPerSecond: rate,
        outstanding,
        core: cores.client,
        transport: this.#workload.transport,
        hasEdns: this.#workload.hasEdns,
        folder
      })
    } catch (error) {
      say(`${plan.title}, ${this.#workload.id}: ${(error as Error).message}`)
      return null
    }
    if (child.hasEnded()) return null
    const cpuSeconds = cpuSecondsBetween(cpuBefore, readCpu(child.pid))
    const busySeconds = busyBefore === null ? null : readCoreBusySeconds(cores.server!) - busyBefore
    const foreignShare = busySeconds === null ? null : Math.max(0, (busySeconds - cpuSeconds) / run.seconds)
    return { ...run, cpuSeconds, foreignShare }
  }
}

function sharesOf(
  run: Pick<DnsperfRun, 'completed' | 'sent' | 'lost' | 'seconds'> & { cpuSeconds: number; foreignShare: number | null }
) {
  return {
    cpuMicroseconds: (run.cpuSeconds * 1e6) / run.completed,
    answeredPerSecond: run.completed / run.seconds,
    lostShare: run.sent === 0 ? 1 : run.lost / run.sent,
    foreignShare: run.foreignShare
  }
}
