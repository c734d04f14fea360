/** Names of pods that a copied zone computes from the question, as the zone's own server does in mode `insecure`. */
import { synthesizePod } from '../cluster/pod-records.ts'
import type { Taken } from '../transfer/incoming-transfer.ts'
import { parentOf } from '../wire/name.ts'
import type { Synthesize } from '../zone/zone-store.ts'

const podLabel = '\x03pod'

/** @param copy gives the copy, once its store is made. */
export function computedPods(copy: () => Taken): Synthesize {
  return (qname, qtype) => {
    const { store, pods } = copy()
    if (pods.mode !== 'insecure') return null
    const parent = parentOf(qname)
    const root = parent === null ? null : parentOf(parent)
    // `<address>.<namespace>.pod.<apex>`, in a namespace that exists.
    if (parent === null || root === null || root !== podLabel + store.apex) return null
    return store.isNamed(parent) ? synthesizePod(qname, qtype, pods.ttlSeconds) : null
  }
}
