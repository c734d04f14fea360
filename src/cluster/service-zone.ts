/** The records of all Services (or imports) in one zone, by Service key, so that one of them can be exchanged alone. */
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import { hostRRset, type HostsOf } from '../zone/address-hosts.ts'
import { dashedName } from '../zone/address-names.ts'
import type { ServiceState } from '../zone/zone-change.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import type { EditBatch } from './edit-batch.ts'
import { hostChanges, noHosts, type PlainHosts } from './plain-hosts.ts'
import { noPointers, type HeldPointers, type PointerRecords } from './pointer-records.ts'
import { replaceSets } from './record-sets.ts'
import type { ServiceRecords } from './service-records.ts'

type Held = HostsOf &
  Readonly<{
    state: ServiceState
    /** All but those of the hosts. */
    sets: readonly RRset[]
    hosts: PlainHosts
    names: readonly DomainName[]
    pointers: HeldPointers
  }>

export class ServiceZone {
  readonly store: ZoneStore
  readonly #pointers: PointerRecords
  readonly #pointerRank: number
  readonly #held = new Map<string, Held>()

  /** @param pointerRank of two zones with a PTR for one address, that of the lower rank is given out. */
  constructor(store: ZoneStore, pointers: PointerRecords, pointerRank: number) {
    this.store = store
    this.#pointers = pointers
    this.#pointerRank = pointerRank
  }

  /** What one Service has in this zone now; null: nothing. */
  held(key: string): Readonly<{ owner: DomainName; state: ServiceState; sets: readonly RRset[] }> | null {
    const held = this.#held.get(key)
    return held === undefined ? null : { owner: held.owner, state: held.state, sets: setsOf(held) }
  }

  /** Puts a Service's records in the place of those it had, and writes the differences. */
  replace(key: string, records: ServiceRecords | null, batch: EditBatch): void {
    const before = this.#held.get(key) ?? null
    if (before === null && records === null) return
    const zone = this.store
    for (const name of before?.names ?? []) if (records?.names.includes(name) !== true) batch.name(zone, name, false)
    for (const name of records?.names ?? []) batch.name(zone, name, true)
    const owner = before?.owner ?? records!.owner
    const state = records?.state ?? null
    if (state !== (before?.state ?? null)) batch.service(zone, owner, state)
    const ttlSeconds = records?.ttlSeconds ?? 0
    const hosts = records?.hosts ?? noHosts
    const isOtherTtl = before?.ttlSeconds !== ttlSeconds
    const { come, gone: goneHosts } = hostChanges(before?.hosts ?? noHosts, hosts)
    const { sets, changed, gone } = replaceSets(before?.sets ?? [], records?.sets ?? [])
    // What goes comes first: a host's RRset may have become one of the others, or the other way round.
    for (const { owner, type } of gone) batch.set(zone, owner, type, null)
    for (const address of goneHosts) batch.set(zone, dashedName(address, owner), RRTYPE.A, null)
    for (const set of changed) batch.set(zone, set.owner, set.type, set)
    batch.hosts(zone, { owner, ttlSeconds, addresses: isOtherTtl ? hosts : come })
    const held = before?.pointers ?? noPointers
    const said = { owner, ttlSeconds, hosts, pointers: records?.pointers ?? [] }
    const pointers = this.#pointers.replace(this.#pointerRank, held, said)
    if (records === null) this.#held.delete(key)
    else this.#held.set(key, { owner, ttlSeconds, state: records.state, sets, hosts, names: records.names, pointers })
  }

  /** Writes again all RRsets at owners that fit. */
  rewrite(isWanted: (owner: DomainName) => boolean, batch: EditBatch): void {
    for (const held of this.#held.values()) {
      for (const set of setsOf(held)) if (isWanted(set.owner)) batch.set(this.store, set.owner, set.type, set)
    }
  }

  /** What all Services have here and in the reverse zones, whatever hides it. */
  *all(): Generator<RRset> {
    for (const held of this.#held.values()) {
      yield* setsOf(held)
      yield* this.#pointers.setsOf(held.pointers)
    }
  }
}

const setsOf = (held: Held): RRset[] => [...held.sets, ...held.hosts.map((address) => hostRRset(address, held))]
