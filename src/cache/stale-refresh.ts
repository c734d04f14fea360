/**
 * Asks again for what is given out stale, so that the next client gets a fresh answer without having to wait for it.
 * RFC 8767 §4 and §5 ask for that, with a pause after failures.
 *
 * Bounded: one try at a time for each key, a few at once and in a second for all together, later and later while they
 * fail, and none for what nobody was given for a while. What is asked, and how, comes in as functions.
 */
import type { Cancel, Clock } from '../base/clock.ts'
import { staleRefresh as limits } from '../base/stale-limits.ts'

export type RefreshWork = Readonly<{
  /** Whether there is any point in asking now; it is looked at again soon. */
  mayAsk: () => boolean
  /** Asks once; whether a fresh answer came. Never rejects. */
  ask: () => Promise<boolean>
}>

type Wanted = {
  work: RefreshWork
  /** When a stale answer was last given; monotonic milliseconds. */
  wantedAtMs: number
  nextAtMs: number
  delayMs: number
  isAsking: boolean
}

export class StaleRefresh {
  /**
   * Tries that gave a fresh answer, those that did not, and stale answers beyond the limit, for which nobody is asked.
   */
  readonly stats = { refreshed: 0, failed: 0, skipped: 0 }
  readonly #clock: Clock
  /** Who was tried last stands last. */
  readonly #wanted = new Map<string, Wanted>()
  #inFlight = 0
  #cancelTurn: Cancel | null = null
  #isStopped = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Notes that a stale answer was given out. */
  want(key: string, work: RefreshWork): void {
    if (this.#isStopped) return
    const nowMs = this.#clock.nowMs()
    const known = this.#wanted.get(key)
    if (known !== undefined) {
      known.wantedAtMs = nowMs
      known.work = work
      return
    }
    if (this.#wanted.size >= limits.names) {
      this.stats.skipped++
      return
    }
    const nextAtMs = nowMs + limits.firstMs
    this.#wanted.set(key, { work, wantedAtMs: nowMs, nextAtMs, delayMs: limits.firstMs, isAsking: false })
    this.#armTurn()
  }

  /** Forgets what is wanted: it may mean something else from now on. Tries that are under way end by themselves. */
  clear(): void {
    this.#wanted.clear()
    this.#cancelTurn?.()
    this.#cancelTurn = null
  }

  stop(): void {
    this.#isStopped = true
    this.clear()
  }

  #armTurn(): void {
    this.#cancelTurn ??= this.#clock.after(limits.turnMs, () => {
      this.#cancelTurn = null
      this.#turn()
      if (this.#wanted.size > 0) this.#armTurn()
    })
  }

  #turn(): void {
    const nowMs = this.#clock.nowMs()
    const due: [string, Wanted][] = []
    for (const [key, wanted] of this.#wanted) {
      if (wanted.isAsking) continue
      if (nowMs - wanted.wantedAtMs >= limits.wantedMs) this.#wanted.delete(key)
      else if (due.length < Math.min(limits.perTurn, limits.inFlight - this.#inFlight)) {
        if (wanted.nextAtMs <= nowMs && wanted.work.mayAsk()) due.push([key, wanted])
      }
    }
    for (const [key, wanted] of due) {
      // Others have their turn before it is tried again.
      this.#wanted.delete(key)
      this.#wanted.set(key, wanted)
      void this.#try(key, wanted)
    }
  }

  async #try(key: string, wanted: Wanted): Promise<void> {
    this.#inFlight++
    wanted.isAsking = true
    const isFresh = await wanted.work.ask()
    this.#inFlight--
    wanted.isAsking = false
    this.stats[isFresh ? 'refreshed' : 'failed']++
    if (isFresh && this.#wanted.get(key) === wanted) this.#wanted.delete(key)
    wanted.delayMs = Math.min(limits.maxMs, wanted.delayMs * 2)
    wanted.nextAtMs = this.#clock.nowMs() + wanted.delayMs
  }
}
