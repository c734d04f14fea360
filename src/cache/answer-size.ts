/**
 * What an entry takes of the heap, in octets.
 *
 * An estimate from sizes measured with Node 26 (bench/micro/cache.ts compares it with the heap): the objects around a
 * record of 4 octets are ten times its size, so counting what is on the wire would let the cache grow tenfold.
 */
import type { RRset, Sections } from '../wire/rr.ts'

/** Entry, its place in the maps and in the order of expiry, and the sections' own objects. */
const entryOctets = 560
/** A further name in the index. */
const indexedNameOctets = 80
/** An RRset's object and its list of records. */
const rrsetOctets = 104
/** A string's header. */
const stringOctets = 16
/** A typed array of its own, without its octets. */
const rdataOctets = 200

/** `textOctets`: characters of the key, and of what else the entry alone holds in text. */
export function entrySizeOctets(textOctets: number, indexedNames: number, sections: Sections): number {
  let octets = entryOctets + stringOctets + textOctets + (indexedNames - 1) * indexedNameOctets
  for (const rrset of sections.answer) octets += rrsetSizeOctets(rrset)
  for (const rrset of sections.authority) octets += rrsetSizeOctets(rrset)
  for (const rrset of sections.additional) octets += rrsetSizeOctets(rrset)
  return octets
}

function rrsetSizeOctets(rrset: RRset): number {
  let octets = rrsetOctets + stringOctets + rrset.owner.length
  for (const rdata of rrset.rdata) octets += rdataOctets + rdata.length
  return octets
}
