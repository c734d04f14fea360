/** Metrics of addresses that are checked for health. */
import { byLabel, counter, gauge, type Metric } from './exposition.ts'
import type { Inspectable } from './inspectable.ts'

export function endpointMetrics(inspect: Inspectable): Metric[] {
  const { down, checks, failures, transitions } = inspect.endpoints()
  return [
    gauge('peerdns_endpoints_down', 'Checked addresses that are down now.', down.length),
    counter(
      'peerdns_endpoint_checks_total',
      'Checks of addresses (`cluster.probes`) by this process, and those that changed a verdict.',
      byLabel('result', [
        ['passed', checks - failures],
        ['failed', failures],
        ['transition', transitions]
      ])
    )
  ]
}
