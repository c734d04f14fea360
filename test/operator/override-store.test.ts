/** The store over a real state file: kept over a restart, ended by time, shared, and safe against bad content. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test, type Test } from 'tap'
import type { Clock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { OverrideStore } from '../../src/operator/override-store.ts'
import type { OverrideAction } from '../../src/operator/overrides.ts'
import { StateFile } from '../../src/operator/state-file.ts'
import { until } from '../support/in-process.ts'
import { loopClock } from '../support/loop-clock.ts'
import { ManualClock } from '../support/manual-clock.ts'

const drain = (peer: string, clock: Clock, forMs: number | null = null): OverrideAction => {
  const sinceEpochMs = clock.epochMs()
  const untilEpochMs = forMs === null ? null : sinceEpochMs + forMs
  return { kind: 'drain', peer, override: { sinceEpochMs, untilEpochMs, reason: 'test', by: 'me' } }
}

async function startStore(t: Test, path: string, clock: Clock = loopClock) {
  const changes: string[] = []
  const problems: (string | null)[] = []
  const store = new OverrideStore({
    place: new StateFile(path, loopClock),
    clock,
    log: silentLog,
    onChange: (actions, cause) => changes.push(...actions.map(({ kind }) => `${kind} by ${cause}`)),
    onProblem: (problem) => problems.push(problem)
  })
  await store.start()
  t.teardown(() => store.close())
  return { store, changes, problems, drained: () => [...store.holding.drainedPeers.keys()] }
}

test('OverrideStore: an action is in force when it is taken, and after a restart', async (t) => {
  const path = join(t.testdir({}), 'b.state')
  const first = await startStore(t, path)
  t.same(first.problems, [], 'no file is no problem')
  t.notOk(existsSync(path), 'and is not made without need')
  await first.store.act(drain('a', loopClock, 60_000))
  t.same(first.drained(), ['a'])
  t.same(first.changes, ['drain by operator'], 'told once')
  await first.store.close()
  const second = await startStore(t, path)
  t.same(second.drained(), ['a'], 'after a restart')
  t.same(readdirSync(join(path, '..')), ['b.state'], 'nothing is left beside it')
  t.match(JSON.parse(readFileSync(path, 'utf8')), { drainedPeers: { a: { reason: 'test', by: 'me' } } })
})

test('OverrideStore: it ends by time, also where wall time was set', async (t) => {
  const clock = new ManualClock()
  const { store, drained, changes } = await startStore(t, join(t.testdir({}), 'b.state'), clock)
  await store.act(drain('a', clock, 600_000))
  await store.act(drain('b', clock, 60_000))
  clock.advance(59_999)
  t.same(drained().sort(), ['a', 'b'])
  clock.advance(1)
  t.same(drained(), ['a'])
  clock.setEpochMs(clock.epochMs() + 3_600_000)
  clock.advance(60_000)
  t.same(drained(), [])
  t.same(changes, ['drain by operator', 'drain by operator', 'undrain by time', 'undrain by time'])
  t.equal(clock.pendingTimers, 0)
})

test('OverrideStore: two servers over one file hold the same, and no action of either is lost', async (t) => {
  const path = join(t.testdir({}), 'b.state')
  const [one, other] = await Promise.all([startStore(t, path), startStore(t, path)])
  await one.store.act(drain('a', loopClock))
  t.ok(await until(() => other.drained().join() === 'a'))
  await Promise.all([one.store.act(drain('b', loopClock)), one.store.act(drain('c', loopClock))])
  await other.store.act({ kind: 'undrain', peer: 'a' })
  t.ok(await until(() => one.drained().sort().join() === 'b,c' && other.drained().sort().join() === 'b,c'))
})

test('OverrideStore: bad content is one problem, and what held before holds on', async (t) => {
  const path = join(t.testdir({ 'b.state': '{"drained": {}}' }), 'b.state')
  const { store, drained, problems } = await startStore(t, path)
  t.match(problems, [/the file .*b\.state is ignored: the whole: unknown key `drained`/])
  t.same(drained(), [])
  await store.act(drain('a', loopClock))
  t.equal(problems.at(-1), null, 'an action replaces what nobody could read')
  writeFileSync(path, 'half of somethi')
  t.ok(await until(() => problems.length === 3))
  t.match(problems[2], /is ignored: not JSON/)
  t.same(drained(), ['a'])
  await store.act(drain('b', loopClock))
  t.same(drained().sort(), ['a', 'b'], 'nor does an action on top of it lose anything')
  rmSync(path)
  t.ok(await until(() => drained().length === 0), 'a file that is deleted takes everything back')
})

test('OverrideStore: what cannot be kept is not in force', async (t) => {
  const folder = join(t.testdir({}), 'gone')
  const { store, drained, changes } = await startStore(t, join(folder, 'b.state'))
  await t.rejects(store.act(drain('a', loopClock)), { name: 'OverridePlaceError', message: /cannot be written \(ENOENT\): nothing was changed/ }) // prettier-ignore
  t.same([drained(), changes], [[], []])
  mkdirSync(folder)
  await store.act(drain('a', loopClock))
  t.same(drained(), ['a'])
  chmodSync(folder, 0o755)
  const off = new OverrideStore({ place: null, clock: loopClock, log: silentLog, onChange: () => {}, onProblem: () => {} }) // prettier-ignore
  await off.start()
  await t.rejects(off.act(drain('a', loopClock)), { name: 'OverridePlaceError', message: /overrides: off/ })
  await off.close()
})

test('OverrideStore: of many processes that change one file at once no change is lost', async (t) => {
  const path = join(t.testdir({}), 'b.state')
  const [writers, changes] = [4, 15]
  const program = fileURLToPath(new URL('../support/state-file-changes.ts', import.meta.url))
  const codes = await Promise.all(
    Array.from({ length: writers }, async (_, at) => {
      const child = spawn(process.execPath, [program, path, `w${at}`, String(changes)], { stdio: 'inherit' })
      return (await once(child, 'exit'))[0] as number | null
    })
  )
  t.same(
    codes,
    Array.from({ length: writers }, () => 0)
  )
  const { drainedPeers } = JSON.parse(readFileSync(path, 'utf8')) as { drainedPeers: object }
  t.equal(Object.keys(drainedPeers).length, writers * changes)
  t.same(readdirSync(join(path, '..')), ['b.state'], 'nothing is left beside it')
})

/** Real time, but faster. */
const quickClock = (times: number): Clock => ({
  ...loopClock,
  nowMs: () => loopClock.nowMs() * times,
  after: (delayMs, callback) => loopClock.after(delayMs / times, callback)
})

test('OverrideStore: a lock that a crash left behind is taken away, one that is in use is waited for', async (t) => {
  const path = join(t.testdir({}), 'b.state')
  const store = new OverrideStore({
    place: new StateFile(path, quickClock(20)),
    clock: loopClock,
    log: silentLog,
    onChange: () => {},
    onProblem: () => {}
  })
  await store.start()
  t.teardown(() => store.close())
  // Timers of clocks do not keep a process alive.
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  writeFileSync(`${path}.lock`, 'left by somebody')
  await store.act(drain('a', loopClock))
  t.same([...store.holding.drainedPeers.keys()], ['a'])
  t.same(readdirSync(join(path, '..')), ['b.state'])
  // Another holder each time it is looked at: it is alive.
  let turn = 0
  const busy = setInterval(() => writeFileSync(`${path}.lock`, `holder ${turn++}`), 10)
  writeFileSync(`${path}.lock`, 'holder')
  await t.rejects(store.act(drain('b', loopClock)), /cannot be written \(another process/)
  clearInterval(busy)
  rmSync(`${path}.lock`)
  t.same([...store.holding.drainedPeers.keys()], ['a'], 'nothing was changed')
  await store.act(drain('b', loopClock))
  t.same([...store.holding.drainedPeers.keys()], ['a', 'b'])
})
