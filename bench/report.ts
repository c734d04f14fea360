/** Results as Markdown: the same text for the file and for the terminal, where its padded columns are a table too. */
import type { LatencyResult } from './cases/latency.ts'
import type { StartRow } from './cases/start.ts'
import { offeredRates, type OfferedRate, type ServerRuns, type ThroughputResult } from './cases/throughput.ts'
import type { ServerId } from './rivals/server-plan.ts'
import { medianRatio, spreadOf, type Spread } from './statistics.ts'

export type Versions = Readonly<Record<string, string>>

export type BenchReport = Readonly<{
  /** ISO date, UTC. */
  date: string
  machine: string
  versions: Versions
  seconds: number
  rounds: number
  /** What is missing, and how the runs were disturbed. */
  notes: readonly string[]
  throughput: readonly ThroughputResult[]
  latency: readonly LatencyResult[]
  start: readonly StartRow[]
}>

/** Below this share of the offered rate a server did not keep up, and its figures are for what it managed. */
const keptUpShare = 0.98

const references: readonly { id: ServerId; title: string }[] = [
  { id: 'coredns', title: 'CoreDNS' },
  { id: 'unbound', title: 'Unbound' }
]

/** Left-aligned first column, the rest right-aligned, all padded. */
export function markdownTable(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const widths = head.map((title, column) =>
    Math.max(3, ...[head, ...rows].map((row) => row[column]!.length), title.length)
  )
  const lineOf = (cells: readonly string[]): string =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join(' | ')} |`
  const rule = widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`))
  return [lineOf(head), lineOf(rule), ...rows.map(lineOf)].join('\n')
}

const missing = '–'

/** `12.3 (11.9–14.0)`: median, and the lowest and the highest run. */
export function spreadText(spread: Spread | null, toText: (value: number) => string): string {
  if (spread === null) return missing
  if (spread.runs === 1) return toText(spread.median)
  return `${toText(spread.median)} (${toText(spread.min)}–${toText(spread.max)})`
}

const wholeText = (value: number): string => value.toFixed(0)
const microseconds = (value: number): string => value.toFixed(1)
const thousands = (value: number): string => `${(value / 1000).toFixed(1)}k`
export const milliseconds = (value: number): string => (value < 10 ? value.toFixed(2) : value.toFixed(1))
const ratioText = (ratio: number | null): string => (ratio === null ? missing : `${ratio.toFixed(2)}x`)
const percent = (share: number): string => `${(share * 100).toFixed(0)} %`

const measured = <Run>(runs: readonly (Run | null)[]): Run[] => runs.filter((run) => run !== null)

function cpuCell(runs: ServerRuns, rate: OfferedRate): string {
  const atRate = measured(runs.atRate[rate])
  const cpu = spreadText(spreadOf(atRate.map(({ cpuMicroseconds }) => cpuMicroseconds)), microseconds)
  const answered = spreadOf(atRate.map(({ answeredPerSecond }) => answeredPerSecond))
  if (answered === null || answered.median >= rate * keptUpShare) return cpu
  return `${cpu} at ${thousands(answered.median)}`
}

function latencyCell(runs: ServerRuns, rate: OfferedRate, key: 'p50Ms' | 'p99Ms'): string {
  const values = measured(runs.atRate[rate]).flatMap(({ latency }) => (latency === null ? [] : [latency[key]]))
  return spreadText(spreadOf(values), milliseconds)
}

const cpuByRound = (runs: ServerRuns, rate: OfferedRate): (number | null)[] =>
  runs.atRate[rate].map((run) => run?.cpuMicroseconds ?? null)

const maximumByRound = (runs: ServerRuns): (number | null)[] =>
  runs.atMaximum.map((run) => run?.answeredPerSecond ?? null)

function throughputTables({ title, servers }: ThroughputResult): string {
  const others = references.filter(({ id }) => servers.some((server) => server.id === id))
  const ratios = (byRound: (runs: ServerRuns) => (number | null)[], runs: ServerRuns): string[] =>
    others.map(({ id }) => ratioText(medianRatio(byRound(runs), byRound(servers.find((server) => server.id === id)!))))
  const against = (what: string): string[] => others.map(({ title }) => `${what} / ${title}`)
  const cost = markdownTable(
    ['server', ...offeredRates.map((rate) => `CPU us/query at ${thousands(rate)}`), ...against('CPU at 30k')],
    servers.map((runs) => [
      runs.title,
      ...offeredRates.map((rate) => cpuCell(runs, rate)),
      ...ratios((of) => cpuByRound(of, 30_000), runs)
    ])
  )
  const speed = markdownTable(
    [
      'server',
      'max q/s',
      ...against('max'),
      'p50 ms at 10k',
      'p99 ms at 10k',
      'p50 ms at 30k',
      'p99 ms at 30k',
      'RSS MB',
      'answer octets'
    ],
    servers.map((runs) => [
      runs.title,
      spreadText(spreadOf(measured(maximumByRound(runs))), thousands),
      ...ratios(maximumByRound, runs),
      latencyCell(runs, 10_000, 'p50Ms'),
      latencyCell(runs, 10_000, 'p99Ms'),
      latencyCell(runs, 30_000, 'p50Ms'),
      latencyCell(runs, 30_000, 'p99Ms'),
      (runs.rssOctets / 1e6).toFixed(0),
      String(measured(runs.atRate[10_000])[0]?.responseOctets ?? missing)
    ])
  )
  const setUps = servers.map(({ title, setUp }) => `${title}: ${setUp}`).join('; ')
  return `## ${title}\n\n${cost}\n\n${speed}\n\n${setUps}.\n`
}

function latencyTables(results: readonly LatencyResult[]): string {
  if (results.length === 0) return ''
  const rows = results.flatMap(({ roundTripMs, rows }) =>
    rows.map((row) => [
      row.title,
      String(roundTripMs),
      ...[row.p50Ms, row.p99Ms, row.maxMs].map(milliseconds),
      `${row.questions - row.failed} of ${row.questions}`
    ])
  )
  const table = markdownTable(['server in cluster B', 'round trip ms', 'p50 ms', 'p99 ms', 'max ms', 'answered'], rows)
  return `## Uncached peered names: what the client waits\n\n${table}\n\nA client asks B's server, which asks A's peerdns through a relay that delays both directions; every name once, one at a time.\n`
}

function startTable(rows: readonly StartRow[]): string {
  if (rows.length === 0) return ''
  const table = markdownTable(
    ['server', 'reads', 'first right answer after ms', 'CPU ms until then'],
    rows.map(({ title, input, tookMs, cpuMs }) => [
      title,
      input,
      spreadText(tookMs, wholeText),
      spreadText(cpuMs, wholeText)
    ])
  )
  return `## Start: from executing the program to its first right answer\n\n${table}\n\npeerdns keeps compiled code for the next start; its first start has none. CoreDNS cannot read manifests without an API server, so it reads a zone file with the records that peerdns makes of them.\n`
}

/** How much others used of the servers' core while it was measured; null where it is not known. */
export function foreignShares(throughput: readonly ThroughputResult[]): Spread | null {
  const runs = throughput.flatMap(({ servers }) =>
    servers.flatMap(({ atRate, atMaximum }) => [...offeredRates.flatMap((rate) => atRate[rate]), ...atMaximum])
  )
  return spreadOf(runs.flatMap((run) => (run === null || run.foreignShare === null ? [] : [run.foreignShare])))
}

export function markdownReport(report: BenchReport): string {
  const versions = Object.entries(report.versions).map(([name, version]) => `${name} ${version}`)
  const foreign = foreignShares(report.throughput)
  const notes = [...report.notes]
  if (foreign !== null) {
    notes.push(
      `Other processes used ${percent(foreign.median)} of the servers' core in the median run, ${percent(foreign.max)} in the worst.`
    )
  }
  const method =
    `Medians of ${report.rounds} rounds of ${report.seconds} s with (lowest–highest); servers take turns within every round. ` +
    'Servers are bound to one core, dnsperf to the other. CPU is user and system time of all threads. Ratios are medians of the ' +
    'ratios within each round. Latency is what dnsperf saw, 200 queries under way at most; the maximum is what is answered with 100 ' +
    'under way and less than 0.1 % lost.'
  return [
    `# Benchmark\n`,
    `${report.date}, ${report.machine}. ${versions.join(', ')}.\n`,
    ...(report.throughput.length === 0 ? [] : [`${method}\n`]),
    ...(notes.length === 0 ? [] : [notes.map((note) => `- ${note}\n`).join('')]),
    ...report.throughput.map(throughputTables),
    latencyTables(report.latency),
    startTable(report.start)
  ]
    .filter((part) => part !== '')
    .join('\n')
}
