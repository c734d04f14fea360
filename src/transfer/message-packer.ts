/**
 * Packs the records of a transfer into as few messages as they need, and hands each on when it is full.
 *
 * Messages stay small enough that every name in them can be compressed, and that nobody waits long while one is
 * written. A single record that needs more gets a message of its own.
 */
import { maxMessageOctets } from '../base/limits.ts'
import { transferMessageOctets } from '../base/transfer-limits.ts'
import { ednsOctets, writeEdns, type Edns } from '../wire/edns.ts'
import { ANCOUNT_AT, ARCOUNT_AT, FLAG, headerOctets, NSCOUNT_AT, QDCOUNT_AT } from '../wire/header.ts'
import { CLASS, RCODE } from '../wire/iana.ts'
import { writeU16 } from '../wire/octets.ts'
import { RecordWriter } from '../wire/record-writer.ts'
import type { SentRecord } from './zone-part.ts'

/**
 * Puts a signature behind a message of `size` octets and returns its new size; there is room for `roomOctets` of it.
 */
export type Signer = Readonly<{ roomOctets: number; sign(out: Uint8Array, size: number): number }>

export type PackerOptions = Readonly<{
  id: number
  /** As it was asked, octet for octet; only the first message has it (RFC 5936 §2.2.1). */
  question: Uint8Array
  /** Only in the first message. */
  edns: Edns | null
  signer: Signer | null
  /** Room that is left in each message. */
  reservedOctets?: number
  send(message: Uint8Array): Promise<boolean>
}>

export class MessagePacker {
  readonly #options: PackerOptions
  readonly #writer = new RecordWriter()
  readonly #out = new Uint8Array(maxMessageOctets)
  #isFirst = true
  #isLarge = false
  #sent = 0
  #records = 0

  constructor(options: PackerOptions) {
    this.#options = options
    this.#begin()
  }

  /** Where the next record would stand: in which message, the first one is 0, and at which octet. */
  get place(): Readonly<{ message: number; at: number }> {
    return { message: this.#sent, at: this.#writer.at }
  }

  /** Puts a record into the message; false: the message has to be sent first. */
  tryAdd({ owner, type, ttlSeconds, rdata }: SentRecord): boolean {
    if (!this.#writer.writeRecord(owner, type, CLASS.IN, ttlSeconds, rdata)) return false
    this.#records += 1
    return true
  }

  /** Puts a record in, sending what is full; false: nobody listens any more. */
  async add(record: SentRecord): Promise<boolean> {
    if (this.tryAdd(record)) return true
    if (!(await this.flush())) return false
    if (this.tryAdd(record)) return true
    this.#isLarge = true
    this.#begin()
    if (!this.tryAdd(record)) throw new RangeError('a record that fits no message')
    return true
  }

  /** Sends what is in the message, if anything; false: nobody listens any more. */
  async flush(): Promise<boolean> {
    if (this.#records === 0) return true
    const { id, edns, signer, send } = this.#options
    const out = this.#out
    let size = this.#writer.at
    const withEdns = this.#isFirst && edns !== null
    if (withEdns) size = writeEdns(out, size, edns, RCODE.NOERROR)
    writeU16(out, 0, id)
    writeU16(out, 2, FLAG.QR | FLAG.AA)
    writeU16(out, QDCOUNT_AT, this.#isFirst ? 1 : 0)
    writeU16(out, ANCOUNT_AT, this.#records)
    writeU16(out, NSCOUNT_AT, 0)
    writeU16(out, ARCOUNT_AT, withEdns ? 1 : 0)
    if (signer !== null) size = signer.sign(out, size)
    this.#isFirst = false
    this.#isLarge = false
    this.#sent += 1
    const message = out.slice(0, size)
    this.#begin()
    return send(message)
  }

  #begin(): void {
    const { question, edns, signer, reservedOctets = 0 } = this.#options
    const most = this.#isLarge ? maxMessageOctets : transferMessageOctets
    const optOctets = this.#isFirst && edns !== null ? ednsOctets(edns) : 0
    this.#records = 0
    this.#writer.begin(this.#out, most - optOctets - (signer?.roomOctets ?? 0) - reservedOctets)
    if (this.#isFirst) this.#writer.echoQuestion(question)
  }
}

/** Octets 12 to the end of the question. */
export const questionOf = (query: Uint8Array, questionEnd: number): Uint8Array => query.slice(headerOctets, questionEnd)
