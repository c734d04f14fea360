/**
 * Over how many workers the load is spread: one more when they are busy, one less when fewer have been enough for a
 * while.
 */
import type { Clock } from '../../base/clock.ts'
import { workerBusyShare, workerIdleMs, workerIdleShare, workerLookMs } from '../../base/socket-limits.ts'

export class Spread {
  readonly #most: number
  readonly #clock: Clock
  #wanted = 1
  #lookedAtMs: number
  /** Since when one less would have been enough; null: it would not. */
  #idleSinceMs: number | null = null
  #cpuMs: readonly (number | null)[] = []

  constructor(most: number, clock: Clock) {
    this.#most = most
    this.#clock = clock
    this.#lookedAtMs = clock.nowMs()
  }

  get wanted(): number {
    return this.#wanted
  }

  /** One more, since those there are cannot keep up. */
  more(): void {
    this.#wanted = Math.min(this.#wanted + 1, this.#most)
    this.#idleSinceMs = null
  }

  /**
   * Looks how busy each worker was. @param cpuMs what each has used of a processor since its start; null: it does not
   * read
   */
  look(cpuMs: readonly (number | null)[]): void {
    const nowMs = this.#clock.nowMs()
    const passedMs = nowMs - this.#lookedAtMs
    if (passedMs < workerLookMs) return
    const before = this.#cpuMs
    this.#cpuMs = cpuMs
    this.#lookedAtMs = nowMs
    const shares = cpuMs.map((now, at) => Math.max(0, (now ?? 0) - (before[at] ?? now ?? 0)) / passedMs)
    const busiest = Math.max(...shares)
    const whole = shares.reduce((sum, share) => sum + share, 0)
    if (busiest > workerBusyShare) {
      this.more()
      return
    }
    if (this.#wanted === 1 || whole > workerIdleShare * (this.#wanted - 1)) {
      this.#idleSinceMs = null
      return
    }
    this.#idleSinceMs ??= nowMs
    if (nowMs - this.#idleSinceMs < workerIdleMs) return
    this.#wanted -= 1
    this.#idleSinceMs = null
  }
}
