/**
 * One report out of many runs: `latest.json` keeps for each case what was measured last, and when and of what. A run
 * of some cases replaces those alone, so a machine that others use too can be measured in pieces.
 */
import type { LatencyResult } from './cases/latency.ts'
import type { StartRow } from './cases/start.ts'
import type { ServerRuns, ThroughputResult } from './cases/throughput.ts'
import type { ServerId } from './rivals/server-plan.ts'
import { allWorkloads, type WorkloadId } from './workloads.ts'

export type Versions = Readonly<Record<string, string>>

/** When, of what and how a case was measured. */
export type Measured = Readonly<{
  /** ISO date, UTC. */
  date: string
  /** When the run began that it was measured in (ISO 8601, UTC): figures of different runs are not divided. */
  run: string
  /** Of peerdns; with `+` where its sources were not as committed. */
  commit: string
  machine: string
  /** Of Node and of the other servers. */
  versions: Versions
  /** Of one run of dnsperf. */
  seconds: number
  rounds: number
  /** What is missing, and how the runs were disturbed. */
  notes: readonly string[]
}>

export type MeasuredCase = ThroughputResult & Readonly<{ measured: Measured }>

export type BenchReport = Readonly<{
  format: typeof format
  throughput: readonly MeasuredCase[]
  latency: Readonly<{ measured: Measured; results: readonly LatencyResult[] }> | null
  start: Readonly<{ measured: Measured; rows: readonly StartRow[] }> | null
}>

/** Of latest.json; a file of another one is not joined. */
export const format = 3

export const emptyReport: BenchReport = { format, throughput: [], latency: null, start: null }

/** What was measured anew takes the place of the same case; all others stay. */
export function joined(before: BenchReport, now: BenchReport): BenchReport {
  const byId = new Map([...before.throughput, ...now.throughput].map((result) => [result.id, result]))
  return {
    format,
    throughput: allWorkloads.flatMap(({ id }) => byId.get(id) ?? []),
    latency: now.latency ?? before.latency,
    start: now.start ?? before.start
  }
}

const short = (_: string, value: unknown): unknown => (typeof value === 'number' ? Number(value.toPrecision(5)) : value)

/** As JSON with a line for each server, and numbers as exact as they can be at most: what changes is seen in a diff. */
export function textOf(report: BenchReport): string {
  return `${JSON.stringify(report, short).replaceAll('{"id":', '\n{"id":')}\n`
}

export const caseOf = (report: BenchReport, id: WorkloadId): MeasuredCase | undefined =>
  report.throughput.find((result) => result.id === id)

export const runsOf = (report: BenchReport, id: WorkloadId, server: ServerId): ServerRuns | undefined =>
  caseOf(report, id)?.servers.find((runs) => runs.id === server)

/** Of the run that began last. */
function lastCommit({ throughput }: BenchReport): string | undefined {
  const runs = throughput.map(({ measured }) => measured).toSorted((one, other) => (one.run < other.run ? -1 : 1))
  return runs.at(-1)?.commit
}

/** `at 10f3c8e` for what was measured at another commit than the last run; empty for what was not. */
export function otherCommit(report: BenchReport, commit: string | undefined): string {
  return commit === undefined || commit === (lastCommit(report) ?? commit) ? '' : `at ${commit}`
}

/** A case as tables name it. */
export function caseTitle(report: BenchReport, { shortTitle, measured }: MeasuredCase): string {
  const other = otherCommit(report, measured.commit)
  return other === '' ? shortTitle : `${shortTitle} (${other})`
}

export type ByRound = (runs: ServerRuns) => (number | null)[]

/** CPU time per answer at the fixed rate, in microseconds. */
export const cpuByRound: ByRound = ({ atRate }) => atRate.map((run) => run?.cpuMicroseconds ?? null)

export const p99ByRound: ByRound = ({ atRate }) => atRate.map((run) => run?.latency?.p99Ms ?? null)

export const maximumByRound: ByRound = ({ atMaximum }) => atMaximum.map((run) => run?.answeredPerSecond ?? null)
