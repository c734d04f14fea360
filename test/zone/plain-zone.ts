/** A zone without tree, counts or memory of changes, to compare a ZoneStore with. */
import { RRTYPE } from '../../src/wire/iana.ts'
import { isAtOrBelow, nameToText, type DomainName } from '../../src/wire/name.ts'
import type { RRset } from '../../src/wire/rr.ts'
import type { NameChange, ServiceState, ZoneChange } from '../../src/zone/zone-change.ts'
import type { ZoneEdit, ZoneStore } from '../../src/zone/zone-store.ts'

/** The naive zone: no tree, no counts; what exists is found by looking at everything. */
export class PlainZone {
  readonly apex: DomainName
  readonly sets = new Map<string, RRset>()
  readonly services = new Map<DomainName, ServiceState>()
  readonly names = new Set<DomainName>()

  constructor(apex: DomainName) {
    this.apex = apex
  }

  set(owner: DomainName, type: number, after: RRset | null): void {
    if (after === null) this.sets.delete(`${type} ${owner}`)
    else this.sets.set(`${type} ${owner}`, after)
  }

  setService(owner: DomainName, after: ServiceState | null): void {
    if (after === null) this.services.delete(owner)
    else this.services.set(owner, after)
  }

  setName({ owner, exists }: NameChange): void {
    if (exists) this.names.add(owner)
    else this.names.delete(owner)
  }

  apply({ sets, services, names }: ZoneEdit): void {
    for (const { owner, type, after } of sets) this.set(owner, type, after)
    for (const { owner, after } of services) this.setService(owner, after)
    for (const name of names) this.setName(name)
  }

  undo({ sets, services, names }: ZoneChange): void {
    for (const { owner, type, before } of sets) this.set(owner, type, before)
    for (const { owner, before } of services) this.setService(owner, before)
    for (const { owner, exists } of names) this.setName({ owner, exists: !exists })
  }

  exists(name: DomainName): boolean {
    const reasons = [this.apex, ...this.names, ...[...this.sets.values()].map((set) => set.owner)]
    return reasons.some((reason) => isAtOrBelow(reason, name))
  }

  /** Everything that it holds as sorted text: equal for equal zones, whatever the order of records. */
  text(): string {
    const setText = (set: RRset) =>
      `${nameToText(set.owner)} ${set.type} ${set.ttlSeconds} ${set.rdata
        .map((rdata) => rdata.join('.'))
        .sort()
        .join(' ')}`
    return JSON.stringify([
      [...this.sets.values()].map(setText).sort(),
      [...this.services].map(([owner, state]) => `${nameToText(owner)} ${state}`).sort(),
      [...this.names].map(nameToText).sort()
    ])
  }

  static of(store: ZoneStore): PlainZone {
    const zone = new PlainZone(store.apex)
    for (const set of store.records()) if (set.owner !== store.apex) zone.set(set.owner, set.type, set)
    for (const [owner, state] of store.services()) zone.setService(owner, state)
    for (const owner of store.pseudoNames()) zone.setName({ owner, exists: true })
    return zone
  }

  clone(): PlainZone {
    const copy = new PlainZone(this.apex)
    for (const set of this.sets.values()) copy.set(set.owner, set.type, set)
    for (const [owner, state] of this.services) copy.setService(owner, state)
    for (const owner of this.names) copy.setName({ owner, exists: true })
    return copy
  }
}

/** @throws Error where the store says another thing than the plain zone. */
export function checkLookup(store: ZoneStore, plain: PlainZone, name: DomainName, type: number): void {
  const found = store.lookup(name, type)
  const own = plain.sets.get(`${type} ${name}`)
  const alias = plain.sets.get(`${RRTYPE.CNAME} ${name}`)
  const denial = plain.exists(name) ? 'nodata' : 'nxdomain'
  const want = own === undefined ? (alias === undefined ? denial : 'alias') : 'answer'
  if (found.kind !== want) throw new Error(`${nameToText(name)} ${type}: ${found.kind} instead of ${want}`)
}
