/**
 * What a zone that came whole has that its last copy had not, and the other way round: changes that nobody told one by
 * one.
 */
import { wholeDifferenceRRsets } from '../base/limits.ts'
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import type { ZoneChange } from '../zone/zone-change.ts'
import type { ZoneStore } from '../zone/zone-store.ts'

export type TouchedSets = Pick<ZoneChange, 'zone' | 'toSerial' | 'existence' | 'services'> &
  Readonly<{ sets: readonly Readonly<{ owner: DomainName; type: number }>[] }>

/** null: the zones are too big to be compared in one go. */
export function swapDifference(before: ZoneStore, after: ZoneStore): TouchedSets | null {
  if (before.sizes.rrsets + after.sizes.rrsets > wholeDifferenceRRsets) return null
  const sets: { owner: DomainName; type: number }[] = []
  const services: { owner: DomainName; before: null; after: null }[] = []
  for (const rrset of after.records()) {
    const { owner, type } = rrset
    if (type !== RRTYPE.SOA && !isSame(before.rrset(owner, type), rrset)) sets.push({ owner, type })
  }
  for (const { owner, type } of before.records()) if (after.rrset(owner, type) === null) sets.push({ owner, type })
  for (const [owner, state] of after.services()) {
    if (before.serviceState(owner) !== state) services.push({ owner, before: null, after: null })
  }
  for (const [owner] of before.services()) {
    if (after.serviceState(owner) === null) services.push({ owner, before: null, after: null })
  }
  return { zone: after.apex, toSerial: after.serial, sets, services, existence: [] }
}

function isSame(before: RRset | null, after: RRset): boolean {
  if (before === null || before.ttlSeconds !== after.ttlSeconds || before.rdata.length !== after.rdata.length)
    return false
  const known = new Set(before.rdata.map((octets) => Buffer.from(octets).toString('latin1')))
  return after.rdata.every((octets) => known.has(Buffer.from(octets).toString('latin1')))
}
