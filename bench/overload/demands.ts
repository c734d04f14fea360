/** What is asked of a server that is offered more than it can answer, and whether it did so. */
import { percentile } from '../statistics.ts'

export type Demand = Readonly<{ what: string; aim: string; measured: string; isMet: boolean }>

/** What overload.ts leaves for other reports, as overload.json. */
export type OverloadResults = Readonly<{
  /** ISO date, UTC. */
  date: string
  /** Of peerdns. */
  commit: string
  /** The first one is of answers that lie ready; all have the same demands. */
  setUps: readonly Readonly<{ title: string; demands: readonly Demand[] }>[]
}>

export type OverloadSample = Readonly<{ rssOctets: number; healthMs: number | null; answerMs: number | null }>

export type OverloadFigures = Readonly<{
  maximum: number
  offeredPerSecond: number
  answeredPerSecond: number
  longestMs: number
  meanMs: number
  /** Null where not every answer was timed. */
  p99Ms: number | null
  /** Resident memory before the overload. */
  restRssOctets: number
  samples: readonly OverloadSample[]
  /** Right behind it, at a load that it bears. */
  recovery: Readonly<{ sent: number; lost: number; longestMs: number }>
}>

const leastShare = 0.9
/** An answer that takes longer has been asked again by most stub resolvers; so long a queue is of no use to anybody. */
const longestMs = 500
/** By the maximum: below it this was no overload, and nothing is shown. */
const leastOffered = 1.5
const flatShare = 1.1
const mebibyte = 1024 * 1024

const milliseconds = (value: number): string => `${value.toFixed(value < 10 ? 1 : 0)} ms`
const percent = (share: number): string => `${(share * 100).toFixed(0)} %`
const mebibytes = (octets: number): string => `${(octets / mebibyte).toFixed(0)} MiB`

export function demandsOn(figures: OverloadFigures): Demand[] {
  const { maximum, offeredPerSecond, answeredPerSecond, meanMs, p99Ms, restRssOctets, samples, recovery } = figures
  const share = answeredPerSecond / maximum
  const offered = offeredPerSecond / maximum
  const mostRss = Math.max(...samples.map(({ rssOctets }) => rssOctets))
  const healthMs = Float64Array.from(samples.flatMap(({ healthMs }) => healthMs ?? [])).sort()
  return [
    { what: 'answered, by the maximum', aim: `above ${percent(leastShare)}`, measured: `${percent(share)}, ${offered.toFixed(2)}x offered`, isMet: share > leastShare && offered >= leastOffered },
    {
      what: 'latency of what was answered',
      aim: `at most ${milliseconds(longestMs)}`,
      measured: `longest ${milliseconds(figures.longestMs)}, ${p99Ms === null ? '' : `p99 ${milliseconds(p99Ms)}, `}mean ${milliseconds(meanMs)}`,
      isMet: figures.longestMs <= longestMs
    },
    {
      what: 'RSS, by that before',
      aim: `at most ${flatShare.toFixed(2)}x`,
      measured: `${(mostRss / restRssOctets).toFixed(2)}x, ${mebibytes(mostRss)}`,
      isMet: mostRss <= restRssOctets * flatShare
    },
    {
      what: '`/healthz` answers',
      aim: 'always',
      measured: `${healthMs.length} of ${samples.length}, p50 ${milliseconds(percentile(healthMs, 0.5))}, longest ${milliseconds(healthMs.at(-1) ?? Number.NaN)}`,
      isMet: samples.length > 0 && healthMs.length === samples.length
    },
    {
      what: 'right behind it',
      aim: 'none lost',
      measured: `${recovery.lost} of ${recovery.sent} lost, longest ${milliseconds(recovery.longestMs)}`,
      isMet: recovery.lost === 0
    }
  ] // prettier-ignore
}
