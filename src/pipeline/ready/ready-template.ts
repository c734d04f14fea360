/**
 * An answer as octets that can be given again: where its TTLs and its serial lie, which records may be mixed, and what
 * clients it fits.
 */
import { maxMessageOctets } from '../../base/limits.ts'
import { headerOctets } from '../../wire/header.ts'
import { RRTYPE } from '../../wire/iana.ts'
import { lowerCaseOf } from '../../wire/name.ts'
import { readU16 } from '../../wire/octets.ts'
import type { ParsedQuery } from '../../wire/query.ts'
import type { RRset } from '../../wire/rr.ts'
import type { Answer } from '../answer.ts'
import { finish, responseLimitOctets } from '../finish.ts'
import type { Query } from '../query.ts'

/** All RDATA of a set of addresses, of which each answer gives `written` records in an order of its own. */
export type Pool = Readonly<{
  rdata: Uint8Array
  records: number
  /** Of one RDATA, in 32-bit words. */
  words: number
  written: number
  /** In the response; the others follow at equal distances. */
  firstRdataAt: number
}>

export type ReadyTemplate = Readonly<{
  response: Uint8Array
  questionEnd: number
  /** The client's limits that this response is right for. */
  minLimit: number
  maxLimit: number
  ttlOffsets: readonly number[]
  /** The age that the TTLs are right for. */
  ageSeconds: number
  /** Where the serial of a SOA lies; 0: there is none. */
  serialAt: number
  /** The response is right only for a question in lower case. */
  isCaseExact: boolean
  pool: Pool | null
}>

const addressWords = (type: number): number => (type === RRTYPE.A ? 1 : type === RRTYPE.AAAA ? 4 : 0)
const isMixed = ({ type, rdata }: RRset): boolean =>
  rdata.length > 1 && (type === RRTYPE.A || type === RRTYPE.AAAA || type === RRTYPE.SRV)
/** Offsets of the serial from the end of a SOA's RDATA: serial, refresh, retry, expire, minimum. */
const serialFromEnd = 20

const scratch = new Uint8Array(maxMessageOctets)
const first = (): number => 0

/**
 * Null where it cannot be given again as octets.
 * @param octets the query as it came
 */
export function templateOf(
  octets: Uint8Array,
  query: Query,
  message: ParsedQuery,
  answer: Answer,
  options: Readonly<{ recursionAvailable: boolean; ageSeconds: number }>
): ReadyTemplate | null {
  const { sections } = answer
  if (sections.answer.length > 1 || sections.authority.length > 1) return null
  if ([...sections.authority, ...sections.additional].some(isMixed)) return null
  const set = sections.answer[0]
  const mixed = set !== undefined && isMixed(set) ? set : null
  if (mixed !== null && (addressWords(mixed.type) === 0 || sections.additional.length > 0)) return null

  const { questionEnd } = message
  const finishing = { recursionAvailable: options.recursionAvailable, random: first }
  const asked = octets.slice(0, questionEnd)
  for (let at = headerOctets; at < questionEnd - 4; at++) asked[at] = lowerCaseOf[asked[at]!]!
  const response = scratch.slice(0, finish(scratch, asked, query, message, answer, finishing))
  for (let at = headerOctets; at < questionEnd - 4; at++) asked[at] = upperCaseOf(asked[at]!)
  const shouted = scratch.slice(0, finish(scratch, asked, query, message, answer, finishing))
  const isCaseExact =
    response.length !== shouted.length || response.some((octet, at) => at >= questionEnd && octet !== shouted[at])

  const records = readRecords(response, questionEnd)
  const whole =
    sectionRecords(sections.answer) + sectionRecords(sections.authority) + sectionRecords(sections.additional)
  const isWhole = records.length === whole && (response[2]! & 0x02) === 0
  if (!isWhole && mixed === null && sections.answer.some(({ rdata }) => rdata.length > 1)) return null
  const limit = responseLimitOctets(message, query.client.transport)
  const pool = mixed === null ? null : poolOf(mixed, records)
  if (mixed !== null && pool === null) return null
  const soas = records.filter(({ type }) => type === RRTYPE.SOA)
  if (soas.length > 1) return null
  return {
    response,
    questionEnd,
    minLimit: isWhole ? response.length : limit,
    maxLimit: isWhole ? maxMessageOctets : limit,
    ttlOffsets: records.map(({ ttlAt }) => ttlAt),
    ageSeconds: options.ageSeconds,
    serialAt: soas.length === 1 ? soas[0]!.end - serialFromEnd : 0,
    isCaseExact,
    pool
  }
}

const sectionRecords = (rrsets: readonly RRset[]): number => rrsets.reduce((sum, { rdata }) => sum + rdata.length, 0)

const upperCaseOf = (octet: number): number => (octet >= 0x61 && octet <= 0x7a ? octet - 0x20 : octet)

type Place = Readonly<{ type: number; owner: number; ttlAt: number; rdataAt: number; end: number }>

/** Where the records of a response of ours lie, OPT left out. `owner`: the pointer that it begins with, or -1. */
function readRecords(response: Uint8Array, questionEnd: number): Place[] {
  const places: Place[] = []
  let at = questionEnd
  while (at < response.length) {
    const owner = response[at]! >= 0xc0 ? readU16(response, at) : -1
    let length = response[at]!
    for (; length !== 0 && length < 0xc0; length = response[at]!) at += length + 1
    at += length === 0 ? 1 : 2
    const type = readU16(response, at)
    const end = at + 10 + readU16(response, at + 8)
    if (type !== RRTYPE.OPT) places.push({ type, owner, ttlAt: at + 4, rdataAt: at + 10, end })
    at = end
  }
  return places
}

/** Null where the records do not lie at equal distances, each with the same short owner. */
function poolOf({ type, rdata }: RRset, records: readonly Place[]): Pool | null {
  const words = addressWords(type)
  const written = records.filter((record) => record.type === type)
  const head = written[0]
  if (head === undefined || head.owner < 0 || written.length !== records.length) return null
  const distance = 12 + words * 4
  const isEven = written.every(
    ({ owner, rdataAt, end }, at) =>
      owner === head.owner && rdataAt === head.rdataAt + at * distance && end === rdataAt + words * 4
  )
  if (!isEven || rdata.some((octets) => octets.length !== words * 4)) return null
  const all = new Uint8Array(rdata.length * words * 4)
  rdata.forEach((octets, at) => all.set(octets, at * words * 4))
  return { rdata: all, records: rdata.length, words, written: written.length, firstRdataAt: head.rdataAt }
}
