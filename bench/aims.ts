/** What peerdns is to reach, and what was measured: made of the results, so that nobody writes it by hand. */
import { cpuByRound, maximumByRound, p99ByRound, runsOf, type BenchReport, type ByRound } from './joined.ts'
import type { Demand } from './overload/demands.ts'
import type { RestartResults } from './restart/results.ts'
import { serverTitles, type ServerId } from './rivals/server-plan.ts'
import { medianRatio, spreadOf } from './statistics.ts'
import type { WorkloadId } from './workloads.ts'

export type Aim = Readonly<{
  what: string
  aim: string
  /** Null: not measured. */
  measured: string | null
  isMet: boolean | null
  /** What helps to judge the figure. */
  beside: string
}>

/** Results of commands that are no cases of `run.ts`; null where there are none. */
export type OtherResults = Readonly<{ overload: readonly Demand[] | null; restart: RestartResults | null }>

const cpuOfUnbound = 1.05
const cpuOfCoredns = 1 / 3
const cpuOfTwoThreads = 1.18
const cpuOfManyNames = 1.3
const cpuUnderChanges = 1.5
const rssMegabytes = 120

const times = (ratio: number): string => `${ratio.toFixed(2)}x`
const median = (values: readonly (number | null)[]): number | null =>
  spreadOf(values.filter((value) => value !== null))?.median ?? null

const atMost = (what: string, limit: number, ratio: number | null, beside: string): Aim => ({
  what,
  aim: `at most ${times(limit)}`,
  measured: ratio === null ? null : times(ratio),
  isMet: ratio === null ? null : ratio <= limit,
  beside
})

/** The median by round of what peerdns has, by what somebody else has in the same case. */
function besideOther(report: BenchReport, id: WorkloadId, other: ServerId, byRound: ByRound): number | null {
  const [ours, theirs] = [runsOf(report, id, 'peerdns'), runsOf(report, id, other)]
  return ours === undefined || theirs === undefined ? null : medianRatio(byRound(ours), byRound(theirs))
}

/** Two cases of peerdns that took turns. */
function besideCase(report: BenchReport, id: WorkloadId, other: WorkloadId, server: ServerId = 'peerdns') {
  const [runs, others] = [runsOf(report, id, server), runsOf(report, other, server)]
  return runs === undefined || others === undefined ? null : medianRatio(cpuByRound(runs), cpuByRound(others))
}

function medianOf(report: BenchReport, id: WorkloadId, byRound: ByRound, server: ServerId = 'peerdns'): number | null {
  const runs = runsOf(report, id, server)
  return runs === undefined ? null : median(byRound(runs))
}

/** `10.1 us and 10.4 us`; empty where one of them is missing. */
function both(ours: number | null, theirs: number | null, toText: (value: number) => string): string {
  return ours === null || theirs === null ? '' : `${toText(ours)} and ${toText(theirs)}`
}

const microseconds = (value: number): string => `${value.toFixed(1)} us`
const milliseconds = (value: number): string => `${value.toFixed(2)} ms`
const thousands = (value: number): string => `${(value / 1000).toFixed(1)}k q/s`

function cpuAims(report: BenchReport, id: WorkloadId, title: string): Aim[] {
  const beside = (other: ServerId): string =>
    both(medianOf(report, id, cpuByRound), medianOf(report, id, cpuByRound, other), microseconds)
  const [echo, coredns] = [runsOf(report, id, 'c-echo'), runsOf(report, id, 'coredns')]
  const floor = echo === undefined || coredns === undefined ? null : medianRatio(cpuByRound(echo), cpuByRound(coredns))
  const least = floor === null ? '' : `; C echo, which answers nothing: ${times(floor)}`
  const ratio = (other: ServerId): number | null => besideOther(report, id, other, cpuByRound)
  return [
    atMost(`CPU per query, ${title}, by Unbound's`, cpuOfUnbound, ratio('unbound'), beside('unbound')),
    atMost(`CPU per query, ${title}, by CoreDNS's`, cpuOfCoredns, ratio('coredns'), `${beside('coredns')}${least}`)
  ]
}

function maximumAim(report: BenchReport, id: WorkloadId, title: string, other: ServerId, isStretch = false): Aim {
  const ratio = besideOther(report, id, other, maximumByRound)
  const [ours, theirs] = [medianOf(report, id, maximumByRound), medianOf(report, id, maximumByRound, other)]
  return {
    what: `maximum q/s, ${title}, by ${serverTitles[other]}'s${isStretch ? ' (stretch)' : ''}`,
    aim: isStretch ? 'at least 1.00x' : 'above 1.00x',
    measured: ratio === null ? null : times(ratio),
    isMet: ratio === null ? null : isStretch ? ratio >= 1 : ratio > 1,
    beside: both(ours, theirs, thousands)
  }
}

function p99Aim(report: BenchReport, id: WorkloadId, title: string): Aim {
  const beside = both(medianOf(report, id, p99ByRound), medianOf(report, id, p99ByRound, 'unbound'), milliseconds)
  return atMost(`p99 latency, ${title}, by Unbound's`, 1, besideOther(report, id, 'unbound', p99ByRound), beside)
}

function threadsAim(report: BenchReport): Aim {
  const maxima = both(
    medianOf(report, 'threads-2', maximumByRound),
    medianOf(report, 'threads-1', maximumByRound),
    thousands
  )
  const ratio = besideCase(report, 'threads-2', 'threads-1')
  const beside = maxima === '' ? '' : `at most ${maxima}, dnsperf on one of the two cores`
  return atMost("CPU per query, two threads, by one thread's", cpuOfTwoThreads, ratio, beside)
}

/** Servers of their own for each, so not within the same rounds. */
function manyNamesAim(report: BenchReport): Aim {
  const [many, few] = [medianOf(report, 'names-100k', cpuByRound), medianOf(report, 'cluster-a', cpuByRound)]
  const ratio = many === null || few === null || few === 0 ? null : many / few
  return atMost("CPU per query, 100,000 names, by 200 names'", cpuOfManyNames, ratio, both(many, few, microseconds))
}

function changesAim(report: BenchReport): Aim {
  const p99 = both(medianOf(report, 'changes', p99ByRound), medianOf(report, 'no-changes', p99ByRound), milliseconds)
  const coredns = besideCase(report, 'changes', 'no-changes', 'coredns')
  const beside = [p99 === '' ? '' : `p99 ${p99}`, coredns === null ? '' : `CoreDNS: ${times(coredns)}`]
  return atMost(
    'CPU per query, 500 endpoint changes a second, by that without',
    cpuUnderChanges,
    besideCase(report, 'changes', 'no-changes'),
    beside.filter((text) => text !== '').join('; ')
  )
}

function memoryAim(report: BenchReport): Aim {
  const rss = runsOf(report, 'cluster-a', 'peerdns')?.rssOctets
  const megabytes = rss === undefined ? null : rss / 1e6
  return {
    what: 'RSS with a small cluster, after the load',
    aim: `below ${rssMegabytes} MB`,
    measured: megabytes === null ? null : `${megabytes.toFixed(0)} MB`,
    isMet: megabytes === null ? null : megabytes < rssMegabytes,
    beside: ''
  }
}

function restartAim(restart: RestartResults | null): Aim {
  const what = 'queries lost in restarts that take over'
  if (restart === null) return { what, aim: '0', measured: null, isMet: null, beside: '' }
  const { restarts, sent, lost, queriesPerSecond, longestMs } = restart
  const beside = `${restarts} restarts at ${queriesPerSecond} q/s, longest wait ${longestMs.toFixed(0)} ms`
  return { what, aim: '0', measured: `${lost} of ${sent}`, isMet: lost === 0, beside }
}

export function aimsOf(report: BenchReport, { overload, restart }: OtherResults): Aim[] {
  const own = 'ClusterIP A'
  const peered = 'cached peered name'
  const fast: readonly ServerId[] = ['unbound', 'dnsdist']
  return [
    ...cpuAims(report, 'cluster-a', own),
    ...cpuAims(report, 'peered', peered),
    ...fast.map((other) => maximumAim(report, 'cluster-a', own, other)),
    maximumAim(report, 'cluster-a', own, 'knot', true),
    ...fast.map((other) => maximumAim(report, 'peered', peered, other)),
    p99Aim(report, 'cluster-a', own),
    p99Aim(report, 'peered', peered),
    threadsAim(report),
    manyNamesAim(report),
    changesAim(report),
    memoryAim(report),
    ...(overload ?? []).map(({ what, aim, measured, isMet }) => ({
      what: `overload: ${what}`,
      aim,
      measured,
      isMet,
      beside: ''
    })),
    restartAim(restart)
  ]
}
