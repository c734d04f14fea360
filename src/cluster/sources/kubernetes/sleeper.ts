/** A wait that ends early when it is no longer wanted. */
import type { Cancel, Clock } from '../../../base/clock.ts'

export class Sleeper {
  readonly #clock: Clock
  #wake: () => void = () => {}
  #cancel: Cancel = () => {}
  #isClosed = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  async sleep(ms: number): Promise<void> {
    if (this.#isClosed || ms <= 0) return
    await new Promise<void>((resolve) => {
      this.#wake = resolve
      this.#cancel = this.#clock.after(ms, resolve)
    })
  }

  /** Ends the present wait and all later ones. */
  close(): void {
    this.#isClosed = true
    this.#cancel()
    this.#wake()
  }
}
