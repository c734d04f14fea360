/**
 * Which questions were asked lately, in a few bits for each: what is asked a second time is worth keeping ready.
 *
 * Two Bloom filters, of which the younger one takes up what is asked. When it has as many questions as it is made for,
 * it becomes the older one, and what that knew is forgotten. So at least the last `questionsEach` questions are known,
 * and few that were never asked are taken for one of them.
 */

/** Questions that one filter takes. */
export const questionsEach = 131_072
/** Two bits of a question among sixteen for each: one in seventy is taken for known by mistake. */
const bits = questionsEach * 16
const wordMask = bits / 32 - 1

export class AskedBefore {
  #younger = new Int32Array(bits / 32)
  #older = new Int32Array(bits / 32)
  #taken = 0

  /** Whether the question of this hash was asked lately; it is known from now on. */
  note(hash: number): boolean {
    const other = Math.imul(hash, 0x9e37_79b1)
    const first = (hash >>> 5) & wordMask
    const second = (other >>> 12) & wordMask
    const firstBit = 1 << (hash & 31)
    const secondBit = 1 << ((other >>> 7) & 31)
    const younger = this.#younger
    if ((younger[first]! & firstBit) !== 0 && (younger[second]! & secondBit) !== 0) return true
    const older = this.#older
    const wasAsked = (older[first]! & firstBit) !== 0 && (older[second]! & secondBit) !== 0
    younger[first]! |= firstBit
    younger[second]! |= secondBit
    if (++this.#taken === questionsEach) {
      this.#taken = 0
      this.#younger = older.fill(0)
      this.#older = younger
    }
    return wasAsked
  }
}
