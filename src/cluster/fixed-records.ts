/**
 * What the cluster's zones have whatever the objects: the version of their specification, name server, and empty names.
 */
import { RRTYPE } from '../wire/iana.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import type { EditBatch } from './edit-batch.ts'
import { nameBelow } from './record-sets.ts'
import { nameServerOf, nameServerSets, versionSet } from './zone-making.ts'

/** Versions of the Kubernetes DNS specification and of the multi-cluster services specification, `svc` and `pod`. */
export function writeFixed(batch: EditBatch, zone: ZoneStore, clustersetZone: ZoneStore): void {
  for (const [store, version] of [
    [zone, '1.1.0'],
    [clustersetZone, '1.0.0']
  ] as const) {
    const set = versionSet(store.apex, version)
    batch.set(store, set.owner, set.type, set)
    batch.name(store, nameBelow(['svc'], store.apex)!, true)
  }
  batch.name(zone, nameBelow(['pod'], zone.apex)!, true)
}

/** The addresses of `ns.dns.<zone>`. */
export function writeNameServer(
  batch: EditBatch,
  zone: ZoneStore,
  addresses: readonly string[],
  ttlSeconds: number
): void {
  const owner = nameServerOf(zone.apex)
  const sets = nameServerSets(zone.apex, addresses, ttlSeconds)
  for (const type of [RRTYPE.A, RRTYPE.AAAA]) {
    batch.set(zone, owner, type, sets.find((set) => set.type === type) ?? null)
  }
  // The NS record's target exists in any case.
  batch.name(zone, owner, true)
}
