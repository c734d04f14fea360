/** How long to wait between attempts: for ever, longer and longer, and never in step with others. */
import { apiBackoffMaxMs, apiBackoffMinMs, apiRefusedBackoffMaxMs, apiRetryAfterMaxMs } from '../../../base/limits.ts'
import type { ApiError } from './api-error.ts'

export class BackOff {
  readonly #random: () => number
  #failures = 0

  constructor(random: () => number) {
    this.#random = random
  }

  /** Attempts in a row that came to nothing. */
  get failures(): number {
    return this.#failures
  }

  reset(): void {
    this.#failures = 0
  }

  /** Counts a failure and gives the wait before the next attempt in milliseconds. null: it ended without an error. */
  nextMs(error: ApiError | null): number {
    const isRefused = error?.status === 403 || error?.status === 404
    const maxMs = isRefused ? apiRefusedBackoffMaxMs : apiBackoffMaxMs
    const fullMs = Math.min(maxMs, apiBackoffMinMs * 2 ** Math.min(this.#failures, 30))
    this.#failures++
    // These have their remedy, which is tried at once; only where it does not help we slow down.
    const hasRemedy = error !== null && (error.isExpired || error.kind === 'history' || error.status === 401)
    if (this.#failures === 1 && hasRemedy) return 0
    const jitteredMs = fullMs * (0.5 + this.#random() / 2)
    const askedMs = Math.min(apiRetryAfterMaxMs, (error?.retryAfterSeconds ?? 0) * 1000)
    return Math.max(jitteredMs, askedMs)
  }
}
