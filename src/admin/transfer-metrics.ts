/** Metrics of the zones that others take from us. */
import { byLabel, counter, gauge, type Metric } from './exposition.ts'
import type { Inspectable } from './inspectable.ts'

export function transferMetrics(inspect: Inspectable): Metric[] {
  const { stats, subscriptions } = inspect.parts().primary
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
    counter(
      'peerdns_tsig_failures_total',
      'Queries whose TSIG is not good: another key, MAC or time.',
      stats.badSignaturesTotal
    ),
    counter('peerdns_transfer_records_total', 'Records sent in zone transfers.', stats.recordsTotal),
    counter('peerdns_transfer_bytes_total', 'Octets of the messages sent in zone transfers.', stats.octetsTotal),
    gauge(
      'peerdns_transfer_subscriptions',
      'Zones that connections held open are told of by NOTIFY, each connection counted by itself.',
      subscriptions
    ),
    counter(
      'peerdns_transfer_subscriptions_refused_total',
      'Subscriptions that were not taken since there were too many.',
      stats.subscriptionsRefusedTotal
    ),
    counter(
      'peerdns_notify_total',
      'NOTIFY requests: pushed down connections, sent over UDP, answered, or given up without a response.',
      byLabel('event', [
        ['pushed', stats.notifyPushedTotal],
        ['sent', stats.notifySentTotal],
        ['answered', stats.notifyAnsweredTotal],
        ['lost', stats.notifyLostTotal]
      ])
    )
  ]
}
