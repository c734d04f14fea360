/** A clock that stands still until a test moves it. */
import type { Cancel, Clock } from '../../src/base/clock.ts'

type Timer = { atMs: number; callback: () => void }

export class ManualClock implements Clock {
  #nowMs = 0
  #startEpochMs: number
  readonly #timers = new Set<Timer>()

  constructor(startEpochMs = 1_700_000_000_000) {
    this.#startEpochMs = startEpochMs
  }

  nowMs(): number {
    return this.#nowMs
  }

  epochMs(): number {
    return this.#startEpochMs + this.#nowMs
  }

  after(delayMs: number, callback: () => void): Cancel {
    const timer = { atMs: this.#nowMs + Math.max(0, delayMs), callback }
    this.#timers.add(timer)
    return () => this.#timers.delete(timer)
  }

  /** Timers that have neither fired nor been cancelled. */
  get pendingTimers(): number {
    return this.#timers.size
  }

  /** Moves time, firing what comes due on the way in order of time; timers started on the way count too. */
  advance(ms: number): void {
    const endMs = this.#nowMs + ms
    for (;;) {
      let next: Timer | null = null
      for (const timer of this.#timers) {
        if (timer.atMs <= endMs && (next === null || timer.atMs < next.atMs)) next = timer
      }
      if (next === null) break
      this.#timers.delete(next)
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      next.callback()
    }
    this.#nowMs = endMs
  }

  /** Sets the wall clock alone, as an operator or NTP would. */
  setEpochMs(epochMs: number): void {
    this.#startEpochMs = epochMs - this.#nowMs
  }
}
