/**
 * What of an answer may be kept, and for how long: pure functions of what was said.
 *
 * RFC 2181 §5.2 and §8 for TTLs, RFC 2308 for denials.
 */
import { maxAliases, maxRecordTtlSeconds } from '../base/limits.ts'
import { RCODE, RRTYPE } from '../wire/iana.ts'
import { isAtOrBelow, type DomainName } from '../wire/name.ts'
import { readNameRdata, readSoa } from '../wire/rdata.ts'
import type { RRset, Sections } from '../wire/rr.ts'

/** What was said of a name: it has the type, it lacks it, there is no such name; or the server could not say. */
export type AnswerKind = 'positive' | 'nodata' | 'nxdomain' | 'failure'

/** Upper bounds in seconds; fractions are cut off. */
export type TtlCaps = Readonly<{ maxTtlSeconds: number; maxNegativeTtlSeconds: number }>

export type Retention = Readonly<{
  kind: AnswerKind
  /** How long, in whole seconds; 0: not at all. */
  ttlSeconds: number
  /** What was said, with every TTL capped, and without what would run out before the answer does. */
  sections: Sections
  /** Owner of the SOA that a denial goes by. */
  zoneApex: DomainName | null
}>

/**
 * Judges an answer to a question; null: it is nothing that may be kept, whatever its TTLs. That is an error, an alias
 * chain that is too long, and a denial without the SOA of a zone that holds the denied name (RFC 2308 §5).
 *
 * The lowest TTL of the answer section counts. A denial also goes by its SOA (the lower one of TTL and MINIMUM), at
 * the end of an alias as well. An alias whose end is neither given nor denied is positive: the reader goes on there.
 */
export function retentionOf(
  sections: Sections,
  question: Readonly<{ name: DomainName; type: number }>,
  caps: TtlCaps
): Retention | null {
  if (sections.rcode !== RCODE.NOERROR && sections.rcode !== RCODE.NXDOMAIN) return null
  const end = aliasEnd(sections.answer, question.name, question.type)
  if (end === null) return null
  const isAnswered = holds(sections.answer, end.name, question.type)
  if (sections.rcode === RCODE.NOERROR && isAnswered) return positive(sections, caps)
  const soa = sections.authority.find((rrset) => rrset.type === RRTYPE.SOA && isAtOrBelow(end.name, rrset.owner))
  if (soa !== undefined) return denial(sections, soa, caps)
  return sections.rcode === RCODE.NOERROR && end.aliases > 0 ? positive(sections, caps) : null
}

function positive(sections: Sections, caps: TtlCaps): Retention {
  const capSeconds = Math.floor(caps.maxTtlSeconds)
  const ttlSeconds = Math.min(lowestTtl(sections.answer), capSeconds)
  return { kind: 'positive', ttlSeconds, sections: cappedSections(sections, ttlSeconds, capSeconds), zoneApex: null }
}

function denial(sections: Sections, soa: RRset, caps: TtlCaps): Retention {
  const capSeconds = Math.floor(caps.maxTtlSeconds)
  const minimumSeconds = countedTtl(readSoa(soa.rdata[0]!).minimumSeconds)
  const soaSeconds = Math.min(
    countedTtl(soa.ttlSeconds),
    minimumSeconds,
    Math.floor(caps.maxNegativeTtlSeconds),
    capSeconds
  )
  const ttlSeconds = Math.min(soaSeconds, lowestTtl(sections.answer))
  const capped = cappedSections(sections, ttlSeconds, capSeconds)
  // Whoever is told the denial keeps it for as long as its SOA says, so that must not exceed our time. RFC 2308 §5.
  const authority = capped.authority.map((rrset) => (rrset.type === RRTYPE.SOA ? withTtl(rrset, soaSeconds) : rrset))
  const kind = sections.rcode === RCODE.NXDOMAIN ? 'nxdomain' : 'nodata'
  return { kind, ttlSeconds, sections: { ...capped, authority }, zoneApex: soa.owner }
}

/** The name that the answer's aliases lead to, or null for more aliases than anybody follows. */
function aliasEnd(
  answer: readonly RRset[],
  qname: DomainName,
  qtype: number
): Readonly<{ name: DomainName; aliases: number }> | null {
  let name = qname
  for (let aliases = 0; aliases <= maxAliases; aliases++) {
    const at = name
    const alias = answer.find((rrset) => rrset.type === RRTYPE.CNAME && rrset.owner === at)
    if (alias === undefined || holds(answer, name, qtype)) return { name, aliases }
    name = readNameRdata(alias.rdata[0]!)
  }
  return null
}

const holds = (answer: readonly RRset[], name: DomainName, qtype: number): boolean =>
  answer.some((rrset) => rrset.owner === name && (rrset.type === qtype || qtype === RRTYPE.ANY))

/** RFC 2181 §8. */
const countedTtl = (ttlSeconds: number): number => (ttlSeconds > maxRecordTtlSeconds ? 0 : ttlSeconds)

function lowestTtl(rrsets: readonly RRset[]): number {
  let lowest = Infinity
  for (const { ttlSeconds } of rrsets) lowest = Math.min(lowest, countedTtl(ttlSeconds))
  return lowest
}

function cappedSections(sections: Sections, ttlSeconds: number, capSeconds: number): Sections {
  const cap = (rrset: RRset): RRset => withTtl(rrset, Math.min(countedTtl(rrset.ttlSeconds), capSeconds))
  // What comes along is nobody's answer: it may be missing, but it must not be handed out past its own TTL.
  const lastsAsLong = (rrset: RRset): boolean => countedTtl(rrset.ttlSeconds) >= ttlSeconds
  return {
    rcode: sections.rcode,
    answer: sections.answer.map(cap),
    authority: sections.authority.filter(lastsAsLong).map(cap),
    additional: sections.additional.filter(lastsAsLong).map(cap)
  }
}

const withTtl = (rrset: RRset, ttlSeconds: number): RRset =>
  rrset.ttlSeconds === ttlSeconds ? rrset : { ...rrset, ttlSeconds }
