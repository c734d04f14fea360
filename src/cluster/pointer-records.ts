/** PTR records in the reverse zones: one RRset for each address, from all the Services that have a say in it. */
import { RRTYPE } from '../wire/iana.ts'
import { labelCount, type DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import { hostPointer, isOfNetworks, type HostsOf } from '../zone/address-hosts.ts'
import { reversedAddress, reversedName } from '../zone/address-names.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import { Zones } from '../zone/zones.ts'
import { Contributions } from './contributions.ts'
import type { EditBatch } from './edit-batch.ts'
import { hostChanges, noHosts, type PlainHosts } from './plain-hosts.ts'
import { RecordSets, replaceSets } from './record-sets.ts'
import { reverseName } from './reverse.ts'
import type { Pointer } from './service-records.ts'

/** What a source says: of its hosts, that their name is below its owner. */
export type PointersOf = HostsOf & Readonly<{ hosts: PlainHosts; pointers: readonly Pointer[] }>

type HostSource = HostsOf & Readonly<{ rank: number }>

/** What a source said, to be given back with what it says next. */
export type HeldPointers = Readonly<{
  /** Stands for it with its hosts; null where it has none. */
  source: HostSource | null
  /** Those in our reverse zones. */
  hosts: PlainHosts
  /** All but those of the hosts. */
  sets: readonly RRset[]
}>

export const noPointers: HeldPointers = { source: null, hosts: noHosts, sets: [] }

/** Pods of a node mostly have a network of their own. */
const rememberedNetworks = 16_384
/** An IPv4 address has so many labels in its reverse name. */
const reverseLabels = 6

export class PointerRecords {
  /** The reverse zones; an address outside of them gets no PTR. */
  readonly zones = new Zones()
  readonly #contributions = new Contributions()
  /** The IPv4 addresses that there are any of, with a sign. */
  readonly #contributed = new Set<number>()
  /** Who has the host of an address; nearly all have one source. */
  readonly #hosts = new Map<number, HostSource | readonly HostSource[]>()
  readonly #touched = new Set<DomainName>()
  readonly #touchedHosts = new Set<number>()
  /** The zone of each network of 256 addresses that was looked for, for one revision of the zones. */
  readonly #zoneOfNetwork = new Map<number, ZoneStore | null>()
  #networksRevision = -1
  /** Whether such networks lie in one zone as a whole. */
  #areNetworksWhole = false

  /**
   * Puts what a source says now in the place of what it said before. Of several ranks the lowest one speaks.
   * @returns what it says, to be given as `before` next time.
   */
  replace(rank: number, before: HeldPointers, { owner, ttlSeconds, hosts, pointers }: PointersOf): HeldPointers {
    const drafts = new RecordSets(ttlSeconds)
    for (const { address, target } of pointers) {
      const owner = reverseName(address)
      if (this.zones.find(owner) !== null) drafts.add(owner, RRTYPE.PTR, target)
    }
    const { sets, changed, replaced, gone } = replaceSets(before.sets, drafts.finish())
    for (const rrset of [...gone, ...replaced]) {
      this.#contributions.remove(rrset)
      if (this.#contributions.merged(rrset.owner, RRTYPE.PTR) === null) this.#contributed.delete(signedAddress(rrset))
      this.#touched.add(rrset.owner)
    }
    for (const rrset of changed) {
      this.#contributions.add(rank, rrset)
      this.#contributed.add(signedAddress(rrset))
      this.#touched.add(rrset.owner)
    }
    const isSame = before.source?.ttlSeconds === ttlSeconds
    const source = isSame ? before.source : { owner, ttlSeconds, rank }
    // The very list, where no host lies outside: it is held only once then.
    const inside = hosts.every((address) => this.#zoneOf(address) !== null)
      ? hosts
      : hosts.filter((address) => this.#zoneOf(address) !== null)
    const hostsChanged = isSame ? hostChanges(before.hosts, inside) : { come: inside, gone: before.hosts }
    for (const address of hostsChanged.gone) this.#removeHost(address, before.source!)
    for (const address of hostsChanged.come) this.#addHost(address, source)
    return { source: inside.length === 0 ? null : source, hosts: inside, sets }
  }

  /** Makes the next `flush` say again what these owners have. */
  touch(owners: Iterable<DomainName>): void {
    for (const owner of owners) if (this.zones.find(owner) !== null) this.#touched.add(owner)
  }

  /** Writes what was touched since the last time. */
  flush(batch: EditBatch): void {
    for (const owner of this.#touched) {
      const address = reversedAddress(owner)
      batch.set(this.zones.find(owner)!, owner, RRTYPE.PTR, this.#merged(owner, address))
      if (address >= 0) this.#touchedHosts.delete(address | 0)
    }
    this.#touched.clear()
    for (const address of this.#touchedHosts) {
      const zone = this.#zoneOf(address)!
      const held = this.#hosts.get(address)
      if (held !== undefined && !isList(held) && !this.#contributed.has(address) && isOfNetworks(zone.apex)) {
        batch.pointer(zone, address, held)
        continue
      }
      const owner = reversedName(address)
      batch.set(zone, owner, RRTYPE.PTR, this.#merged(owner, address >>> 0))
    }
    this.#touchedHosts.clear()
  }

  /** The RRsets that a source has a say in, as it says them. */
  setsOf({ sets, source, hosts }: HeldPointers): RRset[] {
    return source === null ? [...sets] : [...sets, ...hosts.map((address) => hostPointer(address, source))]
  }

  #addHost(address: number, source: HostSource): void {
    const held = this.#hosts.get(address)
    this.#hosts.set(address, held === undefined ? source : [...sourcesOf(held), source])
    this.#touchedHosts.add(address)
  }

  #removeHost(address: number, source: HostSource): void {
    const others = sourcesOf(this.#hosts.get(address)!).filter((other) => other !== source)
    if (others.length === 0) this.#hosts.delete(address)
    else this.#hosts.set(address, others.length === 1 ? others[0]! : others)
    this.#touchedHosts.add(address)
  }

  /** What all sources say together; null where there is none. @param address of the owner; -1: not of IPv4. */
  #merged(owner: DomainName, address: number): RRset | null {
    const held = address < 0 ? undefined : this.#hosts.get(address | 0)
    if (held === undefined) return this.#contributions.merged(owner, RRTYPE.PTR)
    const hosts = sourcesOf(held).map((source) => ({ rank: source.rank, rrset: hostPointer(address, source) }))
    return this.#contributions.merged(owner, RRTYPE.PTR, hosts)
  }

  /** The reverse zone of an address; null: none of ours. */
  #zoneOf(address: number): ZoneStore | null {
    const { revision } = this.zones
    if (this.#networksRevision !== revision) {
      this.#networksRevision = revision
      this.#zoneOfNetwork.clear()
      // No reverse zone is that of a single address.
      this.#areNetworksWhole = this.zones.all().every(({ apex }) => labelCount(apex) < reverseLabels)
    }
    if (!this.#areNetworksWhole) return this.zones.find(reversedName(address))
    const network = address >>> 8
    const known = this.#zoneOfNetwork.get(network)
    if (known !== undefined) return known
    const zone = this.zones.find(reversedName(address))
    if (this.#zoneOfNetwork.size === rememberedNetworks) this.#zoneOfNetwork.clear()
    this.#zoneOfNetwork.set(network, zone)
    return zone
  }
}

/** That of IPv6 is one that is never asked for. */
const signedAddress = ({ owner }: RRset): number => {
  const address = reversedAddress(owner)
  return address < 0 ? Number.NaN : address | 0
}

const isList = (held: HostSource | readonly HostSource[]): held is readonly HostSource[] => Array.isArray(held)
const sourcesOf = (held: HostSource | readonly HostSource[]): readonly HostSource[] => (isList(held) ? held : [held])
