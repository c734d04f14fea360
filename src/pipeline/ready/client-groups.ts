/**
 * Which group of clients (audiences.ts) an address belongs to, in memory that threads share: the thread that knows the
 * configuration writes down who has asked, and workers look it up.
 *
 * An address that nobody finds costs one query by way of that thread, so an entry may make room for any other.
 */
import type { ClientWords } from '../../server/mmsg/message-batch.ts'

/** Words of an entry: the address, the generation that the group is of, and the group. */
const entryWords = 8
const at = { generation: 4, group: 5 } as const
const ways = 4
export const noGroup = -1

/** @param entries a power of two */
export const clientGroupsOctets = (entries: number): number => entries * entryWords * 4

export class ClientGroups {
  readonly #words: Int32Array
  readonly #bucketMask: number
  #next = 0

  constructor(buffer: SharedArrayBuffer) {
    this.#words = new Int32Array(buffer)
    this.#bucketMask = this.#words.length / entryWords / ways - 1
  }

  /** The group of a client; `noGroup`: it is not known in this generation. */
  find(address: ClientWords, generation: number): number {
    const entry = this.#find(address)
    return entry < 0 || this.#words[entry + at.generation] !== generation ? noGroup : this.#words[entry + at.group]!
  }

  put(address: ClientWords, generation: number, group: number): void {
    const words = this.#words
    let entry = this.#find(address)
    if (entry < 0) {
      // Any of the bucket: those of an older generation are of no use, and of the others none is known to be worth
      // more.
      const first = this.#bucket(address)
      const way = [0, 1, 2, 3].find((each) => words[first + each * entryWords + at.generation] !== generation)
      entry = first + (way ?? this.#next++ % ways) * entryWords
    }
    words[entry] = address.a
    words[entry + 1] = address.b
    words[entry + 2] = address.c
    words[entry + 3] = address.d
    words[entry + at.generation] = generation
    words[entry + at.group] = group
  }

  #find(address: ClientWords): number {
    const words = this.#words
    const { a, b, c, d } = address
    const first = this.#bucket(address)
    for (let entry = first; entry < first + ways * entryWords; entry += entryWords) {
      const isIt =
        words[entry + 3] === (d | 0) &&
        words[entry + 2] === (c | 0) &&
        words[entry + 1] === (b | 0) &&
        words[entry] === (a | 0)
      if (isIt) return entry
    }
    return -1
  }

  #bucket({ a, b, c, d }: ClientWords): number {
    const hash = Math.imul(a ^ Math.imul(b, 0x01000193) ^ Math.imul(c, 0x85ebca6b) ^ d, 0x9e3779b1)
    return ((hash ^ (hash >>> 15)) & this.#bucketMask) * ways * entryWords
  }
}
