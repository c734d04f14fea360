/**
 * What peerdns does that is offered twice of what it can answer: `node bench/overload.ts`. It gets a part of a core;
 * first its maximum is looked for, then comes the overload for a minute, then a load that it can bear, once with
 * batches of datagrams and once, shorter, without. Goes to bench/results/overload.md and overload.json. Takes two
 * minutes. Exit code 1 where a demand is missed: overload/demands.ts.
 */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { Asker } from './ask.ts'
import { queryFileOf, type BenchQuestion } from './dataset.ts'
import { runDnsperf, type DnsperfRun } from './dnsperf.ts'
import { cpuGroup } from './overload/cpu-group.ts'
import { demandsOn, type Demand, type OverloadSample } from './overload/demands.ts'
import {
  allowedCores,
  cpuSecondsBetween,
  hasRaisedPriority,
  readCoreBusySeconds,
  readCpu,
  readRssOctets
} from './process-usage.ts'
import { findDnsperf } from './rivals/find.ts'
import { peerdnsForZone } from './rivals/peerdns.ts'
import { percentile, spreadOf } from './statistics.ts'
import { Workspace } from './workspace.ts'
import { clusterWorkloads, ownServices } from './workloads.ts'

const root = join(import.meta.dirname, '..')
const options = parseArgs({
  options: {
    seconds: { type: 'string', default: '60' },
    times: { type: 'string', default: '2' },
    out: { type: 'string', default: join(import.meta.dirname, 'results') },
    'no-files': { type: 'boolean', default: false }
  }
}).values

/** Of a core: what leaves dnsperf enough to offer twice as much. */
const share = 0.3
const maximumRuns = 3
const maximumSeconds = 4
/** Under way at once: more than a server holds and answers within dnsperf's time-out of a second. */
const outstandingInOverload = 60_000
/** Of the maximum: what a server that has recovered answers without loss. */
const recoveryShare = 0.4
const recoverySeconds = 3
/** Datagrams one at a time are only the fallback: overloaded for a part of the time. */
const plainPart = 4
const sampleEveryMs = 500
const mebibyte = 1024 * 1024

const say = (line: string): void => console.error(`overload: ${line}`)
const outstandingAtMaximum = 100
const thousands = (value: number): string => `${(value / 1000).toFixed(1)}k`
const mebibytes = (value: number): string => `${value.toFixed(0)} MiB`
const milliseconds = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`

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

type Figures = Readonly<{
  maxima: readonly number[]
  maximum: number
  overload: DnsperfRun
  recovery: DnsperfRun
  samples: readonly OverloadSample[]
  /** Resident memory before the overload. */
  restRssOctets: number
  isLimited: boolean
  /** What others used of the server's core during the overload, 0 to 1; null where it has no core. */
  foreignShare: number | null
}>

async function measure(workspace: Workspace, batching: 'auto' | 'off', seconds: number): Promise<Figures> {
  const program = { node: process.execPath, nodeOptions: [], main: join(root, 'src', 'cli', 'main.ts'), batching }
  const place = await workspace.place()
  const { questions, expected } = clusterWorkloads[0]!
  const plan = peerdnsForZone(program, place, { services: ownServices, ttlSeconds: 5 })
  const group = cpuGroup(share)
  const { pid, stop } = await workspace.start(plan, { question: questions[0]!, expected })
  if (group === null) say('no control group can be made: the server has a whole core')
  else group.add(pid)
  const { folder, cores } = workspace
  const queryFile = join(folder, 'queries')
  writeFileSync(queryFile, queryFileOf(questions))
  const load = async (seconds: number, queriesPerSecond: number | null, outstanding: number): Promise<DnsperfRun> => {
    const core = cores.client
    const run = { port: plan.port, queryFile, seconds, queriesPerSecond, outstanding, folder, isTimed: false, core }
    return runDnsperf(run)
  }
  try {
    const maxima: number[] = []
    for (let run = 0; run <= maximumRuns; run++) {
      const { completed, seconds } = await load(maximumSeconds, null, outstandingAtMaximum)
      // In the first one, hot code is compiled.
      if (run > 0) maxima.push(completed / seconds)
    }
    const maximum = spreadOf(maxima)!.median
    say(`maximum: ${thousands(maximum)} queries a second`)
    const restRssOctets = readRssOctets(pid)
    const over = new AbortController()
    const watching = watch(pid, plan.port, place.adminPort, questions[0]!, over.signal)
    const offered = Math.round(maximum * Number(options.times))
    const usedBefore = readCpu(pid)
    const busyBefore = cores.server === null ? null : readCoreBusySeconds(cores.server)
    const overload = await load(seconds, offered, outstandingInOverload)
    const ownSeconds = cpuSecondsBetween(usedBefore, readCpu(pid))
    const busySeconds = busyBefore === null ? null : readCoreBusySeconds(cores.server!) - busyBefore
    const foreignShare = busySeconds === null ? null : Math.max(0, (busySeconds - ownSeconds) / overload.seconds)
    over.abort()
    const samples = await watching
    const recovery = await load(recoverySeconds, Math.round(maximum * recoveryShare), outstandingAtMaximum)
    return { maxima, maximum, overload, recovery, samples, restRssOctets, isLimited: group !== null, foreignShare }
  } finally {
    await stop()
    group?.remove()
  }
}

function demandsOf({ maximum, overload, recovery, samples, restRssOctets }: Figures): Demand[] {
  const { sent, lost, maxLatencyMs } = recovery
  return demandsOn({
    maximum,
    offeredPerSecond: overload.sent / overload.seconds,
    answeredPerSecond: overload.completed / overload.seconds,
    longestMs: overload.maxLatencyMs,
    meanMs: overload.meanLatencyMs,
    restRssOctets,
    samples,
    recovery: { sent, lost, longestMs: maxLatencyMs }
  })
}

const demandCell = ({ measured, isMet }: Demand): string => `${isMet ? 'met' : '**missed**'}: ${measured}`

/** The demands as a table: what was asked, and how both set-ups met it. */
function demandRows(first: readonly Demand[], second: readonly Demand[]): string[] {
  return [
    '| demand | to reach | batches of datagrams | one at a time (`batching: off`) |',
    '|---|---|---|---|',
    ...first.map(
      (demand, at) => `| ${demand.what} | ${demand.aim} | ${demandCell(demand)} | ${demandCell(second[at]!)} |`
    )
  ]
}

function rowsOf(figures: Figures): [string, string][] {
  const { maxima, maximum, overload, recovery, samples } = figures
  const answered = overload.completed / overload.seconds
  const rss = samples.map(({ rssOctets }) => rssOctets / mebibyte)
  const healthMs = Float64Array.from(samples.flatMap(({ healthMs }) => healthMs ?? [])).sort()
  const lostInRecovery = recovery.lost === 0 ? 'none lost' : `${recovery.lost} of ${recovery.sent} lost`
  return [
    ['maximum', `${thousands(maximum)} q/s (${thousands(Math.min(...maxima))} to ${thousands(Math.max(...maxima))})`],
    ['offered', `${thousands(overload.sent / overload.seconds)} q/s, ${(overload.sent / overload.seconds / maximum).toFixed(2)}x`],
    ['answered meanwhile', `${thousands(answered)} q/s, ${((100 * answered) / maximum).toFixed(0)} % of the maximum`],
    ['latency of what was answered', `mean ${milliseconds(overload.meanLatencyMs)}, longest ${milliseconds(overload.maxLatencyMs)}`],
    ['`/healthz`', `${healthMs.length} of ${samples.length} answered; p50 ${milliseconds(percentile(healthMs, 0.5))}, longest ${milliseconds(healthMs.at(-1) ?? Number.NaN)}`],
    ['RSS', `${mebibytes(figures.restRssOctets / mebibyte)} before; ${mebibytes(rss[0]!)} at the beginning, ${mebibytes(rss.at(-1)!)} at the end, ${mebibytes(Math.max(...rss))} at the most`],
    ['right behind it', `${thousands(recovery.sent / recovery.seconds)} q/s offered: ${lostInRecovery}, mean ${milliseconds(recovery.meanLatencyMs)}, longest ${milliseconds(recovery.maxLatencyMs)}`],
    ["others on the server's core", figures.foreignShare === null ? 'not known' : `${(100 * figures.foreignShare).toFixed(0)} %`]
  ] // prettier-ignore
}

function reportOf(batched: Figures, plain: Figures): string {
  const [first, second] = [rowsOf(batched), rowsOf(plain)]
  return [
    '# Overload: twice of what can be answered',
    '',
    `Made by \`node bench/overload.ts\` on ${new Date().toISOString().slice(0, 10)}: A of 200 Services, dnsperf for ${Math.round(batched.overload.seconds)} s and ${Math.round(plain.overload.seconds)} s. The server has ${batched.isLimited ? `${share} of a core (a CPU quota in each 10 ms)` : 'a core'}.`,
    `The maximum is the median of ${maximumRuns} runs with ${outstandingAtMaximum} queries under way. In the overload as many are under way as are offered in a second, so nothing slows the`,
    'client down but its own core. Answers within a second count.',
    ...(hasRaisedPriority() ? ['Server and client ran with raised scheduling priority.'] : []),
    '',
    ...demandRows(demandsOf(batched), demandsOf(plain)),
    '',
    '| | batches of datagrams | one at a time (`batching: off`) |',
    '|---|---|---|',
    ...first.map(([what, figure], at) => `| ${what} | ${figure} | ${second[at]![1]} |`),
    ''
  ].join('\n')
}

/** @returns whether every demand was met, with batches */
async function main(): Promise<boolean> {
  if (findDnsperf() === null) throw new Error('dnsperf is not here (Debian package dnsperf)')
  const [client = null, server = null] = allowedCores()
  const workspace = new Workspace({ client, server }, say)
  const seconds = Number(options.seconds)
  const batched = await measure(workspace, 'auto', seconds)
  const plain = await measure(workspace, 'off', Math.ceil(seconds / plainPart))
  const report = reportOf(batched, plain)
  console.log(report)
  const demands = demandsOf(batched)
  if (!options['no-files']) {
    writeFileSync(join(options.out, 'overload.md'), report)
    const results = { date: new Date().toISOString().slice(0, 10), demands, withoutBatches: demandsOf(plain) }
    writeFileSync(join(options.out, 'overload.json'), `${JSON.stringify(results, null, 1)}\n`)
  }
  for (const { what, measured, isMet } of demands) say(`${isMet ? 'met' : 'MISSED'}: ${what}: ${measured}`)
  return demands.every(({ isMet }) => isMet)
}

process.exit((await main()) ? 0 : 1)
