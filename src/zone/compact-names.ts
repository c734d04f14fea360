/**
 * RRsets that follow from their owner's first label, held in a few octets each: the addresses of endpoints
 * (`10-0-0-7.api.shop.svc.cluster.local. A 10.0.0.7`), and the PTR records that point back to such names. A cluster's
 * zones consist of little else.
 *
 * Each container holds those right below one name, of one TTL; nobody outside of the name tree can tell.
 */
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import {
  addressText,
  dashedAddress,
  dashedName,
  octetName,
  reversedAddress,
  reversedName,
  textAddress
} from './address-names.ts'
import { AddressSet } from './address-set.ts'
import { PackedRRset } from './packed-rrset.ts'
import type { SharedText, SharedTexts } from './shared-texts.ts'

export interface CompactNames {
  readonly type: number
  readonly ttlSeconds: number
  readonly size: number
  /** The RRset of this name, made for the asker; null: there is none here. */
  rrset(name: DomainName): PackedRRset | null
  /** Takes in one of its type and TTL that `isCompact`; whether its name is new here. */
  put(rrset: PackedRRset): boolean
  /** Whether there was such a name. */
  delete(name: DomainName): boolean
  all(parent: DomainName): Iterable<PackedRRset>
}

/** Whether all of an RRset but its TTL, and where a PTR points below the label, can be told from its owner. */
export function isCompact(rrset: PackedRRset): boolean {
  const { owner, type, onlyText } = rrset
  if (onlyText === null) return false
  if (type === RRTYPE.A) return onlyText.length === 4 && dashedAddress(owner) === textAddress(onlyText)
  if (type !== RRTYPE.PTR) return false
  const address = reversedAddress(owner)
  return address >= 0 && dashedAddress(onlyText) === address
}

/** An empty container for RRsets like this one. */
export const compactNamesFor = ({ type, ttlSeconds }: PackedRRset, texts: SharedTexts): CompactNames =>
  type === RRTYPE.A ? new CompactHosts(ttlSeconds) : new CompactPointers(ttlSeconds, texts)

export class CompactHosts implements CompactNames {
  readonly type = RRTYPE.A
  readonly ttlSeconds: number
  readonly #addresses = new AddressSet()

  constructor(ttlSeconds: number) {
    this.ttlSeconds = ttlSeconds
  }

  get size(): number {
    return this.#addresses.size
  }

  rrset(name: DomainName): PackedRRset | null {
    const address = dashedAddress(name)
    return address >= 0 && this.#addresses.has(address) ? this.#rrset(name, address) : null
  }

  put({ owner }: PackedRRset): boolean {
    return this.add(dashedAddress(owner))
  }

  /** The same by its address. */
  add(address: number): boolean {
    return this.#addresses.add(address)
  }

  delete(name: DomainName): boolean {
    const address = dashedAddress(name)
    return address >= 0 && this.#addresses.delete(address)
  }

  *all(parent: DomainName): Generator<PackedRRset> {
    for (const address of this.#addresses.all()) yield this.#rrset(dashedName(address, parent), address)
  }

  #rrset(name: DomainName, address: number): PackedRRset {
    return new PackedRRset(name, RRTYPE.A, this.ttlSeconds, addressText(address), true)
  }
}

/** At most 256 of them, so a search is quick. */
export class CompactPointers implements CompactNames {
  readonly type = RRTYPE.PTR
  readonly ttlSeconds: number
  readonly #texts: SharedTexts
  /** The last octets of the addresses, and what stands behind the label in the target of each. */
  readonly #octets: number[] = []
  readonly #targets: SharedText[] = []

  constructor(ttlSeconds: number, texts: SharedTexts) {
    this.ttlSeconds = ttlSeconds
    this.#texts = texts
  }

  get size(): number {
    return this.#octets.length
  }

  rrset(name: DomainName): PackedRRset | null {
    const address = reversedAddress(name)
    const at = address < 0 ? -1 : this.#octets.indexOf(address & 255)
    return at < 0 ? null : this.#rrset(name, address, this.#targets[at]!)
  }

  put({ owner, onlyText }: PackedRRset): boolean {
    return this.add(reversedAddress(owner), onlyText!.slice(onlyText!.charCodeAt(0) + 1))
  }

  /** The same by its address. @param text what stands behind the label in the target. */
  add(address: number, text: string): boolean {
    const octet = address & 255
    const target = this.#texts.take(text)
    const at = this.#octets.indexOf(octet)
    if (at < 0) {
      this.#octets.push(octet)
      this.#targets.push(target)
      return true
    }
    this.#texts.giveBack(this.#targets[at]!)
    this.#targets[at] = target
    return false
  }

  delete(name: DomainName): boolean {
    const address = reversedAddress(name)
    const at = address < 0 ? -1 : this.#octets.indexOf(address & 255)
    if (at < 0) return false
    this.#texts.giveBack(this.#targets[at]!)
    this.#octets.splice(at, 1)
    this.#targets.splice(at, 1)
    return true
  }

  *all(parent: DomainName): Generator<PackedRRset> {
    const network = reversedAddress(octetName(0, parent))
    for (const [at, octet] of this.#octets.entries()) {
      const address = network + octet
      yield this.#rrset(reversedName(address), address, this.#targets[at]!)
    }
  }

  #rrset(name: DomainName, address: number, { text }: SharedText): PackedRRset {
    return new PackedRRset(name, RRTYPE.PTR, this.ttlSeconds, dashedName(address, text), true)
  }
}
