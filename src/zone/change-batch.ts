/**
 * Changes of one zone that share a serial: of each thing the first `before` and the last `after`.
 *
 * What has become again what it was is left out. A single change stays as it is, so a quiet zone pays nothing.
 */
import type { DomainName } from '../wire/name.ts'
import {
  isSameRRset,
  type LateChange,
  type NameChange,
  type RRsetChange,
  type ServiceStateChange,
  type ZoneChange
} from './zone-change.ts'

/** A change without its zone and serials. */
export type GatheredChange = Omit<ZoneChange, 'zone' | 'epoch' | 'fromSerial' | 'toSerial'>

export class ChangeBatch {
  /** The only change so far, as long as there is one. */
  #single: GatheredChange | null = null
  #merged: MergedChange | null = null

  get isEmpty(): boolean {
    return this.#single === null && this.#merged === null
  }

  add(change: GatheredChange): void {
    if (this.isEmpty) {
      this.#single = change
      return
    }
    if (this.#merged === null) {
      this.#merged = new MergedChange()
      this.#merged.add(this.#single!)
      this.#single = null
    }
    this.#merged.add(change)
  }

  /** All of it as one change, and begins anew; null where there is none, or it has undone itself. */
  take(): GatheredChange | null {
    const taken = this.#single ?? this.#merged?.finish() ?? null
    this.#single = null
    this.#merged = null
    return taken
  }
}

class MergedChange {
  readonly #sets = new Map<number, Map<DomainName, RRsetChange>>()
  readonly #services = new Map<DomainName, ServiceStateChange>()
  readonly #names = new Map<DomainName, boolean>()
  readonly #existence = new Map<DomainName, boolean>()
  /** When each name was touched first. */
  readonly #originAtMsOf = new Map<DomainName, number>()
  #originAtMs = Number.POSITIVE_INFINITY
  #learnedAtMs = Number.POSITIVE_INFINITY

  add(change: GatheredChange): void {
    this.#originAtMs = Math.min(this.#originAtMs, change.originAtMs)
    this.#learnedAtMs = Math.min(this.#learnedAtMs, change.learnedAtMs)
    for (const { owner } of [...change.sets, ...change.services, ...change.names]) {
      const earlier = this.#originAtMsOf.get(owner) ?? Number.POSITIVE_INFINITY
      this.#originAtMsOf.set(owner, Math.min(earlier, change.originAtMs))
    }
    for (const set of change.sets) {
      const { owner, type, after } = set
      let byOwner = this.#sets.get(type)
      if (byOwner === undefined) this.#sets.set(type, (byOwner = new Map()))
      const earlier = byOwner.get(owner)
      byOwner.set(owner, earlier === undefined ? set : { owner, type, before: earlier.before, after })
    }
    for (const service of change.services) {
      const { owner, after } = service
      const earlier = this.#services.get(owner)
      this.#services.set(owner, earlier === undefined ? service : { owner, before: earlier.before, after })
    }
    toggle(this.#names, change.names)
    toggle(this.#existence, change.existence)
  }

  #late(touched: readonly Readonly<{ owner: DomainName }>[]): LateChange[] {
    const late = new Map<DomainName, LateChange>()
    for (const { owner } of touched) {
      const originAtMs = this.#originAtMsOf.get(owner)!
      if (originAtMs > this.#originAtMs) late.set(owner, { owner, originAtMs })
    }
    return [...late.values()]
  }

  finish(): GatheredChange | null {
    const sets: RRsetChange[] = []
    for (const byOwner of this.#sets.values()) {
      for (const set of byOwner.values()) if (!isUndone(set)) sets.push(set)
    }
    const services = [...this.#services.values()].filter(({ before, after }) => before !== after)
    const names = namesOf(this.#names)
    if (sets.length + services.length + names.length === 0) return null
    const existence = namesOf(this.#existence)
    const [originAtMs, learnedAtMs] = [this.#originAtMs, this.#learnedAtMs]
    const late = this.#late([...sets, ...services, ...names])
    return { originAtMs, learnedAtMs, ...(late.length > 0 && { late }), sets, services, names, existence }
  }
}

const isUndone = ({ before, after }: RRsetChange): boolean =>
  before === null || after === null ? before === after : isSameRRset(before, after)

/** What differs from the state before it always turns it round, so a second time undoes the first. */
function toggle(names: Map<DomainName, boolean>, changes: readonly NameChange[]): void {
  for (const { owner, exists } of changes) if (!names.delete(owner)) names.set(owner, exists)
}

const namesOf = (names: ReadonlyMap<DomainName, boolean>): NameChange[] =>
  Array.from(names, ([owner, exists]) => ({ owner, exists }))
