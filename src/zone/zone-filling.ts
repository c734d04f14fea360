/**
 * Filling a zone that nobody reads yet: what it should hold goes in as it comes. An edit (zone-edit.ts) finds out first
 * what differs, for those who follow the zone; here there are none.
 */
import { nameToText, type DomainName } from '../wire/name.ts'
import { hasRoomForHosts, isOfNetworks, type AddressHosts } from './address-hosts.ts'
import type { NameTree } from './name-tree.ts'
import type { ServiceState } from './zone-change.ts'
import { checkName, checkOwner, checkSet, isRecordTtl, type ZoneEdit } from './zone-edit.ts'

/**
 * What a zone is filled with; of two entries for one thing the last one counts. Hosts and pointers come after the sets:
 * each host gets its A record, and each address the PTR record that points to its host.
 */
export type ZoneFilling = Omit<ZoneEdit, 'originAtMs'> &
  Readonly<{ hosts?: readonly AddressHosts[]; pointers?: readonly AddressHosts[] }>

/**
 * Whole or, when it throws, not at all.
 * @throws RangeError as ZoneStore's `apply`, for hosts whose names would be too long, and for pointers in a zone that
 * is none of whole networks.
 */
export function fill(
  tree: NameTree,
  serviceStates: Map<DomainName, ServiceState>,
  apex: DomainName,
  filling: ZoneFilling
): void {
  check(filling, apex)
  const { sets, services, names, hosts = [], pointers = [] } = filling
  tree.withoutNoting(() => {
    for (const { owner, type, after } of sets) {
      if (after === null) tree.remove(owner, type)
      else tree.put(after)
    }
    for (const some of hosts) tree.putHosts(some)
    for (const some of pointers) tree.putPointers(some)
    for (const { owner, after } of services) {
      if (after === null) serviceStates.delete(owner)
      else serviceStates.set(owner, after)
    }
    for (const { owner, exists } of names) tree.setNamed(owner, exists)
  })
}

function check({ sets, services, names, hosts = [], pointers = [] }: ZoneFilling, apex: DomainName): void {
  for (const { owner, type, after } of sets) checkSet(owner, type, after, apex)
  for (const { owner } of services) checkOwner(owner, apex)
  for (const { owner, exists } of names) checkName(owner, exists, apex)
  for (const { owner } of hosts) checkOwner(owner, apex)
  for (const { owner, ttlSeconds } of [...hosts, ...pointers]) {
    if (!hasRoomForHosts(owner)) throw new RangeError(`hosts below ${nameToText(owner)}: too long`)
    if (!isRecordTtl(ttlSeconds)) throw new RangeError(`hosts below ${nameToText(owner)}: TTL ${ttlSeconds}`)
  }
  if (pointers.length > 0 && !isOfNetworks(apex)) throw new RangeError(`pointers in ${nameToText(apex)}`)
}
