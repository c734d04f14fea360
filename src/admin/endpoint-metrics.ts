/** Metrics of addresses that are checked for health. */
import { byLabel, counter, gauge, type Metric } from './exposition.ts'
import type { Inspectable } from './inspectable.ts'

export function endpointMetrics(inspect: Inspectable): Metric[] {
  const { role, down, checks, failures, transitions } = inspect.endpoints()
  const roles = ['following', 'holding', 'alone'] as const
  return [
    gauge(
      'peerdns_endpoint_checks_role',
      'Whether another replica checks addresses, or this one for all of them, or for itself; all 0 where none are checked.',
      byLabel(
        'role',
        roles.map((name) => [name, name === role ? 1 : 0])
      )
    ),
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
