/**
 * Writes names and records into a message within a limit of octets; what does not fit leaves no trace.
 *
 * One writer serves one message after the other, so that the tables of name compression are built once.
 */
import { headerOctets } from './header.ts'
import { RRTYPE } from './iana.ts'
import { type DomainName, lowerCaseOf, maxNameOctets, nameLengthAt } from './name.ts'
import { NameCompression } from './name-compression.ts'
import { writeU16, writeU32 } from './octets.ts'
import { compressibleNames } from './rdata-format.ts'
import type { Rdata } from './rr.ts'

/** Below this many octets a loop is faster than `set`. */
const loopOctets = 48
const pointerReach = 0x4000
/** Priority, weight and port stand before the target of SRV. */
const srvTargetAt = 6
const firstNamePointer = 0xc000 | headerOctets

export class RecordWriter {
  out: Uint8Array = new Uint8Array(0)
  /** Where the next octet goes. */
  at = 0
  /** No octet is written at this offset or behind it. */
  limit = 0
  /** Octets of the question's name, 0 where there is no question in front. */
  #questionNameOctets = 0
  #hasLearntQuestion = false
  /** The owner written last, and the pointer that stands for it; 0 where it has none. */
  #lastOwner: DomainName | null = null
  #ownerPointer = 0
  readonly #names = new NameCompression()
  readonly #owner = new Uint8Array(maxNameOctets)

  /** Starts a message behind its header. */
  begin(out: Uint8Array, limit: number): void {
    this.out = out
    this.at = headerOctets
    this.limit = limit
    this.#questionNameOctets = 0
    this.#hasLearntQuestion = true
    this.#lastOwner = null
    this.#names.begin(out)
  }

  get roomOctets(): number {
    return this.limit - this.at
  }

  /** Puts the only question in, octet for octet, directly behind the header; there must be room. */
  echoQuestion(question: Uint8Array): void {
    this.#copy(question, 0, question.length)
    this.#questionNameOctets = question.length - 4
    // Most answers have no name but the question's, which a comparison finds; so it is learnt when another one comes.
    this.#hasLearntQuestion = false
  }

  writeQuestion(name: DomainName, type: number, rrclass: number): boolean {
    const start = this.at
    if (!this.#writeOwner(name) || this.roomOctets < 4) return this.takeBack(start)
    writeU16(this.out, this.at, type)
    writeU16(this.out, this.at + 2, rrclass)
    this.at += 4
    return true
  }

  /** Takes back what was written from `start` on, and says false for the caller's convenience. */
  takeBack(start: number): false {
    this.at = start
    this.#names.forgetFrom(start)
    this.#lastOwner = null
    return false
  }

  /** Writes one record; false where it does not fit. */
  writeRecord(owner: DomainName, type: number, rrclass: number, ttlSeconds: number, rdata: Rdata): boolean {
    const start = this.at
    return this.#writeOwner(owner) && this.#writeRest(start, type, rrclass, ttlSeconds, rdata)
  }

  #writeOwner(owner: DomainName): boolean {
    // The records of an RRset come one behind the other and share the string, so this is mostly one comparison.
    if (owner === this.#lastOwner && this.#ownerPointer !== 0) return this.#writeOwnerPointer()
    this.#lastOwner = null
    if (this.#isQuestionName(owner)) {
      this.#ownerPointer = firstNamePointer
      this.#lastOwner = owner
      return this.#writeOwnerPointer()
    }
    this.#learnQuestion()
    for (let i = 0; i < owner.length; i++) this.#owner[i] = owner.charCodeAt(i)
    const start = this.at
    const end = this.#names.write(this.#owner, 0, start, this.limit, false)
    if (end < 0) return false
    this.#ownerPointer = this.#pointerTo(start)
    this.#lastOwner = owner
    this.at = end
    return true
  }

  #writeOwnerPointer(): boolean {
    if (this.roomOctets < 2) return false
    writeU16(this.out, this.at, this.#ownerPointer)
    this.at += 2
    return true
  }

  #learnQuestion(): void {
    if (this.#hasLearntQuestion) return
    this.#names.learn(headerOctets)
    this.#hasLearntQuestion = true
  }

  /**
   * The pointer to a name just written: to itself, or to where it points to as a whole; 0 for the root and out of
   * reach.
   */
  #pointerTo(start: number): number {
    const first = this.out[start]!
    if (first >= 0xc0) return (first << 8) | this.out[start + 1]!
    return first === 0 || start >= pointerReach ? 0 : 0xc000 | start
  }

  #isQuestionName(owner: DomainName): boolean {
    const length = this.#questionNameOctets
    // The root is shorter than a pointer to it.
    if (owner.length !== length || length === 1) return false
    const out = this.out
    for (let i = 0; i < length; i++) {
      if (lowerCaseOf[out[headerOctets + i]!] !== owner.charCodeAt(i)) return false
    }
    return true
  }

  #writeRest(start: number, type: number, rrclass: number, ttlSeconds: number, rdata: Rdata): boolean {
    if (this.roomOctets < 10) return this.takeBack(start)
    const out = this.out
    const fixedAt = this.at
    writeU16(out, fixedAt, type)
    writeU16(out, fixedAt + 2, rrclass)
    writeU32(out, fixedAt + 4, ttlSeconds)
    this.at += 10
    if (!this.#writeRdata(type, rdata)) return this.takeBack(start)
    writeU16(out, fixedAt + 8, this.at - fixedAt - 10)
    return true
  }

  #writeRdata(type: number, rdata: Rdata): boolean {
    const names = compressibleNames(type)
    // Empty: a condition of dynamic update, not a record.
    if (names === undefined || rdata.length === 0) {
      const start = this.at
      if (!this.#copy(rdata, 0, rdata.length)) return false
      if (type === RRTYPE.SRV && rdata.length > srvTargetAt) {
        // The target itself is never compressed (RFC 2782), but the owner of its addresses may point to it.
        this.#learnQuestion()
        this.#names.learn(start + srvTargetAt)
      }
      return true
    }
    this.#learnQuestion()
    let from = names.start
    if (!this.#copy(rdata, 0, from)) return false
    for (let name = 0; name < names.count; name++) {
      const end = this.#names.write(rdata, from, this.at, this.limit, true)
      if (end < 0) return false
      this.at = end
      from += nameLengthAt(rdata, from)
    }
    return this.#copy(rdata, from, rdata.length)
  }

  #copy(octets: Uint8Array, start: number, end: number): boolean {
    const length = end - start
    if (this.roomOctets < length) return false
    if (length > loopOctets) this.out.set(octets.subarray(start, end), this.at)
    else for (let i = 0; i < length; i++) this.out[this.at + i] = octets[start + i]!
    this.at += length
    return true
  }
}
