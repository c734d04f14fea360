/** A set of IPv4 addresses, 0 to 2^32-1: a list as long as it is short, since most Services have few endpoints. */

/** A list is searched up to this length. */
const maxListed = 64

export class AddressSet {
  // With a sign they are small integers to V8, which need no memory of their own.
  #addresses: number[] | Set<number> = []

  get size(): number {
    return Array.isArray(this.#addresses) ? this.#addresses.length : this.#addresses.size
  }

  has(address: number): boolean {
    return Array.isArray(this.#addresses) ? this.#addresses.includes(address | 0) : this.#addresses.has(address | 0)
  }

  /** Whether it is new. */
  add(address: number): boolean {
    if (this.has(address)) return false
    if (Array.isArray(this.#addresses)) {
      this.#addresses.push(address | 0)
      if (this.#addresses.length > maxListed) this.#addresses = new Set(this.#addresses)
    } else {
      this.#addresses.add(address | 0)
    }
    return true
  }

  /** Whether it was there. */
  delete(address: number): boolean {
    if (!Array.isArray(this.#addresses)) return this.#addresses.delete(address | 0)
    const at = this.#addresses.indexOf(address | 0)
    if (at >= 0) this.#addresses.splice(at, 1)
    return at >= 0
  }

  *all(): Generator<number> {
    for (const address of this.#addresses) yield address >>> 0
  }
}
