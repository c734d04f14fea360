/** The tables of bench/results/scale.md. */
import type { Spread } from '../statistics.ts'
import type { ChangeFigures } from './changes.ts'
import type { WithLoad } from './figures.ts'
import type { ReplayFigures } from './replay.ts'

export type ServerFigures = WithLoad<{
  title: string
  readyMs: Spread
  /** Of the process itself until it was ready, by start. */
  readyCpuMs: Spread
  readyRssOctets: Spread
  changes: ChangeFigures
  changedRssOctets: number
  peakRssOctets: number
}>

export type SizeFigures = Readonly<{ services: number; endpoints: number; servers: readonly ServerFigures[] }>

export type ScaleReport = Readonly<{
  date: string
  commit: string
  nodeOptions: readonly string[]
  sizes: readonly SizeFigures[]
  replay: WithLoad<ReplayFigures> | null
}>

const megabytes = (octets: number): string => (octets / 1e6).toFixed(0)
const ms = (value: number): string => value.toFixed(value < 100 ? 1 : 0)
const spread = ({ median, min, max }: Spread, write: (value: number) => string): string =>
  `${write(median)} (${write(min)} to ${write(max)})`

export function markdownOf(report: ScaleReport): string {
  const { date, commit, nodeOptions, sizes, replay } = report
  const options = nodeOptions.length === 0 ? '' : `, node ${nodeOptions.join(' ')}`
  const lines = [
    `# Scale: many Services, on one real API server`,
    '',
    `${date}, peerdns at ${commit}${options}. Two cores shared with etcd, the API server, the client and whatever else runs: "load" is the machine's load average. Half of the Services are headless, each has two ports and ten endpoints. Ready: from executing the program to its first right answer; medians, with the least and the most. Change to answer: from the API server's reply to the first right answer, asked every 0.5 ms.`,
    '',
    '| Services | endpoints | server | ready ms | of CPU ms | RSS MB | change to answer: median ms | p99 ms | changes/s | RSS MB after changes | peak MB | load |',
    '|---|---|---|---|---|---|---|---|---|---|---|---|'
  ]
  for (const { services, endpoints, servers } of sizes) {
    for (const server of servers) {
      const { title, readyMs, readyCpuMs, readyRssOctets, changes, changedRssOctets, peakRssOctets, load } = server
      const never = changes.neverRight === 0 ? '' : `, ${changes.neverRight} never`
      lines.push(
        `| ${services} | ${endpoints} | ${title} | ${spread(readyMs, ms)} | ${spread(readyCpuMs, ms)} | ${spread(readyRssOctets, megabytes)} | ${ms(changes.medianMs)} | ${ms(changes.p99Ms)}${never} | ${changes.perSecond.toFixed(0)} for ${changes.seconds.toFixed(0)} s | ${megabytes(changedRssOctets)} | ${megabytes(peakRssOctets)} | ${load.toFixed(1)} |`
      )
    }
  }
  if (replay !== null) lines.push('', ...replayLines(replay))
  return `${lines.join('\n')}\n`
}

function replayLines(replay: WithLoad<ReplayFigures>): string[] {
  const { services, changesPerSecond, dnsperf, firstList, relist, load } = replay
  const { sent, lost, latency } = dnsperf
  return [
    `## peerdns alone, changes replayed by a watch stream of ours (${services} Services, load ${load.toFixed(1)})`,
    '',
    '| what | median ms | p99 ms | longest ms |',
    '|---|---|---|---|',
    `| ${sent} queries while ${changesPerSecond.toFixed(0)} changes a second come in (${lost} lost; longest: p99.9) | ${ms(latency?.p50Ms ?? Number.NaN)} | ${ms(latency?.p99Ms ?? Number.NaN)} | ${ms(latency?.p999Ms ?? Number.NaN)} |`,
    `| an answer every 2 ms during the first list | ${ms(firstList.medianMs)} | ${ms(firstList.p99Ms)} | ${ms(firstList.maxMs)} |`,
    `| the same during a relist | ${ms(relist.medianMs)} | ${ms(relist.p99Ms)} | ${ms(relist.maxMs)} |`
  ]
}
