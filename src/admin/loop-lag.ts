/** How late the event loop calls back: what a query waits for while something else runs. */
import type { Cancel, Clock } from '../base/clock.ts'
import { Histogram } from '../base/histogram.ts'
import { loopLagEveryMs } from '../base/limits.ts'

const lagBoundsSeconds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5]

export class LoopLag {
  readonly seconds = new Histogram(lagBoundsSeconds)
  readonly #clock: Clock
  #cancel: Cancel = () => {}

  constructor(clock: Clock) {
    this.#clock = clock
    this.#measure()
  }

  stop(): void {
    this.#cancel()
  }

  #measure(): void {
    const dueAtMs = this.#clock.nowMs() + loopLagEveryMs
    this.#cancel = this.#clock.after(loopLagEveryMs, () => {
      this.seconds.observe(Math.max(0, this.#clock.nowMs() - dueAtMs) / 1000)
      this.#measure()
    })
  }
}
