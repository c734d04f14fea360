/** `select: merge`: the answers of several targets to one question as one answer. Pure. */
import { RCODE, RRTYPE } from '../wire/iana.ts'
import { rdataKey } from '../wire/rdata.ts'
import type { RRset, Sections } from '../wire/rr.ts'

/** Types of which a name has one record only, and aliases: there the first target that has the name counts alone. */
const singleTypes: ReadonlySet<number> = new Set([RRTYPE.SOA, RRTYPE.CNAME, RRTYPE.DNAME, RRTYPE.ANY])

const isAlias = ({ answer }: Sections): boolean => answer.some(({ type }) => type === RRTYPE.CNAME)

/** Whether answers to this type may be joined. */
export const isMergedType = (qtype: number): boolean => !singleTypes.has(qtype)

/**
 * The union of the answers: no record twice, and each RRset with the lowest TTL that one of them gives it (RFC 2181
 * §5.2). An alias stands alone: if the first answer with records is one, it is all; others that are ones are left out.
 *
 * @param answers with NOERROR, of targets that have the name, first one first; TTLs as they are now.
 * @returns the first one as it is where nothing is added to it.
 */
export function mergeSections(answers: readonly Sections[]): Sections {
  const withRecords = answers.filter(({ answer }) => answer.length > 0)
  const first = withRecords[0]
  if (first === undefined) return answers[0]!
  const merged = withRecords.filter((sections) => !isAlias(sections))
  if (isAlias(first) || merged.length === 1) return first
  return {
    rcode: RCODE.NOERROR,
    answer: unionOf(merged.flatMap(({ answer }) => answer)),
    authority: [],
    additional: unionOf(merged.flatMap(({ additional }) => additional))
  }
}

/** Each RRset once, with all its records and the lowest TTL. */
export function unionOf(rrsets: readonly RRset[]): RRset[] {
  const byKey = new Map<string, { rrset: RRset; seen: Set<string> }>()
  for (const rrset of rrsets) {
    const key = `${rrset.type} ${rrset.owner}`
    const held = byKey.get(key)
    if (held === undefined) {
      byKey.set(key, { rrset, seen: new Set(rrset.rdata.map((rdata) => rdataKey(rrset.type, rdata))) })
      continue
    }
    const added = rrset.rdata.filter((rdata) => {
      const octets = rdataKey(rrset.type, rdata)
      if (held.seen.has(octets)) return false
      held.seen.add(octets)
      return true
    })
    held.rrset = {
      ...held.rrset,
      ttlSeconds: Math.min(held.rrset.ttlSeconds, rrset.ttlSeconds),
      rdata: added.length === 0 ? held.rrset.rdata : [...held.rrset.rdata, ...added]
    }
  }
  return [...byKey.values()].map(({ rrset }) => rrset)
}
