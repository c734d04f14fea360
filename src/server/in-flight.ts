/**
 * Counts the queries that wait for somebody else, over all listeners: what bounds the memory they hold, and what a
 * drain waits for.
 */
export class InFlightQueries {
  readonly limit: number
  #count = 0
  #waiting: (() => void)[] = []

  constructor(limit: number) {
    this.limit = limit
  }

  get count(): number {
    return this.#count
  }

  /** False above the limit; every true is paid back by one `leave`. */
  tryEnter(): boolean {
    if (this.#count >= this.limit) return false
    this.#count += 1
    return true
  }

  leave(): void {
    this.#count -= 1
    if (this.#count > 0 || this.#waiting.length === 0) return
    const waiting = this.#waiting
    this.#waiting = []
    for (const done of waiting) done()
  }

  /** Resolves at the next moment without a query in flight; at once if that is now. */
  async none(): Promise<void> {
    if (this.#count === 0) return
    await new Promise<void>((resolve) => {
      this.#waiting.push(resolve)
    })
  }
}
