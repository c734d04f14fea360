/**
 * How soon a watch is read on: at once while changes come singly; where they keep coming densely, several of them
 * together.
 *
 * A change that comes alone wakes the thread and finds its code and tables gone from the processor's caches, so it costs
 * about three times as much as one that comes with others.
 */
import type { Clock } from '../../../base/clock.ts'
import { watchDenseEvents, watchEventsPerSecond, watchGatherEvents, watchGatherMs } from '../../../base/limits.ts'

const msPerEvent = 1_000 / watchEventsPerSecond
const denseMs = watchDenseEvents * msPerEvent

export class WatchPace {
  readonly #clock: Clock
  /** When all events so far would have come, had they come at the rate that still counts as singly. */
  #wouldBeAtMs = Number.NEGATIVE_INFINITY

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** @returns for how many milliseconds to leave what comes unread, after a read that gave so many events; 0: not at all. */
  waitMs(events: number): number {
    const nowMs = this.#clock.nowMs()
    const wouldBeAtMs = Math.max(this.#wouldBeAtMs, nowMs) + events * msPerEvent
    // However many came at once, it is forgotten as soon.
    this.#wouldBeAtMs = Math.min(wouldBeAtMs, nowMs + 2 * denseMs)
    const isDense = this.#wouldBeAtMs - nowMs > denseMs
    return isDense && events < watchGatherEvents ? watchGatherMs : 0
  }
}
