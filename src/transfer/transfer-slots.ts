/** How many whole zones are sent at the same time; the others wait in the order they came. */
import { transfersOut, transfersWaiting } from '../base/transfer-limits.ts'

export class TransferSlots {
  #busy = 0
  readonly #waiting: (() => void)[] = []

  get busy(): number {
    return this.#busy
  }

  /** Resolves when it is this one's turn, which `leave` ends; false at once where too many wait. */
  async enter(): Promise<boolean> {
    if (this.#busy < transfersOut) {
      this.#busy += 1
      return true
    }
    if (this.#waiting.length >= transfersWaiting) return false
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve)
    })
    return true
  }

  leave(): void {
    // Who waits takes the place over, so that nobody gets in between.
    const next = this.#waiting.shift()
    if (next === undefined) this.#busy -= 1
    else next()
  }
}
