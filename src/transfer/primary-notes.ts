/** What the server at the other end of a connection has told of itself, in its answers about one zone. */
import type { Clock } from '../base/clock.ts'
import type { Message } from '../wire/message.ts'
import { peerdnsOf } from './transfer-query.ts'

/** A server that pushes and lets so many changes in a row be found out is asked like one that does not. */
const maxUntoldChanges = 3
/** How long a measurement of the server's clock is preferred to slower ones. */
const clockOffsetGoodForMs = 30_000

export class PrimaryNotes {
  readonly #clock: Clock
  #isPeerdns = false
  /** Changes in a row that it had not told us of. */
  #untold = 0
  #sourceAgeMs = 0
  #silentMs = 0
  #clockOffset: { atMs: number; wayMs: number; offsetMs: number } | null = null

  constructor(clock: Clock) {
    this.#clock = clock
  }

  get isPeerdns(): boolean {
    return this.#isPeerdns
  }

  /** Whether it tells of changes over our connection by itself. */
  get pushes(): boolean {
    return this.#isPeerdns && this.#untold <= maxUntoldChanges
  }

  /**
   * How long ago the server itself, whose zone is a copy, knew it to be right, as last told; 0 for zones of its own.
   */
  get silentMs(): number {
    return this.#silentMs
  }

  /** Before that, since the zone was known to be right at its origin, in milliseconds; 0 where it does not tell. */
  get sourceAgeMs(): number {
    return this.#sourceAgeMs
  }

  /** Its wall clock less ours, in milliseconds; null where it does not tell. */
  get clockOffsetMs(): number | null {
    return this.#clockOffset?.offsetMs ?? null
  }

  /** Takes an answer to what was sent at `sentAtMs`; the epoch that it names, or null where it is no peerdns. */
  take(message: Message, sentAtMs: number): string | null {
    const told = peerdnsOf(message)
    if (told === null || told.epoch === null) return null
    this.#isPeerdns = true
    this.#silentMs = told.silentMs ?? 0
    this.#sourceAgeMs = Math.max(0, (told.ageMs ?? 0) - this.#silentMs)
    if (told.clockMs !== null) this.#noteClock(told.clockMs, sentAtMs)
    return told.epoch
  }

  /** It told of a change. */
  hasTold(): void {
    this.#untold = 0
  }

  /** A change was found by asking. */
  hasNotTold(): void {
    this.#untold++
  }

  #noteClock(clockMs: number, sentAtMs: number): void {
    const nowMs = this.#clock.nowMs()
    const wayMs = nowMs - sentAtMs
    const held = this.#clockOffset
    // What came quickly tells most; but clocks drift, so no measurement is kept for ever.
    if (held !== null && wayMs > held.wayMs && nowMs - held.atMs <= clockOffsetGoodForMs) return
    this.#clockOffset = { atMs: nowMs, wayMs, offsetMs: clockMs - (this.#clock.epochMs() - wayMs / 2) }
  }
}
