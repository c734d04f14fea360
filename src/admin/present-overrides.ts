/** Events, and what an operator set, as JSON. */
import type { ServerEvent } from '../operator/event-ring.ts'
import type { Override } from '../operator/overrides.ts'
import type { EventJson, OverrideJson, OverridesJson } from './api-types.ts'
import type { Inspectable } from './inspectable.ts'

export const presentEvent = ({ atEpochMs, ...event }: ServerEvent): EventJson => ({
  at: new Date(atEpochMs).toISOString(),
  ...event
})

export function presentOverrides(inspect: Inspectable): OverridesJson {
  const { where, problem, drainedPeers, disabledPolicies, allPolicies, enabledPolicies } = inspect.overrides()
  const all = (entries: ReadonlyMap<string, Override>): OverridesJson['drainedPeers'] =>
    [...entries].map(([name, override]) => ({ name, ...presentOverride(inspect, override) }))
  return {
    where,
    problem,
    drainedPeers: all(drainedPeers),
    disabledPolicies: all(disabledPolicies),
    allPolicies: allPolicies === null ? null : presentOverride(inspect, allPolicies),
    enabledPolicies: [...enabledPolicies]
  }
}

/** An override as JSON, with what is left of it. */
export function presentOverride(inspect: Inspectable, override: Override): OverrideJson {
  const { sinceEpochMs, untilEpochMs, reason, by } = override
  const nowEpochMs = inspect.parts().clock.epochMs()
  return {
    since: new Date(sinceEpochMs).toISOString(),
    until: untilEpochMs === null ? null : new Date(untilEpochMs).toISOString(),
    leftMs: untilEpochMs === null ? null : Math.max(0, untilEpochMs - nowEpochMs),
    reason,
    by
  }
}
