/**
 * How long what a worker has handed over may wait for the main thread.
 *
 * A burst may, and what came while the main thread had something else to do. But in a lasting overload a queue is
 * always full, and its length is only what everybody waits; so when it was not emptied for a while, what has waited
 * too long is lost, and what came lately is answered while somebody still waits for it.
 */
import { forwardedBacklogMs, forwardedWaitMs } from '../../base/socket-limits.ts'

export class ForwardPatience {
  /** When the ring was first found not to be empty; null: it was empty the last time. */
  #sinceMs: number | null = null

  noteEmptied(): void {
    this.#sinceMs = null
  }

  /** There is something in the ring. @returns since when it may be there; null: it does not matter */
  sinceMs(nowMs: number): number | null {
    this.#sinceMs ??= nowMs
    return nowMs - this.#sinceMs < forwardedBacklogMs ? null : nowMs - forwardedWaitMs
  }
}
