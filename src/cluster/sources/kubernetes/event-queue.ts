/** Gathers the events of one resource and hands them on in batches, with the time at which they happened. */
import type { Clock } from '../../../base/clock.ts'
import { apiBatchMs, objectEventsPerBatch } from '../../../base/limits.ts'
import type { Logger } from '../../../base/log.ts'
import type { ObjectEvent, ObjectKind } from '../../object-event.ts'
import { originOf } from './origin-time.ts'

/** `originAtMs`: the wall time of the oldest change in the batch, in milliseconds since 1970. */
export type OnEvents = (events: readonly ObjectEvent[], originAtMs: number) => void

/** Until it is known: as much as a Service with a few endpoints costs code that has just begun to run. */
const firstMsPerEvent = 0.25

export class EventQueue {
  readonly stats = { events: 0, handlerErrors: 0 }
  readonly #kind: ObjectKind
  readonly #clock: Clock
  readonly #log: Logger
  readonly #onEvents: OnEvents
  #events: ObjectEvent[] = []
  #arrivedAtMs = 0
  #originAtMs = 0
  /** What an event has cost lately those who get it. */
  #msPerEvent = firstMsPerEvent
  #isClosed = false

  constructor(kind: ObjectKind, clock: Clock, log: Logger, onEvents: OnEvents) {
    this.#kind = kind
    this.#clock = clock
    this.#log = log
    this.#onEvents = onEvents
  }

  /** Says that what is taken from now on has come now. */
  arrived(): void {
    this.#arrivedAtMs = this.#clock.epochMs()
  }

  /**
   * Takes the events that a change gives, which stay together, and hands on what has gathered once that is enough.
   * @param raw the object as it is now; null where it is gone, or its time does not matter.
   */
  take(raw: unknown, change: (events: ObjectEvent[]) => void): void {
    const before = this.#events.length
    change(this.#events)
    if (this.#events.length === before) return
    const originAtMs = originOf(raw, this.#kind, this.#arrivedAtMs)
    this.#originAtMs = before === 0 ? originAtMs : Math.min(this.#originAtMs, originAtMs)
    const { length } = this.#events
    if (length >= objectEventsPerBatch || length * this.#msPerEvent >= apiBatchMs) this.flush()
  }

  flush(): void {
    if (this.#events.length === 0) return
    const events = this.#events
    this.#events = []
    if (this.#isClosed) return
    this.stats.events += events.length
    const beganAtMs = this.#clock.nowMs()
    this.#hand(events)
    const msPerEvent = (this.#clock.nowMs() - beganAtMs) / events.length
    this.#msPerEvent += (msPerEvent - this.#msPerEvent) / 4
  }

  close(): void {
    this.#isClosed = true
  }

  /** A listener that throws (a bug) loses the event that it threw at, and no other. */
  #hand(batch: readonly ObjectEvent[]): void {
    try {
      this.#onEvents(batch, this.#originAtMs)
      return
    } catch (error) {
      if (batch.length === 1) {
        this.#noteFailure(error)
        return
      }
    }
    for (const event of batch) this.#hand([event])
  }

  #noteFailure(error: unknown): void {
    this.stats.handlerErrors++
    if (this.stats.handlerErrors === 1)
      this.#log.error({ err: error, kind: this.#kind }, 'an object event cannot be used')
  }
}
