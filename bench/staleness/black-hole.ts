/** One name at one server, from a moment before its endpoint dies until the last stale answer is long gone. */
import type { Observation } from './observations.ts'

/** After this long without a stale answer there will be none. */
const quietMs = 1_500
/** Longer than any TTL here, twice. */
const giveUpMs = 75_000

export class BlackHole {
  #killedAtMs: number | null = null
  /** When answers with the endpoint came; only those after its death count, and that is told a little later. */
  readonly #holding: number[] = []
  #lastFreshAtMs = Number.NEGATIVE_INFINITY
  readonly #answeredAtMs: number[] = []
  #unanswered = 0
  #errors = 0

  answered(atMs: number, holdsEndpoint: boolean): void {
    this.#answeredAtMs.push(atMs)
    if (holdsEndpoint) this.#holding.push(atMs)
    else this.#lastFreshAtMs = atMs
  }

  failed(how: 'unanswered' | 'error'): void {
    if (this.#killedAtMs === null) return
    if (how === 'error') this.#errors++
    else this.#unanswered++
  }

  killed(atMs: number): void {
    this.#killedAtMs = atMs
  }

  isDone(nowMs: number): boolean {
    if (this.#killedAtMs === null) return false
    if (nowMs - this.#killedAtMs > giveUpMs) return true
    const lastStaleAtMs = this.#holding.at(-1) ?? 0
    return (
      nowMs - Math.max(this.#killedAtMs, lastStaleAtMs) > quietMs &&
      this.#lastFreshAtMs > Math.max(this.#killedAtMs, lastStaleAtMs)
    )
  }

  result(): Observation {
    const killedAtMs = this.#killedAtMs ?? Number.POSITIVE_INFINITY
    const isAfter = (atMs: number): boolean => atMs > killedAtMs
    const staleAnswers = this.#holding.filter(isAfter).length
    const lastStaleAtMs = staleAnswers === 0 ? null : this.#holding.at(-1)!
    return {
      blackHoleMs: lastStaleAtMs === null ? 0 : lastStaleAtMs - killedAtMs,
      staleAnswers,
      answers: this.#answeredAtMs.filter(isAfter).length,
      unanswered: this.#unanswered,
      errors: this.#errors,
      isOver: this.#lastFreshAtMs > (lastStaleAtMs ?? killedAtMs),
      lastStaleAtMs
    }
  }
}
