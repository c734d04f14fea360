/** The records of all Services (or imports) in one zone, by Service key, so that one of them can be exchanged alone. */
import type { DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import type { ServiceState } from '../zone/zone-change.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import type { EditBatch } from './edit-batch.ts'
import type { PointerRecords } from './pointer-records.ts'
import { replaceSets } from './record-sets.ts'
import type { ServiceRecords } from './service-records.ts'

type Held = Readonly<{
  owner: DomainName
  state: ServiceState
  sets: readonly RRset[]
  names: readonly DomainName[]
  pointers: readonly RRset[]
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
  held(key: string): Held | null {
    return this.#held.get(key) ?? null
  }

  /** Puts a Service's records in the place of those it had, and writes the differences. */
  replace(key: string, records: ServiceRecords | null, batch: EditBatch): void {
    const before = this.#held.get(key) ?? null
    if (before === null && records === null) return
    const zone = this.store
    for (const name of before?.names ?? []) if (records?.names.includes(name) !== true) batch.name(zone, name, false)
    for (const name of records?.names ?? []) batch.name(zone, name, true)
    const owner = records?.owner ?? before!.owner
    const state = records?.state ?? null
    if (state !== (before?.state ?? null)) batch.service(zone, owner, state)
    const { sets, changed, gone } = replaceSets(before?.sets ?? [], records?.sets ?? [])
    for (const set of changed) batch.set(zone, set.owner, set.type, set)
    for (const { owner, type } of gone) batch.set(zone, owner, type, null)
    const rank = this.#pointerRank
    const oldPointers = before?.pointers ?? []
    if (records === null) {
      this.#pointers.replace(rank, oldPointers, [], 0)
      this.#held.delete(key)
    } else {
      const pointers = this.#pointers.replace(rank, oldPointers, records.pointers, records.ttlSeconds)
      this.#held.set(key, { owner, state: records.state, sets, names: records.names, pointers })
    }
  }

  /** Writes again all RRsets at owners that fit. */
  rewrite(isWanted: (owner: DomainName) => boolean, batch: EditBatch): void {
    for (const { sets } of this.#held.values()) {
      for (const set of sets) if (isWanted(set.owner)) batch.set(this.store, set.owner, set.type, set)
    }
  }

  /** What all Services have here and in the reverse zones, whatever hides it. */
  *all(): Generator<RRset> {
    for (const { sets, pointers } of this.#held.values()) {
      yield* sets
      yield* pointers
    }
  }
}
