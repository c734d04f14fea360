/** What lets the other tests hold on a busy machine. */
import { spawnSync } from 'node:child_process'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'tap'
import { freePort } from './free-port.ts'
import { loopClock, sleep } from './loop-clock.ts'

test('loopClock: a turn that is kept waiting counts little, and timers wait for the rest', async (t) => {
  const order: string[] = []
  const startedMs = loopClock.nowMs()
  const timers = [
    new Promise<void>((done) => void loopClock.after(100, () => (order.push('late'), done()))),
    new Promise<void>((done) => void loopClock.after(20, () => (order.push('early'), done())))
  ]
  loopClock.after(50, () => order.push('cancelled'))()
  const standsStillUntilMs = performance.now() + 300
  while (performance.now() < standsStillUntilMs);
  t.ok(loopClock.nowMs() - startedMs < 10, `${loopClock.nowMs() - startedMs} ms of 300`)
  await sleep(60)
  t.same(order, ['early'])
  // Timers of clocks do not keep a process alive.
  await Promise.all([...timers, sleep(120)])
  t.same(order, ['early', 'late'])
  t.ok(loopClock.nowMs() - startedMs >= 100)
})

test('freePort: ports that can be listened on, and that no other process of these tests is given', async (t) => {
  const ports = await Promise.all(Array.from({ length: 20 }, freePort))
  t.equal(new Set(ports).size, ports.length)
  const server = createServer()
  await new Promise<void>((done) => void server.listen(ports[0], '127.0.0.1', done))
  await new Promise((done) => server.close(done))
  const name = JSON.stringify(`\0peerdns-test-port-${ports[0]}`)
  const program = `require('node:net').createServer().on('error', ({ code }) => console.log(code)).listen(${name}, () => process.exit())`
  const other = spawnSync(process.execPath, ['-e', program], { encoding: 'utf8', cwd: join(import.meta.dirname) })
  t.equal(other.stdout, process.platform === 'linux' ? 'EADDRINUSE\n' : other.stdout)
})
