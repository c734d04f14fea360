/**
 * Where time comes from: everything that measures, waits or expires is given a Clock, so tests move time by hand.
 */

/** Stops a timer that has not fired yet; calling it again, or after it fired, does nothing. */
export type Cancel = () => void

export interface Clock {
  /** Monotonic time in milliseconds (with fractions) since an arbitrary start; never steps back. */
  nowMs(): number
  /** Wall time in milliseconds since 1970-01-01 UTC; only for logs, serials and times told to others. */
  epochMs(): number
  /** Calls back once after `delayMs` milliseconds. The timer does not keep the process alive. */
  after(delayMs: number, callback: () => void): Cancel
}

/** Monotonic time in milliseconds that all threads of this process agree on. */
export const processTimeMs = (): number => Number(process.hrtime.bigint()) / 1e6

export const systemClock: Clock = {
  nowMs: () => performance.now(),
  epochMs: () => Date.now(),
  after(delayMs, callback) {
    // A moment that has passed is one that comes next; Node warns of less than nothing.
    const timer = setTimeout(callback, Math.max(delayMs, 0))
    timer.unref()
    return () => clearTimeout(timer)
  }
}
