/**
 * Names of pods by their address, `10-0-0-7.<namespace>.pod.<zone>`. Kubernetes DNS specification 1.1.0, section 2.6.
 *
 * `disabled`: there are none. `insecure`: computed from the name, whether or not there is such a pod. `verified`: those
 * of real Pods, all their addresses, hostNetwork Pods included, but none of Pods that have finished.
 */
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import type { ZoneLookup } from '../zone/zone-store.ts'
import { addressFromLabel, addressOctets, addressToLabel } from './address.ts'
import type { Pod } from './objects.ts'
import { nameBelow, RecordSets } from './record-sets.ts'
import type { DraftSet } from './record-sets.ts'

export type PodMode = 'disabled' | 'insecure' | 'verified'

/** The records of one Pod in mode `verified`. */
export function buildPodRecords(pod: Pod, zone: DomainName, ttlSeconds: number): readonly DraftSet[] {
  const sets = new RecordSets(ttlSeconds)
  for (const address of pod.addresses) {
    const owner = nameBelow([addressToLabel(address), pod.namespace, 'pod'], zone)
    if (owner !== null) sets.addAddress(owner, addressOctets(address))
  }
  return sets.finish()
}

/** What mode `insecure` says of a name right below `<namespace>.pod.<zone>`; null where its label is no address. */
export function synthesizePod(qname: DomainName, qtype: number, ttlSeconds: number): ZoneLookup | null {
  const octets = addressFromLabel(qname.slice(1, 1 + qname.charCodeAt(0)))
  if (octets === null) return null
  const type = octets.length === 4 ? RRTYPE.A : RRTYPE.AAAA
  if (qtype !== type && qtype !== RRTYPE.ANY) return { kind: 'nodata' }
  return { kind: 'answer', rrset: { owner: qname, type, ttlSeconds, rdata: [octets] } }
}
