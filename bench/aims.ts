/** What peerdns is to reach, and what was measured: made of the results, so that nobody writes it by hand. */
import type { ServerRuns } from './cases/throughput.ts'
import {
  caseOf,
  cpuByRound,
  maximumByRound,
  otherCommit,
  p99ByRound,
  runsOf,
  type BenchReport,
  type ByRound
} from './joined.ts'
import type { OverloadResults } from './overload/demands.ts'
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
export type OtherResults = Readonly<{ overload: OverloadResults | null; restart: RestartResults | null }>

/** Null: nothing was measured. `apart`: not both of what is divided, or not in the same run, so it is no ratio. */
type Ratio = number | 'apart' | null

const cpuOfUnbound = 1.05
const cpuOfCoredns = 1 / 3
const cpuOfTwoThreads = 1.18
const cpuOfManyNames = 1.3
const cpuUnderChanges = 1.5
const rssMegabytes = 120

const times = (ratio: number): string => `${ratio.toFixed(2)}x`
const median = (values: readonly (number | null)[]): number | null =>
  spreadOf(values.filter((value) => value !== null))?.median ?? null

/** What a ratio comes to; `measured` and what is beside it say nothing where there is none. */
function judged(ratio: Ratio, isEnough: (ratio: number) => boolean, beside: string) {
  if (ratio === null) return { measured: null, isMet: null, beside: '' }
  if (ratio === 'apart') return { measured: 'not measured in one run', isMet: false, beside: '' }
  return { measured: times(ratio), isMet: isEnough(ratio), beside }
}

const atMost = (what: string, limit: number, ratio: Ratio, beside: string): Aim => ({
  what,
  aim: `at most ${times(limit)}`,
  ...judged(ratio, (value) => value <= limit, beside)
})

/** The median of the ratios by round. @param isOneRun whether these rounds were the same for both */
function ratioOf(
  ours: ServerRuns | undefined,
  theirs: ServerRuns | undefined,
  byRound: ByRound,
  isOneRun: boolean
): Ratio {
  if (ours === undefined && theirs === undefined) return null
  if (ours === undefined || theirs === undefined || !isOneRun) return 'apart'
  return medianRatio(byRound(ours), byRound(theirs)) ?? 'apart'
}

/** What peerdns has, by what somebody else has in the same case, which is always of one run. */
const besideOther = (report: BenchReport, id: WorkloadId, other: ServerId, byRound: ByRound): Ratio =>
  ratioOf(runsOf(report, id, 'peerdns'), runsOf(report, id, other), byRound, true)

/** CPU time in two cases that took turns. */
function besideCase(report: BenchReport, id: WorkloadId, other: WorkloadId, server: ServerId = 'peerdns'): Ratio {
  const isOneRun = caseOf(report, id)?.measured.run === caseOf(report, other)?.measured.run
  return ratioOf(runsOf(report, id, server), runsOf(report, other, server), cpuByRound, isOneRun)
}

/** What stands beside a figure, with the commit where that is not the last one. */
function withCommit(report: BenchReport, commit: string | undefined, beside: string): string {
  return [beside, otherCommit(report, commit)].filter((text) => text !== '').join('; ')
}

/** Aims that are about one case. */
function ofCase(report: BenchReport, id: WorkloadId, aims: readonly Aim[]): Aim[] {
  const commit = caseOf(report, id)?.measured.commit
  return aims.map((aim) => (aim.isMet === null ? aim : { ...aim, beside: withCommit(report, commit, aim.beside) }))
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
  const ratio = (other: ServerId): Ratio => besideOther(report, id, other, cpuByRound)
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
    ...judged(ratio, (value) => (isStretch ? value >= 1 : value > 1), both(ours, theirs, thousands))
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

function manyNamesAim(report: BenchReport): Aim {
  const beside = (server: ServerId): string =>
    both(
      medianOf(report, 'names-100k', cpuByRound, server),
      medianOf(report, 'names-200', cpuByRound, server),
      microseconds
    )
  const unbound = besideCase(report, 'names-100k', 'names-200', 'unbound')
  return atMost(
    "CPU per query, 100,000 names, by 200 names'",
    cpuOfManyNames,
    besideCase(report, 'names-100k', 'names-200'),
    [beside('peerdns'), typeof unbound === 'number' ? `Unbound: ${times(unbound)}` : '']
      .filter((text) => text !== '')
      .join('; ')
  )
}

function changesAim(report: BenchReport): Aim {
  const p99 = both(medianOf(report, 'changes', p99ByRound), medianOf(report, 'no-changes', p99ByRound), milliseconds)
  const coredns = besideCase(report, 'changes', 'no-changes', 'coredns')
  const beside = [p99 === '' ? '' : `p99 ${p99}`, typeof coredns === 'number' ? `CoreDNS: ${times(coredns)}` : '']
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

function restartAim(report: BenchReport, restart: RestartResults | null): Aim {
  const what = 'queries lost in restarts that take over'
  if (restart === null) return { what, aim: '0', measured: null, isMet: null, beside: '' }
  const { commit, restarts, sent, lost, queriesPerSecond, longestMs } = restart
  const beside = `${restarts} restarts at ${queriesPerSecond} q/s, longest wait ${longestMs.toFixed(0)} ms`
  const measured = `${lost} of ${sent}`
  return { what, aim: '0', measured, isMet: lost === 0, beside: withCommit(report, commit, beside) }
}

/** With answers that lie ready; beside it what came of other set-ups. */
function overloadAims(report: BenchReport, { commit, setUps }: OverloadResults): Aim[] {
  const [first, ...others] = setUps
  return (first?.demands ?? []).map(({ what, aim, measured, isMet }, at) => {
    const missedBy = others.filter(({ demands }) => demands[at]?.isMet === false)
    const beside = missedBy.map(({ title, demands }) => `**missed** with ${title}: ${demands[at]!.measured}`)
    const met = others.filter((other) => !missedBy.includes(other)).map(({ title }) => title)
    if (met.length > 0) beside.push(`met with ${met.join(', ')}`)
    return { what: `overload: ${what}`, aim, measured, isMet, beside: withCommit(report, commit, beside.join('; ')) }
  })
}

export function aimsOf(report: BenchReport, { overload, restart }: OtherResults): Aim[] {
  const own = 'ClusterIP A'
  const peered = 'cached peered name'
  const fast: readonly ServerId[] = ['unbound', 'dnsdist']
  const aims = (id: WorkloadId, ...these: readonly Aim[]): Aim[] => ofCase(report, id, these)
  return [
    ...aims('cluster-a', ...cpuAims(report, 'cluster-a', own)),
    ...aims('peered', ...cpuAims(report, 'peered', peered)),
    ...aims(
      'cluster-a',
      ...fast.map((other) => maximumAim(report, 'cluster-a', own, other)),
      maximumAim(report, 'cluster-a', own, 'knot', true)
    ),
    ...aims('peered', ...fast.map((other) => maximumAim(report, 'peered', peered, other))),
    ...aims('cluster-a', p99Aim(report, 'cluster-a', own)),
    ...aims('peered', p99Aim(report, 'peered', peered)),
    ...aims('threads-2', threadsAim(report)),
    ...aims('names-100k', manyNamesAim(report)),
    ...aims('changes', changesAim(report)),
    ...aims('cluster-a', memoryAim(report)),
    ...(overload === null ? [] : overloadAims(report, overload)),
    restartAim(report, restart)
  ]
}
