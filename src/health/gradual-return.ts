/**
 * How a peer comes back into use after it was down: step by step, so that a cluster that is just up again, with cold
 * caches and half of its pods, is not met by everybody at once, and a return that fails costs few an answer.
 */
import type { Cancel, Clock } from '../base/clock.ts'
import { returnMs, returnSteps } from '../base/limits.ts'
import type { Health } from './health-state.ts'

export class GradualReturn {
  readonly #clock: Clock
  readonly #onStep: () => void
  #wasDown = false
  /** Steps taken since the return; null while no return is going on. */
  #steps: number | null = null
  #cancelStep: Cancel = () => {}

  /** @param onStep is called after each change of the share that `update` did not make. */
  constructor(clock: Clock, onStep: () => void) {
    this.#clock = clock
    this.#onStep = onStep
  }

  /** Takes over what probes say of the whole peer. */
  update(health: Health): void {
    if (health === 'down') {
      this.#wasDown = true
      this.#steps = null
      this.#cancelStep()
    } else if (this.#wasDown && health === 'up') {
      this.#wasDown = false
      this.#steps = 1
      this.#awaitStep()
    }
  }

  get isReturning(): boolean {
    return this.#steps !== null
  }

  /** The share of names and clients that is sent to the peer, above 0 to 1; 1 unless a return is going on. */
  get share(): number {
    return this.#steps === null ? 1 : this.#steps / returnSteps
  }

  stop(): void {
    this.#cancelStep()
  }

  #awaitStep(): void {
    this.#cancelStep = this.#clock.after(returnMs / returnSteps, () => {
      if (this.#steps === null) return
      this.#steps++
      if (this.#steps >= returnSteps) this.#steps = null
      else this.#awaitStep()
      this.#onStep()
    })
  }
}
