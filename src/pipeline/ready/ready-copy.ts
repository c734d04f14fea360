/**
 * Takes a ready-made answer out of a table that others read too, or write meanwhile: nothing in the table is altered,
 * and whatever is found there, also in the middle of a change, only numbers inside of both buffers are used.
 */
import { headerOctets } from '../../wire/header.ts'
import { field, firstTtlOf, type ReadyTable } from './ready-table.ts'

/** Larger sets are left to the whole pipeline. */
const maxRecords = 65_536
/** Records in one message: each takes eleven octets at least. */
const maxTtls = 6_000
const recordHead = 12

export class ReadyCopy {
  readonly #table: ReadyTable
  readonly #random: () => number
  /** In ascending order between two answers. */
  readonly #order = Uint32Array.from({ length: maxRecords }, (_, at) => at)
  readonly #drawn = new Uint32Array(maxTtls)

  constructor(table: ReadyTable, random: () => number) {
    this.#table = table
    this.#random = random
  }

  /**
   * Writes the answer for a query into `out`, which holds any message, and returns its octets; 0 where what lies there
   * cannot be one.
   * @param ageSeconds what its TTLs are to be right for; null: as they are
   * @param serial of its SOA, if it has one; null: as it is
   */
  write(
    block: number,
    query: Uint8Array,
    questionEnd: number,
    out: Uint8Array,
    ageSeconds: number | null,
    serial: number | null
  ): number {
    const { octets, words } = this.#table
    const size = words[block + field.responseOctets]!
    const from = words[block + field.responseAt]!
    if (!(size >= questionEnd && size <= out.length && from >= 0 && from + size <= octets.length)) return 0
    out[0] = query[0]!
    out[1] = query[1]!
    for (let at = 2; at < headerOctets; at++) out[at] = octets[from + at]!
    for (let at = headerOctets; at < questionEnd; at++) out[at] = query[at]!
    if (size - questionEnd > 256) out.set(octets.subarray(from + questionEnd, from + size), questionEnd)
    else for (let at = questionEnd; at < size; at++) out[at] = octets[from + at]!
    if (words[block + field.poolRecords]! > 1 && !this.#draw(block, out, size)) return 0
    if (ageSeconds !== null && !this.#age(block, out, size, ageSeconds)) return 0
    const serialAt = words[block + field.serialAt]!
    if (serialAt !== 0 && serial !== null) {
      if (!(serialAt > 0 && serialAt + 4 <= size)) return 0
      writeU32(out, serialAt, serial)
    }
    return size
  }

  #age(block: number, out: Uint8Array, size: number, ageSeconds: number): boolean {
    const { words } = this.#table
    const passed = ageSeconds - words[block + field.ttlAgeSeconds]!
    const ttls = words[block + field.ttls]!
    if (!(ttls >= 0 && ttls <= maxTtls)) return false
    if (passed === 0) return true
    const first = firstTtlOf(words, block)
    for (let index = 0; index < ttls; index++) {
      const at = words[first + index]!
      if (!(at >= headerOctets && at + 4 <= size)) return false
      const ttlSeconds = readU32(out, at) - passed
      writeU32(out, at, ttlSeconds < 0 ? 0 : ttlSeconds)
    }
    return true
  }

  /**
   * Fills the records with a fair random choice from the pool, in fair random order (Fisher-Yates, undone behind it).
   */
  #draw(block: number, out: Uint8Array, outSize: number): boolean {
    const { octets, words } = this.#table
    const pool = words[block + field.poolAt]! * 4
    const size = words[block + field.poolWords]! * 4
    const records = words[block + field.poolRecords]!
    const written = words[block + field.writtenRecords]!
    let to = words[block + field.firstRdataAt]!
    if (!(records <= maxRecords && written >= 0 && written <= records && written <= maxTtls)) return false
    if (!(size > 0 && pool >= 0 && pool + records * size <= octets.length)) return false
    if (!(to >= headerOctets && to + written * (size + recordHead) - recordHead <= outSize)) return false
    const order = this.#order
    const drawn = this.#drawn
    for (let record = 0; record < written; record++) {
      const other = record + Math.floor(this.#random() * (records - record))
      drawn[record] = other
      const chosen = order[other]!
      order[other] = order[record]!
      order[record] = chosen
      const start = pool + chosen * size
      for (let at = start; at < start + size; at++) out[to++] = octets[at]!
      to += recordHead
    }
    for (let record = written - 1; record >= 0; record--) {
      const other = drawn[record]!
      const chosen = order[record]!
      order[record] = order[other]!
      order[other] = chosen
    }
    return true
  }
}

const readU32 = (octets: Uint8Array, at: number): number =>
  ((octets[at]! << 24) | (octets[at + 1]! << 16) | (octets[at + 2]! << 8) | octets[at + 3]!) >>> 0

function writeU32(octets: Uint8Array, at: number, value: number): void {
  octets[at] = value >>> 24
  octets[at + 1] = value >>> 16
  octets[at + 2] = value >>> 8
  octets[at + 3] = value
}
