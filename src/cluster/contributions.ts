/**
 * RRsets that several objects have a say in, such as the PTR records of an address that two Services share.
 *
 * Each source contributes at most one RRset for an owner and type. Those of the lowest rank are merged: all their
 * RDATA without duplicates, in the order of its octets, and the lowest TTL. Higher ranks speak only where no lower one
 * does.
 */
import type { DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import { inOrder, octetsToText, toRRsets } from './record-sets.ts'

/** One of rank 0, as nearly all are, stands there without anything around it. */
export type Contribution = RRset | Readonly<{ rank: number; rrset: RRset }>

const rrsetOf = (contribution: Contribution): RRset => ('rank' in contribution ? contribution.rrset : contribution)
const rankOf = (contribution: Contribution): number => ('rank' in contribution ? contribution.rank : 0)

export class Contributions {
  /** By type, then owner. Nearly all have one contributor, which stands there without a list around it. */
  readonly #byType = new Map<number, Map<DomainName, Contribution | readonly Contribution[]>>()

  /** How many RRsets there are. */
  get size(): number {
    let size = 0
    for (const byOwner of this.#byType.values()) size += byOwner.size
    return size
  }

  /** Adds a source's RRset, which that source must remember. */
  add(rank: number, rrset: RRset): void {
    let byOwner = this.#byType.get(rrset.type)
    if (byOwner === undefined) this.#byType.set(rrset.type, (byOwner = new Map()))
    const contribution: Contribution = rank === 0 ? rrset : { rank, rrset }
    const held = byOwner.get(rrset.owner)
    byOwner.set(rrset.owner, held === undefined ? contribution : [...listOf(held), contribution])
  }

  /** Takes away the very RRset that was added. */
  remove(rrset: RRset): void {
    const byOwner = this.#byType.get(rrset.type)
    const held = byOwner?.get(rrset.owner)
    if (byOwner === undefined || held === undefined) return
    const others = listOf(held).filter((contribution) => rrsetOf(contribution) !== rrset)
    if (others.length === 0) byOwner.delete(rrset.owner)
    else byOwner.set(rrset.owner, others.length === 1 ? others[0]! : others)
    if (byOwner.size === 0) this.#byType.delete(rrset.type)
  }

  /**
   * What all contributors say together; null where there is none. @param more contributions that are held elsewhere.
   */
  merged(owner: DomainName, type: number, more: readonly Contribution[] = []): RRset | null {
    const held = this.#byType.get(type)?.get(owner)
    const all = held === undefined ? more : more.length === 0 ? listOf(held) : [...listOf(held), ...more]
    if (all.length === 0) return null
    if (all.length === 1) return rrsetOf(all[0]!)
    const rank = Math.min(...all.map(rankOf))
    const sets = all.filter((contribution) => rankOf(contribution) === rank).map(rrsetOf)
    if (sets.length === 1) return sets[0]!
    const ttlSeconds = Math.min(...sets.map((set) => set.ttlSeconds))
    const rdata = inOrder(sets.flatMap((set) => set.rdata.map(octetsToText)))
    return toRRsets([{ owner, type, ttlSeconds, rdata }])[0]!
  }
}

// `Array.isArray` does not narrow readonly arrays.
const isList = (held: Contribution | readonly Contribution[]): held is readonly Contribution[] => Array.isArray(held)
const listOf = (held: Contribution | readonly Contribution[]): readonly Contribution[] => (isList(held) ? held : [held])
