// When servers are probed, and what the replies make of them; on a clock moved by hand.
import { test } from 'tap'
import { ProbeSchedule, type HealthChange, type ProbeReply } from '../../src/health/probe.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { parseName } from '../../src/wire/name.ts'
import { ManualClock } from '../support/manual-clock.ts'

const options = {
  everyMs: 1_000,
  timeoutMs: 500,
  fall: 2,
  rise: 2,
  name: parseName('backend.svc.cluster.local'),
  type: RRTYPE.SOA,
  maxAgeMs: null
}
const answer = (rcode: number, records: number, hasSoa: boolean, dataAgeMs: number | null = null): ProbeReply => ({
  kind: 'answer',
  sections: { rcode, answer: Array.from({ length: records }, () => null) },
  hasSoa,
  dataAgeMs
})
const good = answer(0, 0, true)
const timeout: ProbeReply = { kind: 'failed', reason: 'timeout', rcode: null }

/** Lets promises that are ready go on. */
const settle = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await Promise.resolve()
}

/** A schedule whose servers answer what `replies` says; `timeout` takes its time. */
function scheduleOf(
  replies: Record<string, ProbeReply>,
  random = () => 0.5,
  everyMs = options.everyMs,
  maxAgeMs: number | null = null
) {
  const clock = new ManualClock()
  const probes: { server: string; atMs: number }[] = []
  const changes: HealthChange[] = []
  let servers = Object.keys(replies)
  const schedule = new ProbeSchedule(
    { ...options, everyMs, maxAgeMs },
    {
      clock,
      random,
      servers: () => servers,
      ask: (server, question, timeoutMs) => {
        if (question.name !== options.name || question.type !== options.type) throw new Error('another question')
        probes.push({ server, atMs: clock.nowMs() })
        const reply = replies[server]!
        if (reply !== timeout) return Promise.resolve(reply)
        return new Promise((resolve) => clock.after(timeoutMs, () => resolve(reply)))
      }
    }
  )
  schedule.subscribe((change) => changes.push(change))
  const pass = async (ms: number): Promise<void> => {
    for (let step = 0; step < ms / 10; step++) {
      clock.advance(10)
      await settle()
    }
  }
  return { clock, schedule, probes, changes, replies, pass, setServers: (now: string[]) => (servers = now) }
}

test('ProbeSchedule judges each kind of reply', async (t) => {
  const rows: { name: string; reply: ProbeReply; want: string; reason: string }[] = [
    { name: 'records', reply: answer(0, 1, false), want: 'up', reason: 'NOERROR with records' },
    { name: 'NODATA with SOA', reply: good, want: 'up', reason: 'NOERROR with SOA' },
    { name: 'NXDOMAIN with SOA', reply: answer(3, 0, true), want: 'up', reason: 'NXDOMAIN with SOA' },
    { name: 'a bare NOERROR', reply: answer(0, 0, false), want: 'down', reason: 'NOERROR without SOA' },
    { name: 'a bare NXDOMAIN', reply: answer(3, 0, false), want: 'down', reason: 'NXDOMAIN without SOA' },
    { name: 'SERVFAIL', reply: { kind: 'failed', reason: 'rcode', rcode: 2 }, want: 'down', reason: 'SERVFAIL' },
    { name: 'REFUSED', reply: { kind: 'failed', reason: 'rcode', rcode: 5 }, want: 'down', reason: 'REFUSED' },
    { name: 'silence', reply: timeout, want: 'down', reason: 'timeout' }
  ]
  for (const { name, reply, want, reason } of rows) {
    const { schedule, pass, changes } = scheduleOf({ a: reply })
    schedule.start()
    await pass(3_000)
    t.equal(schedule.health('a'), want, name)
    t.equal(changes.at(-1)?.reason, reason, name)
    schedule.stop()
  }
})

test('ProbeSchedule probes every interval with a tenth of jitter, and stops', async (t) => {
  for (const [random, gapMs] of [
    [0, 900],
    [0.5, 1_000],
    [1, 1_100]
  ] as const) {
    const { schedule, pass, probes, clock } = scheduleOf({ a: good }, () => random)
    schedule.start()
    await pass(5_000)
    const gaps = probes.slice(1).map(({ atMs }, at) => Math.round(atMs - probes[at]!.atMs))
    t.ok(gaps.length >= 4 && gaps.every((gap) => Math.abs(gap - gapMs) <= 10), `random ${random}: ${gaps.join(' ')}`)
    schedule.stop()
    const sent = probes.length
    await pass(3_000)
    t.equal(probes.length, sent, 'none after stop')
    t.equal(clock.pendingTimers, 0, 'no timer is left')
  }
})

test('ProbeSchedule finds a death within fall x (every + timeout), and a return although it backed off', async (t) => {
  for (const random of [0, 0.5, 1]) {
    const { schedule, pass, replies, changes, clock, probes } = scheduleOf({ a: good, b: good }, () => random)
    schedule.start()
    await pass(5_050)
    replies['a'] = timeout
    const diedAtMs = clock.nowMs()
    await pass(options.fall * (options.everyMs + options.timeoutMs))
    t.equal(schedule.health('a'), 'down', `random ${random}: down after ${changes.at(-1)!.atMs - diedAtMs} ms`)
    t.equal(schedule.health('b'), 'up')
    t.equal(schedule.summary, 'up', 'one of them is up')
    await pass(60_000)
    const lately = probes.filter(({ server, atMs }) => server === 'a' && atMs > clock.nowMs() - 30_000)
    t.ok(lately.length <= 4, `a dead one is probed rarely: ${lately.length} in 30 s`)
    replies['a'] = good
    const returnedAtMs = clock.nowMs()
    await pass(15_000)
    t.equal(schedule.health('a'), 'up', `up again after ${changes.at(-1)!.atMs - returnedAtMs} ms`)
    schedule.stop()
  }
})

test('ProbeSchedule.observe: names that a healthy server is silent about never bring it down, only probes do', async (t) => {
  const { schedule, pass, probes, replies, changes, clock } = scheduleOf({ a: good })
  schedule.start()
  await pass(2_500)
  const before = probes.length
  for (let at = 0; at < 4; at++) schedule.observe('a', 'timeout', 400)
  t.equal(probes.length, before + 1, 'four silent names: one probe, at once')
  await pass(10)
  t.equal(schedule.health('a'), 'up')
  for (let round = 0; round < 100; round++) {
    for (let at = 0; at < 4; at++) schedule.observe('a', 'timeout', 400)
    await pass(100)
  }
  t.equal(schedule.health('a'), 'up')
  t.equal(changes.length, 1, 'it has never been anything else')
  const extra = probes.slice(before)
  t.ok(extra.length >= 30, `a timeout is answered by a probe: ${extra.length} in 10 s`)
  t.ok(
    extra.every(({ atMs }, at) => at === 0 || atMs - extra[at - 1]!.atMs >= 200),
    'never more than one in 200 ms'
  )
  replies['a'] = timeout
  const diedAtMs = clock.nowMs()
  for (let at = 0; at < 100 && schedule.health('a') === 'up'; at++) {
    schedule.observe('a', 'timeout', 400)
    const sent = probes.length
    schedule.observe('a', 'timeout', 400)
    t.equal(probes.length, sent, 'none while one is under way')
    await pass(20)
  }
  const tookMs = clock.nowMs() - diedAtMs
  t.match(changes.at(-1), { to: 'down', reason: 'timeout' })
  t.ok(tookMs <= options.fall * options.timeoutMs + 300, `with traffic a death is found sooner: after ${tookMs} ms`)
  const whileDown = probes.length
  for (let at = 0; at < 5; at++) schedule.observe('a', 'timeout', 400)
  t.equal(probes.length, whileDown, 'one that is down is probed as its back-off says')
  schedule.stop()
  schedule.observe('a', 'timeout', 400)
  t.equal(probes.length, whileDown, 'nothing begins after stop')
})

test('ProbeSchedule: data that are too old are no health, where the server tells their age', async (t) => {
  const { schedule, pass, changes, replies } = scheduleOf({ a: good }, () => 0.5, 1_000, 30_000)
  schedule.start()
  await pass(1_500)
  t.equal(schedule.health('a'), 'up', 'a server that tells nothing is taken as it is')
  replies['a'] = answer(0, 0, true, 30_000)
  await pass(3_000)
  t.equal(schedule.health('a'), 'up', 'young enough')
  replies['a'] = answer(0, 0, true, 31_000)
  await pass(3_000)
  t.match(changes.at(-1), { to: 'down', reason: 'data 31 s old' })
  replies['a'] = answer(0, 0, true, 100)
  await pass(12_000)
  t.equal(schedule.health('a'), 'up')
  schedule.stop()
})

test('ProbeSchedule.observe: an error answer brings nobody down, but has the server probed', async (t) => {
  for (const outcome of ['rcode', 'nonsense'] as const) {
    const { schedule, pass, probes, replies } = scheduleOf({ a: good })
    schedule.start()
    await pass(2_500)
    const sent = probes.length
    schedule.observe('a', outcome, 5)
    t.equal(probes.length, sent + 1, outcome)
    t.equal(schedule.health('a'), 'up')
    await pass(300)
    replies['a'] = { kind: 'failed', reason: 'rcode', rcode: 2 }
    schedule.observe('a', outcome, 5)
    await pass(300)
    schedule.observe('a', outcome, 5)
    await pass(100)
    t.equal(schedule.health('a'), 'down', 'within two probes out of turn')
    schedule.stop()
  }
})

test('ProbeSchedule.observe: extra probes keep their distance, which follows from every', async (t) => {
  const rows: { everyMs: number; leastMs: number }[] = [
    { everyMs: 100, leastMs: 200 },
    { everyMs: 10_000, leastMs: 2_000 }
  ]
  for (const { everyMs, leastMs } of rows) {
    const { schedule, pass, probes, clock } = scheduleOf({ a: good }, () => 0.5, everyMs)
    schedule.start()
    await pass(everyMs * 1.5)
    const extra: number[] = []
    for (let at = 0; at < 500; at++) {
      const sent = probes.length
      schedule.observe('a', 'timeout', 400)
      if (probes.length > sent) extra.push(clock.nowMs())
      await pass(20)
    }
    const gaps = extra.slice(1).map((atMs, at) => atMs - extra[at]!)
    t.ok(gaps.length >= 2 && Math.min(...gaps) >= leastMs, `every ${everyMs}: ${gaps.slice(0, 5).join(' ')}`)
    t.equal(schedule.health('a'), 'up')
    schedule.stop()
  }
})

test('ProbeSchedule.observe lets a network that refuses bring a server down sooner, and probes it at once', async (t) => {
  const { schedule, pass, probes, changes, replies, clock } = scheduleOf({ a: good })
  schedule.start()
  await pass(2_500)
  t.equal(schedule.summary, 'up')
  replies['a'] = timeout
  schedule.observe('a', 'network', 5)
  schedule.observe('unknown server', 'network', 5)
  t.equal(schedule.health('a'), 'up', 'only one failure counts yet')
  const before = probes.length
  schedule.observe('a', 'network', 5)
  t.equal(schedule.health('a'), 'down')
  t.equal(schedule.summary, 'down')
  t.match(changes.at(-1), { server: 'a', from: 'up', to: 'down', reason: 'traffic: network', atMs: clock.nowMs() })
  t.equal(probes.length, before + 1, 'probed at once')
  replies['a'] = good
  await pass(10_000)
  t.equal(schedule.health('a'), 'up')
  schedule.stop()
})

test('ProbeSchedule follows the servers of the peer, and tells each in status', async (t) => {
  const { schedule, pass, setServers, replies, clock } = scheduleOf({ a: good })
  t.equal(schedule.summary, 'unknown')
  schedule.start()
  await pass(1_500)
  replies['b'] = timeout
  setServers(['b'])
  await pass(4_000)
  t.equal(schedule.health('a'), 'unknown', 'gone and forgotten')
  t.equal(schedule.health('b'), 'down')
  const [status, ...others] = schedule.status()
  t.same(others, [])
  t.match(status, { server: 'b', health: 'down', lastReason: 'timeout' })
  t.equal(status!.history.length, 1)
  t.equal(status!.history[0]!.atEpochMs, status!.sinceEpochMs)
  t.ok(Math.abs(clock.epochMs() - status!.sinceEpochMs) < 4_000, 'wall time')
  schedule.stop()
  const heard: HealthChange[] = []
  const unsubscribe = schedule.subscribe((change) => heard.push(change))
  unsubscribe()
  schedule.observe('b', 'network', 1)
  t.same(heard, [])
})

test('ProbeSchedule: rare probes do not keep a healthy server out of use', async (t) => {
  const { schedule, pass, replies } = scheduleOf({ a: good }, () => 0, 3_600_000)
  schedule.start()
  await pass(100)
  t.equal(schedule.health('a'), 'up')
  replies['a'] = timeout
  for (let at = 0; at < options.fall; at++) schedule.observe('a', 'network', 1)
  t.equal(schedule.health('a'), 'down', 'by traffic')
  await pass(60_000)
  t.equal(schedule.health('a'), 'down')
  replies['a'] = good
  await pass(30_000)
  t.equal(schedule.health('a'), 'up', 'within 30 s of its return')
  schedule.stop()
})
