/** `/metrics`: every metric of the server, read from plain counters at the moment of the scrape. docs/metrics.md. */
import { endpointMetrics } from './endpoint-metrics.ts'
import { counter, expose, expositionContentType, gauge, histogram, type Metric } from './exposition.ts'
import { freshnessMetrics } from './freshness-metrics.ts'
import type { HttpStats } from './http-listener.ts'
import type { Inspectable } from './inspectable.ts'
import type { LoopLag } from './loop-lag.ts'
import { operatorMetrics } from './operator-metrics.ts'
import { cacheMetrics, listenerMetrics, queryMetrics, workerMetrics } from './query-metrics.ts'
import type { Route } from './router.ts'
import { configMetrics, peerMetrics, sourceMetrics, zoneMetrics } from './state-metrics.ts'
import { mirrorMetrics } from './mirror-metrics.ts'
import { transferMetrics } from './transfer-metrics.ts'

/** What the admin side itself has to tell. */
export type OwnStats = Readonly<{ loopLag: LoopLag; listeners: () => ReadonlyMap<string, HttpStats> }>

export function metricsRoute(inspect: Inspectable, own: OwnStats): Route {
  return {
    method: 'GET',
    path: '/metrics',
    handler: () => ({ status: 200, contentType: expositionContentType, body: expose(allMetrics(inspect, own)) })
  }
}

export const allMetrics = (inspect: Inspectable, own: OwnStats): Metric[] => [
  ...queryMetrics(inspect),
  ...workerMetrics(inspect),
  ...cacheMetrics(inspect),
  ...listenerMetrics(inspect),
  ...zoneMetrics(inspect),
  ...transferMetrics(inspect),
  ...mirrorMetrics(inspect),
  ...sourceMetrics(inspect),
  ...peerMetrics(inspect),
  ...freshnessMetrics(inspect),
  ...endpointMetrics(inspect),
  ...operatorMetrics(inspect),
  ...configMetrics(inspect),
  ...processMetrics(inspect, own)
]

function processMetrics(inspect: Inspectable, own: OwnStats): Metric[] {
  const memory = process.memoryUsage()
  const cpu = process.cpuUsage()
  const listeners = [...own.listeners()]
  return [
    gauge('peerdns_process_start_time_seconds', 'Wall time of the start since 1970.', inspect.startedAtEpochMs / 1000),
    counter('peerdns_process_cpu_seconds_total', 'CPU time of the process.', [
      { labels: { mode: 'user' }, value: cpu.user / 1e6 },
      { labels: { mode: 'system' }, value: cpu.system / 1e6 }
    ]),
    gauge('peerdns_process_resident_memory_bytes', 'Resident memory of the process.', memory.rss),
    gauge('peerdns_process_heap_bytes', "JavaScript's heap in use.", memory.heapUsed),
    gauge('peerdns_process_external_bytes', 'Memory of buffers outside of the heap.', memory.external),
    histogram(
      'peerdns_event_loop_lag_seconds',
      'How late timers are called, measured twice a second.',
      own.loopLag.seconds
    ),
    counter(
      'peerdns_http_requests_total',
      'HTTP requests by listener.',
      listeners.map(([listener, stats]) => ({ labels: { listener }, value: stats.requestsTotal }))
    ),
    counter(
      'peerdns_http_failures_total',
      'HTTP requests that were refused (status 400 to 499) or met a bug (500).',
      listeners.flatMap(([listener, stats]) => [
        { labels: { listener, reason: 'refused' }, value: stats.refusedTotal },
        { labels: { listener, reason: 'bug' }, value: stats.faultsTotal }
      ])
    )
  ]
}
