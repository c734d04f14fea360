/** The results as Markdown. */
import { markdownTable } from '../tables.ts'
import type { Figures, PartFigures, SetUpFigures } from './figures.ts'
import type { OwnFigures } from './own-figures.ts'
import type { PartName } from './options.ts'

/** Below a second in milliseconds, above in seconds. */
export function durationText(ms: number): string {
  if (Number.isNaN(ms)) return '-'
  if (ms < 9.95) return `${ms.toFixed(1)} ms`
  return ms < 999.5 ? `${ms.toFixed(0)} ms` : `${(ms / 1000).toFixed(1)} s`
}

export const threeOf = ({ medianMs, p99Ms, maxMs }: Figures): string[] => [medianMs, p99Ms, maxMs].map(durationText)

type Results = Readonly<{ [Part in PartName]?: PartFigures }>

export function markdownOf(results: Results): string {
  const { told, cached, link, sweep } = results
  return [
    '# Staleness: how long a dead endpoint of one cluster is given out in another',
    '',
    'Two clusters, each with etcd, kube-apiserver and kube-controller-manager; kwok plays the nodes. Headless Services of cluster A lose one endpoint each at a random moment: every other pod is deleted, the rest get unready. A client on B, a process of its own that sees DNS answers only, asks each server for each name every 5 ms from one second before. Black hole: from the reply of the API server to the change of the pod until the last answer that held the dead address; the time that the EndpointSlice controller takes is part of it. Set-ups of one part were measured on the same deaths. Everything ran on two cores.',
    ...summaryLines(results),
    ...(told === undefined ? [] : ['', '## Where A tells B of changes', '', ...mainLines(told)]),
    ...(cached === undefined ? [] : ['', '## Where a TTL has to end', '', ...mainLines(cached)]),
    ...(link === undefined
      ? []
      : ['', '## With 50 ms one way and 1 % of packets lost between the clusters', '', ...mainLines(link)]),
    ...(sweep === undefined ? [] : ['', '## Without push: what a TTL costs', '', ...sweepLines(sweep)]),
    ''
  ].join('\n')
}

const rowsOf = (part: PartFigures | undefined, before = ''): string[][] =>
  (part?.setUps ?? []).map((setUp) => {
    const [title, ...figures] = setUpRow(setUp)
    return [`${before}${title!}`, String(setUp.blackHole.count), ...figures]
  })

/** Every set-up in one table. */
function summaryLines(results: Results): string[] {
  const parts = Object.values(results)
  if (parts.length === 0) return []
  const runs = new Set(parts.map(({ date, commit }) => `${date}, peerdns at ${commit}`))
  const { told, cached, link, sweep } = results
  const rows = [
    ...rowsOf(cached),
    ...rowsOf(sweep, 'peerdns, forwarding only, cap of '),
    ...rowsOf(told),
    ...rowsOf(link),
    ...parts.flatMap(({ java }) =>
      java.map(({ title, blackHole }) => {
        const { count } = blackHole
        return [`a Java client behind ${title}`, String(count), ...threeOf(blackHole), '-', '-', '-']
      })
    )
  ]
  const [title, ...figures] = setUpHead
  return ['', `${[...runs].join('; ')}:`, '', markdownTable([title!, 'endpoints', ...figures], rows)]
}

const setUpHead = ['set-up', 'median', 'p99', 'max', 'stale answers', 'of answers', 'failed']

const setUpRow = ({ title, blackHole, staleAnswers, answers, unanswered, errors }: SetUpFigures): string[] => [
  title,
  ...threeOf(blackHole),
  String(staleAnswers),
  String(answers),
  String(unanswered + errors)
]

function mainLines(part: PartFigures): string[] {
  const java = part.java.map(({ title, blackHole }) => [title, ...threeOf(blackHole)])
  return [
    conditionsLine(part),
    '',
    markdownTable(setUpHead, part.setUps.map(setUpRow)),
    ...(java.length === 0
      ? []
      : [
          '',
          'A client that keeps every answer for 30 s, as a JVM does unless told otherwise, used the dead endpoint for:',
          '',
          markdownTable(['behind', 'median', 'p99', 'max'], java)
        ]),
    ...part.own.flatMap(ownLines)
  ]
}

function ownLines(figures: OwnFigures): string[] {
  const { title, difference, within10Ms, missing, own, observed, origin, lastStale } = figures
  const rows = [
    ['as it says itself', ...threeOf(own)],
    ['as the observer saw it', ...threeOf(observed)],
    ['difference', ...threeOf(difference)],
    ...(origin === undefined ? [] : [["of which: A's watch of slices and the observer's", ...threeOf(origin)]]),
    ...(lastStale === undefined ? [] : [['of which: when the last stale answer went out', ...threeOf(lastStale)]])
  ]
  return [
    '',
    `${title}: staleness from the EndpointSlice's change, in ${difference.count} deaths with stale answers; ${(within10Ms * 100).toFixed(1)} % differ by 10 ms or less, ${missing} are missing.`,
    '',
    markdownTable(['', 'median', 'p99', 'max'], rows)
  ]
}

function sweepLines(part: PartFigures): string[] {
  const head = ['policy on B', 'median', 'p99', 'max', 'asked at A', 'of queries', 'hit rate', 'latency median', 'p99']
  const rows = part.setUps.map(({ title, blackHole, latency }, at) => {
    const { questionsToPeer, queries, hitShare } = part.sweep[at]!
    const latencies = [latency.medianMs, latency.p99Ms].map(durationText)
    return [
      title,
      ...threeOf(blackHole),
      String(questionsToPeer),
      String(queries),
      `${(hitShare * 100).toFixed(1)} %`,
      ...latencies
    ]
  })
  return [conditionsLine(part), '', markdownTable(head, rows)]
}

function conditionsLine({ date, commit, trials, background, api, slice, lag, load }: PartFigures): string {
  const failed = background.failures === 0 ? '' : ` (${background.failures} failed)`
  return [
    `${date}, peerdns at ${commit}: ${trials} endpoints,`,
    `${background.perMinute.toFixed(0)} changes of other endpoints a minute${failed}, load ${load.toFixed(1)}.`,
    `API server's reply after ${threeOf(api).slice(0, 2).join(', p99 ')}; slice written ${threeOf(slice).slice(0, 2).join(', p99 ')} after that.`,
    `The observer asked ${lag.polls} times, ${durationText(lag.medianMs)} late in the median, p99 ${durationText(lag.p99Ms)}, at most ${durationText(lag.maxMs)}; ${lag.skipped} questions were left out.`
  ].join(' ')
}
