/**
 * Reads a query: the hot parse, one pass over the octets and no allocation beyond the result.
 *
 * All of the message is walked, so that its counts and its end are right, but nothing is kept of it except the
 * question, OPT and TSIG. Whether it is a query that we answer (QR, opcode, class, EDNS version) is for the caller to
 * say.
 */
import { WireError } from '../base/errors.ts'
import { type Edns, readEdns } from './edns.ts'
import {
  ANCOUNT_AT,
  ARCOUNT_AT,
  FLAG,
  flagsOf,
  headerOctets,
  messageId,
  NSCOUNT_AT,
  opcodeOf,
  QDCOUNT_AT
} from './header.ts'
import { OPCODE, RRTYPE } from './iana.ts'
import { type DomainName, plainNameEnd, readName, rootName } from './name.ts'
import { latin1Of, readU16 } from './octets.ts'
import { readTsig, type Tsig } from './tsig.ts'

export type ParsedQuery = Readonly<{
  id: number
  opcode: number
  recursionDesired: boolean
  checkingDisabled: boolean
  authenticData: boolean
  qname: DomainName
  qtype: number
  qclass: number
  /** Octets 12 to here are the question as it was written, for the echo. */
  questionEnd: number
  edns: Edns | null
  tsig: Tsig | null
  /** Records other than OPT and TSIG that came along; they are ignored, never cached. */
  records: number
}>

/**
 * Reads the message in the first `size` octets.
 *
 * Strict where leniency would let two readers see two things: no octets behind the message, no pointers in the qname,
 * no answer records, OPT once and TSIG last (both in the additional section only). A query has no authority
 * records but for IXFR (RFC 1995 §3); NOTIFY may bring answer records (RFC 1996 §3.7).
 * @throws WireError; the header alone is enough to answer FORMERR, if `size` is 12 or more.
 */
export function parseQuery(octets: Uint8Array, size: number): ParsedQuery {
  if (size < headerOctets) throw new WireError('TRUNCATED', size, 'shorter than a header')
  if (readU16(octets, QDCOUNT_AT) !== 1) throw new WireError('BAD_COUNT', QDCOUNT_AT, 'other than one question')
  const opcode = opcodeOf(octets)

  let nameEnd = plainNameEnd(octets, headerOctets, size)
  let qname: DomainName
  if (nameEnd >= 0) {
    qname = latin1Of(octets, headerOctets, nameEnd) as DomainName
  } else {
    const read = readName(octets, headerOctets, size)
    qname = read.name
    nameEnd = read.end
  }
  const questionEnd = nameEnd + 4
  if (questionEnd > size) throw new WireError('TRUNCATED', nameEnd, 'half a question')
  const qtype = readU16(octets, nameEnd)
  // Records of these types never stand alone in a zone, so they cannot be asked for.
  if (qtype === RRTYPE.OPT || qtype === RRTYPE.TSIG) throw new WireError('BAD_QTYPE', nameEnd)

  const answers = readU16(octets, ANCOUNT_AT)
  const authorities = readU16(octets, NSCOUNT_AT)
  const additionals = readU16(octets, ARCOUNT_AT)
  if (opcode === OPCODE.QUERY) {
    if (answers !== 0) throw new WireError('BAD_COUNT', ANCOUNT_AT, 'answers in a query')
    if (authorities !== 0 && qtype !== RRTYPE.IXFR)
      throw new WireError('BAD_COUNT', NSCOUNT_AT, 'authority records in a query')
  }

  let edns: Edns | null = null
  let tsig: Tsig | null = null
  let at = questionEnd
  const total = answers + authorities + additionals
  for (let index = 0; index < total; index++) {
    if (at >= size) throw new WireError('BAD_COUNT', at, 'fewer records than the header says')
    const isRootOwner = octets[at] === 0
    const owner = isRootOwner ? null : readName(octets, at, size)
    const fixedAt = owner === null ? at + 1 : owner.end
    if (fixedAt + 10 > size) throw new WireError('TRUNCATED', fixedAt, 'half a record')
    const end = fixedAt + 10 + readU16(octets, fixedAt + 8)
    if (end > size) throw new WireError('TRUNCATED', fixedAt + 8, 'RDLENGTH leads behind the message')
    const type = readU16(octets, fixedAt)
    if (type === RRTYPE.OPT) {
      if (edns !== null) throw new WireError('BAD_EDNS', at, 'a second OPT')
      if (!isRootOwner) throw new WireError('BAD_EDNS', at, 'OPT belongs to the root')
      if (index < answers + authorities) throw new WireError('BAD_EDNS', at, 'OPT in another section')
      edns = readEdns(octets, fixedAt + 2)
    } else if (type === RRTYPE.TSIG) {
      if (index !== total - 1 || additionals === 0) throw new WireError('BAD_TSIG', at, 'TSIG must be the last record')
      tsig = readTsig(octets, at, fixedAt, end, owner?.name ?? rootName)
    }
    at = end
  }
  if (at !== size) throw new WireError('TRAILING_OCTETS', at)

  const flags = flagsOf(octets)
  return {
    id: messageId(octets),
    opcode,
    recursionDesired: (flags & FLAG.RD) !== 0,
    checkingDisabled: (flags & FLAG.CD) !== 0,
    authenticData: (flags & FLAG.AD) !== 0,
    qname,
    qtype,
    qclass: readU16(octets, nameEnd + 2),
    questionEnd,
    edns,
    tsig,
    records: total - (edns === null ? 0 : 1) - (tsig === null ? 0 : 1)
  }
}
