/** Results as Markdown: the same text for the file and for the terminal, where its padded columns are a table too. */
import type { Latency } from './dnsperf.ts'
import type { LatencyResult } from './cases/latency.ts'
import type { StartRow } from './cases/start.ts'
import type { ChangesResult } from './cases/changes.ts'
import type { RunAtRate, ServerRuns, ThroughputResult } from './cases/throughput.ts'
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
  changes: ChangesResult | null
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
/** `30k`. */
const short = (rate: number): string => `${rate / 1000}k`
const percent = (share: number): string => `${(share * 100).toFixed(0)} %`

const measured = <Run>(runs: readonly (Run | null)[]): Run[] => runs.filter((run) => run !== null)

/** The low rate of a workload, or the high one. */
type RateAt = 0 | 1
const bothRates: readonly RateAt[] = [0, 1]

const cpuCell = (runs: ServerRuns, at: RateAt, rate: number): string => cpuText(runs.atRate[at], rate)

function cpuText(runs: readonly (RunAtRate | null)[], rate: number): string {
  const atRate = measured(runs)
  const cpu = spreadText(spreadOf(atRate.map(({ cpuMicroseconds }) => cpuMicroseconds)), microseconds)
  const answered = spreadOf(atRate.map(({ answeredPerSecond }) => answeredPerSecond))
  if (answered === null || answered.median >= rate * keptUpShare) return cpu
  return `${cpu} at ${thousands(answered.median)}`
}

const latencyCell = (runs: ServerRuns, at: RateAt, key: keyof Latency): string => latencyText(runs.atRate[at], key)

function latencyText(runs: readonly (RunAtRate | null)[], key: keyof Latency): string {
  const values = measured(runs).flatMap(({ latency }) => (latency === null ? [] : [latency[key]]))
  return spreadText(spreadOf(values), milliseconds)
}

const cpuAtHigh = (runs: ServerRuns): (number | null)[] => runs.atRate[1].map((run) => run?.cpuMicroseconds ?? null)

const maximumByRound = (runs: ServerRuns): (number | null)[] =>
  runs.atMaximum.map((run) => run?.answeredPerSecond ?? null)

function throughputTables({ title, rates, servers }: ThroughputResult): string {
  const others = references.filter(({ id }) => servers.some((server) => server.id === id))
  const ratios = (byRound: (runs: ServerRuns) => (number | null)[], runs: ServerRuns): string[] =>
    others.map(({ id }) => ratioText(medianRatio(byRound(runs), byRound(servers.find((server) => server.id === id)!))))
  const against = (what: string): string[] => others.map(({ title }) => `${what} / ${title}`)
  const cost = markdownTable(
    ['server', ...rates.map((rate) => `CPU us/query at ${short(rate)}`), ...against(`CPU at ${short(rates[1])}`)],
    servers.map((runs) => [
      runs.title,
      ...bothRates.map((at) => cpuCell(runs, at, rates[at])),
      ...ratios(cpuAtHigh, runs)
    ])
  )
  const speed = markdownTable(
    [
      'server',
      'max q/s',
      ...against('max'),
      ...bothRates.flatMap((at) => [`p50 ms at ${short(rates[at])}`, `p99 ms at ${short(rates[at])}`]),
      `p99.9 ms at ${short(rates[1])}`,
      'RSS MB',
      'answer octets'
    ],
    servers.map((runs) => [
      runs.title,
      spreadText(spreadOf(measured(maximumByRound(runs))), thousands),
      ...ratios(maximumByRound, runs),
      ...bothRates.flatMap((at) => [latencyCell(runs, at, 'p50Ms'), latencyCell(runs, at, 'p99Ms')]),
      latencyCell(runs, 1, 'p999Ms'),
      (runs.rssOctets / 1e6).toFixed(0),
      String(measured(runs.atRate[0])[0]?.responseOctets ?? missing)
    ])
  )
  const setUps = servers.map(({ title, setUp }) => `${title}: ${setUp}`).join('; ')
  return `## ${title}\n\n${cost}\n\n${speed}\n\n${setUps}.\n`
}

const changesRow = (what: string, runs: readonly (RunAtRate | null)[], beside: string): string[] => [
  what,
  cpuText(runs, 30_000),
  beside,
  latencyText(runs, 'p50Ms'),
  latencyText(runs, 'p99Ms')
]

function changesTable(changes: ChangesResult | null): string {
  if (changes === null) return ''
  const { title, quiet, changing, changesPerSecond, ratio } = changes
  const table = markdownTable(
    ['changes a second', 'CPU us/query at 30k', 'by that without', 'p50 ms', 'p99 ms'],
    [changesRow('none', quiet, '1.00x'), changesRow(wholeText(changesPerSecond), changing, ratioText(ratio))]
  )
  return `## ${title}\n\n${table}\n\npeerdns on an API server of ours; rivals need a real one, which takes fewer changes.\n`
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
    servers.flatMap(({ atRate, atMaximum }) => [...atRate.flat(), ...atMaximum])
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
    changesTable(report.changes),
    latencyTables(report.latency),
    startTable(report.start)
  ]
    .filter((part) => part !== '')
    .join('\n')
}
