// Peer against servers that misbehave, over real sockets: what the asker gets, from whom, and how late.
import { test } from 'tap'
import { RRTYPE } from '../../src/wire/iana.ts'
import { rootName } from '../../src/wire/name.ts'
import { InFlightLimit } from '../../src/peer/in-flight-limit.ts'
import { loopClock } from '../support/loop-clock.ts'
import { replyToText, southAnswers, southPeer, southQuestion, southStub } from '../support/south-peer.ts'
import type { StubFault } from '../support/stub-peer.ts'

const good = southAnswers.api
const faultsAtOnce: StubFault[] = ['servfail', 'refused', 'notimp', 'formerr', 'broken-rdata', 'garbage', 'other-name', 'always-truncated', 'tcp-reset', 'tcp-close', 'tcp-garbage'] // prettier-ignore
const faultsOfSilence: StubFault[] = ['silent', 'wrong-id', 'wrong-question', 'wrong-source-port', 'query-back', 'tcp-hang', 'tcp-half'] // prettier-ignore

test('Peer.ask: a faulty first server costs time, never the answer', async (t) => {
  await Promise.all(
    [...faultsAtOnce, ...faultsOfSilence].map(async (fault) => {
      const [bad, well] = [await southStub(t, fault), await southStub(t)]
      const peer = southPeer(t, [bad, well])
      const reply = await peer.ask(southQuestion('api'), 2_000)
      t.equal(replyToText(reply), good, fault)
      if (reply.kind !== 'answer') return
      t.equal(reply.server, well.text, `${fault}: from the second one`)
      t.equal(reply.attempts.at(-1)?.outcome, 'answer', fault)
      t.ok(reply.attempts.some(({ server }) => server === bad.text), `${fault}: the first one was asked`) // prettier-ignore
      const hadSilence = reply.attempts.some(({ outcome }) => outcome === 'timeout')
      t.equal(hadSilence, faultsOfSilence.includes(fault), `${fault}: others are asked at once where it says something`)
      t.ok(reply.tookMs < 1_000, `${fault}: after ${reply.tookMs.toFixed(0)} ms`)
      const before = bad.queries.length
      const again = await peer.ask(southQuestion('five'), 2_000)
      t.equal(again.kind, 'answer')
      t.equal(bad.queries.length, before, `${fault}: the failing one is not asked first again`)
    })
  )
})

test('Peer.ask: one faulty server alone gives its reason, within the budget', async (t) => {
  const rows: { fault: StubFault; want: string; atMostMs: number }[] = [
    { fault: 'servfail', want: 'rcode 2', atMostMs: 900 },
    { fault: 'refused', want: 'rcode 5', atMostMs: 900 },
    { fault: 'notimp', want: 'rcode 4', atMostMs: 900 },
    { fault: 'formerr', want: 'rcode 1', atMostMs: 900 },
    { fault: 'broken-rdata', want: 'nonsense', atMostMs: 900 },
    { fault: 'garbage', want: 'nonsense', atMostMs: 900 },
    { fault: 'other-name', want: 'nonsense', atMostMs: 900 },
    { fault: 'always-truncated', want: 'nonsense', atMostMs: 900 },
    { fault: 'tcp-reset', want: 'network', atMostMs: 900 },
    { fault: 'tcp-close', want: 'network', atMostMs: 900 },
    { fault: 'tcp-garbage', want: 'nonsense', atMostMs: 900 },
    { fault: 'tcp-hang', want: 'timeout', atMostMs: 1_300 },
    { fault: 'tcp-half', want: 'timeout', atMostMs: 1_300 },
    { fault: 'silent', want: 'timeout', atMostMs: 1_300 },
    { fault: 'wrong-id', want: 'timeout', atMostMs: 1_300 },
    { fault: 'wrong-question', want: 'timeout', atMostMs: 1_300 },
    { fault: 'wrong-source-port', want: 'timeout', atMostMs: 1_300 },
    { fault: 'query-back', want: 'timeout', atMostMs: 1_300 }
  ]
  await Promise.all(
    rows.map(async ({ fault, want, atMostMs }) => {
      const stub = await southStub(t, fault)
      const peer = southPeer(t, [stub])
      const reply = await peer.ask(southQuestion('api'), 1_000)
      t.equal(replyToText(reply), want, fault)
      t.ok(reply.tookMs < atMostMs, `${fault}: after ${reply.tookMs.toFixed(0)} ms`)
      if (['wrong-id', 'wrong-question', 'query-back'].includes(fault))
        t.ok(peer.stats.strays > 0, `${fault} is counted`)
      if (fault === 'silent') t.equal(stub.queries.length, 4, 'it was sent again, at 150, at 450 and at 850 ms')
      if (fault === 'silent') t.equal(new Set(stub.queries.map(({ packet }) => packet.id)).size, 1, 'with the same id')
      t.match(reply, { kind: 'failed', detail: stub.text })
      t.same(peer.status().servers.map(({ inFlight }) => inFlight), [0], `${fault}: nothing is left`) // prettier-ignore
      t.same(peer.status().inFlight, 0)
    })
  )
})

test('Peer.ask: answers as they should be', async (t) => {
  const stub = await southStub(t)
  const peer = southPeer(t, [stub])
  const rows: { label: string; type?: number; want: string; hasSoa: boolean }[] = [
    { label: 'api', want: good, hasSoa: false },
    { label: 'API', want: good, hasSoa: false },
    { label: 'www', want: good, hasSoa: false },
    { label: 'api', type: RRTYPE.AAAA, want: 'NOERROR', hasSoa: true },
    { label: 'none', want: 'NXDOMAIN', hasSoa: true },
    { label: 'five', want: southAnswers.five, hasSoa: false }
  ]
  for (const { label, type = RRTYPE.A, want, hasSoa } of rows) {
    const reply = await peer.ask(southQuestion(label, { type }), 1_000)
    t.equal(replyToText(reply), want, label)
    t.match(reply, { kind: 'answer', hasSoa, authoritative: true, server: stub.text, transport: 'udp' }, label)
  }
  stub.fault = 'no-soa'
  t.match(
    await peer.ask(southQuestion('none'), 1_000),
    { kind: 'answer', hasSoa: false },
    'a denial without SOA says so'
  )
  stub.fault = 'extra-records'
  const extra = await peer.ask(southQuestion('api'), 1_000)
  t.match(extra, { sections: { answer: { length: 1 }, authority: { length: 0 }, additional: { length: 0 } } })
  t.equal(peer.stats.answered, rows.length + 2)
  const ports = new Set(stub.queries.map(({ clientPort }) => clientPort))
  const ids = new Set(stub.queries.map(({ packet }) => packet.id))
  t.ok(ports.size >= stub.queries.length - 1, 'a port of its own for each')
  t.ok(ids.size >= stub.queries.length - 1, 'a random id for each')
  t.notOk(
    stub.queries.some(({ packet }) => packet.flag_rd),
    'RD is clear for peers'
  )
  const upstream = southPeer(t, [stub], { recursion: true, zone: rootName })
  await upstream.ask(southQuestion('api', { dnssecOk: true, checkingDisabled: true, options: [{ code: 65_313, data: Uint8Array.of(1, 2) }] }), 1_000) // prettier-ignore
  const seen = stub.queries.at(-1)!.packet
  t.match(seen, { flag_rd: true, flag_cd: true, flag_ad: false })
  t.match(seen.additionals, [{ type: 'OPT', udpPayloadSize: 1_232, flag_do: true, options: [{ code: 65_313 }] }])
})

test('Peer.ask over IPv6, and families that are not wanted', async (t) => {
  const [v4, v6] = [await southStub(t), await southStub(t, 'none', '::1').catch(() => null)]
  if (v6 === null) {
    t.pass('no IPv6 here')
    return
  }
  const both = await southPeer(t, [v6, v4]).ask(southQuestion('api'), 1_000)
  t.match(both, { kind: 'answer', server: `[::1]:${v6.port}` })
  t.match(await southPeer(t, [v6, v4], { families: [4] }).ask(southQuestion('api'), 1_000), {
    kind: 'answer',
    server: v4.text
  })
  t.match(await southPeer(t, [v6, v4], { families: [6], transport: 'tcp' }).ask(southQuestion('api'), 1_000), { kind: 'answer', server: v6.text, transport: 'tcp' }) // prettier-ignore
  t.match(await southPeer(t, [v4], { families: [6] }).ask(southQuestion('api'), 1_000), {
    kind: 'failed',
    reason: 'no-server'
  })
})

test('Peer.ask: a closed port fails at once, over UDP by ICMP', async (t) => {
  const stub = await southStub(t)
  await stub.stop()
  for (const transport of ['udp', 'tcp'] as const) {
    const reply = await southPeer(t, [stub], { transport }).ask(southQuestion('api'), 2_000)
    t.match(reply, { kind: 'failed', reason: 'network' }, transport)
    t.ok(reply.tookMs < 900, `after ${reply.tookMs.toFixed(0)} ms`)
  }
})

test('Peer.ask: a slow server is answered for, though others were asked meanwhile', async (t) => {
  const slow = await southStub(t, 'slow')
  slow.delayMs = 600
  for (const transport of ['udp', 'tcp'] as const) {
    const peer = southPeer(t, [slow], { transport })
    const reply = await peer.ask(southQuestion('api'), 2_000)
    t.equal(replyToText(reply), good, `${transport}: the first answer was waited for`)
    t.ok(reply.tookMs < 1_000, `after ${reply.tookMs.toFixed(0)} ms`)
  }
  const late = await southPeer(t, [slow]).ask(southQuestion('api'), 200)
  t.match(late, { kind: 'failed', reason: 'timeout' })
  t.ok(late.tookMs < 500, 'the budget holds')
  const lossy = await southStub(t, 'lossy')
  const reply = await southPeer(t, [lossy]).ask(southQuestion('api'), 2_000)
  t.equal(replyToText(reply), good, 'a lost datagram is sent again')
  t.ok(reply.tookMs > 100 && reply.tookMs < 500, `after ${reply.tookMs.toFixed(0)} ms`)
})

test('Peer.ask: a server without EDNS is asked once more, and then without it', async (t) => {
  for (const fault of ['no-edns', 'bare-formerr'] as const) {
    const stub = await southStub(t, fault)
    const peer = southPeer(t, [stub])
    t.equal(replyToText(await peer.ask(southQuestion('api'), 1_000)), good, fault)
    t.equal(replyToText(await peer.ask(southQuestion('five'), 1_000)).slice(0, 7), 'NOERROR', fault)
    t.same(stub.queries.map(({ hasEdns }) => hasEdns), [true, false, false], fault) // prettier-ignore
    t.equal(peer.stats.withoutEdns, 1)
    t.equal(peer.status().servers[0]?.isPlain, true)
  }
})

test('Peer.ask: servers by RTT and by health', async (t) => {
  const [one, two] = [await southStub(t), await southStub(t)]
  const down = new Set([one.text])
  const outcomes: string[] = []
  const peer = southPeer(t, [one, two], {}, {
    health: (server) => (down.has(server) ? 'down' : 'up'),
    onOutcome: (server, outcome) => outcomes.push(`${server} ${outcome}`)
  }) // prettier-ignore
  t.match(await peer.ask(southQuestion('api'), 1_000), { server: two.text }, 'one that is down is not asked')
  down.add(two.text)
  t.match(await peer.ask(southQuestion('api'), 500), { server: one.text }, 'all down: asked all the same')
  down.clear()
  one.fault = 'slow'
  one.delayMs = 60
  for (let time = 0; time < 5; time++) await peer.ask(southQuestion(`n${time}`), 1_000)
  t.match(await peer.ask(southQuestion('api'), 1_000), { server: two.text }, 'the quicker one')
  t.ok(outcomes.includes(`${two.text} answer`))
  const heard = outcomes.length
  t.match(await peer.askServer(one.text, southQuestion('api'), 500), { kind: 'answer', server: one.text })
  one.fault = 'silent'
  t.match(await peer.askServer(one.text, southQuestion('api'), 200), {
    kind: 'failed',
    reason: 'timeout',
    attempts: { length: 1 }
  })
  t.match(await peer.askServer('192.0.2.99:53', southQuestion('api'), 200), { kind: 'failed', reason: 'no-server' })
  t.equal(outcomes.length, heard, 'probes are not traffic')
})

test('Peer.ask: equal questions share one exchange; others do not', async (t) => {
  const stub = await southStub(t, 'slow')
  stub.delayMs = 30
  const peer = southPeer(t, [stub], { maxInFlight: 5 })
  const same = Array.from({ length: 1_000 }, () => peer.ask(southQuestion('api'), 1_000))
  const others = [{ type: RRTYPE.AAAA }, { dnssecOk: true }, { checkingDisabled: true }, { options: [{ code: 65_313, data: Uint8Array.of(1) }] }] // prettier-ignore
  const all = await Promise.all([...same, ...others.map((other) => peer.ask(southQuestion('api', other), 1_000))])
  t.ok(all.every(({ kind }) => kind === 'answer'))
  t.equal(stub.queries.length, 5)
  t.equal(peer.stats.joined, 999)
  const short = peer.ask(southQuestion('five'), 1_000)
  const shorter = peer.ask(southQuestion('five'), 20)
  t.match(await shorter, { kind: 'failed', reason: 'timeout' }, 'each waits for its own budget')
  t.match(await short, { kind: 'answer' })
  stub.delayMs = 150
  const impatient = peer.ask(southQuestion('n1'), 50)
  const patient = peer.ask(southQuestion('n1'), 1_000)
  t.match(await impatient, { kind: 'failed', reason: 'timeout' })
  t.match(await patient, { kind: 'answer' }, 'the flight lasts as long as its most patient asker')
})

test('Peer.ask: limits of one peer and of all', async (t) => {
  const stub = await southStub(t, 'silent')
  const exchanges = new InFlightLimit(6)
  const one = southPeer(t, [stub], { maxInFlight: 4 }, { exchanges })
  const two = southPeer(t, [stub], { maxInFlight: 4 }, { exchanges })
  const asked = [one, two].flatMap((peer) =>
    Array.from({ length: 5 }, (_, at) => peer.ask(southQuestion(`n${at}`), 300))
  )
  const startMs = loopClock.nowMs()
  const reasons = (await Promise.all(asked)).map(replyToText)
  t.same(reasons, ['timeout', 'timeout', 'timeout', 'timeout', 'overload', 'timeout', 'timeout', 'overload', 'overload', 'overload']) // prettier-ignore
  t.ok(loopClock.nowMs() - startMs < 900)
  t.equal(one.stats.overloaded, 1)
  t.equal(two.stats.overloaded, 3)
  t.equal(exchanges.current, 0)
  stub.fault = 'none'
  t.equal(replyToText(await two.ask(southQuestion('api'), 1_000)), good, 'room again')
})

test('Peer: servers by name, changed servers, and the end', async (t) => {
  const [one, two] = [await southStub(t), await southStub(t)]
  let known: readonly string[] = []
  const lookedUp = Promise.withResolvers<readonly string[]>()
  const hosts = { addresses: () => known, resolve: () => lookedUp.promise }
  const peer = southPeer(t, [], { servers: [{ host: 'dns.south.example', port: one.port }] }, { hosts })
  t.same(peer.status(), { id: 'south', inFlight: 0, servers: [], unresolved: ['dns.south.example'] })
  t.match(await peer.ask(southQuestion('api'), 20), { kind: 'failed', reason: 'no-server' }, 'not known in time')
  const waiting = peer.ask(southQuestion('n1'), 1_000)
  lookedUp.resolve((known = ['127.0.0.1']))
  t.match(await waiting, { kind: 'answer', server: one.text }, 'who waits for the look-up is answered')
  t.match(await peer.ask(southQuestion('api'), 1_000), { kind: 'answer', server: one.text })
  t.same(peer.servers(), [one.text])
  peer.setServers([two.address])
  t.match(await peer.ask(southQuestion('api'), 1_000), { kind: 'answer', server: two.text })
  two.fault = 'silent'
  const pending = peer.ask(southQuestion('five'), 2_000)
  await peer.close()
  t.match(await pending, { kind: 'failed' }, 'who waits is told')
  t.match(await peer.ask(southQuestion('api'), 1_000), { kind: 'failed', reason: 'no-server' })
  const unknown = southPeer(t, [], { servers: [{ host: 'dns.south.example', port: 1 }] })
  t.match(await unknown.ask(southQuestion('api'), 1_000), { kind: 'failed', reason: 'no-server' }, 'nobody resolves it')
})
