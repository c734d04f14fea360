/** The zones that we are authoritative for, found by the longest apex at or above a name. */
import { maxNameOctets, type DomainName } from '../wire/name.ts'
import type { ZoneStore } from './zone-store.ts'

export class Zones {
  readonly #byApex = new Map<DomainName, ZoneStore>()
  /** How many apexes have each length in octets: a walk over the labels of a name looks up only what can match. */
  readonly #apexOctets = new Uint32Array(maxNameOctets + 1)
  readonly #listeners = new Set<() => void>()
  #revision = 0

  /** Another number after each zone that came or went: what was concluded from all zones holds as long as it stays. */
  get revision(): number {
    return this.#revision
  }

  /** Adds a zone; one of the same apex is replaced, in one step. */
  add(zone: ZoneStore): void {
    if (!this.#byApex.has(zone.apex)) this.#apexOctets[zone.apex.length]! += 1
    this.#byApex.set(zone.apex, zone)
    this.#changed()
  }

  /** Whether there was a zone of that apex. */
  remove(apex: DomainName): boolean {
    if (!this.#byApex.delete(apex)) return false
    this.#apexOctets[apex.length]! -= 1
    this.#changed()
    return true
  }

  /** Calls back within each call that adds or removes a zone; the function returned ends that. */
  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** The zone of exactly this apex. */
  get(apex: DomainName): ZoneStore | null {
    return this.#byApex.get(apex) ?? null
  }

  /** The zone with the longest apex at or above the name, or null. */
  find(qname: DomainName): ZoneStore | null {
    for (let at = 0; at < qname.length; at += qname.charCodeAt(at) + 1) {
      if (this.#apexOctets[qname.length - at] === 0) continue
      const zone = this.#byApex.get((at === 0 ? qname : qname.slice(at)) as DomainName)
      if (zone !== undefined) return zone
    }
    return null
  }

  all(): ZoneStore[] {
    return [...this.#byApex.values()]
  }

  /** Takes the place of others that were served until now: serials go on behind theirs, zone by zone. */
  takeOverFrom(others: Zones): void {
    for (const zone of this.#byApex.values()) {
      const other = others.get(zone.apex)
      if (other !== null) zone.takeOverFrom(other)
    }
  }

  /** Ends the timers of all zones. */
  close(): void {
    for (const zone of this.#byApex.values()) zone.close()
  }

  #changed(): void {
    this.#revision += 1
    // Who hears of it may subscribe anew.
    const listeners = Array.from(this.#listeners)
    for (const listener of listeners) listener()
  }
}
