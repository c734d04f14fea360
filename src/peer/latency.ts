/** How long answers usually take, and how often one may be asked for twice because it takes longer. */
import { hedgeBurst, hedgeShare } from '../base/limits.ts'

const keptTimes = 128
/** Fewer measurements say nothing about one in twenty. */
const leastTimes = 20
/** The percentile is worked out anew after so many measurements. */
const timesBetween = 8

/** The time within which nineteen of the last twenty answers came, over a window of the latest measurements. */
export class UsualTime {
  readonly #timesMs = new Float64Array(keptTimes)
  /** The largest times, in descending order, while the percentile is worked out. */
  readonly #largestMs = new Float64Array(keptTimes - Math.ceil(keptTimes * 0.95) + 1)
  #count = 0
  #workedOutAt = 0
  #percentileMs: number | null = null

  add(tookMs: number): void {
    this.#timesMs[this.#count++ % keptTimes] = tookMs
  }

  /** The 95th percentile in milliseconds; null before there are enough measurements. */
  get percentileMs(): number | null {
    if (this.#count < leastTimes) return null
    if (this.#percentileMs === null || this.#count - this.#workedOutAt >= timesBetween) {
      const times = Math.min(this.#count, keptTimes)
      this.#percentileMs = this.#largest(times, times - Math.ceil(times * 0.95))
      this.#workedOutAt = this.#count
    }
    return this.#percentileMs
  }

  /** The largest of the first `times` but `others`, which are few: sorting them all would take ten times as long. */
  #largest(times: number, others: number): number {
    const largest = this.#largestMs.fill(Number.NEGATIVE_INFINITY)
    for (let time = 0; time < times; time++) {
      const ms = this.#timesMs[time]!
      if (ms <= largest[others]!) continue
      let at = others
      for (; at > 0 && largest[at - 1]! < ms; at--) largest[at] = largest[at - 1]!
      largest[at] = ms
    }
    return largest[others]!
  }
}

/** Queries that are sent besides the one that is awaited: at most a share of all, and a few in a row. */
export class HedgeBudget {
  #credit = hedgeBurst

  /** Each question earns its share of one. */
  earn(): void {
    this.#credit = Math.min(hedgeBurst, this.#credit + hedgeShare)
  }

  /** Takes one; false where none is left. */
  trySpend(): boolean {
    if (this.#credit < 1) return false
    this.#credit--
    return true
  }
}
