/** Metrics of how long changes take, and of how many answers were stale meanwhile. */
import type { Histogram } from '../base/histogram.ts'
import type { StaleCount } from '../pipeline/freshness.ts'
import { counter, histograms, type Labels, type Metric } from './exposition.ts'
import type { Inspectable } from './inspectable.ts'

export function freshnessMetrics(inspect: Inspectable): Metric[] {
  const { stale, storeSeconds, peerSeconds, answerSeconds } = inspect.parts().freshness.stats
  const counts = [...stale.values()]
  return [
    histograms(
      'peerdns_staleness_seconds',
      'From a change at a peer until the last answer that did not know of it, for names that were asked for meanwhile.',
      counts.map((count) => ({ labels: labelsOf(count), histogram: count.seconds }))
    ),
    counter(
      'peerdns_stale_answers_total',
      'Answers that were no longer right when they were given, as we learned later.',
      counts.map((count) => ({ labels: labelsOf(count), value: count.answers }))
    ),
    histograms('peerdns_propagation_seconds', 'From a change where it happened until it is at a stage of its way.', [
      { labels: { stage: 'store', peer: '' }, histogram: storeSeconds },
      ...ofStage('peer', peerSeconds),
      ...ofStage('answer', answerSeconds)
    ])
  ]
}

const labelsOf = ({ peer, policy }: StaleCount): Labels => ({ peer, policy })

const ofStage = (stage: string, byPeer: ReadonlyMap<string, Histogram>) =>
  Array.from(byPeer, ([peer, histogram]) => ({ labels: { stage, peer }, histogram }))
