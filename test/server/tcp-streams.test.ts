/** Several messages for one query, and messages that nobody asked for one by one: room, fairness, slow readers. */
import { test } from 'tap'
import { serve, TcpClient, until } from './clients.ts'
import { turns } from '../support/loop-clock.ts'
import { idOf, testQuery } from './scripted-responder.ts'

void test('TcpConnection.send: all messages in order, other queries in between', async (t) => {
  const { where, listeners } = await serve(t)
  const client = await TcpClient.open(t, where)
  const other = await TcpClient.open(t, where)
  client.ask(testQuery(1, 'stream 200 20000'))
  await client.gets(1)
  client.ask(testQuery(2, 'now'))
  other.ask(testQuery(3, 'now'))
  await other.gets(1)
  t.ok(client.received.length < 201, 'others are answered meanwhile')
  await client.gets(201)
  const at = client.received.findIndex((message) => idOf(message) === 2)
  t.ok(at < 200, `a query on the same connection too (after ${at})`)
  t.match(listeners.stats.tcp, { streamedTotal: 1, answeredTotal: 2, resolvedTotal: 0 })
  t.equal(listeners.inFlightQueries, 0)
})

void test('TcpConnection.send waits for a slow reader, who is cut when nothing moves', async (t) => {
  const { where, listeners, clock } = await serve(t, { limits: { tcpWriteStallMs: 1_000 } })
  const client = await TcpClient.open(t, where)
  client.socket.pause()
  client.ask(testQuery(1, 'stream 100000 60000'))
  await until('it waits', () => listeners.tcpWaitingOctets > 0)
  await turns(50)
  t.ok(listeners.tcpWaitingOctets < 300_000, `${listeners.tcpWaitingOctets} octets wait`)
  t.equal(listeners.inFlightQueries, 1)
  // Two looks: what went to the kernel meanwhile counts as moved.
  for (let look = 0; look < 3; look++) {
    clock.advance(1_000)
    await turns(5)
  }
  await until('it is cut', () => listeners.stats.tcp.connectionsOpen === 0)
  await until('the stream has ended', () => listeners.inFlightQueries === 0)
  t.equal(listeners.stats.tcp.stalledTotal, 1)
})

void test('TcpConnection.push: at once, but never for a reader who is far behind; it keeps no connection', async (t) => {
  const { where, listeners, responder, clock } = await serve(t, {
    limits: { tcpPushBufferOctets: 100_000, tcpIdleTimeoutMs: 5_000 }
  })
  const client = await TcpClient.open(t, where)
  client.ask(testQuery(1, 'stream 1'))
  await client.gets(1)
  const stream = responder.streams[0]!
  let closed = 0
  stream.onClose(() => closed++)
  t.ok(stream.push(testQuery(7, 'told')))
  await client.gets(2)
  t.equal(idOf(client.received[1]!), 7)
  clock.advance(4_000)
  t.ok(stream.push(testQuery(8, 'told')))
  clock.advance(1_000)
  await client.ends()
  t.match(listeners.stats.tcp, { idleTimeoutsTotal: 1 }, 'only what the client asks keeps its connection')
  t.ok(stream.isClosed)
  t.equal(closed, 1)
  t.notOk(stream.push(testQuery(9, 'told')))
  t.notOk(await stream.send(testQuery(9, 'told')))
  stream.onClose(() => closed++)
  t.equal(closed, 2, 'at once where it is gone')

  const slow = await TcpClient.open(t, where)
  slow.ask(testQuery(1, 'stream 1'))
  await slow.gets(1)
  slow.socket.pause()
  const slowStream = responder.streams[1]!
  let pushed = 0
  while (slowStream.push(Buffer.alloc(20_000)) && pushed < 2_000) {
    pushed++
    await turns(1)
  }
  t.ok(slowStream.isClosed)
  t.match(listeners.stats.tcp, { laggingTotal: 1, connectionsOpen: 0 })
  t.ok(listeners.tcpWaitingOctets === 0)
})
