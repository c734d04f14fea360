/**
 * What peerdns does that is offered twice of what it can answer: `node bench/overload.ts`. It gets a part of a core;
 * first its maximum is looked for, then comes the overload for a minute, then a load that it can bear. That with answers
 * that lie ready, and, shorter, with one datagram at a time, with names that nobody asked for before, and with names that
 * have to be asked of another cluster. Goes to bench/results/overload.md and overload.json. Takes three minutes. Exit
 * code 1 where a demand is missed: overload/demands.ts.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Asker } from './ask.ts'
import { measuredCommit } from './commit.ts'
import { queryFileOf, zone, type BenchQuestion } from './dataset.ts'
import { runDnsperf, type DnsperfRun } from './dnsperf.ts'
import { startClusterA } from './fleets.ts'
import { cpuGroup } from './overload/cpu-group.ts'
import { type OverloadResults, type OverloadSample } from './overload/demands.ts'
import { demandsOf, reportOf, type Figures } from './overload/report.ts'
import {
  allowedCores,
  cpuSecondsBetween,
  hasRaisedPriority,
  readCoreBusySeconds,
  readCpu,
  readRssOctets
} from './process-usage.ts'
import { findDnsperf } from './rivals/find.ts'
import { peerdnsForwarding, peerdnsForZone } from './rivals/peerdns.ts'
import { spreadOf } from './statistics.ts'
import { Workspace } from './workspace.ts'
import { clusterWorkloads, ownServices, peeredSuffixes, peeredWorkload } from './workloads.ts'

const root = join(import.meta.dirname, '..')
const options = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    times: { type: 'string', default: '2' },
    only: { type: 'string' },
    out: { type: 'string', default: join(import.meta.dirname, 'results') },
    'no-files': { type: 'boolean', default: false }
  }
}).values

/** Of a core: what leaves dnsperf enough to offer twice as much. */
const share = 0.3
/** Before an overload, and as often behind it. */
const maximumRuns = 2
const maximumSeconds = 2
/** Under way at once: more than a server holds and answers within dnsperf's time-out of a second. */
const outstandingInOverload = 60_000
/** Of the maximum: what a server that has recovered answers without loss. */
const recoveryShare = 0.4
const recoverySeconds = 3
const sampleEveryMs = 500
const outstandingAtMaximum = 100
/** So small that it is full before the overload begins: its growing to what it may is none of that. */
const cacheBytes = '4MiB'
/** More than any maximum: so many names are made for each second that it is looked for. */
const mostNewNamesPerSecond = 60_000

type SetUp = Readonly<{
  id: string
  title: string
  batching: 'auto' | 'off'
  /** `ready`: 200 names that lie ready; else names that come once: of our own zone, or of another cluster. */
  names: 'ready' | 'own' | 'peered'
  /** For how much of the time it is overloaded. */
  part: number
}>

const setUps: readonly SetUp[] = [
  { id: 'ready', title: 'answers that lie ready', batching: 'auto', names: 'ready', part: 1 },
  { id: 'plain', title: '`batching: off`', batching: 'off', names: 'ready', part: 1 / 5 },
  { id: 'own', title: 'names nobody asked for before', batching: 'auto', names: 'own', part: 1 / 5 },
  { id: 'peered', title: 'uncached peered names', batching: 'auto', names: 'peered', part: 1 / 5 }
]

const say = (line: string): void => console.error(`overload: ${line}`)
const thousands = (value: number): string => `${(value / 1000).toFixed(1)}k`

/** Names that are not there, each another one: an answer to the one before is of no use. */
class NewNames {
  readonly #suffix: string
  #given = 0

  constructor(namespace: string) {
    this.#suffix = `.${namespace}.svc.${zone}`
  }

  next(count: number): BenchQuestion[] {
    return Array.from({ length: count }, () => ({ name: `n${this.#given++}${this.#suffix}`, type: 'A' }))
  }
}

/** Asks for the health, for one name, and how much memory is used, until it is told to stop. */
async function watch(pid: number, port: number, adminPort: number, question: BenchQuestion, until: AbortSignal) {
  const samples: OverloadSample[] = []
  const asker = await Asker.to(port)
  try {
    while (!until.aborted) {
      const startedAtMs = performance.now()
      const isHealthy = await fetch(`http://127.0.0.1:${adminPort}/healthz`, { signal: AbortSignal.timeout(5_000) })
        .then(async (reply) => reply.ok && (await reply.text()) !== '')
        .catch(() => false)
      const healthMs = isHealthy ? performance.now() - startedAtMs : null
      const answer = await asker.ask(question, 1_000)
      samples.push({ rssOctets: readRssOctets(pid), healthMs, answerMs: answer?.tookMs ?? null })
      await sleep(Math.max(0, sampleEveryMs - (performance.now() - startedAtMs)))
    }
  } finally {
    asker.close()
  }
  return samples
}

type Served = Readonly<{
  pid: number
  port: number
  adminPort: number
  stop: () => Promise<void>
}>

const programWith = (batching: 'auto' | 'off') => ({
  node: process.execPath,
  nodeOptions: [],
  main: join(root, 'src', 'cli', 'main.ts'),
  batching
})

/** Starts what is overloaded, and the other cluster where it is asked. */
async function serve(workspace: Workspace, { batching, names }: SetUp, first: BenchQuestion): Promise<Served> {
  const place = await workspace.place()
  const { expected } = clusterWorkloads[0]!
  const program = programWith(batching)
  if (names !== 'peered') {
    const plan = peerdnsForZone(program, place, { services: ownServices, ttlSeconds: 5 })
    return { ...place, ...(await workspace.start(plan, { question: first, expected })) }
  }
  const clusterA = await startClusterA(workspace, program)
  const role = { suffixes: peeredSuffixes, peerPort: clusterA.plan.port }
  const plan = peerdnsForwarding(program, place, role, false, { cache: { maxBytes: cacheBytes } })
  const { pid, stop } = await workspace.start(plan, { question: first, expected })
  const stopBoth = async (): Promise<void> => {
    await stop()
    await clusterA.child.stop()
  }
  return { ...place, pid, stop: stopBoth }
}

async function measure(workspace: Workspace, setUp: SetUp): Promise<Figures> {
  const { names } = setUp
  const ready = (names === 'peered' ? peeredWorkload : clusterWorkloads[0]!).questions
  const newNames = names === 'ready' ? null : new NewNames(names === 'own' ? 'bench' : 'peered')
  const { pid, port, adminPort, stop } = await serve(workspace, setUp, ready[0]!)
  const group = cpuGroup(share)
  if (group === null) say('no control group can be made: the server has a whole core')
  else group.add(pid)
  const { folder, cores } = workspace
  const queryFile = join(folder, 'queries')
  const core = cores.client
  const load = async (
    seconds: number,
    queriesPerSecond: number | null,
    outstanding: number,
    mostPerSecond: number
  ): Promise<DnsperfRun> => {
    const questions = newNames?.next(Math.ceil(mostPerSecond * (seconds + 1))) ?? ready
    writeFileSync(queryFile, queryFileOf(questions))
    // A line for each answer is too much where they are many.
    const isTimed = newNames !== null
    return runDnsperf({ port, queryFile, seconds, queriesPerSecond, outstanding, folder, isTimed, core })
  }
  const rightAnswers = ({ rcodes }: DnsperfRun): number => rcodes[newNames === null ? 'NOERROR' : 'NXDOMAIN'] ?? 0
  try {
    const maxima: number[] = []
    const lookForMaximum = async (): Promise<void> => {
      const found = await load(maximumSeconds, null, outstandingAtMaximum, mostNewNamesPerSecond)
      maxima.push(rightAnswers(found) / found.seconds)
    }
    for (let run = 0; run <= maximumRuns; run++) await lookForMaximum()
    // In the first one, hot code was compiled.
    maxima.shift()
    const before = spreadOf(maxima)!.median
    say(`${setUp.id}: maximum ${thousands(before)} queries a second`)
    const restRssOctets = readRssOctets(pid)
    const over = new AbortController()
    const watching = watch(pid, port, adminPort, ready[0]!, over.signal)
    const offered = Math.round(before * Number(options.times))
    const usedBefore = readCpu(pid)
    const busyBefore = cores.server === null ? null : readCoreBusySeconds(cores.server)
    const seconds = Math.ceil(Number(options.seconds) * setUp.part)
    const overload = await load(seconds, offered, outstandingInOverload, offered)
    const ownSeconds = cpuSecondsBetween(usedBefore, readCpu(pid))
    const busySeconds = busyBefore === null ? null : readCoreBusySeconds(cores.server!) - busyBefore
    const foreignShare = busySeconds === null ? null : Math.max(0, (busySeconds - ownSeconds) / overload.seconds)
    over.abort()
    const samples = await watching
    const recovering = Math.round(before * recoveryShare)
    const recovery = await load(recoverySeconds, recovering, outstandingAtMaximum, recovering)
    // What else the machine does changes within a minute, and is to count on both sides.
    for (let run = 0; run < maximumRuns; run++) await lookForMaximum()
    const maximum = spreadOf(maxima)!.median
    const isLimited = group !== null
    const answered = rightAnswers(overload)
    return {
      title: setUp.title,
      maxima,
      maximum,
      overload,
      answered,
      recovery,
      samples,
      restRssOctets,
      isLimited,
      foreignShare
    }
  } finally {
    await stop()
    group?.remove()
  }
}

/** @returns whether every demand was met by answers that lie ready */
async function main(): Promise<boolean> {
  if (findDnsperf() === null) throw new Error('dnsperf is not here (Debian package dnsperf)')
  const [client = null, server = null] = allowedCores()
  const workspace = new Workspace({ client, server }, say)
  const wanted = options.only?.split(',') ?? setUps.map(({ id }) => id)
  const commit = measuredCommit(root)
  const all: Figures[] = []
  for (const setUp of setUps) if (wanted.includes(setUp.id)) all.push(await measure(workspace, setUp))
  const date = new Date().toISOString().slice(0, 10)
  const report = reportOf(all, {
    date,
    commit,
    share,
    maximumRuns,
    outstandingAtMaximum,
    cacheBytes,
    isRaised: hasRaisedPriority()
  })
  console.log(report)
  const results: OverloadResults = {
    date,
    commit,
    setUps: all.map((figures) => ({ title: figures.title, demands: demandsOf(figures) }))
  }
  if (!options['no-files']) {
    writeFileSync(join(options.out, 'overload.md'), report)
    writeFileSync(join(options.out, 'overload.json'), `${JSON.stringify(results, null, 1)}\n`)
  }
  for (const { title, demands } of results.setUps)
    for (const { what, measured, isMet } of demands) say(`${isMet ? 'met' : 'MISSED'}: ${title}: ${what}: ${measured}`)
  return results.setUps[0]!.demands.every(({ isMet }) => isMet)
}

process.exit((await main()) ? 0 : 1)
