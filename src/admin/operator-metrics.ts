/** Metrics of what an operator set beside the configuration, and of what happened. */
import { byLabel, counter, gauge, type Metric } from './exposition.ts'
import type { Inspectable } from './inspectable.ts'

export function operatorMetrics(inspect: Inspectable): Metric[] {
  const { drainedPeers, problem } = inspect.overrides()
  const { peers, policies } = inspect.config()
  return [
    gauge(
      'peerdns_peer_drained',
      '1 while an operator has taken the peer out.',
      peers.map(({ name }) => ({ labels: { peer: name }, value: drainedPeers.has(name) ? 1 : 0 }))
    ),
    gauge(
      'peerdns_policy_disabled',
      '1 while an operator has disabled the policy, alone or with all others.',
      policies.map(({ name }) => ({
        labels: { policy: name },
        value: inspect.disablingOf(name) === null ? 0 : 1
      }))
    ),
    counter(
      'peerdns_policy_unenforced_answers_total',
      'Answers that a policy with `enforce: false` would have left as they were, or changed; skipped ones were not looked at.',
      [...inspect.dataPlane.unenforced.stats].flatMap(([policy, { same, changed, skipped }]) =>
        Object.entries({ same, changed, skipped }).map(([result, value]) => ({ labels: { policy, result }, value }))
      )
    ),
    gauge(
      'peerdns_overrides_unreadable',
      '1 while the place of drains and disabled policies cannot be read, or its content is ignored.',
      problem === null ? 0 : 1
    ),
    counter(
      'peerdns_events_total',
      'Events by kind, as `peerdns events` lists them.',
      byLabel('kind', inspect.events.counts)
    )
  ]
}
