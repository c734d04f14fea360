/**
 * Which items concern a name. Most names concern one, so a set is only made for the second.
 */
import type { DomainName } from '../wire/name.ts'

export class NameIndex<Item extends object> {
  readonly #byName = new Map<DomainName, Item | Set<Item>>()

  add(name: DomainName, item: Item): void {
    const known = this.#byName.get(name)
    if (known === undefined) this.#byName.set(name, item)
    else if (known instanceof Set) known.add(item)
    else if (known !== item) this.#byName.set(name, new Set([known, item]))
  }

  remove(name: DomainName, item: Item): void {
    const known = this.#byName.get(name)
    if (known === item) this.#byName.delete(name)
    else if (known instanceof Set && known.delete(item) && known.size === 0) this.#byName.delete(name)
  }

  /** A list of its own: what is done with it may change the index. */
  itemsOf(name: DomainName): Item[] {
    const known = this.#byName.get(name)
    if (known === undefined) return []
    return known instanceof Set ? [...known] : [known]
  }

  has(name: DomainName): boolean {
    return this.#byName.has(name)
  }

  names(): MapIterator<DomainName> {
    return this.#byName.keys()
  }

  get size(): number {
    return this.#byName.size
  }
}
