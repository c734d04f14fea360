/**
 * Says in the log that a watch is lost, once, and once that it is back. Short breaks are nobody's business; silence is
 * none, since it lasted until it was found out.
 */
import type { Cancel, Clock } from '../../../base/clock.ts'
import { watchProvenMs } from '../../../base/limits.ts'
import type { Logger } from '../../../base/log.ts'

export class LossLog {
  readonly #resource: string
  readonly #clock: Clock
  readonly #log: Logger
  readonly #onProven: () => void
  #lostSinceMs: number | null = null
  #reason = ''
  #isSaid = false
  #isWatching = false
  #cancelSaying: Cancel = () => {}
  #cancelProving: Cancel = () => {}

  /** @param onProven called when a watch has held for `watchProvenMs`. */
  constructor(resource: string, clock: Clock, log: Logger, onProven: () => void) {
    this.#resource = resource
    this.#clock = clock
    this.#log = log
    this.#onProven = onProven
  }

  /** A watch has begun; it is good once it has held for a while. */
  began(): void {
    this.#isWatching = true
    this.#cancelProving = this.#clock.after(watchProvenMs, () => this.proven())
  }

  ended(): void {
    this.#isWatching = false
    this.#cancelProving()
  }

  lost({ kind, message }: Readonly<{ kind?: string; message: string }>): void {
    this.#reason = message
    const isNew = this.#lostSinceMs === null
    this.#lostSinceMs ??= this.#clock.nowMs()
    if (kind === 'timeout') this.#say()
    else if (isNew) this.#waitToSay()
  }

  proven(): void {
    this.#onProven()
    this.#cancelSaying()
    if (this.#isSaid) {
      const lostMs = Math.round(this.#clock.nowMs() - (this.#lostSinceMs ?? 0))
      this.#log.info({ resource: this.#resource, lostMs }, 'the watch is back')
    }
    this.#lostSinceMs = null
    this.#isSaid = false
  }

  close(): void {
    this.#cancelSaying()
    this.#cancelProving()
  }

  #waitToSay(): void {
    this.#cancelSaying = this.#clock.after(watchProvenMs, () => {
      if (this.#isWatching) {
        this.#waitToSay()
        return
      }
      this.#say()
    })
  }

  #say(): void {
    this.#cancelSaying()
    if (this.#isSaid) return
    this.#isSaid = true
    this.#log.warn(
      { resource: this.#resource, reason: this.#reason },
      'the watch is lost: what was known of these objects stays in use'
    )
  }
}
