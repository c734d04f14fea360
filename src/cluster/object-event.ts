/** What every source of Kubernetes objects says, one change at a time. */
import type { Identity, KubernetesObject, ObjectKind, Reduced } from './objects.ts'

export type { ObjectKind } from './objects.ts'

/**
 * `put` adds or replaces an object. `reject` says that an object exists and cannot be used: what was known of it is
 * forgotten, and it is listed among the objects left out. A rejected object needs a `delete` or a `put` to leave that
 * list.
 */
export type ObjectEvent =
  | Readonly<{ type: 'put'; object: KubernetesObject; warning?: string | null }>
  | Readonly<{ type: 'delete'; kind: ObjectKind; namespace: string; name: string }>
  | Readonly<{ type: 'reject'; identity: Identity; path: string; reason: string }>

/** The event for an object that was added or changed; null for one that DNS has no use for. */
export function eventForReduced(reduced: Reduced): ObjectEvent | null {
  if ('ignored' in reduced) return null
  if ('ok' in reduced) return { type: 'put', object: reduced.ok, warning: reduced.warning }
  return { type: 'reject', identity: reduced.identity, path: reduced.path, reason: reduced.invalid }
}

/** What tells an object from all others, as a map key: kinds, namespaces and names hold no slash. */
export const objectKey = (kind: string, namespace: string, name: string): string => `${kind}/${namespace}/${name}`
