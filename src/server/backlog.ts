/**
 * How long datagrams may queue in the kernel: a roomy receive buffer for bursts and pauses, a small one while more
 * comes than can be answered.
 *
 * In a lasting overload a queue of any length is always full, and its length is only what everybody waits; so when it
 * was not emptied for a while the buffer is made small, and what has no room is lost at once, where that costs least.
 * It is roomy again once the queue is emptied some seconds later.
 */
import type { Clock } from '../base/clock.ts'
import { udpBacklogMs, udpBackloggedBufferOctets, udpBacklogRestMs } from '../base/socket-limits.ts'

export type ReceiveBuffer = Readonly<{
  /** Where there is no overload. */
  roomyOctets: number
  set(octets: number): void
  stats: { backlogsTotal: number }
}>

export class Backlog {
  readonly #buffer: ReceiveBuffer
  readonly #clock: Clock
  /** When the queue was first found not to be emptied; null: it was emptied the last time. */
  #sinceMs: number | null = null
  /** When the buffer was made small; null: it is roomy. */
  #smallSinceMs: number | null = null

  constructor(buffer: ReceiveBuffer, clock: Clock) {
    this.#buffer = buffer
    this.#clock = clock
    buffer.set(buffer.roomyOctets)
  }

  /** More waits than was taken in one turn. */
  noteLeft(): void {
    const nowMs = this.#clock.nowMs()
    this.#sinceMs ??= nowMs
    if (this.#smallSinceMs !== null) {
      // It counts from the last sign of overload.
      this.#smallSinceMs = nowMs
      return
    }
    if (nowMs - this.#sinceMs < udpBacklogMs || this.#buffer.roomyOctets <= udpBackloggedBufferOctets) return
    this.#smallSinceMs = nowMs
    this.#buffer.stats.backlogsTotal += 1
    this.#buffer.set(udpBackloggedBufferOctets)
  }

  /** The queue is empty. */
  noteEmptied(): void {
    this.#sinceMs = null
    if (this.#smallSinceMs === null || this.#clock.nowMs() - this.#smallSinceMs < udpBacklogRestMs) return
    this.#smallSinceMs = null
    this.#buffer.set(this.#buffer.roomyOctets)
  }
}
