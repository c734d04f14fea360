/** Metrics of the zones that others take from us. */
import { byLabel, counter, type Metric } from './exposition.ts'
import type { Inspectable } from './inspectable.ts'

export function transferMetrics(inspect: Inspectable): Metric[] {
  const { stats } = inspect.parts().primary
  return [
    counter(
      'peerdns_transfers_total',
      'Zone transfers that others asked for, by how they ended.',
      byLabel('outcome', [
        ['whole', stats.wholeTotal],
        ['differences', stats.differencesTotal],
        ['current', stats.currentTotal],
        ['refused', stats.refusedTotal],
        ['not_authoritative', stats.notAuthoritativeTotal],
        ['overloaded', stats.overloadedTotal],
        ['broken', stats.brokenTotal]
      ])
    ),
    counter('peerdns_transfer_records_total', 'Records sent in zone transfers.', stats.recordsTotal),
    counter('peerdns_transfer_bytes_total', 'Octets of the messages sent in zone transfers.', stats.octetsTotal)
  ]
}
