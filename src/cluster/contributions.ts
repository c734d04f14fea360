/**
 * RRsets that several objects have a say in, such as the PTR records of an address that two Services share.
 *
 * Each source contributes at most one RRset for an owner and type. Those of the lowest rank are merged: all their
 * RDATA without duplicates, in the order of its octets, and the lowest TTL. Higher ranks speak only where no lower one does.
 */
import type { DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import { inOrder, octetsToText, toRRsets } from './record-sets.ts'

type Contribution = Readonly<{ source: string; rank: number; rrset: RRset }>

export class Contributions {
  /** By type, then owner. Nearly all have one contributor, which stands there without a list around it. */
  readonly #byType = new Map<number, Map<DomainName, Contribution | readonly Contribution[]>>()

  /** How many RRsets there are. */
  get size(): number {
    let size = 0
    for (const byOwner of this.#byType.values()) size += byOwner.size
    return size
  }

  /** Puts the source's RRset in the place of the one it contributed before at this owner, type and rank. */
  put(source: string, rank: number, rrset: RRset): void {
    let byOwner = this.#byType.get(rrset.type)
    if (byOwner === undefined) this.#byType.set(rrset.type, (byOwner = new Map()))
    const contribution: Contribution = { source, rank, rrset }
    const others = byOwner.has(rrset.owner) ? this.#others(rrset.owner, rrset.type, source, rank) : []
    byOwner.set(rrset.owner, others.length === 0 ? contribution : [...others, contribution])
  }

  remove(source: string, rank: number, owner: DomainName, type: number): void {
    const byOwner = this.#byType.get(type)
    if (byOwner?.has(owner) !== true) return
    const others = this.#others(owner, type, source, rank)
    if (others.length === 0) byOwner.delete(owner)
    else byOwner.set(owner, others.length === 1 ? others[0]! : others)
    if (byOwner.size === 0) this.#byType.delete(type)
  }

  /** What all contributors say together; null where there is none. */
  merged(owner: DomainName, type: number): RRset | null {
    const held = this.#byType.get(type)?.get(owner)
    if (held === undefined) return null
    if ('rrset' in held) return held.rrset
    const rank = Math.min(...held.map((contribution) => contribution.rank))
    const sets = held.filter((contribution) => contribution.rank === rank).map((contribution) => contribution.rrset)
    if (sets.length === 1) return sets[0]!
    const ttlSeconds = Math.min(...sets.map((set) => set.ttlSeconds))
    const rdata = inOrder(sets.flatMap((set) => set.rdata.map(octetsToText)))
    return toRRsets([{ owner, type, ttlSeconds, rdata }])[0]!
  }

  #others(owner: DomainName, type: number, source: string, rank: number): readonly Contribution[] {
    const held = this.#byType.get(type)?.get(owner)
    if (held === undefined) return []
    const list = 'rrset' in held ? [held] : held
    return list.filter((contribution) => contribution.source !== source || contribution.rank !== rank)
  }
}
