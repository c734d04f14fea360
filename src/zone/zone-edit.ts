/**
 * From what a zone should become to what changes: an edit is checked and reduced here, before anything is altered.
 */
import { maxRecordTtlSeconds } from '../base/limits.ts'
import { RRTYPE, typeToText } from '../wire/iana.ts'
import { isAtOrBelow, nameToText, type DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import { recordsIn } from './packed-rrset.ts'
import {
  isSameRRset,
  type NameChange,
  type RRsetChange,
  type ServiceState,
  type ServiceStateChange,
  type ZoneChange
} from './zone-change.ts'

/** What some RRsets, Service states and names shall be, whatever they are now; `after` null takes away. */
export type ZoneEdit = Readonly<{
  sets: readonly Readonly<{ owner: DomainName; type: number; after: RRset | null }>[]
  services: readonly Readonly<{ owner: DomainName; after: ServiceState | null }>[]
  /** Names that shall exist without records of their own (an empty namespace), or no longer. */
  names: readonly NameChange[]
  /** When what led to it happened, by the wall clock of where it happened; milliseconds since 1970. */
  originAtMs: number
}>

/** What a zone holds now. */
export type ZoneState = {
  rrset(owner: DomainName, type: number): RRset | null
  serviceState(owner: DomainName): ServiceState | null
  isNamed(name: DomainName): boolean
}

/** The differences alone, each thing once. */
export type ZoneDifference = Pick<ZoneChange, 'sets' | 'services' | 'names'>

/**
 * Reduces an edit to its differences from what is there. Of two entries for one thing the last one counts.
 * @throws RangeError for an owner outside of the zone, what is no RRset, the SOA, or taking the apex's NS or name away.
 */
export function differences(edit: ZoneEdit, apex: DomainName, state: ZoneState): ZoneDifference {
  const sets: (RRsetChange | null)[] = []
  // By type and owner, since a key made of both would be one more string for each RRset.
  const placesByType = new Map<number, Map<DomainName, number>>()
  for (const { owner, type, after } of edit.sets) {
    checkSet(owner, type, after, apex)
    const before = state.rrset(owner, type)
    const isSame = after === null || before === null ? after === before : isSameRRset(before, after)
    let places = placesByType.get(type)
    if (places === undefined) placesByType.set(type, (places = new Map()))
    const place = places.get(owner) ?? sets.length
    places.set(owner, place)
    sets[place] = isSame ? null : { owner, type, before, after }
  }
  const services = new Map<DomainName, ServiceStateChange>()
  for (const { owner, after } of edit.services) {
    checkOwner(owner, apex)
    const before = state.serviceState(owner)
    note(services, owner, before === after ? null : { owner, before, after })
  }
  const names = new Map<DomainName, NameChange>()
  for (const { owner, exists } of edit.names) {
    checkName(owner, exists, apex)
    note(names, owner, state.isNamed(owner) === exists ? null : { owner, exists })
  }
  return { sets: sets.filter((set) => set !== null), services: [...services.values()], names: [...names.values()] }
}

/** Whether a change starts from what is there, and stays within the zone. */
export function startsFrom(state: ZoneState, change: ZoneChange, apex: DomainName): boolean {
  const isInside = ({ owner }: { owner: DomainName }): boolean => isAtOrBelow(owner, apex)
  return (
    change.sets.every((set) => {
      if (!isInside(set)) return false
      const now = state.rrset(set.owner, set.type)
      return now === null || set.before === null ? now === set.before : isSameRRset(now, set.before)
    }) &&
    change.services.every((service) => isInside(service) && state.serviceState(service.owner) === service.before) &&
    change.names.every((name) => isInside(name) && state.isNamed(name.owner) !== name.exists)
  )
}

function note<Key, Change>(changes: Map<Key, Change>, key: Key, change: Change | null): void {
  if (change === null) changes.delete(key)
  else changes.set(key, change)
}

export function checkOwner(owner: DomainName, apex: DomainName): void {
  if (!isAtOrBelow(owner, apex)) throw new RangeError(`${nameToText(owner)} is outside of ${nameToText(apex)}`)
}

export function checkName(owner: DomainName, exists: boolean, apex: DomainName): void {
  checkOwner(owner, apex)
  if (owner === apex && !exists) throw new RangeError('the apex always exists')
}

export const isRecordTtl = (ttlSeconds: number): boolean => ttlSeconds >= 0 && ttlSeconds <= maxRecordTtlSeconds

export function checkSet(owner: DomainName, type: number, after: RRset | null, apex: DomainName): void {
  checkOwner(owner, apex)
  const refuse = (why: string): never => {
    throw new RangeError(`${nameToText(owner)} ${typeToText(type)}: ${why}`)
  }
  if (owner === apex && type === RRTYPE.SOA) refuse('the zone makes its SOA by itself')
  if (after === null) {
    if (owner === apex && type === RRTYPE.NS) refuse('a zone has an NS')
    return
  }
  if (after.owner !== owner || after.type !== type) refuse('an RRset of another owner or type')
  if (recordsIn(after) === 0) refuse('an RRset without records')
  if (!isRecordTtl(after.ttlSeconds)) refuse(`TTL ${after.ttlSeconds}`)
}
