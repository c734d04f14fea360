/**
 * Whole messages, both ways: what peers answer, transfers, commands and tests. (Queries from clients are read by
 * query.ts, responses to them written by response.ts, which both do less.)
 */
import { WireError } from '../base/errors.ts'
import { maxMessageOctets } from '../base/limits.ts'
import { type Edns, ednsOctets, readEdns, writeEdns } from './edns.ts'
import {
  ANCOUNT_AT,
  ARCOUNT_AT,
  FLAG,
  flagsOf,
  headerOctets,
  headerRcode,
  messageId,
  NSCOUNT_AT,
  opcodeOf,
  QDCOUNT_AT
} from './header.ts'
import { CLASS, RRTYPE } from './iana.ts'
import { type DomainName, readName, rootName } from './name.ts'
import { copyOf, readU16, readU32, writeU16 } from './octets.ts'
import { rdataKey, readRdata } from './rdata.ts'
import { RecordWriter } from './record-writer.ts'
import type { Rdata, ResourceRecord, RRset } from './rr.ts'

export type Question = Readonly<{ name: DomainName; type: number; class: number }>

export type Message = Readonly<{
  id: number
  qr: boolean
  opcode: number
  aa: boolean
  tc: boolean
  rd: boolean
  ra: boolean
  ad: boolean
  cd: boolean
  /** All 12 bits where there is an OPT. */
  rcode: number
  questions: readonly Question[]
  answer: readonly ResourceRecord[]
  authority: readonly ResourceRecord[]
  /** Without OPT; a TSIG is its last record. */
  additional: readonly ResourceRecord[]
  edns: Edns | null
}>

/** TTLs above are taken for 0. RFC 2181 §8. */
const maxTtlSeconds = 0x7fff_ffff

/** Type, class, TTL and RDLENGTH. */
const fixedOctets = 10

/**
 * Reads all of a message. Nothing in the result is a view of `octets`.
 *
 * Owner names and question names come out in lower case, names in RDATA uncompressed in the case they have.
 * @throws WireError
 */
export function decodeMessage(octets: Uint8Array): Message {
  if (octets.length < headerOctets) throw new WireError('TRUNCATED', octets.length, 'shorter than a header')
  const flags = flagsOf(octets)
  const reader = new MessageReader(octets)
  const questions = reader.readQuestions(readU16(octets, QDCOUNT_AT))
  const answer = reader.readSection(readU16(octets, ANCOUNT_AT), false)
  const authority = reader.readSection(readU16(octets, NSCOUNT_AT), false)
  const additional = reader.readSection(readU16(octets, ARCOUNT_AT), true)
  if (reader.at !== octets.length) throw new WireError('TRAILING_OCTETS', reader.at)
  return {
    id: messageId(octets),
    qr: (flags & FLAG.QR) !== 0,
    opcode: opcodeOf(octets),
    aa: (flags & FLAG.AA) !== 0,
    tc: (flags & FLAG.TC) !== 0,
    rd: (flags & FLAG.RD) !== 0,
    ra: (flags & FLAG.RA) !== 0,
    ad: (flags & FLAG.AD) !== 0,
    cd: (flags & FLAG.CD) !== 0,
    rcode: (reader.upperRcode << 4) | headerRcode(octets),
    questions,
    answer,
    authority,
    additional,
    edns: reader.edns
  }
}

/** Owns the octets and the place in them. Lists grow as records are found: a count of the header reserves nothing. */
class MessageReader {
  at = headerOctets
  edns: Edns | null = null
  upperRcode = 0
  #hasTsig = false
  /**
   * The name that the last owner pointed to: the owners of an RRset are mostly one pointer, and so share one string.
   */
  #target = -1
  #targetName: DomainName = rootName
  readonly #octets: Uint8Array

  constructor(octets: Uint8Array) {
    this.#octets = octets
  }

  readQuestions(count: number): Question[] {
    const questions: Question[] = []
    for (let index = 0; index < count; index++) {
      const at = this.at
      const { name, end } = this.#readOwner()
      if (index === 0) {
        // What most owners behind it point to.
        this.#target = at
        this.#targetName = name
      }
      if (end + 4 > this.#octets.length) throw new WireError('TRUNCATED', end, 'half a question')
      questions.push({ name, type: readU16(this.#octets, end), class: readU16(this.#octets, end + 2) })
      this.at = end + 4
    }
    return questions
  }

  readSection(count: number, isAdditional: boolean): ResourceRecord[] {
    const records: ResourceRecord[] = []
    for (let index = 0; index < count; index++) {
      const record = this.#readRecord(isAdditional)
      if (record !== null) records.push(record)
    }
    return records
  }

  #readOwner(): { name: DomainName; end: number } {
    if (this.at >= this.#octets.length) throw new WireError('BAD_COUNT', this.at, 'fewer records than the header says')
    const first = this.#octets[this.at]!
    const second = this.#octets[this.at + 1]
    if (first < 0xc0 || second === undefined) return readName(this.#octets, this.at)
    const target = ((first & 0x3f) << 8) | second
    if (target !== this.#target) {
      this.#targetName = readName(this.#octets, this.at).name
      this.#target = target
    }
    return { name: this.#targetName, end: this.at + 2 }
  }

  /** Null for an OPT, which is no record. */
  #readRecord(isAdditional: boolean): ResourceRecord | null {
    const octets = this.#octets
    const start = this.at
    const { name: owner, end: fixedAt } = this.#readOwner()
    const rdataAt = fixedAt + fixedOctets
    if (rdataAt > octets.length) throw new WireError('TRUNCATED', fixedAt, 'half a record')
    const end = rdataAt + readU16(octets, fixedAt + 8)
    if (end > octets.length) throw new WireError('TRUNCATED', fixedAt + 8, 'RDLENGTH leads behind the message')
    if (this.#hasTsig) throw new WireError('BAD_TSIG', start, 'TSIG must be the last record')
    this.at = end
    const type = readU16(octets, fixedAt)
    const rrclass = readU16(octets, fixedAt + 2)
    if (type === RRTYPE.OPT) {
      this.#readOpt(start, fixedAt, owner, isAdditional)
      return null
    }
    const ttl = readU32(octets, fixedAt + 4)
    if (type === RRTYPE.TSIG) {
      if (!isAdditional) throw new WireError('BAD_TSIG', start, 'TSIG in another section')
      if (rrclass !== CLASS.ANY || ttl !== 0) throw new WireError('BAD_TSIG', fixedAt, 'TSIG has class ANY and TTL 0')
      this.#hasTsig = true
    }
    return {
      owner,
      type,
      class: rrclass,
      ttlSeconds: ttl > maxTtlSeconds ? 0 : ttl,
      rdata: readRdata(octets, rdataAt, end, type, rrclass)
    }
  }

  #readOpt(start: number, fixedAt: number, owner: DomainName, isAdditional: boolean): void {
    if (!isAdditional) throw new WireError('BAD_EDNS', start, 'OPT in another section')
    if (this.edns !== null) throw new WireError('BAD_EDNS', start, 'a second OPT')
    if (owner !== rootName) throw new WireError('BAD_EDNS', start, 'OPT belongs to the root')
    this.edns = readEdns(this.#octets, fixedAt + 2)
    this.upperRcode = this.#octets[fixedAt + 4]!
  }
}

// Encoding is synchronous, so one writer and one buffer serve all messages.
const writer = new RecordWriter()
const buffer = new Uint8Array(maxMessageOctets)

/**
 * Writes a whole message, compressed, with records in the order given; OPT stands behind them, but before a TSIG.
 * @throws WireError TOO_LARGE over 65535 octets, BAD_EDNS for an RCODE that needs an OPT.
 */
export function encodeMessage(message: Message): Uint8Array {
  const { edns, rcode } = message
  if (rcode > 15 && edns === null) throw new WireError('BAD_EDNS', 2, 'an RCODE over 15 needs an OPT')
  const optOctets = edns === null ? 0 : ednsOctets(edns)
  writer.begin(buffer, maxMessageOctets - optOctets)
  for (const { name, type, class: qclass } of message.questions) {
    if (!writer.writeQuestion(name, type, qclass)) throw tooLarge()
  }
  writeRecords(message.answer)
  writeRecords(message.authority)
  const last = message.additional.at(-1)
  const tsig = last?.type === RRTYPE.TSIG ? last : null
  writeRecords(tsig === null ? message.additional : message.additional.slice(0, -1))
  if (edns !== null) writer.at = writeEdns(buffer, writer.at, edns, rcode)
  writer.limit = maxMessageOctets
  if (tsig !== null) appendRecord(tsig)

  writeU16(buffer, 0, message.id)
  writeU16(buffer, 2, messageFlags(message))
  writeU16(buffer, QDCOUNT_AT, message.questions.length)
  writeU16(buffer, ANCOUNT_AT, message.answer.length)
  writeU16(buffer, NSCOUNT_AT, message.authority.length)
  writeU16(buffer, ARCOUNT_AT, message.additional.length + (edns === null ? 0 : 1))
  return copyOf(buffer, 0, writer.at)
}

const tooLarge = (): WireError => new WireError('TOO_LARGE', maxMessageOctets)

function writeRecords(records: readonly ResourceRecord[]): void {
  for (const record of records) appendRecord(record)
}

function appendRecord({ owner, type, class: rrclass, ttlSeconds, rdata }: ResourceRecord): void {
  if (!writer.writeRecord(owner, type, rrclass, ttlSeconds, rdata)) throw tooLarge()
}

function messageFlags(message: Message): number {
  return (
    (message.qr ? FLAG.QR : 0) |
    (message.opcode << 11) |
    (message.aa ? FLAG.AA : 0) |
    (message.tc ? FLAG.TC : 0) |
    (message.rd ? FLAG.RD : 0) |
    (message.ra ? FLAG.RA : 0) |
    (message.ad ? FLAG.AD : 0) |
    (message.cd ? FLAG.CD : 0) |
    (message.rcode & 0x0f)
  )
}

/**
 * Puts records into RRsets, in the order of their first appearance. Only class IN; of equal records one stays; the
 * lowest TTL is that of the set (RFC 2181 §5.2).
 */
export function groupRRsets(records: readonly ResourceRecord[]): RRset[] {
  const only = records[0]
  if (records.length === 1 && only !== undefined) {
    const { owner, type, ttlSeconds, rdata } = only
    return only.class === CLASS.IN ? [{ owner, type, ttlSeconds, rdata: [rdata] }] : []
  }
  const groups = new Map<string, { owner: DomainName; type: number; ttlSeconds: number; rdata: Map<string, Rdata> }>()
  for (const { owner, type, class: rrclass, ttlSeconds, rdata } of records) {
    if (rrclass !== CLASS.IN) continue
    const key = `${type} ${owner}`
    const group = groups.get(key) ?? { owner, type, ttlSeconds, rdata: new Map() }
    groups.set(key, group)
    group.ttlSeconds = Math.min(group.ttlSeconds, ttlSeconds)
    const same = rdataKey(type, rdata)
    if (!group.rdata.has(same)) group.rdata.set(same, rdata)
  }
  return Array.from(groups.values(), ({ owner, type, ttlSeconds, rdata }) => ({
    owner,
    type,
    ttlSeconds,
    rdata: [...rdata.values()]
  }))
}
