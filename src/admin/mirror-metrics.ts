/** Metrics of peers' zones that are kept here, or whose changes are listened to. */
import { zonesInMetrics } from '../base/limits.ts'
import { nameToText } from '../wire/name.ts'
import { counter, gauge, type Metric, type Sample } from './exposition.ts'
import type { Inspectable, MirrorOfPeer } from './inspectable.ts'

type Zone = MirrorOfPeer['zones'][number]

export function mirrorMetrics(inspect: Inspectable): Metric[] {
  const mirrors = inspect.mirrors()
  const all = mirrors.flatMap(({ peer, zones }) => zones.map((zone) => ({ peer, zone }))).slice(0, zonesInMetrics)
  const each = (valueOf: (zone: Zone) => number | null): Sample[] =>
    all.flatMap(({ peer, zone }) => {
      const value = valueOf(zone)
      return value === null ? [] : [{ labels: { peer, zone: nameToText(zone.apex) }, value }]
    })
  const parted = (label: string, countsOf: (zone: Zone) => Record<string, number>): Sample[] =>
    all.flatMap(({ peer, zone }) =>
      Object.entries(countsOf(zone)).map(([key, value]) => ({
        labels: { peer, zone: nameToText(zone.apex), [label]: key },
        value
      }))
    )
  const evictions = (valueOf: (of: NonNullable<MirrorOfPeer['evictions']>) => number): Sample[] =>
    mirrors.flatMap(({ peer, evictions: of }) => (of === null ? [] : [{ labels: { peer }, value: valueOf(of) }]))
  return [
    gauge(
      'peerdns_mirror_live',
      '1 while the peer of a mirrored or followed zone gives signs of life, so that the copy stands for it.',
      each(({ isLive }) => (isLive ? 1 : 0))
    ),
    gauge(
      'peerdns_mirror_refused',
      '1 while the peer refuses to give the zone.',
      each(({ state }) => (state === 'refused' ? 1 : 0))
    ),
    gauge(
      'peerdns_mirror_serial',
      'Serial of the copy, or the last one heard of; no sample before the first.',
      each(({ serial }) => serial)
    ),
    gauge(
      'peerdns_mirror_age_seconds',
      'Time since the zone was known to be right at its origin; no sample before the first transfer.',
      each(({ ageMs }) => (ageMs === null ? null : ageMs / 1000))
    ),
    gauge(
      'peerdns_mirror_clock_offset_seconds',
      "The primary's wall clock less ours; no sample where it does not tell.",
      each(({ clockOffsetMs }) => (clockOffsetMs === null ? null : clockOffsetMs / 1000))
    ),
    counter(
      'peerdns_mirror_transfers_total',
      'Transfers of a mirrored or followed zone that were of use.',
      parted('kind', ({ stats }) => ({ whole: stats.wholeTransfers, differences: stats.deltaTransfers }))
    ),
    counter(
      'peerdns_mirror_faults_total',
      'Questions and transfers that were of no use; what was there has stayed.',
      parted('why', ({ stats }) => stats.faults)
    ),
    counter(
      'peerdns_mirror_notifies_total',
      'Times that somebody said by NOTIFY that the zone has changed.',
      each(({ stats }) => stats.notifies)
    ),
    counter(
      'peerdns_evicted_answers_total',
      'Cached answers of a peer that left because it said that they may have changed.',
      evictions(({ answers }) => answers)
    ),
    gauge(
      'peerdns_adaptive_ttl_names',
      'Names of a peer that tells of no changes which were seen to change, so that their TTLs have a cap.',
      mirrors.map(({ peer, adaptiveTtl }) => ({ labels: { peer }, value: adaptiveTtl.names }))
    ),
    counter(
      'peerdns_adaptive_ttl_changes_total',
      'Answers of such a peer that were other ones than the time before.',
      mirrors.map(({ peer, adaptiveTtl }) => ({ labels: { peer }, value: adaptiveTtl.changes }))
    ),
    counter(
      'peerdns_adaptive_ttl_capped_answers_total',
      'Answers of such a peer whose TTL became lower by that cap.',
      mirrors.map(({ peer, adaptiveTtl }) => ({ labels: { peer }, value: adaptiveTtl.capped }))
    )
  ]
}
