/** How long to wait between attempts: for ever, longer and longer, and never in step with others. */
import { apiBackoffMaxMs, apiBackoffMinMs, apiRefusedBackoffMaxMs, apiRetryAfterMaxMs } from '../../../base/limits.ts'
import type { ApiError } from './api-error.ts'

export class BackOff {
  readonly #random: () => number
  #failures = 0
  #refusals = 0
  /** What has been tried to be put right since the last success. */
  readonly #remedies = new Set<string>()

  constructor(random: () => number) {
    this.#random = random
  }

  /** Attempts in a row that came to nothing. */
  get failures(): number {
    return this.#failures
  }

  reset(): void {
    this.#failures = 0
    this.#refusals = 0
    this.#remedies.clear()
  }

  /** Counts a failure and gives the wait before the next attempt in milliseconds. null: it ended without an error. */
  nextMs(error: ApiError | null): number {
    const isRefused = error?.status === 403 || error?.status === 404
    const maxMs = isRefused ? apiRefusedBackoffMaxMs : apiBackoffMaxMs
    // An API server that starts refuses for a moment: refusals after other failures are few, and waited for shortly.
    const before = isRefused ? this.#refusals : this.#failures
    const fullMs = Math.min(maxMs, apiBackoffMinMs * 2 ** Math.min(before, 30))
    this.#failures++
    this.#refusals = isRefused ? this.#refusals + 1 : 0
    const remedy = remedyOf(error)
    if (remedy !== null && !this.#remedies.has(remedy)) {
      this.#remedies.add(remedy)
      return 0
    }
    const jitteredMs = fullMs * (0.5 + this.#random() / 2)
    const askedMs = Math.min(apiRetryAfterMaxMs, (error?.retryAfterSeconds ?? 0) * 1000)
    return Math.max(jitteredMs, askedMs)
  }
}

/** Some failures have their remedy (list again, read the token again), to be tried at once, but not again and again. */
function remedyOf(error: ApiError | null): string | null {
  if (error === null) return null
  if (error.isExpired || error.kind === 'history') return 'list'
  return error.status === 401 ? 'credentials' : null
}
