/**
 * Shares the event loop: what lists and watches bring is worked on in small slices, and no more than one slice of all
 * resources together runs between two looks at the sockets. So a list of any size delays no answer by much.
 */
import type { Clock } from '../../../base/clock.ts'
import { apiObjectsPerTurn, apiTurnMs } from '../../../base/limits.ts'

/** A slice has at least so many objects, however dear they are. */
const minObjectsPerTurn = 4

export class Turns {
  /** Longest slice so far, in milliseconds. */
  readonly stats = { turnsTotal: 0, longestMs: 0 }
  readonly #clock: Clock
  readonly #waiting: (() => void)[] = []
  /** When work began in this turn of the event loop; null: not yet. */
  #startedAtMs: number | null = null
  #objects = 0
  /** Follows from what objects cost: half when a slice took too long, more when it was short. */
  #objectsPerTurn = 8

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Says whether another object has room in this turn; to be asked after each. */
  hasRoom(): boolean {
    this.#objects++
    if (this.#startedAtMs === null) this.#begin()
    return this.#objects < this.#objectsPerTurn && this.#elapsedMs() < apiTurnMs / 2
  }

  /**
   * Resolves in a later turn of the event loop, when it is the caller's turn. To be called when the slice's work is
   * done.
   */
  next(): Promise<void> {
    this.#adapt()
    return new Promise((resolve) => {
      this.#waiting.push(resolve)
      if (this.#startedAtMs === null) this.#begin()
    })
  }

  #elapsedMs(): number {
    return this.#clock.nowMs() - (this.#startedAtMs ?? 0)
  }

  #adapt(): void {
    if (this.#startedAtMs === null) return
    const elapsedMs = this.#elapsedMs()
    this.stats.longestMs = Math.max(this.stats.longestMs, elapsedMs)
    if (elapsedMs > apiTurnMs) {
      this.#objectsPerTurn = Math.max(minObjectsPerTurn, Math.floor(this.#objectsPerTurn / 2))
    } else if (elapsedMs < apiTurnMs / 2 && this.#objects >= this.#objectsPerTurn) {
      this.#objectsPerTurn = Math.min(apiObjectsPerTurn, Math.ceil(this.#objectsPerTurn * 1.5))
    }
  }

  #begin(): void {
    this.#startedAtMs = this.#clock.nowMs()
    this.stats.turnsTotal++
    // Runs once the sockets have been looked at again.
    setImmediate(() => {
      this.#startedAtMs = null
      this.#objects = 0
      const resolve = this.#waiting.shift()
      if (resolve === undefined) return
      this.#begin()
      resolve()
    })
  }
}
