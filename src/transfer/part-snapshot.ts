/**
 * All of a zone, or a part of one, as it is at one moment, taken in pieces: a large zone must not keep everybody
 * waiting while it is gone through. What changes meanwhile is noted, and read once more at the end.
 */
import { snapshotTurnMs } from '../base/transfer-limits.ts'
import type { Clock } from '../base/clock.ts'
import type { DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import type { ServiceState, ZoneChange } from '../zone/zone-change.ts'
import type { BatchTimes, ZoneStore } from '../zone/zone-store.ts'
import type { PartContent, ZonePart } from './zone-part.ts'

export type PartSnapshot = Readonly<{ content: PartContent; serial: number; times: BatchTimes }>

/** How many entries are looked at between two looks at the clock. */
const entriesPerLook = 256

export async function snapshotOf(part: ZonePart, clock: Clock): Promise<PartSnapshot> {
  const { store } = part
  const touched = new Touched()
  const unsubscribe = store.subscribe((change) => touched.note(change))
  try {
    const turns = new Turns(clock)
    const rrsets = await turns.collect(store.records(), (rrset) => part.visible(rrset))
    const services = await turns.collect(store.services(), (service) => (part.shows(service[0]) ? service : null))
    const names = await turns.collect(store.pseudoNames(), (name) => (showsName(part, name) ? name : null))
    return await whenBatched(store, () => ({
      content: touched.isEmpty
        ? { rrsets, services, names: withApex(part, names) }
        : touched.mend(part, { rrsets, services, names }),
      serial: part.serial,
      times: store.lastBatch
    }))
  } finally {
    unsubscribe()
  }
}

/** What `take` makes of the zone at a moment at which it holds what its serial says. */
export async function whenBatched<Taken>(store: ZoneStore, take: () => Taken): Promise<Taken> {
  return new Promise((resolve, reject) => {
    store.whenBatched(() => {
      try {
        resolve(take())
      } catch (error) {
        reject(error)
      }
    })
  })
}

/** Goes through long lists without holding the event loop for long. */
export class Turns {
  readonly #clock: Clock
  #beganAtMs: number

  constructor(clock: Clock) {
    this.#clock = clock
    this.#beganAtMs = clock.nowMs()
  }

  /** Resolves at once as long as this turn has time left, else in the next one. */
  async pause(): Promise<void> {
    if (this.#clock.nowMs() - this.#beganAtMs < snapshotTurnMs) return
    await new Promise<void>((resolve) => void setImmediate(resolve))
    this.#beganAtMs = this.#clock.nowMs()
  }

  /** Those that `pick` does not turn into null. */
  async collect<Item, Picked>(items: Iterable<Item>, pick: (item: Item) => Picked | null): Promise<Picked[]> {
    const picked: Picked[] = []
    let looked = 0
    for (const item of items) {
      const one = pick(item)
      if (one !== null) picked.push(one)
      if (++looked % entriesPerLook === 0) await this.pause()
    }
    return picked
  }
}

const showsName = (part: ZonePart, name: DomainName): boolean => name !== part.apex && part.shows(name)

const withApex = (part: ZonePart, names: readonly DomainName[]): readonly DomainName[] =>
  part.apexIsNamed ? [...names, part.apex] : names

/** What was changed since the beginning: maybe seen before, maybe after, maybe twice. */
class Touched {
  readonly #sets = new Map<DomainName, Set<number>>()
  readonly #services = new Set<DomainName>()
  readonly #names = new Set<DomainName>()

  get isEmpty(): boolean {
    return this.#sets.size + this.#services.size + this.#names.size === 0
  }

  note({ sets, services, names }: ZoneChange): void {
    for (const { owner, type } of sets) {
      const types = this.#sets.get(owner)
      if (types === undefined) this.#sets.set(owner, new Set([type]))
      else types.add(type)
    }
    for (const { owner } of services) this.#services.add(owner)
    for (const { owner } of names) this.#names.add(owner)
  }

  /** The same with all that was touched as it is now. */
  mend(part: ZonePart, { rrsets, services, names }: PartContent): PartContent {
    const { store } = part
    const sets: RRset[] = rrsets.filter(({ owner, type }) => this.#sets.get(owner)?.has(type) !== true)
    for (const [owner, types] of this.#sets) {
      for (const type of types) {
        const now = store.rrset(owner, type)
        const visible = now === null ? null : part.visible(now)
        if (visible !== null) sets.push(visible)
      }
    }
    const states: (readonly [DomainName, ServiceState])[] = services.filter(([owner]) => !this.#services.has(owner))
    for (const owner of this.#services) {
      const now = store.serviceState(owner)
      if (now !== null && part.shows(owner)) states.push([owner, now])
    }
    const named = new Set(names.filter((name) => !this.#names.has(name)))
    for (const name of this.#names) if (store.isNamed(name) && showsName(part, name)) named.add(name)
    return { rrsets: sets, services: states, names: withApex(part, [...named]) }
  }
}
