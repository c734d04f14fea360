/** How long to wait between attempts: for ever, longer and longer, and never in step with others. */
import { apiBackoffMaxMs, apiBackoffMinMs, apiRefusedBackoffMaxMs, apiRetryAfterMaxMs } from '../../../base/limits.ts'
import type { ApiError } from './api-error.ts'

/** How far an attempt came; the later, the sooner it may be all right again. */
const stage = { away: 0, failing: 1, refusing: 2 } as const
type Stage = (typeof stage)[keyof typeof stage]

export class BackOff {
  readonly #random: () => number
  #failures = 0
  #stage: Stage = stage.away
  /** Failures in a row at this stage. */
  #failuresAtStage = 0
  /** What has been tried to be put right since the API server was last away, or all was well. */
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
    this.#stage = stage.away
    this.#failuresAtStage = 0
    this.#remedies.clear()
  }

  /** Counts a failure and gives the wait before the next attempt in milliseconds. null: it ended without an error. */
  nextMs(error: ApiError | null): number {
    const reached = stageOf(error)
    const maxMs = reached === stage.refusing ? apiRefusedBackoffMaxMs : apiBackoffMaxMs
    // An API server that starts first fails and refuses for a moment, so a stage further on has short waits of its own;
    // one that falls back has none, or it would be asked in haste for ever.
    if (reached > this.#stage) this.#failuresAtStage = 0
    else if (reached < this.#stage) this.#failuresAtStage = this.#failures
    this.#stage = reached
    const fullMs = Math.min(maxMs, apiBackoffMinMs * 2 ** Math.min(this.#failuresAtStage, 30))
    this.#failures++
    this.#failuresAtStage++
    if (reached === stage.away && error !== null) this.#remedies.clear()
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

function stageOf(error: ApiError | null): Stage {
  if (error === null || error.status === 0) return stage.away
  return error.status === 403 || error.status === 404 ? stage.refusing : stage.failing
}

/** Some failures have their remedy (list again, read the token again), to be tried at once, but not again and again. */
function remedyOf(error: ApiError | null): string | null {
  if (error === null) return null
  if (error.isExpired || error.kind === 'history') return 'list'
  return error.status === 401 ? 'credentials' : null
}
