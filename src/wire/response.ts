/**
 * Writes responses: the hot encode, straight into the buffer that is sent.
 *
 * What does not fit goes in the order in which a client misses it least; a cut RRset is a fair random subset, so that
 * no endpoint is favoured by its place in a list.
 */
import { WireError } from '../base/errors.ts'
import { type Edns, ednsOctets, withoutOptions, writeEdns } from './edns.ts'
import { ANCOUNT_AT, ARCOUNT_AT, FLAG, flagsOf, headerOctets, NSCOUNT_AT, QDCOUNT_AT } from './header.ts'
import { CLASS, RCODE, RRTYPE } from './iana.ts'
import { writeU16 } from './octets.ts'
import { RecordWriter } from './record-writer.ts'
import type { RRset, Sections } from './rr.ts'
import { drawIndex, putBackIndexes } from './shuffle.ts'

export type Response = Readonly<{
  id: number
  opcode: number
  aa: boolean
  rd: boolean
  ra: boolean
  cd: boolean
  /** The question's octets as they were asked, echoed octet for octet; null for no question. */
  question: Uint8Array | null
  /** The RCODE may have 12 bits where there is an OPT; without one, an RCODE over 15 is sent as SERVFAIL. */
  sections: Sections
  /** Null: no OPT. */
  edns: Edns | null
  /** Whole seconds taken off every TTL, which never gets below 0: cached answers are kept as they came. */
  ageSeconds: number
  /** What is left of a TTL is capped at this. */
  maxTtlSeconds: number
}>

/** The smallest record: a pointer as owner, ten octets, one octet of RDATA. */
const smallestRecordOctets = 13
const opcodeShift = 11

// Encoding is synchronous, so one writer serves all responses.
const writer = new RecordWriter()

/**
 * Writes the response into `out`, at most `limitOctets`, and returns its octets.
 *
 * What does not fit: additional RRsets are left out whole, without TC (they can be asked for). An authority RRset is
 * left out whole, with TC (RFC 2181 §9). An answer RRset keeps a fair random subset, with TC, and nothing follows it
 * but OPT, which always stays; it loses its options where not even they fit. Several A, AAAA or SRV records of one
 * RRset are always written in fair random order.
 * @param random uniform in [0, 1), like Math.random.
 * @throws WireError TOO_LARGE where not even question and OPT fit (never from 512 octets on).
 */
export function encodeResponse(out: Uint8Array, response: Response, limitOctets: number, random: () => number): number {
  const { question, sections } = response
  const limit = Math.min(limitOctets, out.length)
  const questionEnd = headerOctets + (question === null ? 0 : question.length)
  let { edns } = response
  let optOctets = edns === null ? 0 : ednsOctets(edns)
  if (edns !== null && questionEnd + optOctets > limit) {
    edns = withoutOptions(edns)
    optOctets = ednsOctets(edns)
  }
  if (questionEnd + optOctets > limit) throw new WireError('TOO_LARGE', limit, 'no room for question and OPT')

  writer.begin(out, limit - optOctets)
  if (question !== null) writer.echoQuestion(question)

  let answers = 0
  let authorities = 0
  let additionals = 0
  let isTruncated = false
  for (const rrset of sections.answer) {
    const written = writeRRset(rrset, response, random, true)
    answers += written
    isTruncated = written < rrset.rdata.length
    if (isTruncated) break
  }
  if (!isTruncated) {
    for (const rrset of sections.authority) {
      const written = writeRRset(rrset, response, random, false)
      authorities += written
      isTruncated = written < rrset.rdata.length
      if (isTruncated) break
    }
  }
  if (!isTruncated) {
    for (const rrset of sections.additional) {
      if (writer.roomOctets < smallestRecordOctets) break
      additionals += writeRRset(rrset, response, random, false)
    }
  }

  const rcode = edns === null && sections.rcode > 15 ? RCODE.SERVFAIL : sections.rcode
  let size = writer.at
  if (edns !== null) {
    size = writeEdns(out, size, edns, rcode)
    additionals++
  }
  writeU16(out, 0, response.id)
  writeU16(out, 2, flagsOfResponse(response, isTruncated, rcode))
  writeU16(out, QDCOUNT_AT, question === null ? 0 : 1)
  writeU16(out, ANCOUNT_AT, answers)
  writeU16(out, NSCOUNT_AT, authorities)
  writeU16(out, ARCOUNT_AT, additionals)
  return size
}

function flagsOfResponse(response: Response, isTruncated: boolean, rcode: number): number {
  return (
    FLAG.QR |
    (response.opcode << opcodeShift) |
    (response.aa ? FLAG.AA : 0) |
    (isTruncated ? FLAG.TC : 0) |
    (response.rd ? FLAG.RD : 0) |
    (response.ra ? FLAG.RA : 0) |
    (response.cd ? FLAG.CD : 0) |
    (rcode & 0x0f)
  )
}

/** Writes all records of the RRset, or as many as fit where a part is worth having, and returns their number. */
function writeRRset(rrset: RRset, response: Response, random: () => number, keepsPart: boolean): number {
  const start = writer.at
  const total = rrset.rdata.length
  const ttlSeconds = Math.min(Math.max(0, rrset.ttlSeconds - response.ageSeconds), response.maxTtlSeconds)
  const shuffles = total > 1 && isShuffled(rrset.type)
  let written = writeRecords(rrset, ttlSeconds, shuffles ? random : null)
  if (written === total) return written
  if (!keepsPart) {
    writer.takeBack(start)
    return 0
  }
  // The other types keep their order only while they are complete: a cut one must not always lose the same records.
  if (total > 1 && !shuffles) {
    writer.takeBack(start)
    written = writeRecords(rrset, ttlSeconds, random)
  }
  return written
}

const isShuffled = (type: number): boolean => type === RRTYPE.A || type === RRTYPE.AAAA || type === RRTYPE.SRV

/**
 * Writes records until one does not fit: in order, or each time any of those left (Fisher-Yates), and returns their
 * number.
 */
function writeRecords(rrset: RRset, ttlSeconds: number, random: (() => number) | null): number {
  const { owner, type, rdata } = rrset
  const total = rdata.length
  let written = 0
  let drawn = 0
  try {
    while (written < total) {
      const index = random === null ? written : drawIndex(drawn++, total, random)
      if (!writer.writeRecord(owner, type, CLASS.IN, ttlSeconds, rdata[index]!)) break
      written++
    }
  } finally {
    putBackIndexes(drawn)
  }
  return written
}

/**
 * Turns a query's header round into a response without any question or record: for what could not be read (FORMERR) or
 * is not understood (NOTIMP). Id, opcode and RD are kept. Returns its octets: 12, or 0 where the query's `size` is
 * below a header's.
 */
export function encodeBareError(out: Uint8Array, query: Uint8Array, size: number, rcode: number): number {
  if (size < headerOctets) return 0
  const kept = flagsOf(query) & ((0x0f << opcodeShift) | FLAG.RD)
  out[0] = query[0]!
  out[1] = query[1]!
  writeU16(out, 2, FLAG.QR | kept | (rcode & 0x0f))
  out.fill(0, QDCOUNT_AT, headerOctets)
  return headerOctets
}
