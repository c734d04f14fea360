/** All cases in one table for each figure, and the aims: what a reader looks at first. */
import { aimsOf, type OtherResults } from './aims.ts'
import {
  caseTitle,
  cpuByRound,
  maximumByRound,
  p99ByRound,
  runsOf,
  type BenchReport,
  type ByRound,
  type MeasuredCase
} from './joined.ts'
import { serverTitles, type ServerId } from './rivals/server-plan.ts'
import { medianRatio, spreadOf } from './statistics.ts'
import { markdownTable, microseconds, milliseconds, missing, ratioText, thousands } from './tables.ts'

/** Below this share of the offered rate a server did not keep up, and its figures are for what it managed. */
export const keptUpShare = 0.98

const columns: readonly ServerId[] = ['peerdns', 'coredns', 'unbound', 'knot', 'dnsdist', 'dnsmasq', 'dns2', 'c-echo']
const compared: readonly ServerId[] = ['coredns', 'unbound']

const medianOf = (values: readonly (number | null)[]): number | null =>
  spreadOf(values.filter((value) => value !== null))?.median ?? null

/** `at 15.1k` where the server did not answer as much as was offered; else empty. */
export function heldBack(answeredPerSecond: number | null, rate: number): string {
  return answeredPerSecond === null || answeredPerSecond >= rate * keptUpShare
    ? ''
    : ` at ${thousands(answeredPerSecond)}`
}

function cellOf(result: MeasuredCase, id: ServerId, byRound: ByRound, toText: (value: number) => string): string {
  const runs = result.servers.find((server) => server.id === id)
  const value = runs === undefined ? null : medianOf(byRound(runs))
  if (runs === undefined || value === null) return missing
  const answered = medianOf(runs.atRate.map((run) => run?.answeredPerSecond ?? null))
  return `${toText(value)}${byRound === maximumByRound ? '' : heldBack(answered, result.rate)}`
}

function ratioCell({ servers }: MeasuredCase, id: ServerId, byRound: ByRound): string {
  const [ours, theirs] = [servers.find((runs) => runs.id === 'peerdns'), servers.find((runs) => runs.id === id)]
  return ours === undefined || theirs === undefined ? missing : ratioText(medianRatio(byRound(ours), byRound(theirs)))
}

function tableOf(
  report: BenchReport,
  title: string,
  byRound: ByRound,
  toText: (value: number) => string,
  hasRatios: boolean
): string {
  const others = hasRatios ? compared : []
  const rows = report.throughput
    .map((result) => [
      caseTitle(report, result),
      ...columns.map((id) => cellOf(result, id, byRound, toText)),
      ...others.map((id) => ratioCell(result, id, byRound))
    ])
    .filter(([, ...cells]) => cells.some((cell) => cell !== missing))
  const head = [title, ...columns.map((id) => serverTitles[id]), ...others.map((id) => `peerdns / ${serverTitles[id]}`)]
  return markdownTable(head, rows)
}

/** Why a figure is missing, said once for all cases that it is missing in. */
function absences({ throughput }: BenchReport): string {
  const cases = new Map<string, string[]>()
  for (const { shortTitle, absent } of throughput) {
    for (const { title, why } of absent) {
      const key = `${title}: ${why}`
      cases.set(key, [...(cases.get(key) ?? []), shortTitle])
    }
  }
  return [...cases].map(([why, where]) => `- ${why} (${where.join('; ')})\n`).join('')
}

/** CPU, tail latency, maximum: the cases in rows, the servers in columns. */
export function summaryOf(report: BenchReport): string {
  if (report.throughput.length === 0) return ''
  const why = absences(report)
  return [
    `${tableOf(report, 'CPU us/query at 30,000 q/s', cpuByRound, microseconds, true)}\n`,
    `${tableOf(report, 'p99 ms at 30,000 q/s', p99ByRound, milliseconds, false)}\n`,
    `${tableOf(report, 'maximum q/s', maximumByRound, thousands, true)}\n`,
    ...(why === '' ? [] : [`What is not measured, and why:\n\n${why}`])
  ].join('\n')
}

/** Resident memory of each server, after the last load. */
export function memoryOf(report: BenchReport): string {
  if (report.throughput.length === 0) return ''
  const rows = report.throughput.map((result) => [
    caseTitle(report, result),
    ...columns.map((id) => {
      const octets = runsOf(report, result.id, id)?.rssOctets ?? 0
      return octets === 0 ? missing : (octets / 1e6).toFixed(0)
    })
  ])
  return `${markdownTable(['RSS MB', ...columns.map((id) => serverTitles[id])], rows)}\n`
}

export function aimsTable(report: BenchReport, others: OtherResults): string {
  const rows = aimsOf(report, others).map(({ what, aim, measured, isMet, beside }) => [
    what,
    aim,
    measured ?? missing,
    isMet === null ? 'not measured' : isMet ? 'met' : '**missed**',
    beside
  ])
  return `${markdownTable(['aim', 'to reach', 'measured', '', 'beside it'], rows)}\n`
}
