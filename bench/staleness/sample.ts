/** A fair sample of many values: what percentiles are read from when nobody wants to keep them all. */
import { percentile } from '../statistics.ts'

const capacity = 50_000

export class Sample {
  count = 0
  max = 0
  readonly #values = new Float64Array(capacity)

  /** Reservoir sampling: each value stays with the same probability. */
  add(value: number): void {
    const at = this.count < capacity ? this.count : Math.floor(Math.random() * (this.count + 1))
    if (at < capacity) this.#values[at] = value
    this.count++
    if (value > this.max) this.max = value
  }

  /** NaN of none. */
  percentile(share: number): number {
    return percentile(this.#values.slice(0, Math.min(this.count, capacity)).sort(), share)
  }
}
