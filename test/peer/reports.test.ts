// Faults that users of other servers met, as far as asking a peer goes: each tells its input and the right behaviour.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test, type Test } from 'tap'
import { inFlightPerPeer, pooledTcpConnections, pooledTcpIdleMs } from '../../src/base/limits.ts'
import { ProbeSchedule, type HealthChange } from '../../src/health/probe.ts'
import { InFlightLimit } from '../../src/peer/in-flight-limit.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { parseName } from '../../src/wire/name.ts'
import { loopClock, sleep } from '../support/loop-clock.ts'
import { replyToText, southAnswers, southPeer, southQuestion, southStub, southZone } from '../support/south-peer.ts'
import type { StubFault, StubPeer } from '../support/stub-peer.ts'

async function until(isDone: () => boolean, withinMs = 20_000): Promise<boolean> {
  const endMs = loopClock.nowMs() + withinMs
  while (!isDone() && loopClock.nowMs() < endMs) await sleep(5)
  return isDone()
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

/** What is still in use, whatever the collector has left lying about and the heap has taken for itself. */
function heldMiB(): number {
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return (heapUsed + external) / 1024 / 1024
}

test('an answer that was damaged on its way is asked for once more over TCP, by who asks one server too', async (t) => {
  const stub = await southStub(t, 'udp-cut')
  const peer = southPeer(t, [stub])
  const reply = await peer.ask(southQuestion('five'), 2_000)
  t.equal(replyToText(reply), southAnswers.five)
  t.same(reply.attempts.map(({ transport, outcome }) => `${transport} ${outcome}`), ['udp nonsense', 'tcp answer']) // prettier-ignore
  t.equal(peer.stats.nonsense, 1)
  t.same(peer.status().servers.map(({ failures }) => failures), [0], 'the server is well') // prettier-ignore
  const udpOnly = await southPeer(t, [stub], { transport: 'udp' }).ask(southQuestion('five'), 2_000)
  t.match(udpOnly, { kind: 'failed', reason: 'nonsense' })
})

test('truncated part of five records (coredns#4183): all five come over TCP, the part never', async (t) => {
  const stub = await southStub(t, 'truncated')
  const reply = await southPeer(t, [stub]).ask(southQuestion('five'), 2_000)
  t.equal(replyToText(reply), southAnswers.five)
  t.match(reply, { kind: 'answer', transport: 'tcp', server: stub.text })
  t.same(reply.attempts.map(({ transport, outcome }) => `${transport} ${outcome}`), ['udp truncated', 'tcp answer']) // prettier-ignore
  const udpOnly = await southPeer(t, [stub], { transport: 'udp' }).ask(southQuestion('five'), 2_000)
  t.match(
    udpOnly,
    { kind: 'failed', reason: 'nonsense' },
    'where TCP is not allowed there is no answer rather than a part'
  )
  stub.fault = 'always-truncated'
  t.match(await southPeer(t, [stub]).ask(southQuestion('five'), 2_000), { kind: 'failed', reason: 'nonsense' })
  stub.fault = 'none'
  const before = stub.queries.length
  const tcpOnly = await southPeer(t, [stub], { transport: 'tcp' }).ask(southQuestion('five'), 2_000)
  t.equal(replyToText(tcpOnly), southAnswers.five)
  t.same(stub.queries.slice(before).map(({ transport }) => transport), ['tcp']) // prettier-ignore
})

test('no failover on SERVFAIL, REFUSED, NOTIMP, FORMERR (coredns#7457): the second server answers in the same query', async (t) => {
  for (const fault of ['servfail', 'refused', 'notimp', 'formerr'] as const) {
    const [bad, good] = [await southStub(t, fault), await southStub(t)]
    const peer = southPeer(t, [bad, good])
    for (let at = 0; at < 20; at++) {
      const reply = await peer.ask(southQuestion(`n${at}`), 2_000)
      t.equal(replyToText(reply), southAnswers.n, fault)
      t.notOk(reply.attempts.some(({ outcome }) => outcome === 'timeout'))
    }
    const asked = bad.queries.filter(({ hasEdns }) => hasEdns).length
    t.ok(asked <= 2, `${fault}: the failing one is not asked first each time, but ${asked} times`)
  }
  const [first, second] = [await southStub(t), await southStub(t)]
  const peer = southPeer(t, [first, second])
  t.equal(replyToText(await peer.ask(southQuestion('none'), 2_000)), 'NXDOMAIN')
  t.equal(replyToText(await peer.ask(southQuestion('api', { type: RRTYPE.AAAA }), 2_000)), 'NOERROR')
  t.equal(second.queries.length, 0, 'NXDOMAIN and NODATA are answers')
})

/** A peer whose servers are probed until the test ends. */
function probed(t: Test, stubs: StubPeer[], times: Readonly<{ everyMs: number; timeoutMs: number }>) {
  const options = { ...times, fall: 2, rise: 2, name: parseName(southZone), type: RRTYPE.SOA, maxAgeMs: null }
  const probes: ProbeSchedule = new ProbeSchedule(options, {
    clock: loopClock,
    random: Math.random,
    servers: () => peer.servers(),
    ask: (server, { name, type }, timeoutMs) =>
      peer.askServer(server, { name, type, dnssecOk: false, checkingDisabled: false, options: [] }, timeoutMs)
  })
  const peer = southPeer(
    t,
    stubs,
    {},
    {
      health: (server) => probes.health(server),
      onOutcome: (server, outcome, tookMs) => probes.observe(server, outcome, tookMs)
    }
  )
  probes.start()
  t.teardown(() => probes.stop())
  return { peer, probes, options }
}

test('minutes until a dead server is no longer used (submariner#821): fall probes, and nobody waits in vain meanwhile', async (t) => {
  const [dead, alive] = [await southStub(t), await southStub(t)]
  const { peer, probes, options } = probed(t, [dead, alive], { everyMs: 200, timeoutMs: 100 })
  t.ok(await until(() => probes.health(dead.text) === 'up' && probes.health(alive.text) === 'up'), 'both are up')
  dead.fault = 'silent'
  const diedMs = loopClock.nowMs()
  const replies = Array.from({ length: 10 }, (_, at) => peer.ask(southQuestion(`n${at}`), 2_000))
  t.ok(await until(() => probes.health(dead.text) === 'down'))
  const detectedMs = loopClock.nowMs() - diedMs
  t.ok(
    detectedMs < options.fall * (options.everyMs + options.timeoutMs) + 250,
    `down after ${detectedMs.toFixed(0)} ms`
  )
  for (const reply of await Promise.all(replies)) {
    t.equal(replyToText(reply), southAnswers.n)
    t.ok(reply.tookMs < 1_000, `retried within its own deadline: ${reply.tookMs.toFixed(0)} ms`)
  }
  const asked = dead.queries.filter(({ type }) => type === 'A').length
  for (let at = 20; at < 40; at++) {
    const reply = await peer.ask(southQuestion(`n${at}`), 2_000)
    t.match(reply, { kind: 'answer', server: alive.text, attempts: { length: 1 } })
  }
  t.equal(dead.queries.filter(({ type }) => type === 'A').length, asked, 'only the other is asked')
  dead.fault = 'none'
  t.ok(await until(() => probes.health(dead.text) === 'up'), 'back in use')
})

test('a healthy server that is silent about a few names stays up', async (t) => {
  const stub = await southStub(t)
  const { peer, probes } = probed(t, [stub], { everyMs: 300, timeoutMs: 150 })
  t.ok(await until(() => probes.health(stub.text) === 'up'))
  const changes: HealthChange[] = []
  probes.subscribe((change) => changes.push(change))
  stub.silentAbout = new Set(['n1', 'n2', 'n3', 'n4'].map((label) => `${label}.${southZone}`))
  const silent = [1, 2, 3, 4].map((at) => peer.ask(southQuestion(`n${at}`), 900))
  for (const reply of await Promise.all(silent)) t.equal(replyToText(reply), 'timeout')
  t.same(changes, [])
  t.equal(probes.health(stub.text), 'up')
  t.equal(replyToText(await peer.ask(southQuestion('api'), 2_000)), southAnswers.api)
})

test('dead pooled TCP connections (kubernetes/dns#745): nobody is failed by one', async (t) => {
  const stub = await southStub(t)
  const peer = southPeer(t, [stub], { transport: 'tcp' })
  const ask = async (label: string, budgetMs = 2_000) => replyToText(await peer.ask(southQuestion(label), budgetMs))
  t.equal(await ask('api'), southAnswers.api)
  t.equal(await ask('five'), southAnswers.five)
  t.equal(stub.connectionsTotal, 1, 'one connection for both')

  stub.endConnections()
  t.ok(
    await until(() => stub.connections === 0 && peer.status().servers[0]?.tcpConnections === 0),
    'closed while idle: it left the pool'
  )
  t.equal(await ask('n1'), southAnswers.n)

  stub.fault = 'tcp-reset'
  const resent = peer.stats.tcpResent
  t.equal(await ask('n2'), 'network', 'reset on the used and on the fresh one')
  t.equal(peer.stats.tcpResent, resent + 1)
  stub.fault = 'none'
  t.equal(await ask('n3'), southAnswers.n)

  await stub.stop()
  await stub.start()
  t.equal(await ask('n4'), southAnswers.n, 'the server has restarted')

  stub.fault = 'tcp-once'
  const many = await Promise.all(Array.from({ length: 8 }, (_, at) => ask(`n${10 + at}`)))
  t.ok(
    many.filter((text) => text === southAnswers.n).length >= 2,
    'a server that closes behind each answer is asked again'
  )

  stub.fault = 'none'
  t.equal(await ask('n5'), southAnswers.n)
  stub.fault = 'tcp-hang'
  t.equal(await ask('n6', 600), 'timeout')
  t.ok(await until(() => peer.status().servers[0]?.tcpConnections === 0), 'a connection that hangs is dropped')
  stub.fault = 'tcp-half'
  t.equal(await ask('n7', 600), 'timeout')
  t.ok(await until(() => stub.connections === 0), 'and one that stops half way')
  stub.fault = 'none'
  t.equal(await ask('n8'), southAnswers.n)

  stub.fault = 'tcp-hang'
  const hanging = ask('n9')
  await sleep(500)
  stub.fault = 'none'
  t.equal(await hanging, southAnswers.n, 'one that hangs in use: a fresh one within the same query')
})

test('a TCP connection that nobody needs is closed', async (t) => {
  const stub = await southStub(t)
  const clock = {
    ...loopClock,
    after: (delayMs: number, callback: () => void) =>
      loopClock.after(delayMs === pooledTcpIdleMs ? 800 : delayMs, callback)
  }
  const peer = southPeer(t, [stub], { transport: 'tcp' }, { clock })
  for (let at = 0; at < 10; at++) {
    t.equal(replyToText(await peer.ask(southQuestion(`n${at}`), 2_000)), southAnswers.n)
    await sleep(20)
  }
  t.equal(stub.connectionsTotal, 1, 'it is kept while it is used')
  t.ok(await until(() => stub.connections === 0))
  t.equal(peer.status().servers[0]?.tcpConnections, 0)
})

test('TCP connections to a server do not pile up, whatever happens on them', async (t) => {
  const stub = await southStub(t)
  const peer = southPeer(t, [stub], { transport: 'tcp' })
  let most = 0
  const watch = setInterval(() => (most = Math.max(most, stub.connections)), 1)
  t.teardown(() => clearInterval(watch))
  const ask = (at: number) => peer.ask(southQuestion(`n${at % 100}`, { checkingDisabled: at >= 100 }), 900)
  const faults: StubFault[] = [
    'none',
    'tcp-reset',
    'tcp-close',
    'slow',
    'tcp-half',
    'tcp-garbage',
    'tcp-once',
    'tcp-hang',
    'none'
  ]
  stub.delayMs = 50
  for (const fault of faults) {
    stub.fault = fault
    const replies = await Promise.all(Array.from({ length: 200 }, (_, at) => ask(at)))
    if (fault === 'none' || fault === 'slow') {
      t.same([...new Set(replies.map(replyToText))], [southAnswers.n], `${fault}: all are answered`)
    }
    t.ok((peer.status().servers[0]?.tcpConnections ?? 0) <= pooledTcpConnections, fault)
    t.ok(await until(() => stub.connections <= pooledTcpConnections), `${fault}: the rest is gone`)
  }
  // The server sees some of them a moment after we have closed them.
  t.ok(most <= 5 * pooledTcpConnections, `at most ${most} were open at once`)
  stub.fault = 'none'
  const strays = peer.stats.strays
  stub.sendUnasked(Buffer.from('000c00010203040506070809000a', 'hex'))
  t.ok(await until(() => peer.stats.strays > strays), 'what nobody asked for is counted')
  t.equal(replyToText(await ask(1)), southAnswers.n)
  await peer.close()
  t.ok(await until(() => stub.connections === 0), 'all are closed at the end')
})

test('a slow server makes memory grow (coredns#2593): limits, at once and counted, and nobody else waits', async (t) => {
  const stub = await southStub(t, 'slow')
  stub.delayMs = 5_000
  const exchanges = new InFlightLimit(10_000)
  const peer = southPeer(t, [stub], { maxInFlight: inFlightPerPeer }, { exchanges })
  const outcomes = new Map<string, number>()
  let slowestOverloadMs = 0
  /** CPU, not time: other processes may hold the machine. */
  let longestPauseMs = 0
  let pending = 0
  const ask = (label: string): void => {
    pending++
    void peer.ask(southQuestion(label), 2_000).then((reply) => {
      pending--
      const text = replyToText(reply)
      outcomes.set(text, (outcomes.get(text) ?? 0) + 1)
      if (text === 'overload') slowestOverloadMs = Math.max(slowestOverloadMs, reply.tookMs)
      return null
    })
  }
  let heldAfterFirst = 0
  for (let tick = 0; tick < 300; tick++) {
    const before = process.cpuUsage()
    for (let at = 0; at < 20; at++) ask(`x${tick}-${at}`)
    await sleep(10)
    const { user, system } = process.cpuUsage(before)
    longestPauseMs = Math.max(longestPauseMs, (user + system) / 1_000)
    t.ok(peer.status().inFlight <= inFlightPerPeer) // prettier-ignore
    if (tick === 200) heldAfterFirst = heldMiB()
  }
  const grownMiB = heldMiB() - heldAfterFirst
  t.ok(grownMiB < 10, `memory is flat once the limit is reached: ${grownMiB.toFixed(1)} MiB more`)
  t.ok(await until(() => pending === 0), 'everybody is told')
  t.same([...outcomes.keys()].sort(), ['overload', 'timeout'])
  t.ok((outcomes.get('overload') ?? 0) > 1_000)
  t.equal(peer.stats.overloaded, outcomes.get('overload'))
  t.ok(slowestOverloadMs < 20, 'at once')
  t.ok(longestPauseMs < 300, `others go on meanwhile: the longest pause was ${longestPauseMs.toFixed(0)} ms`)
  t.equal(exchanges.current, 0)
  t.equal(peer.status().inFlight, 0)
  const before = stub.queries.length
  stub.delayMs = 50
  await Promise.all(Array.from({ length: 500 }, () => peer.ask(southQuestion('api'), 2_000)))
  // Sent again, where this machine is slow, it has the same id.
  const sent = new Set(stub.queries.slice(before).map(({ packet }) => packet.id))
  t.equal(sent.size, 1, 'equal questions share one')
})
