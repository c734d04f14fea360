/** The edits of one batch, gathered zone by zone; hand-written RRsets hide what is generated in their place. */
import { RRTYPE } from '../wire/iana.ts'
import { parentOf, type DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import { hostPointer, hostRRset, type AddressHosts, type HostsOf } from '../zone/address-hosts.ts'
import { reversedNetwork } from '../zone/address-names.ts'
import type { NameChange, ServiceState } from '../zone/zone-change.ts'
import type { ZoneStore } from '../zone/zone-store.ts'

type OpenHosts = HostsOf & Readonly<{ addresses: number[] }>

type OpenEdit = {
  sets: { owner: DomainName; type: number; after: RRset | null }[]
  services: { owner: DomainName; after: ServiceState | null }[]
  names: NameChange[]
  /** Those of a zone that is being read for the first time; see ZoneFilling. */
  hosts: AddressHosts[]
  pointers: OpenHosts[]
}

/** Hand-written RRsets by owner. */
export type HandWritten = ReadonlyMap<DomainName, readonly RRset[]>

/**
 * Whether a hand-written RRset takes the place of what is generated of an owner and type. A CNAME stands alone
 * (RFC 1034 §3.6.2), so a hand-written one hides all, and any hand-written RRset hides a CNAME.
 */
export function isHidden(handWritten: HandWritten, owner: DomainName, type: number): boolean {
  const sets = handWritten.size === 0 ? undefined : handWritten.get(owner)
  if (sets === undefined) return false
  return type === RRTYPE.CNAME || sets.some((set) => set.type === type || set.type === RRTYPE.CNAME)
}

/** The names right above hand-written RRsets. */
const namesAbove = new WeakMap<HandWritten, ReadonlySet<DomainName | null>>()

/** Whether there is a hand-written RRset at a name right below. */
function hasBelow(handWritten: HandWritten, name: DomainName): boolean {
  let above = namesAbove.get(handWritten)
  if (above === undefined) namesAbove.set(handWritten, (above = new Set(Array.from(handWritten.keys(), parentOf))))
  return above.has(name)
}

/** Zones that get what is written to another zone. */
export type ZoneCopies = ReadonlyMap<ZoneStore, readonly ZoneStore[]>

const noCopies: ZoneCopies = new Map()

export class EditBatch {
  readonly #handWritten: HandWritten
  readonly #copies: ZoneCopies
  readonly #edits: Map<ZoneStore, OpenEdit>

  constructor(handWritten: HandWritten, copies: ZoneCopies = noCopies, edits = new Map<ZoneStore, OpenEdit>()) {
    this.#handWritten = handWritten
    this.#copies = copies
    this.#edits = edits
  }

  /** The same batch, for what is written to one zone alone. */
  get alone(): EditBatch {
    return new EditBatch(this.#handWritten, noCopies, this.#edits)
  }

  /** A generated RRset, or that there is none; passed over where a hand-written one stands. */
  set(zone: ZoneStore, owner: DomainName, type: number, after: RRset | null): void {
    if (!isHidden(this.#handWritten, owner, type)) this.setByHand(zone, owner, type, after)
  }

  /** A hand-written RRset, or that there is none. */
  setByHand(zone: ZoneStore, owner: DomainName, type: number, after: RRset | null): void {
    this.#edit(zone).sets.push({ owner, type, after })
    for (const copy of this.#copies.get(zone) ?? []) this.#edit(copy).sets.push({ owner, type, after })
  }

  /** The generated A records of hosts. */
  hosts(zone: ZoneStore, hosts: AddressHosts): void {
    if (zone.isLoading && !hasBelow(this.#handWritten, hosts.owner)) {
      if (hosts.addresses.length > 0) this.#edit(zone).hosts.push(hosts)
      return
    }
    for (const address of hosts.addresses) {
      const set = hostRRset(address, hosts)
      this.set(zone, set.owner, set.type, set)
    }
  }

  /** The generated PTR record of a host. @param zone of whole networks. */
  pointer(zone: ZoneStore, address: number, of: HostsOf): void {
    if (!zone.isLoading || (this.#handWritten.size > 0 && hasBelow(this.#handWritten, reversedNetwork(address)))) {
      const set = hostPointer(address, of)
      this.set(zone, set.owner, set.type, set)
      return
    }
    const { pointers } = this.#edit(zone)
    const last = pointers.at(-1)
    if (last?.owner === of.owner && last.ttlSeconds === of.ttlSeconds) last.addresses.push(address)
    else pointers.push({ owner: of.owner, ttlSeconds: of.ttlSeconds, addresses: [address] })
  }

  service(zone: ZoneStore, owner: DomainName, after: ServiceState | null): void {
    this.#edit(zone).services.push({ owner, after })
  }

  name(zone: ZoneStore, owner: DomainName, exists: boolean): void {
    this.#edit(zone).names.push({ owner, exists })
    for (const copy of this.#copies.get(zone) ?? []) this.#edit(copy).names.push({ owner, exists })
  }

  /** Carries out one edit for each zone; the number of zones that changed. */
  apply(originAtMs: number): number {
    let changed = 0
    for (const [zone, open] of this.#edits) {
      if (zone.isLoading) {
        zone.load(open)
        changed++
      } else if (zone.apply({ ...open, originAtMs }) !== null) {
        changed++
      }
    }
    this.#edits.clear()
    return changed
  }

  #edit(zone: ZoneStore): OpenEdit {
    let edit = this.#edits.get(zone)
    if (edit === undefined)
      this.#edits.set(zone, (edit = { sets: [], services: [], names: [], hosts: [], pointers: [] }))
    return edit
  }
}
