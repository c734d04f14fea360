// What is given out stale is asked for again: on a clock moved by hand.
import { test, type Test } from 'tap'
import { staleRefresh as limits } from '../../src/base/stale-limits.ts'
import { StaleRefresh } from '../../src/cache/stale-refresh.ts'
import { ManualClock } from '../support/manual-clock.ts'

/** Lets promises that are ready go on. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 10; turn++) await Promise.resolve()
}

function refreshOf(t: Test) {
  const clock = new ManualClock()
  const refresh = new StaleRefresh(clock)
  t.teardown(() => refresh.stop())
  const state = { mayAsk: true, isFresh: false, isSilent: false }
  const asked: { key: string; atMs: number }[] = []
  const ends: (() => void)[] = []
  const want = (key: string): void =>
    refresh.want(key, {
      mayAsk: () => state.mayAsk,
      ask: async () => {
        asked.push({ key, atMs: clock.nowMs() })
        if (state.isSilent) await new Promise<void>((resolve) => ends.push(resolve))
        return state.isFresh
      }
    })
  const pass = async (ms: number): Promise<void> => {
    for (let step = 0; step < ms / 50; step++) {
      clock.advance(50)
      await settle()
    }
  }
  return { clock, refresh, state, asked, ends, want, pass }
}

test('a key is asked for again, later and later, until it is fresh', async (t) => {
  const { clock, refresh, state, asked, want, pass } = refreshOf(t)
  want('a')
  for (let at = 0; at < 10; at++) want('a')
  await pass(limits.firstMs - 50)
  t.equal(asked.length, 0, 'a failure is remembered for a second')
  await pass(2 * limits.turnMs)
  t.equal(asked.length, 1)
  await pass(20_000)
  const gaps = asked.slice(1).map(({ atMs }, at) => atMs - asked[at]!.atMs)
  t.ok(gaps.length >= 3 && gaps.every((gap, at) => gap >= limits.firstMs * 2 ** (at + 1)), `${gaps.join(' ')} ms`)
  state.isFresh = true
  await pass(20_000)
  const { length } = asked
  await pass(limits.maxMs * 2)
  t.equal(asked.length, length, 'and no more then')
  t.equal(clock.pendingTimers, 0, 'no timer is left')
  t.match(refresh.stats, { refreshed: 1, failed: length - 1, skipped: 0 })
})

test('what nobody is given any more is forgotten, and what is wanted goes on every 30 s', async (t) => {
  const { clock, asked, want, pass } = refreshOf(t)
  want('a')
  await pass(limits.wantedMs + limits.maxMs)
  t.equal(clock.pendingTimers, 0)
  const { length } = asked
  for (let second = 0; second < 120; second += 10) {
    want('b')
    await pass(10_000)
  }
  const of = asked.slice(length).map(({ atMs }) => atMs)
  t.ok(of.at(-1)! - of.at(-2)! >= limits.maxMs && of.at(-1)! - of.at(-2)! < limits.maxMs + 2 * limits.turnMs)
})

test('who is down is not asked, and asked at once when it is back', async (t) => {
  const { state, asked, want, pass } = refreshOf(t)
  state.mayAsk = false
  want('a')
  await pass(30_000)
  t.equal(asked.length, 0)
  state.mayAsk = true
  state.isFresh = true
  await pass(2 * limits.turnMs)
  t.equal(asked.length, 1)
})

test('a few at a time, one for each key, and no more keys than fit', async (t) => {
  const { refresh, state, asked, ends, want, pass } = refreshOf(t)
  state.isSilent = true
  for (let at = 0; at < limits.names + 50; at++) want(`k${at}`)
  t.equal(refresh.stats.skipped, 50)
  await pass(limits.firstMs + limits.turnMs)
  t.ok(asked.length <= 2 * limits.perTurn, 'spread over turns')
  await pass(20_000)
  t.equal(asked.length, limits.inFlight, 'no more than so many at once')
  for (const end of ends.splice(0)) end()
  await pass(20_000)
  t.equal(asked.length, 2 * limits.inFlight)
  t.equal(new Set(asked.map(({ key }) => key)).size, asked.length, 'others have their turn first')
})

test('clear and stop forget all, also while it is asked for', async (t) => {
  const { clock, refresh, state, asked, ends, want, pass } = refreshOf(t)
  state.isSilent = true
  want('a')
  await pass(limits.firstMs + limits.turnMs)
  t.equal(asked.length, 1)
  refresh.clear()
  t.equal(clock.pendingTimers, 0)
  for (const end of ends.splice(0)) end()
  await pass(limits.maxMs)
  t.equal(asked.length, 1)
  want('b')
  refresh.stop()
  want('c')
  await pass(limits.maxMs)
  t.equal(asked.length, 1)
  t.equal(clock.pendingTimers, 0)
})
