/**
 * When a turn stays in the kernel for the next datagrams instead of going back through the event loop.
 *
 * A way through the loop (epoll, a callback, timers) costs about as much as a query. While datagrams of one socket come
 * so densely that the next one is a moment away, and nobody else needs the loop, waiting in recvmmsg for it costs
 * nothing and makes no answer later. A turn that lingers ends after a millisecond; where nothing comes any more, the
 * kernel's shortest wait (one tick of its timer, 4 ms mostly) ends it once, and the socket has to be dense again before
 * the next one.
 */
import type { Clock } from '../../base/clock.ts'
import { udpDenseBatches, udpDenseGapMs, udpLingerMs } from '../../base/limits.ts'

export class Lingering {
  readonly #clock: Clock
  /** Who had the last batch, how many came densely until then, and when it was. */
  #socket: object | null = null
  #denseBatches = 0
  #lastAtMs = 0
  #endMs = 0

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /**
   * Notes that a socket has just dealt with a batch, and says whether it may wait for its next one.
   * @param isFirst of its turn
   * @param isFree nobody but this socket needs the event loop now, as far as it knows
   */
  mayWait(socket: object, isFirst: boolean, isFree: boolean): boolean {
    const nowMs = this.#clock.nowMs()
    const gapMs = nowMs - this.#lastAtMs
    this.#lastAtMs = nowMs
    if (isFirst) this.#endMs = nowMs + udpLingerMs
    if (socket !== this.#socket || gapMs > udpDenseGapMs || !isFree) {
      this.#socket = socket
      this.#denseBatches = 0
      return false
    }
    if (this.#denseBatches < udpDenseBatches) {
      this.#denseBatches += 1
      return false
    }
    return nowMs < this.#endMs
  }

  /** Notes that a wait ended with nothing. */
  waitedForNothing(): void {
    this.#denseBatches = 0
  }
}
