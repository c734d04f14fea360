/** When a change happened that a list or a watch has told. */
import type { ObjectKind } from '../../object-event.ts'

export const triggerAnnotation = 'endpoints.kubernetes.io/last-change-trigger-time'
/** An older time belongs to an earlier change of the slice: the annotation may outlive it. */
const maxAgeMs = 60_000
/**
 * Kubernetes keeps the times of Pods and Services in whole seconds, so a change may be this much later than it says.
 */
const precisionMs = 999

/**
 * The wall time of the change in milliseconds since 1970: its arrival, for the API tells nothing better, except for an
 * EndpointSlice whose controller noted when the Pod or Service changed. That time is rounded down to seconds; the
 * latest moment that it can mean is taken, so an age is never overstated, and a delay shows once it is over a second.
 */
export function originOf(raw: unknown, kind: ObjectKind, arrivedAtMs: number): number {
  if (kind !== 'EndpointSlice') return arrivedAtMs
  const annotations = (raw as { metadata?: { annotations?: Record<string, unknown> | null } | null } | null)?.metadata
    ?.annotations
  const text = annotations?.[triggerAnnotation]
  if (typeof text !== 'string' || text.length > 40) return arrivedAtMs
  const toldMs = Date.parse(text)
  if (!(arrivedAtMs - toldMs < maxAgeMs)) return arrivedAtMs
  return Math.min(arrivedAtMs, text.includes('.') ? toldMs : toldMs + precisionMs)
}
