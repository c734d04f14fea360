/**
 * What of a peer's reply is believed: the records that the question asked for, inside the zone that the peer is asked
 * about. Everything else is dropped here, so that nothing behind this file can be poisoned by extra records.
 */
import { maxAliases } from '../base/limits.ts'
import { CLASS, OPCODE, RCODE, RRTYPE } from '../wire/iana.ts'
import { groupRRsets, type Message } from '../wire/message.ts'
import { isAtOrBelow, readName, type DomainName } from '../wire/name.ts'
import { readU16, readU32 } from '../wire/octets.ts'
import type { Rdata, ResourceRecord, RRset, Sections } from '../wire/rr.ts'
import type { PeerQuestion } from './peer-types.ts'

/** RFC 2181 §8: a TTL with its top bit set counts as zero. */
const maxTtlSeconds = 0x7fff_ffff

/** Where the name of another owner begins in RDATA, for the types whose addresses come along as additional records. */
const targetOffset: ReadonlyMap<number, number> = new Map([
  [RRTYPE.NS, 0],
  [RRTYPE.MX, 2],
  [RRTYPE.SRV, 6]
])

const addressTypes: ReadonlySet<number> = new Set([RRTYPE.A, RRTYPE.AAAA])
const denialTypes: ReadonlySet<number> = new Set([RRTYPE.NSEC, RRTYPE.NSEC3])

/**
 * The believable part of a reply (RCODE NOERROR or NXDOMAIN) to `question` from a server that is asked about `zone`;
 * null where it is nonsense: another question, an answer section of which nothing belongs, or an NXDOMAIN that
 * comes with the records that it denies.
 *
 * - answer: the chain qname -> CNAME... -> qtype, alias first whatever the order was, as far as it stays in the zone.
 *   A CNAME may lead out of the zone: it is kept, what lies behind is not, and an NXDOMAIN, which would be about that
 *   other name (RFC 6604 §3), becomes NOERROR. QTYPE ANY: the RRsets of qname.
 * - authority: the SOA at or above the name that the denial is about, inside the zone (or above it, where the question
 *   says that the zone may begin there). With a denial its TTL is at most its MINIMUM (RFC 2308 §5). NS records go:
 *   referrals are not followed.
 * - additional: addresses of the SRV, MX and NS targets in the answer, inside the zone.
 * - With DO also the RRSIGs of what is kept, and NSEC and NSEC3.
 *
 * The message must come from decodeMessage, which has checked the RDATA.
 */
export function cleanReply(
  message: Message,
  question: Pick<PeerQuestion, 'name' | 'type' | 'dnssecOk' | 'soaMayBeAbove'>,
  zone: DomainName
): Sections | null {
  if (!isSameQuestion(message, question)) return null
  const inZone = (set: RRset): boolean => isAtOrBelow(set.owner, zone)
  const chain = followChain(trustedSets(message.answer).filter(inZone), question, zone)
  if (message.answer.length > 0 && chain.answer.length === 0) return null
  if (message.rcode === RCODE.NXDOMAIN && chain.hasWanted) return null

  const isDenial = !chain.hasWanted && chain.lastName !== null
  const isProof = (set: RRset): boolean =>
    inZone(set) || (question.soaMayBeAbove === true && set.type === RRTYPE.SOA && isAtOrBelow(zone, set.owner))
  const authority = authorityOf(trustedSets(message.authority).filter(isProof), chain, isDenial, question.dnssecOk)
  const targets = targetsOf(chain.answer)
  const isTargetAddress = (set: RRset): boolean => addressTypes.has(set.type) && targets.has(set.owner)
  return {
    rcode: message.rcode === RCODE.NXDOMAIN && chain.lastName === null ? RCODE.NOERROR : message.rcode,
    answer: chain.answer,
    authority,
    additional: targets.size === 0 ? [] : trustedSets(message.additional).filter(inZone).filter(isTargetAddress)
  }
}

function isSameQuestion(message: Message, question: Pick<PeerQuestion, 'name' | 'type'>): boolean {
  const asked = message.questions[0]
  return (
    message.qr &&
    message.opcode === OPCODE.QUERY &&
    message.questions.length === 1 &&
    asked !== undefined &&
    asked.name === question.name &&
    asked.type === question.type &&
    asked.class === CLASS.IN
  )
}

/** RRsets of class IN, duplicates gone. */
function trustedSets(records: readonly ResourceRecord[]): RRset[] {
  if (records.length === 0) return []
  return groupRRsets(
    records.map((record) =>
      record.ttlSeconds > maxTtlSeconds || record.ttlSeconds < 0 ? { ...record, ttlSeconds: 0 } : record
    )
  )
}

type Chain = Readonly<{
  answer: readonly RRset[]
  /** The asked type was found at the chain's end. */
  hasWanted: boolean
  /** The name at the chain's end; null where it left the zone or went round, so that nothing is known about its end. */
  lastName: DomainName | null
}>

function followChain(
  sets: readonly RRset[],
  question: Pick<PeerQuestion, 'name' | 'type' | 'dnssecOk'>,
  zone: DomainName
): Chain {
  const answer: RRset[] = []
  const at = (owner: DomainName, type: number): RRset | undefined =>
    sets.find((set) => set.owner === owner && set.type === type)
  const keep = (set: RRset): void => {
    answer.push(set)
    const signatures = question.dnssecOk ? signaturesOf(at(set.owner, RRTYPE.RRSIG), set.type) : null
    if (signatures !== null) answer.push(signatures)
  }
  if (question.type === RRTYPE.ANY) {
    const all = sets.filter((set) => set.owner === question.name)
    return { answer: all, hasWanted: all.length > 0, lastName: question.name }
  }
  const seen = new Set<DomainName>()
  let name = question.name
  for (;;) {
    const wanted = at(name, question.type)
    if (wanted !== undefined) {
      keep(wanted)
      return { answer, hasWanted: true, lastName: name }
    }
    const alias = question.type === RRTYPE.CNAME ? undefined : at(name, RRTYPE.CNAME)
    if (alias === undefined) return { answer, hasWanted: false, lastName: name }
    if (seen.size === maxAliases) return { answer, hasWanted: false, lastName: null }
    seen.add(name)
    // Several CNAMEs at one owner are against RFC 1034 §3.6.2: the first one is followed and the others go.
    keep({ ...alias, rdata: alias.rdata.slice(0, 1) })
    name = readName(alias.rdata[0]!, 0).name
    if (seen.has(name) || !isAtOrBelow(name, zone)) return { answer, hasWanted: false, lastName: null }
  }
}

function authorityOf(sets: readonly RRset[], { lastName }: Chain, isDenial: boolean, dnssecOk: boolean): RRset[] {
  if (lastName === null) return []
  let soa: RRset | null = null
  for (const set of sets) {
    if (set.type !== RRTYPE.SOA || !isAtOrBelow(lastName, set.owner)) continue
    if (soa === null || set.owner.length > soa.owner.length) soa = set
  }
  if (soa === null) return []
  const rdata = soa.rdata[0]!
  const ttlSeconds = isDenial ? Math.min(soa.ttlSeconds, soaMinimumSeconds(rdata)) : soa.ttlSeconds
  const kept: RRset[] = [{ ...soa, ttlSeconds, rdata: [rdata] }]
  if (!dnssecOk) return kept
  kept.push(...sets.filter((set) => denialTypes.has(set.type)))
  for (const { owner, type } of kept.slice()) {
    const signatures = signaturesOf(
      sets.find((set) => set.owner === owner && set.type === RRTYPE.RRSIG),
      type
    )
    if (signatures !== null) kept.push(signatures)
  }
  return kept
}

/** MINIMUM is the last field of SOA RDATA; with its top bit set it counts as zero, like a TTL. */
function soaMinimumSeconds(rdata: Rdata): number {
  const minimum = readU32(rdata, rdata.length - 4)
  return minimum > maxTtlSeconds ? 0 : minimum
}

/** Those RRSIGs of an owner that cover one type (RFC 4034 §3.1.1: the type covered comes first). */
function signaturesOf(set: RRset | undefined, type: number): RRset | null {
  const rdata = set?.rdata.filter((signature) => readU16(signature, 0) === type) ?? []
  return set === undefined || rdata.length === 0 ? null : { ...set, rdata }
}

function targetsOf(answer: readonly RRset[]): Set<DomainName> {
  const targets = new Set<DomainName>()
  for (const { type, rdata } of answer) {
    const offset = targetOffset.get(type)
    if (offset !== undefined) for (const each of rdata) targets.add(readName(each, offset).name)
  }
  return targets
}
