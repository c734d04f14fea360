/**
 * What one worker has answered, for the thread that counts: how often each answer of the table was given since that
 * thread last looked, and when last. Shared memory with one writer and one reader.
 *
 * A slot is listed when its count leaves 0, so the list holds each slot once however often it is given, and what is
 * counted late is not lost.
 */

/** Words before the counts. */
const head = { written: 0, read: 16, ordered: 32, octets: 256 } as const

/** @param slots a power of two */
export const readyUsesOctets = (slots: number): number => head.octets + slots * 16

export class ReadyUses {
  readonly #head: Int32Array
  readonly #counts: Int32Array
  readonly #listed: Int32Array
  readonly #lastAtMs: Float64Array
  readonly #mask: number

  constructor(buffer: SharedArrayBuffer) {
    const slots = (buffer.byteLength - head.octets) / 16
    this.#head = new Int32Array(buffer, 0, head.octets / 4)
    this.#lastAtMs = new Float64Array(buffer, head.octets, slots)
    this.#counts = new Int32Array(buffer, head.octets + slots * 8, slots)
    this.#listed = new Int32Array(buffer, head.octets + slots * 12, slots)
    this.#mask = slots - 1
  }

  /** Keeps what was read before this call before what is read after it, on every processor. */
  orderReads(): void {
    Atomics.store(this.#head, head.ordered, 1)
  }

  /** For the worker: the slot's answer was given. */
  note(slot: number, nowMs: number): void {
    this.#lastAtMs[slot] = nowMs
    if (Atomics.add(this.#counts, slot, 1) !== 0) return
    const written = this.#head[head.written]!
    // A slot may be listed twice after its count was taken out of turn; what does not fit is counted the next time.
    if (((written - Atomics.load(this.#head, head.read)) | 0) > this.#mask) return
    this.#listed[written & this.#mask] = slot
    Atomics.store(this.#head, head.written, (written + 1) | 0)
  }

  /** For the thread that counts: calls back with each slot that was given, how often, and when last. */
  take(each: (slot: number, times: number, lastAtMs: number) => void): void {
    const end = Atomics.load(this.#head, head.written)
    for (let read = this.#head[head.read]!; read !== end; read = (read + 1) | 0) {
      const slot = this.#listed[read & this.#mask]!
      Atomics.store(this.#head, head.read, (read + 1) | 0)
      const times = Atomics.exchange(this.#counts, slot, 0)
      if (times > 0) each(slot, times, this.#lastAtMs[slot]!)
    }
  }
}
