/** Metrics of the packet path: queries, answers, the cache, and the listening sockets. */
import { rcodeToText } from '../wire/iana.ts'
import { byLabel, counter, gauge, histogram, type Metric, type Sample } from './exposition.ts'
import type { Inspectable } from './inspectable.ts'
import { answersOfPolicy } from './policy-answers.ts'

/** These have a series from the start, so that a rate over the first one of them is seen. */
const usualRcodes = 6

export function queryMetrics(inspect: Inspectable): Metric[] {
  const { stats } = inspect.dataPlane
  const refreshes = inspect.parts().staleRefresh.stats
  const rcodes = [...stats.responsesByRcode.entries()].filter(([rcode, count]) => rcode < usualRcodes || count > 0)
  return [
    counter('peerdns_queries_total', 'Messages that came in, by transport.', [
      { labels: { transport: 'udp' }, value: stats.queriesUdp },
      { labels: { transport: 'tcp' }, value: stats.queriesTcp }
    ]),
    counter(
      'peerdns_queries_dropped_total',
      'Messages without a reply: shorter than a header, or responses.',
      stats.dropped
    ),
    counter('peerdns_queries_malformed_total', 'Queries answered with FORMERR.', stats.malformed),
    counter(
      'peerdns_queries_overloaded_total',
      'Queries answered with SERVFAIL because too many were waiting already.',
      stats.overloaded
    ),
    counter(
      'peerdns_query_bugs_total',
      'Queries answered with SERVFAIL because of a bug; the log has its stack.',
      stats.bugs
    ),
    counter(
      'peerdns_query_misses_total',
      'Queries that memory could not answer: somebody had to be asked.',
      stats.misses
    ),
    gauge('peerdns_queries_in_flight', 'Queries that wait for a peer or a resolver now.', stats.inFlight),
    counter(
      'peerdns_responses_total',
      'Responses by RCODE.',
      byLabel(
        'rcode',
        rcodes.map(([rcode, count]) => [rcodeToText(rcode), count] as const)
      )
    ),
    counter('peerdns_responses_truncated_total', 'Responses that did not fit and carry TC.', stats.truncated),
    counter('peerdns_answers_total', 'Answers by where they came from.', byLabel('source', stats.responsesBySource)),
    counter(
      'peerdns_answers_ready_total',
      'Answers that lay ready as octets; peerdns_answers_total has them too.',
      inspect.dataPlane.ready?.stats.served ?? 0
    ),
    gauge(
      'peerdns_ready_answers_bytes',
      'Memory that ready answers take, or have taken at the most.',
      inspect.dataPlane.ready?.usedOctets ?? 0
    ),
    counter('peerdns_answers_stale_total', 'Answers given after their TTL ran out (RFC 8767).', stats.stale),
    counter(
      'peerdns_stale_refreshes_total',
      'Questions asked again in the background because a stale answer was given; skipped: none was asked.',
      byLabel('result', [
        ['fresh', refreshes.refreshed],
        ['failed', refreshes.failed],
        ['skipped', refreshes.skipped]
      ])
    ),
    counter(
      'peerdns_policy_answers_total',
      'Answers by the policy that decided and the target that gave them.',
      policyAnswers(inspect)
    ),
    histogram(
      'peerdns_answer_age_seconds',
      'Age of the answers given: time since the target that knows was asked; 0 for zones and fresh replies.',
      stats.answerAgeSeconds
    ),
    histogram(
      'peerdns_miss_duration_seconds',
      'Time to answer queries that memory could not answer.',
      stats.missDurationSeconds
    )
  ]
}

function policyAnswers(inspect: Inspectable): Sample[] {
  const { stats } = inspect.dataPlane
  return [...stats.answersByPolicy.keys()].flatMap((policy) =>
    Array.from(answersOfPolicy(stats, policy), ([target, value]) => ({ labels: { policy, target }, value }))
  )
}

export function workerMetrics(inspect: Inspectable): Metric[] {
  const { wanted, reading, steered, answered, forwarded, dropped, lost } = inspect.workers()
  return [
    gauge(
      'peerdns_workers',
      'Threads that answer from memory: those that the configuration wants, those that read, and over how many the load is spread.',
      byLabel('state', [
        ['wanted', wanted],
        ['reading', reading],
        ['steered', steered]
      ])
    ),
    counter(
      'peerdns_worker_queries_total',
      'What these threads did with queries; forwarded: the main thread answers.',
      byLabel('result', [
        ['answered', answered],
        ['forwarded', forwarded],
        ['dropped', dropped],
        ['lost', lost]
      ])
    )
  ]
}

export function cacheMetrics(inspect: Inspectable): Metric[] {
  const { stats } = inspect.parts().cache
  return [
    counter('peerdns_cache_hits_total', 'Fresh answers found in the cache.', stats.hits),
    counter('peerdns_cache_misses_total', 'Look-ups that found nothing, or nothing fresh.', stats.misses),
    counter('peerdns_cache_insertions_total', 'Answers put into the cache.', stats.insertions),
    counter(
      'peerdns_cache_evictions_total',
      'Answers that left the cache: of use still, but room was needed; past their stale window; or flushed.',
      byLabel('reason', [
        ['size', stats.evictions],
        ['expired', stats.expirations],
        ['flushed', stats.flushed]
      ])
    ),
    gauge('peerdns_cache_entries', 'Answers in the cache.', stats.entries),
    gauge('peerdns_cache_bytes', 'Memory that the cached answers take, by estimate.', stats.octets),
    gauge('peerdns_cache_limit_bytes', 'Memory that they may take: cache.maxBytes.', inspect.config().cache.maxOctets)
  ]
}

export function listenerMetrics(inspect: Inspectable): Metric[] {
  const { udp, tcp } = inspect.listenerStats()
  return [
    counter(
      'peerdns_listener_events_total',
      'What happened at the listening sockets; docs/metrics.md lists the events.',
      [...eventsOf('udp', udp), ...eventsOf('tcp', tcp)]
    ),
    gauge('peerdns_tcp_connections', "Clients' TCP connections that are open.", tcp.connectionsOpen)
  ]
}

/** `sendErrorsTotal` becomes the event `send_errors`; what is no total is left out. */
function eventsOf(transport: string, stats: Readonly<Record<string, number>>): Sample[] {
  return Object.entries(stats)
    .filter(([name]) => name.endsWith('Total'))
    .map(([name, value]) => ({
      labels: { transport, event: name.slice(0, -5).replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`) },
      value
    }))
}
