/**
 * Ready-made answers as octets, found by the octets of their question.
 *
 * One buffer holds them all, block behind block; when it is full, the oldest ones are overwritten. A block that is made
 * anew takes its old place where it fits. An index in buckets of eight, each one cache line, gives the block. A
 * question may stand in either of two buckets, so that hardly one has to give way while there is room; then the oldest
 * does. Nothing here is an object, so a hundred thousand answers cost the garbage collector nothing.
 */
import { headerOctets } from '../../wire/header.ts'
import { lowerCaseOf } from '../../wire/name.ts'
import type { ReadyTemplate } from './ready-template.ts'

/**
 * Words of a block, counted from its beginning. What is looked at for each answer comes first. Behind the dependencies
 * follow offsets of TTLs, the pool of RDATA, and the response.
 */
export const field = {
  flags: 0,
  questionOctets: 1,
  minLimit: 2,
  maxLimit: 3,
  responseAt: 4,
  isCaseExact: 5,
  /** What the table's user has to check before it serves, as it likes. */
  generation: 6,
  dependencies: 7,
  /** Which of the answers it is, counted from 0: numbers are given anew, so they stay as few as there are answers. */
  number: 8,
  responseOctets: 9,
  ttls: 10,
  ttlAgeSeconds: 11,
  serialAt: 12,
  poolRecords: 13,
  octets: 14,
  slot: 15,
  serial: 16,
  poolAt: 17,
  poolWords: 18,
  writtenRecords: 19,
  firstRdataAt: 20,
  /** Two words each: which name (its bucket), and its version. */
  firstDependency: 21
} as const

/** Where the offsets of a block's TTLs are. */
export const firstTtlOf = (words: Int32Array, block: number): number =>
  block + field.firstDependency + words[block + field.dependencies]! * 2

export const maxDependencies = 6
const ways = 8
/** Older than any block: a slot without one. */
const free = Number.POSITIVE_INFINITY
/** Distance in octets between the RDATA of two records: a pointer as owner, and ten octets. */
const recordHead = 12

/** Where a table lies, if others are to read it: all zeros at first. */
export type ReadyMemory = Readonly<{ octets: ArrayBufferLike; index: ArrayBufferLike }>

/** Of the index, for so many slots. */
export const readyIndexOctets = (slots: number): number => slots * 8

export class ReadyTable {
  readonly octets: Uint8Array
  readonly words: Int32Array
  /** By the number of each answer, what no octets can hold. */
  readonly sources: unknown[] = []
  /** Answers that were put in. */
  putTotal = 0
  readonly #view: DataView
  /**
   * Buckets of 16 words: for each of eight slots the hash, and then for each where its block begins, in units of 16
   * octets, plus one; 0: none. A slot is named by the place of its hash.
   */
  readonly #index: Int32Array
  /** By the number of each answer: whether it carries TC. */
  readonly #isTruncated: Uint8Array
  readonly #freeNumbers: number[] = []
  readonly #bucketMask: number
  /** Where the next block goes. */
  #next = 0
  /** Blocks of the lap before are left from here to `#lapEnd`. */
  #oldest = 0
  #lapEnd = 0

  /**
   * @param slots a power of two: how many answers the index has room for.
   * @param memory of these sizes; its own unless given. Only one table that writes may be on it.
   */
  constructor(maxOctets: number, slots: number, memory: ReadyMemory | null = null) {
    const buffer = memory?.octets ?? new ArrayBuffer(Math.floor(maxOctets / 16) * 16)
    this.octets = new Uint8Array(buffer)
    this.words = new Int32Array(buffer)
    this.#view = new DataView(buffer)
    this.#index = new Int32Array(memory?.index ?? new ArrayBuffer(readyIndexOctets(slots)))
    this.#isTruncated = new Uint8Array(slots)
    this.#bucketMask = slots / ways - 1
  }

  /** Octets that have ever been used; the rest of the buffer is no memory yet. */
  get usedOctets(): number {
    return Math.max(this.#next, this.#lapEnd)
  }

  /**
   * The block for a question, as the index of its first word; -1 where there is none. Whether it still holds is for the
   * caller to say.
   */
  find(hash: number, flags: number, query: Uint8Array, questionEnd: number, limitOctets: number): number {
    const block = this.#findIn(this.#firstBucket(hash), hash, flags, query, questionEnd, limitOctets)
    return block >= 0 ? block : this.#findIn(this.#secondBucket(hash), hash, flags, query, questionEnd, limitOctets)
  }

  #findIn(
    bucket: number,
    hash: number,
    flags: number,
    query: Uint8Array,
    questionEnd: number,
    limitOctets: number
  ): number {
    const index = this.#index
    for (let slot = bucket; slot < bucket + ways; slot++) {
      if (index[slot] !== hash) continue
      const place = index[slot + ways]!
      if (place === 0) continue
      const block = (place - 1) << 2
      const { words } = this
      if (words[block + field.flags] !== flags || words[block + field.questionOctets] !== questionEnd - headerOctets)
        continue
      if (limitOctets < words[block + field.minLimit]! || limitOctets > words[block + field.maxLimit]!) continue
      if (this.#isQuestion(block, query, questionEnd)) return block
    }
    return -1
  }

  #firstBucket(hash: number): number {
    return (hash & this.#bucketMask) * ways * 2
  }

  #secondBucket(hash: number): number {
    const mixed = Math.imul(hash, 0x9e37_79b1)
    return ((mixed >>> 15) & this.#bucketMask) * ways * 2
  }

  #isQuestion(block: number, query: Uint8Array, questionEnd: number): boolean {
    const { octets } = this
    const shift = this.words[block + field.responseAt]!
    const isExact = this.words[block + field.isCaseExact] !== 0
    const nameEnd = questionEnd - 4
    for (let at = headerOctets; at < questionEnd; at++) {
      const asked = query[at]!
      const held = octets[shift + at]!
      if (asked !== held && (isExact || at >= nameEnd || lowerCaseOf[asked] !== held)) return false
    }
    return true
  }

  /**
   * Puts an answer in, in the place of the one that `find` gives for its question and this limit, with room for
   * `dependencies`, which are the caller's to write. Returns its block, or -1 where it is larger than the whole table.
   */
  put(
    hash: number,
    flags: number,
    limitOctets: number,
    template: ReadyTemplate,
    source: unknown,
    dependencies = 0
  ): number {
    const { response, ttlOffsets, pool } = template
    const firstTtl = field.firstDependency + dependencies * 2
    const headWords = firstTtl + ttlOffsets.length
    const poolWords = pool === null ? 0 : pool.records * pool.words
    const need = Math.ceil(((headWords + poolWords) * 4 + response.length) / 16) * 16
    if (need > this.octets.length) return -1
    const questionEnd = template.questionEnd
    const old = this.find(hash, flags, response, questionEnd, limitOctets)
    const { words } = this
    const index = this.#index
    const slot = old >= 0 ? words[old + field.slot]! : this.#freeSlot(hash)
    const number = this.#numberOf(slot)
    let at = old >= 0 && words[old + field.octets]! >= need ? old * 4 : -1
    let octets = need
    if (at < 0) {
      // May overwrite the old block, but then it leaves the index before.
      index[slot + ways] = 0
      at = this.#allocate(need)
    } else {
      octets = words[at / 4 + field.octets]!
    }
    const block = at / 4
    const poolAt = block + headWords
    const responseAt = (poolAt + poolWords) * 4
    words[block + field.octets] = octets
    words[block + field.slot] = slot
    words[block + field.number] = number
    words[block + field.flags] = flags
    words[block + field.questionOctets] = questionEnd - headerOctets
    words[block + field.responseOctets] = response.length
    words[block + field.minLimit] = template.minLimit
    words[block + field.maxLimit] = template.maxLimit
    words[block + field.dependencies] = dependencies
    words[block + field.responseAt] = responseAt
    words[block + field.ttls] = ttlOffsets.length
    words[block + field.ttlAgeSeconds] = template.ageSeconds
    words[block + field.serialAt] = template.serialAt
    words[block + field.serial] = template.serialAt === 0 ? 0 : readU32(response, template.serialAt) | 0
    words[block + field.isCaseExact] = template.isCaseExact ? 1 : 0
    words[block + field.poolAt] = poolAt
    words[block + field.poolRecords] = pool === null ? 0 : pool.records
    words[block + field.poolWords] = pool === null ? 0 : pool.words
    words[block + field.writtenRecords] = pool === null ? 0 : pool.written
    words[block + field.firstRdataAt] = pool === null ? 0 : pool.firstRdataAt
    for (let ttl = 0; ttl < ttlOffsets.length; ttl++) words[block + firstTtl + ttl] = ttlOffsets[ttl]!
    if (pool !== null) this.octets.set(pool.rdata, poolAt * 4)
    this.octets.set(response, responseAt)
    index[slot] = hash
    index[slot + ways] = at / 16 + 1
    this.sources[number] = source
    this.#isTruncated[number] = response[2]! & 0x02
    this.putTotal += 1
    return block
  }

  /** Whether the answer of a number carries TC. */
  isTruncated(number: number): boolean {
    return this.#isTruncated[number] !== 0
  }

  /** That of the answer in a slot, which goes on with it, or one that no answer has. */
  #numberOf(slot: number): number {
    const place = this.#index[slot + ways]!
    if (place !== 0) return this.words[((place - 1) << 2) + field.number]!
    return this.#freeNumbers.pop() ?? this.sources.length
  }

  /** Takes the TTLs of an answer to another age. */
  setAge(block: number, ageSeconds: number): void {
    const { words } = this
    const passed = ageSeconds - words[block + field.ttlAgeSeconds]!
    const responseAt = words[block + field.responseAt]!
    const firstTtl = firstTtlOf(words, block)
    const endOfTtls = firstTtl + words[block + field.ttls]!
    for (let ttl = firstTtl; ttl < endOfTtls; ttl++) {
      const at = responseAt + words[ttl]!
      const ttlSeconds = this.#view.getUint32(at) - passed
      this.#view.setUint32(at, ttlSeconds < 0 ? 0 : ttlSeconds)
    }
    words[block + field.ttlAgeSeconds] = ageSeconds
  }

  /** Writes another serial into the SOA of an answer. */
  setSerial(block: number, serial: number): void {
    const { words } = this
    this.#view.setUint32(words[block + field.responseAt]! + words[block + field.serialAt]!, serial)
    words[block + field.serial] = serial | 0
  }

  /** Writes the answer for a query into `out`: its id, its question as it was written, addresses in a random order. */
  write(block: number, query: Uint8Array, questionEnd: number, out: Uint8Array, random: () => number): number {
    const { octets, words } = this
    const size = words[block + field.responseOctets]!
    const from = words[block + field.responseAt]!
    out[0] = query[0]!
    out[1] = query[1]!
    for (let at = 2; at < headerOctets; at++) out[at] = octets[from + at]!
    for (let at = headerOctets; at < questionEnd; at++) out[at] = query[at]!
    if (size - questionEnd > 256) out.set(octets.subarray(from + questionEnd, from + size), questionEnd)
    else for (let at = questionEnd; at < size; at++) out[at] = octets[from + at]!
    if (words[block + field.poolRecords]! > 1) this.#draw(block, out, random)
    return size
  }

  /**
   * Fills the records with a fair random choice from the pool, in fair random order (Fisher-Yates; the pool stays
   * mixed).
   */
  #draw(block: number, out: Uint8Array, random: () => number): void {
    const { octets, words } = this
    const pool = words[block + field.poolAt]!
    const size = words[block + field.poolWords]!
    const records = words[block + field.poolRecords]!
    const written = words[block + field.writtenRecords]!
    let to = words[block + field.firstRdataAt]!
    for (let record = 0; record < written; record++) {
      const drawn = record + Math.floor(random() * (records - record))
      const here = pool + record * size
      const there = pool + drawn * size
      for (let word = 0; word < size; word++) {
        const kept = words[here + word]!
        words[here + word] = words[there + word]!
        words[there + word] = kept
      }
      for (let at = here * 4; at < (here + size) * 4; at++) out[to++] = octets[at]!
      to += recordHead
    }
  }

  /** A slot in one of the hash's buckets: a free one, or that of the block which lies there longest. */
  #freeSlot(hash: number): number {
    const first = this.#firstBucket(hash)
    const oldestOfFirst = this.#oldestSlot(first)
    if (this.#sinceOf(oldestOfFirst) === free) return oldestOfFirst
    const oldestOfSecond = this.#oldestSlot(this.#secondBucket(hash))
    return this.#sinceOf(oldestOfSecond) > this.#sinceOf(oldestOfFirst) ? oldestOfSecond : oldestOfFirst
  }

  #oldestSlot(bucket: number): number {
    let oldest = bucket
    for (let slot = bucket + 1; slot < bucket + ways; slot++) {
      if (this.#sinceOf(slot) > this.#sinceOf(oldest)) oldest = slot
    }
    return oldest
  }

  /** How many octets were taken since the block in a slot was put there. */
  #sinceOf(slot: number): number {
    const place = this.#index[slot + ways]!
    if (place === 0) return free
    const at = (place - 1) * 16
    // Behind the place where the next block goes lie the blocks of the lap before.
    return at >= this.#next ? this.octets.length + this.#next - at : this.#next - at
  }

  /** Room for a block; what lies there leaves the index. */
  #allocate(need: number): number {
    if (this.#next + need > this.octets.length) {
      this.#evictUpTo(this.#lapEnd)
      this.#lapEnd = this.#next
      this.#next = 0
      this.#oldest = 0
    }
    const at = this.#next
    this.#next = at + need
    this.#evictUpTo(this.#next)
    return at
  }

  #evictUpTo(end: number): void {
    while (this.#oldest < this.#lapEnd && this.#oldest < end) {
      const block = this.#oldest / 4
      const slot = this.words[block + field.slot]!
      if (this.#index[slot + ways] === this.#oldest / 16 + 1) {
        const number = this.words[block + field.number]!
        this.#index[slot + ways] = 0
        this.sources[number] = null
        this.#freeNumbers.push(number)
      }
      this.#oldest += this.words[block + field.octets]!
    }
  }
}

const readU32 = (octets: Uint8Array, at: number): number =>
  ((octets[at]! << 24) | (octets[at + 1]! << 16) | (octets[at + 2]! << 8) | octets[at + 3]!) >>> 0
