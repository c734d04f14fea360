/**
 * Counts of values in fixed buckets, for the metrics page.
 *
 * A value costs two comparisons where it falls into the bucket of the one before, else one a bucket, and a store:
 * nothing is allocated after the construction.
 */
export class Histogram {
  /** Upper bounds of the buckets, each included in its bucket; values above the last one have a bucket of their own. */
  readonly bounds: Float64Array
  /** Values seen in each bucket, not cumulated: one more than there are bounds. */
  readonly counts: Float64Array
  readonly #sum = new Float64Array(1)
  #lastBucket = 0

  /** @throws RangeError unless the bounds are finite and ascend. */
  constructor(bounds: readonly number[]) {
    for (let at = 0; at < bounds.length; at++) {
      const ascends = at === 0 || bounds[at]! > bounds[at - 1]!
      if (!Number.isFinite(bounds[at]) || !ascends)
        throw new RangeError(`bucket bounds must ascend: ${bounds.join(' ')}`)
    }
    this.bounds = Float64Array.from(bounds)
    this.counts = new Float64Array(bounds.length + 1)
  }

  /** Adds one value, in the unit of the bounds. */
  observe(value: number): void {
    const { bounds } = this
    let bucket = this.#lastBucket
    if (!(value <= bounds[bucket]! && (bucket === 0 || value > bounds[bucket - 1]!))) {
      bucket = 0
      while (bucket < bounds.length && value > bounds[bucket]!) bucket++
      // Behind the last bound there is none to compare with.
      this.#lastBucket = bucket === bounds.length ? 0 : bucket
    }
    this.counts[bucket]! += 1
    this.#sum[0]! += value
  }

  /** Sum of all values. */
  get sum(): number {
    return this.#sum[0]!
  }

  /** How many values there were. */
  get total(): number {
    let total = 0
    for (const count of this.counts) total += count
    return total
  }
}
