/** Overloads as Markdown: what was asked of each set-up and whether it was met, and the figures. */
import type { DnsperfRun } from '../dnsperf.ts'
import { percentile } from '../statistics.ts'
import { missing, thousands } from '../tables.ts'
import { demandsOn, type Demand, type OverloadSample } from './demands.ts'

export type Figures = Readonly<{
  title: string
  maxima: readonly number[]
  maximum: number
  overload: DnsperfRun
  /** Of the overload: right answers, which a refusal is not. */
  answered: number
  recovery: DnsperfRun
  samples: readonly OverloadSample[]
  /** Resident memory before the overload. */
  restRssOctets: number
  isLimited: boolean
  /** What others used of the server's core during the overload, 0 to 1; null where it has no core. */
  foreignShare: number | null
}>

export type Circumstances = Readonly<{
  date: string
  commit: string
  /** Of a core, that the server got. */
  share: number
  maximumRuns: number
  outstandingAtMaximum: number
  /** Of the set-up that asks another cluster. */
  cacheBytes: string
  isRaised: boolean
}>

const mebibyte = 1024 * 1024
const mebibytes = (value: number): string => `${value.toFixed(0)} MiB`
const milliseconds = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`

export function demandsOf({ maximum, overload, answered, recovery, samples, restRssOctets }: Figures): Demand[] {
  const { sent, lost, maxLatencyMs } = recovery
  return demandsOn({
    maximum,
    offeredPerSecond: overload.sent / overload.seconds,
    answeredPerSecond: answered / overload.seconds,
    longestMs: overload.maxLatencyMs,
    meanMs: overload.meanLatencyMs,
    p99Ms: overload.latency?.p99Ms ?? null,
    restRssOctets,
    samples,
    recovery: { sent, lost, longestMs: maxLatencyMs }
  })
}

const table = (head: readonly string[], rows: readonly (readonly string[])[]): string[] =>
  [head, head.map(() => '---'), ...rows].map((cells) => `| ${cells.join(' | ')} |`)

const demandCell = ({ measured, isMet }: Demand): string => `${isMet ? 'met' : '**missed**'}: ${measured}`

function rowsOf(figures: Figures): [string, string][] {
  const { maxima, maximum, overload, answered, recovery, samples } = figures
  const rss = samples.map(({ rssOctets }) => rssOctets / mebibyte)
  const healthMs = Float64Array.from(samples.flatMap(({ healthMs }) => healthMs ?? [])).sort()
  const perSecond = answered / overload.seconds
  const offered = overload.sent / overload.seconds
  const refused = overload.completed - answered
  const { latency } = overload
  const lostInRecovery = recovery.lost === 0 ? 'none lost' : `${recovery.lost} of ${recovery.sent} lost`
  return [
    ['maximum', `${thousands(maximum)} q/s (${thousands(Math.min(...maxima))} to ${thousands(Math.max(...maxima))})`],
    ['offered', `${thousands(offered)} q/s for ${overload.seconds.toFixed(0)} s, ${(offered / maximum).toFixed(2)}x`],
    ['answered meanwhile', `${thousands(perSecond)} q/s, ${((100 * perSecond) / maximum).toFixed(0)} % of the maximum`],
    ['refused (SERVFAIL)', `${thousands(refused / overload.seconds)} q/s`],
    ['latency', `mean ${milliseconds(overload.meanLatencyMs)}, p99 ${latency === null ? missing : milliseconds(latency.p99Ms)}, longest ${milliseconds(overload.maxLatencyMs)}`],
    ['`/healthz`', `${healthMs.length} of ${samples.length} answered; p50 ${milliseconds(percentile(healthMs, 0.5))}, longest ${milliseconds(healthMs.at(-1) ?? Number.NaN)}`],
    ['RSS', `${mebibytes(figures.restRssOctets / mebibyte)} before; ${mebibytes(rss[0]!)} at the beginning, ${mebibytes(rss.at(-1)!)} at the end, ${mebibytes(Math.max(...rss))} at the most`],
    ['right behind it', `${thousands(recovery.sent / recovery.seconds)} q/s offered: ${lostInRecovery}, mean ${milliseconds(recovery.meanLatencyMs)}, longest ${milliseconds(recovery.maxLatencyMs)}`],
    ["others on the server's core", figures.foreignShare === null ? 'not known' : `${(100 * figures.foreignShare).toFixed(0)} %`]
  ] // prettier-ignore
}

export function reportOf(all: readonly Figures[], circumstances: Circumstances): string {
  const { date, commit, share, maximumRuns, outstandingAtMaximum, cacheBytes, isRaised } = circumstances
  const isLimited = all.every((figures) => figures.isLimited)
  const titles = all.map(({ title }) => title)
  const demands = all.map(demandsOf)
  const rows = all.map(rowsOf)
  const first = demands[0]!
  return [
    '# Overload: twice of what can be answered',
    '',
    `Made by \`node bench/overload.ts\` on ${date}, peerdns ${commit}. The server has ${isLimited ? `${share} of a core (a CPU quota in each 10 ms)` : 'a core'}. A of 200 Services that lie`,
    'ready, in batches of datagrams and one at a time (`batching: off`); names that come once, each another one, so that the worker hands all of them',
    `to the main thread: of its own zone, and of another cluster, which is asked (with \`cache.maxBytes: ${cacheBytes}\`, so that it is full from the beginning).`,
    `The maximum is the median of ${maximumRuns} runs before it and ${maximumRuns} behind it, with ${outstandingAtMaximum} queries under way. In the overload as many are under way as are offered in a second, so nothing slows the`,
    'client down but its own core. Answers within a second count.',
    ...(isRaised ? ['Server and client ran with raised scheduling priority.'] : []),
    '',
    ...table(
      ['demand', 'to reach', ...titles],
      first.map(({ what, aim }, at) => [what, aim, ...demands.map((these) => demandCell(these[at]!))])
    ),
    '',
    ...table(
      ['', ...titles],
      rows[0]!.map(([what], at) => [what, ...rows.map((these) => these[at]![1])])
    ),
    ''
  ].join('\n')
}
