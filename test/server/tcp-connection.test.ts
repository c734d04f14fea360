/** TCP: framing, order, half-close, and every bound that a connection has (RFC 7766). */
import { once } from 'node:events'
import { test } from 'tap'
import type { Responder } from '../../src/server/responder.ts'
import { frame, serve, TcpClient, until } from './clients.ts'
import { turns } from '../support/loop-clock.ts'
import { idOf, testQuery, textOf, type ScriptedResponder } from './scripted-responder.ts'

const ids = (messages: readonly Uint8Array[]): number[] => messages.map(idOf)
const numbers = (count: number): number[] => Array.from({ length: count }, (_, index) => index)

/** Answers what waits, always the newest, until `count` were answered. */
async function answerNewestFirst(responder: ScriptedResponder, count: number): Promise<void> {
  for (let answered = 0; answered < count; answered++) {
    await until('somebody waits', () => responder.waiting.length > 0)
    responder.waiting.at(-1)!.answer()
  }
}

for (const address of ['127.0.0.1', '::1']) {
  void test(`TcpConnection on ${address} answers as answers become ready`, async (t) => {
    const { where, responder, listeners } = await serve(t, { addresses: [{ address, port: 0 }] })
    const client = await TcpClient.open(t, where)
    client.ask(testQuery(1, 'later'), testQuery(2, 'later'), testQuery(3, 'now'))
    await client.gets(1)
    await until('two wait', () => responder.waiting.length === 2)
    responder.waiting[1]!.answer()
    await client.gets(2)
    responder.waiting[0]!.answer(' answered')
    await client.gets(3)
    t.same(ids(client.received), [3, 2, 1])
    t.equal(textOf(client.received[2]!), 'later answered')
    t.match(responder.asked[0]!.client, { address, transport: 'tcp', port: client.socket.localPort! })
    t.equal(responder.asked[0]!.client, responder.asked[2]!.client, 'one Client for a connection')
    t.match(listeners.stats.tcp, { receivedTotal: 3, answeredTotal: 1, resolvedTotal: 2, connectionsOpen: 1 })
  })
}

void test('TcpConnection finds messages however the stream is cut', async (t) => {
  const { where } = await serve(t)
  const three = Buffer.concat([1, 2, 3].map((id) => frame(testQuery(id, 'now'))))
  const zeros = Buffer.from([0, 0])
  const response = testQuery(9, 'now')
  response[2] = 0x80
  const rows: [name: string, pieces: Uint8Array[], wanted: number[]][] = [
    ['all in one piece', [three], [1, 2, 3]],
    ['octet by octet', [...three].map((octet) => Buffer.from([octet])), [1, 2, 3]],
    ['cut inside the length', [three.subarray(0, 1), three.subarray(1)], [1, 2, 3]],
    ['cut behind the length', [three.subarray(0, 2), three.subarray(2)], [1, 2, 3]],
    ['frames without octets between', [zeros, zeros, three, zeros, frame(testQuery(4, 'now'))], [1, 2, 3, 4]],
    ['a frame under twelve octets before', [frame(Buffer.alloc(11)), three], [1, 2, 3]],
    ['a response before', [frame(response), three], [1, 2, 3]],
    ['a query without reply before', [frame(testQuery(9, 'drop')), three], [1, 2, 3]],
    ['the largest frame before', [frame(testQuery(9, `drop${' '.repeat(65_519)}`)), three], [9, 1, 2, 3]]
  ]
  for (const [name, pieces, wanted] of rows) {
    const client = await TcpClient.open(t, where)
    for (const piece of pieces) {
      client.socket.write(piece)
      if (pieces.length > 1) await turns(2)
    }
    await client.gets(wanted.length)
    t.same(ids(client.received), wanted, name)
    t.notOk(client.isEnded, `${name}: the connection goes on`)
  }
})

void test('TcpConnection answers 2,000 pipelined queries, each once, whatever their order', async (t) => {
  const { where, responder, listeners } = await serve(t, { limits: { tcpInFlightPerConnection: 128 } })
  const client = await TcpClient.open(t, where)
  client.ask(...numbers(2_000).map((id) => testQuery(id, `later ${id}`)))
  await answerNewestFirst(responder, 2_000)
  await client.gets(2_000)
  t.same(new Set(ids(client.received)), new Set(numbers(2_000)))
  t.ok(client.received.every((message) => textOf(message) === `later ${idOf(message)}`))
  t.not(idOf(client.received[0]!), 0, 'not in the order they were asked')
  t.equal(responder.mostWaiting, 128, 'reading pauses at the limit of one connection')
  t.equal(listeners.inFlightQueries, 0)
})

void test('TcpConnection sends the answers in flight after the client has closed its side', async (t) => {
  const { where, responder, listeners } = await serve(t)
  const client = await TcpClient.open(t, where)
  client.ask(testQuery(1, 'later'), testQuery(2, 'now'), testQuery(3, 'later'))
  client.socket.end(Buffer.from([0, 50, 1]))
  await client.gets(1)
  await until('two wait', () => responder.waiting.length === 2)
  responder.waiting[1]!.answer()
  await client.gets(2)
  t.notOk(client.isEnded, 'one is still owed')
  responder.waiting[0]!.answer()
  await client.ends()
  t.same(ids(client.received), [2, 3, 1], 'half a frame at the end asks nothing')
  await until('it is gone', () => listeners.stats.tcp.connectionsOpen === 0)
  t.equal(listeners.stats.tcp.errorsTotal, 0)

  const silent = await TcpClient.open(t, where)
  silent.socket.end()
  await silent.ends()
  t.equal(silent.received.length, 0, 'who asks nothing is closed too')
})

void test('TcpConnection keeps the order of limits for many queries in one piece after a half-close', async (t) => {
  const { where, responder } = await serve(t, { limits: { tcpInFlightPerConnection: 4, tcpQueriesPerTurn: 3 } })
  const client = await TcpClient.open(t, where)
  client.ask(...numbers(40).map((id) => testQuery(id, id % 2 === 0 ? 'later' : 'now')))
  client.socket.end()
  await answerNewestFirst(responder, 20)
  await client.ends()
  t.same(new Set(ids(client.received)), new Set(numbers(40)))
  t.equal(responder.mostWaiting, 4)
})

void test('TcpConnection is idle from the last query or answer on, whatever octets come', async (t) => {
  const { where, clock, responder, listeners } = await serve(t, { limits: { tcpIdleTimeoutMs: 10_000 } })
  const connect = async () => TcpClient.open(t, where)
  const [silent, http, dribbling, zeros, dropped, asking, waiting] = await Promise.all([
    connect(), connect(), connect(), connect(), connect(), connect(), connect()
  ]) // prettier-ignore
  http.socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  waiting.ask(testQuery(1, 'later'))
  await until('one waits', () => responder.waiting.length === 1)
  for (let second = 1; second <= 9; second++) {
    clock.advance(1_000)
    dribbling.socket.write(Buffer.from([0]))
    zeros.socket.write(Buffer.from([0, 0]))
    dropped.ask(testQuery(2, 'drop'))
    asking.ask(testQuery(second, 'now'))
    await asking.gets(second)
  }
  await until('all drops were seen', () => listeners.stats.tcp.droppedTotal === 9)
  t.equal(listeners.stats.tcp.idleTimeoutsTotal, 0)
  clock.advance(999)
  t.equal(listeners.stats.tcp.connectionsOpen, 7)
  clock.advance(1)
  const idle = [silent, http, dribbling, zeros, dropped]
  for (const client of idle) await client.ends()
  t.ok(
    idle.every((client) => client.received.length === 0),
    'nobody gets an answer'
  )
  t.match(listeners.stats.tcp, { idleTimeoutsTotal: 5, connectionsOpen: 2 })
  clock.advance(8_999)
  t.equal(listeners.stats.tcp.connectionsOpen, 2)
  clock.advance(1)
  await asking.ends()
  clock.advance(20_000)
  t.notOk(waiting.isEnded, 'who is owed an answer is not idle')
  responder.waiting[0]!.answer()
  await waiting.gets(1)
  clock.advance(9_999)
  t.equal(listeners.stats.tcp.connectionsOpen, 1)
  clock.advance(1)
  await waiting.ends()
  t.equal(listeners.stats.tcp.idleTimeoutsTotal, 7)
  await until('no timer is left', () => clock.pendingTimers === 0)
})

void test('TcpConnections at their limit close the longest idle one, or else the new one', async (t) => {
  const { where, clock, responder, listeners } = await serve(t, { limits: { tcpConnections: 3 } })
  const busy = await TcpClient.open(t, where)
  busy.ask(testQuery(1, 'later'))
  await until('it waits', () => responder.waiting.length === 1)
  clock.advance(1)
  const first = await TcpClient.open(t, where)
  await until('it is open', () => listeners.stats.tcp.connectionsOpen === 2)
  clock.advance(1)
  const second = await TcpClient.open(t, where)
  await until('it is open', () => listeners.stats.tcp.connectionsOpen === 3)
  clock.advance(1)
  first.ask(testQuery(2, 'now'))
  await first.gets(1)
  const third = await TcpClient.open(t, where)
  await second.ends()
  t.notOk(first.isEnded, 'who asked lately stays')
  t.notOk(busy.isEnded, 'who is owed an answer stays')
  t.match(listeners.stats.tcp, { evictedTotal: 1, refusedTotal: 0, connectionsOpen: 3, connectionsTotal: 4 })
  for (const client of [first, third]) client.ask(testQuery(3, 'later'))
  await until('all wait', () => responder.waiting.length === 3)
  const refused = await TcpClient.open(t, where)
  await refused.ends()
  t.match(listeners.stats.tcp, { evictedTotal: 1, refusedTotal: 1, connectionsOpen: 3 })
  while (responder.waiting.length > 0) responder.waiting[0]!.answer()
  await Promise.all([busy.gets(1), first.gets(2), third.gets(1)])
})

void test('TcpConnection stops reading while its answers are not read, and goes on after', async (t) => {
  const limits = { tcpWriteBufferOctets: 256 * 1024, tcpWriteStallMs: 10_000 }
  const { where, responder, clock, listeners } = await serve(t, { limits })
  const client = await TcpClient.open(t, where)
  client.socket.pause()
  const count = 1_000
  client.ask(...numbers(count).map((id) => testQuery(id, 'size 50000')))
  await until('answers wait', () => listeners.tcpWaitingOctets > 0)
  await turns(50)
  t.ok(listeners.tcpWaitingOctets < 256 * 1024 + 65_537, `${listeners.tcpWaitingOctets} octets wait`)
  t.ok(responder.asked.length < count, `${responder.asked.length} queries were taken`)
  clock.advance(9_000)
  client.socket.resume()
  await client.gets(count)
  t.same(ids(client.received), numbers(count))
  t.ok(client.received.every((message) => message.length === 50_000))
  await until('nothing waits', () => listeners.tcpWaitingOctets === 0)
  t.equal(listeners.stats.tcp.stalledTotal, 0)
})

void test('TcpConnection that does not read its answers is cut, one that reads slowly is not', async (t) => {
  const limits = { tcpWriteBufferOctets: 128 * 1024, tcpWriteStallMs: 10_000, tcpIdleTimeoutMs: 60_000 }
  const { where, clock, listeners } = await serve(t, { limits })
  const client = await TcpClient.open(t, where)
  client.socket.pause()
  client.ask(...numbers(1_000).map((id) => testQuery(id, 'size 50000')))
  await until('answers wait', () => listeners.tcpWaitingOctets > 0)
  let before = client.received.length
  for (let step = 0; step < 3; step++) {
    client.socket.resume()
    await client.gets(before + 100)
    client.socket.pause()
    before = client.received.length
    await until('answers wait again', () => listeners.tcpWaitingOctets > 0)
    await turns(20)
    clock.advance(10_000)
    t.equal(listeners.stats.tcp.stalledTotal, 0, `step ${step}`)
  }
  await turns(20)
  clock.advance(20_000)
  t.match(listeners.stats.tcp, { stalledTotal: 1, connectionsOpen: 0 })
  t.equal(listeners.tcpWaitingOctets, 0)
  t.equal(clock.pendingTimers, 0)
})

void test('TcpConnections together hold no more answers than allowed', async (t) => {
  const limits = { tcpWriteBufferOctets: 10_000_000, tcpWriteBuffersOctets: 300_000 }
  const { where, listeners } = await serve(t, { limits })
  for (let index = 0; index < 4; index++) {
    const client = await TcpClient.open(t, where)
    client.socket.pause()
    client.ask(...numbers(1_000).map((id) => testQuery(id, 'size 50000')))
  }
  await until('answers wait', () => listeners.tcpWaitingOctets >= 300_000)
  await turns(100)
  // Each may pass the limit by what one turn writes before it is held: 64 KiB (the socket's own mark) and one answer.
  t.ok(listeners.tcpWaitingOctets < 300_000 + 4 * (65_536 + 50_002), `${listeners.tcpWaitingOctets} octets wait`)
})

void test('TcpConnections together hold no more unfinished queries than allowed', async (t) => {
  const { where, listeners } = await serve(t, { limits: { tcpReadBuffersOctets: 100_000, tcpReadShareOctets: 4_096 } })
  const start = async (octets: number) => {
    const client = await TcpClient.open(t, where)
    const before = listeners.tcpUnreadOctets
    client.socket.write(Buffer.concat([Buffer.from([0xff, 0xff]), Buffer.alloc(octets - 2)]))
    await until('it came', () => listeners.tcpUnreadOctets !== before || listeners.stats.tcp.crowdingTotal > 0)
    return client
  }
  const greedy = [await start(40_000), await start(40_000)]
  await until('both came', () => listeners.tcpUnreadOctets === 80_000)
  const modest = await start(4_000)
  const last = await start(40_000)
  await last.ends()
  t.match(listeners.stats.tcp, { crowdingTotal: 1, connectionsOpen: 3 })
  t.equal(listeners.tcpUnreadOctets, 84_000)
  const asking = await TcpClient.open(t, where)
  asking.ask(testQuery(1, 'now'))
  await asking.gets(1)
  t.notOk([modest, ...greedy].some((client) => client.isEnded))
  for (const client of [modest, ...greedy]) client.socket.destroy()
  await until('all is given back', () => listeners.tcpUnreadOctets === 0)
})

void test('TcpConnection lets others have their turn', async (t) => {
  const { where, responder } = await serve(t, { limits: { tcpQueriesPerTurn: 10 } })
  const client = await TcpClient.open(t, where)
  client.ask(...numbers(1_000).map((id) => testQuery(id, 'now')))
  let most = 0
  for (let seen = 0; seen < 1_000; seen = responder.asked.length) {
    await turns(1)
    most = Math.max(most, responder.asked.length - seen)
  }
  await client.gets(1_000)
  t.same(ids(client.received), numbers(1_000))
  // The piece that came and the turn before may fall between two looks of ours.
  t.ok(most <= 20, `at most ${most} between two turns of the event loop`)
})

void test('TcpConnection that breaks with queries in flight leaves nothing behind', async (t) => {
  const { where, responder, clock, listeners } = await serve(t)
  for (const how of ['reset', 'closed'] as const) {
    const client = await TcpClient.open(t, where)
    client.ask(...numbers(100).map((id) => testQuery(id, 'later')))
    await until('all wait', () => responder.waiting.length === 100)
    if (how === 'reset') {
      client.socket.resetAndDestroy()
      await until('it is gone', () => listeners.stats.tcp.connectionsOpen === 0)
      t.equal(listeners.inFlightQueries, 100, 'what was asked of others still runs')
    } else {
      client.socket.destroy()
      await once(client.socket, 'close')
    }
    while (responder.waiting.length > 0) responder.waiting[0]!.answer()
    await until('nothing is in flight', () => listeners.inFlightQueries === 0)
    await until('it is gone', () => listeners.stats.tcp.connectionsOpen === 0)
    t.equal(listeners.tcpWaitingOctets, 0, how)
    t.equal(clock.pendingTimers, 0, how)
  }
  t.equal(listeners.stats.tcp.faultsTotal, 0)
})

void test('TcpConnection goes on after what the responder throws', async (t) => {
  const { where, faults, listeners } = await serve(t)
  const client = await TcpClient.open(t, where)
  for (const [index, text] of ['throw', 'resolve throws', 'resolve rejects'].entries()) {
    client.ask(testQuery(index, text), testQuery(100 + index, 'now'))
    await client.gets(index + 1)
    t.equal(idOf(client.received.at(-1)!), 100 + index, text)
  }
  await until('all were told', () => faults.length === 3)
  t.same(faults, ['answer throws', 'resolve throws', 'resolve rejects'])
  client.socket.end()
  await client.ends()
  t.equal(listeners.inFlightQueries, 0)
})

void test('TcpConnection refuses at once what would have to wait above the limit of all', async (t) => {
  const { where, responder } = await serve(t, { limits: { inFlightQueries: 1 } })
  const client = await TcpClient.open(t, where)
  client.ask(testQuery(1, 'later'), testQuery(2, 'later'), testQuery(3, 'now'))
  await client.gets(2)
  t.same(client.received.map(textOf), ['later SERVFAIL', 'now'])
  responder.waiting[0]!.answer()
  await client.gets(3)
})

void test('TcpConnection without a word for overload just gives no reply', async (t) => {
  const responder: Responder = { answer: () => -1, resolve: async () => new Promise(() => {}) }
  const { where, listeners } = await serve(t, { responder, limits: { inFlightQueries: 0 } })
  const client = await TcpClient.open(t, where)
  client.ask(testQuery(1, 'x'))
  client.socket.end()
  await client.ends()
  t.equal(client.received.length, 0)
  t.equal(listeners.stats.tcp.overloadedTotal, 1)
})
