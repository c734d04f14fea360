/** How many workers share the load. */
import { test } from 'tap'
import { workerIdleMs, workerLookMs } from '../../src/base/socket-limits.ts'
import { Spread } from '../../src/main/threads/spread.ts'
import { ManualClock } from '../support/manual-clock.ts'

/** Workers that are busy for these shares of the time, looked at until the time is over. */
class Load {
  readonly clock = new ManualClock()
  readonly spread: Spread
  readonly #cpuMs: number[]

  constructor(workers: number) {
    this.spread = new Spread(workers, this.clock)
    this.#cpuMs = Array.from({ length: workers }, () => 0)
    this.spread.look(this.#cpuMs)
  }

  run(ms: number, ...shares: number[]): number {
    for (let passed = 0; passed < ms; passed += workerLookMs) {
      this.clock.advance(workerLookMs)
      for (const [at, share] of shares.entries()) this.#cpuMs[at]! += share * workerLookMs
      this.spread.look([...this.#cpuMs])
    }
    return this.spread.wanted
  }
}

void test('Spread: one while it can bear it, more under load, fewer after a while', async (t) => {
  const load = new Load(3)
  t.equal(load.run(60_000, 0.6), 1, 'it is not busy')
  t.equal(load.run(workerLookMs, 0.95), 2)
  t.equal(load.run(60_000, 0.5, 0.5), 2, 'one could not bear it')
  t.equal(load.run(workerLookMs, 0.9, 0.9), 3)
  t.equal(load.run(60_000, 0.9, 0.9, 0.9), 3, 'there are no more')
  t.equal(load.run(workerIdleMs / 2, 0.1, 0.1, 0.1), 3)
  t.equal(load.run(workerLookMs, 0.5, 0.5, 0.5), 3, 'it was quiet for a moment only')
  t.equal(load.run(workerIdleMs + workerLookMs, 0.2, 0.2, 0.2), 2)
  t.equal(load.run(60_000, 0.1, 0.1), 1)
})

void test('Spread: who cannot keep up gets help at once, and one that began anew has used nothing', async (t) => {
  const { clock, spread } = new Load(2)
  spread.more()
  t.equal(spread.wanted, 2)
  spread.more()
  t.equal(spread.wanted, 2)
  const other = new Spread(2, clock)
  for (const cpuMs of [[900, 5], [null, 6], [3, 7]]) {
    clock.advance(workerLookMs)
    other.look(cpuMs)
  } // prettier-ignore
  t.equal(other.wanted, 1)
})
