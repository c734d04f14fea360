/** Results as Markdown: the same text for the file and for the terminal, where its padded columns are a table too. */
import type { OtherResults } from './aims.ts'
import type { RunAtRate, ServerRuns } from './cases/throughput.ts'
import type { Latency } from './dnsperf.ts'
import {
  cpuByRound,
  maximumByRound,
  type BenchReport,
  type ByRound,
  type Measured,
  type MeasuredCase
} from './joined.ts'
import { serverTitles, type ServerId } from './rivals/server-plan.ts'
import { medianRatio, spreadOf, type Spread } from './statistics.ts'
import { aimsTable, heldBack, memoryOf, summaryOf } from './summary.ts'
import {
  markdownTable,
  microseconds,
  milliseconds,
  missing,
  percent,
  ratioText,
  short,
  spreadText,
  thousands,
  wholeText
} from './tables.ts'

const references: readonly ServerId[] = ['coredns', 'unbound']

const method =
  'Medians; servers take turns within every round, and ratios are medians of the ratios within each round. Servers are bound to one ' +
  'core, dnsperf to the other. CPU is user and system time of all threads. Latency is what dnsperf saw, 200 queries under way at most; ' +
  'the maximum is what is answered with 100 under way and less than 0.1 % lost. `at 15.1k`: the server answered no more than that of what ' +
  'was offered. The echoes answer nothing: they show what the sockets alone cost.'

const measuredRuns = <Run>(runs: readonly (Run | null)[]): Run[] => runs.filter((run) => run !== null)

function cpuText(runs: readonly (RunAtRate | null)[], rate: number): string {
  const atRate = measuredRuns(runs)
  const cpu = spreadText(spreadOf(atRate.map(({ cpuMicroseconds }) => cpuMicroseconds)), microseconds)
  const answered = spreadOf(atRate.map(({ answeredPerSecond }) => answeredPerSecond))
  return `${cpu}${heldBack(answered?.median ?? null, rate)}`
}

function latencyText({ atRate }: ServerRuns, key: keyof Latency): string {
  const values = measuredRuns(atRate).flatMap(({ latency }) => (latency === null ? [] : [latency[key]]))
  return spreadText(spreadOf(values), milliseconds)
}

function caseTables({ id, title, rate, servers, measured }: MeasuredCase): string {
  const others = references.flatMap((id) => servers.filter((server) => server.id === id && servers.length > 1))
  const against = (what: string): string[] => others.map((other) => `${what} / ${serverTitles[other.id]}`)
  const ratios = (byRound: ByRound, runs: ServerRuns): string[] =>
    others.map((other) => ratioText(medianRatio(byRound(runs), byRound(other))))
  const hasMaximum = servers.some(({ atMaximum }) => atMaximum.length > 0)
  const table = markdownTable(
    [
      'server',
      'CPU us/query',
      ...against('CPU'),
      ...(hasMaximum ? ['max q/s', ...against('max')] : []),
      'p50 ms',
      'p99 ms',
      'p99.9 ms',
      'RSS MB',
      'answer octets'
    ],
    servers.map((runs) => [
      runs.title,
      cpuText(runs.atRate, rate),
      ...ratios(cpuByRound, runs),
      ...(hasMaximum
        ? [spreadText(spreadOf(measuredRuns(maximumByRound(runs))), thousands), ...ratios(maximumByRound, runs)]
        : []),
      latencyText(runs, 'p50Ms'),
      latencyText(runs, 'p99Ms'),
      latencyText(runs, 'p999Ms'),
      (runs.rssOctets / 1e6).toFixed(0),
      String(measuredRuns(runs.atRate)[0]?.responseOctets ?? missing)
    ])
  )
  const setUps = servers.map(({ title, setUp }) => `${title}: ${setUp}`).join('; ')
  return `### ${title}\n\n\`${id}\`, ${short(rate)} queries a second offered. ${measuredText(measured)}\n\n${table}\n\n${setUps}.\n`
}

const measuredText = ({ date, commit, rounds, seconds }: Measured): string =>
  `${date}, peerdns ${commit}, ${rounds} rounds of ${seconds} s.`

function latencyTables({ latency }: BenchReport): string {
  if (latency === null) return ''
  const rows = latency.results.flatMap(({ roundTripMs, rows }) =>
    rows.map((row) => [
      row.title,
      String(roundTripMs),
      ...[row.p50Ms, row.p99Ms, row.maxMs].map(milliseconds),
      `${row.questions - row.failed} of ${row.questions}`
    ])
  )
  const table = markdownTable(['server in cluster B', 'round trip ms', 'p50 ms', 'p99 ms', 'max ms', 'answered'], rows)
  const { date, commit } = latency.measured
  return `## Uncached peered names: what the client waits\n\n\`latency\`. ${date}, peerdns ${commit}.\n\n${table}\n\nA client asks B's server, which asks A's peerdns through a relay that delays both directions; every name once, one at a time.\n`
}

function startTable({ start }: BenchReport): string {
  if (start === null) return ''
  const table = markdownTable(
    ['server', 'reads', 'first right answer after ms', 'CPU ms until then'],
    start.rows.map(({ title, input, tookMs, cpuMs }) => [
      title,
      input,
      spreadText(tookMs, wholeText),
      spreadText(cpuMs, wholeText)
    ])
  )
  const { date, commit } = start.measured
  return `## Start: from executing the program to its first right answer\n\n\`start\`. ${date}, peerdns ${commit}.\n\n${table}\n\npeerdns keeps compiled code for the next start; its first start has none. CoreDNS cannot read manifests without an API server, so it reads a zone file with the records that peerdns makes of them.\n`
}

/** How much others used of the servers' core while it was measured; null where it is not known. */
export function foreignShares(throughput: readonly MeasuredCase[]): Spread | null {
  const runs = throughput.flatMap(({ servers }) =>
    servers.flatMap(({ atRate, atMaximum }) => [...atRate, ...atMaximum])
  )
  return spreadOf(runs.flatMap((run) => (run === null || run.foreignShare === null ? [] : [run.foreignShare])))
}

/** Who was measured on what, and what disturbed it; said once where it is the same for several cases. */
function circumstances(report: BenchReport): string {
  const all = [...report.throughput, report.latency, report.start].flatMap((part) => part?.measured ?? [])
  const texts = all.map(({ machine, versions }) => {
    const names = Object.entries(versions).map(([name, version]) => `${name} ${version}`)
    return `${machine}. ${names.join(', ')}.`
  })
  const notes = new Set([...texts, ...all.flatMap(({ notes }) => notes)])
  const foreign = foreignShares(report.throughput)
  if (foreign !== null) {
    notes.add(
      `Other processes used ${percent(foreign.median)} of the servers' core in the median run, ${percent(foreign.max)} in the worst.`
    )
  }
  return [...notes].map((note) => `- ${note}\n`).join('')
}

export function markdownReport(report: BenchReport, others: OtherResults): string {
  const { throughput } = report
  return [
    '# Benchmark\n',
    'Made by `npm run bench` ([how](../README.md)); each case says when it was measured.\n',
    circumstances(report),
    ...(throughput.length === 0
      ? []
      : [
          `${method}\n`,
          `## Aims\n\n${aimsTable(report, others)}`,
          `## All cases\n\n${summaryOf(report)}`,
          memoryOf(report),
          '## Case by case, with (lowest–highest)\n'
        ]),
    ...throughput.map(caseTables),
    latencyTables(report),
    startTable(report)
  ]
    .filter((part) => part !== '')
    .join('\n')
}
