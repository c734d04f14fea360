/** All addresses together: what is bound and what is not, and how everything is drained and closed. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer, type AddressInfo } from 'node:net'
import { test, type Test } from 'tap'
import { ListenError } from '../../src/base/errors.ts'
import type { ListenAddress } from '../../src/server/listen-address.ts'
import { InFlightQueries } from '../../src/server/in-flight.ts'
import { bindBoth, Listeners } from '../../src/server/listeners.ts'
import { freePort } from '../support/free-port.ts'
import { serve, TcpClient, UdpClient, until } from './clients.ts'
import { turns } from '../support/loop-clock.ts'
import { idOf, testQuery } from './scripted-responder.ts'

async function takeUdp(t: Test, address: string): Promise<number> {
  const socket = createSocket('udp4')
  socket.bind(0, address)
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  return socket.address().port
}

async function takeTcp(t: Test, address: string): Promise<number> {
  const server = createServer()
  server.listen(0, address)
  await once(server, 'listening')
  t.teardown(() => server.close())
  return (server.address() as AddressInfo).port
}

void test('Listeners serve every address on UDP and TCP', async (t) => {
  const { listeners, responder } = await serve(t, {
    addresses: [
      { address: '127.0.0.1', port: 0 },
      { address: '::1', port: 0 },
      { address: '127.0.0.2', port: 0 }
    ]
  })
  t.same(
    listeners.addresses.map(({ address }) => address),
    ['127.0.0.1', '::1', '127.0.0.2']
  )
  for (const [index, where] of listeners.addresses.entries()) {
    t.ok(where.port > 0)
    const udp = new UdpClient(t, where)
    udp.send(testQuery(index, 'now'))
    const tcp = await TcpClient.open(t, where)
    tcp.ask(testQuery(index, 'now'))
    await Promise.all([udp.gets(1), tcp.gets(1)])
  }
  t.equal(responder.asked.length, 6)
  t.match(listeners.stats, { udp: { receivedTotal: 3 }, tcp: { receivedTotal: 3, connectionsTotal: 3 } })
})

void test('Listeners bind 0.0.0.0 and [::] to one port, and write v4 clients as v4', async (t) => {
  const port = await freePort()
  const { responder } = await serve(t, {
    addresses: [
      { address: '0.0.0.0', port },
      { address: '::', port }
    ]
  })
  for (const address of ['127.0.0.1', '::1']) {
    const udp = new UdpClient(t, { address, port })
    udp.send(testQuery(1, 'now'))
    const tcp = await TcpClient.open(t, { address, port })
    tcp.ask(testQuery(2, 'now'))
    await Promise.all([udp.gets(1), tcp.gets(1)])
  }
  t.same(responder.asked.map(({ client }) => client.address).sort(), ['127.0.0.1', '127.0.0.1', '::1', '::1'])
})

void test('Listeners name address, transport and cause where one address fails, and close the others', async (t) => {
  const udpTaken = await takeUdp(t, '127.0.0.1')
  const tcpTaken = await takeTcp(t, '127.0.0.1')
  const rows: [name: string, failing: ListenAddress, wanted: object][] = [
    ['UDP port taken', { address: '127.0.0.1', port: udpTaken }, { transport: 'udp', code: 'EADDRINUSE' }],
    ['TCP port taken', { address: '127.0.0.1', port: tcpTaken }, { transport: 'tcp', code: 'EADDRINUSE' }],
    ['not our address', { address: '203.0.113.1', port: 0 }, { transport: 'udp', code: 'EADDRNOTAVAIL' }],
    ['not our v6 address', { address: '2001:db8::1', port: 0 }, { transport: 'udp', code: 'EADDRNOTAVAIL' }],
    ['link-local without zone', { address: 'fe80::1', port: 0 }, { transport: 'udp' }],
    ['not an address', { address: 'localhost', port: 0 }, { transport: 'udp', code: 'EINVAL' }]
  ]
  for (const [name, failing, wanted] of rows) {
    const port = await freePort()
    const first = { address: '127.0.0.1', port }
    const options = { responder: { answer: () => 0, resolve: async () => null }, clock: { nowMs: () => 0, epochMs: () => 0, after: () => () => {} } } // prettier-ignore
    const error: unknown = await Listeners.open({ addresses: [first, failing], ...options }).then(
      () => null,
      (error: unknown) => error
    )
    t.ok(error instanceof ListenError, name)
    t.match(error, { ...wanted, address: failing.address, port: failing.port }, name)
    t.ok((error as Error).message.includes(failing.address), name)
    const again = await Listeners.open({ addresses: [first], ...options })
    t.same(again.addresses, [first], `${name}: what was bound before is free again`)
    await again.stop({ drainTimeoutMs: 0 })
  }
  const twice = { address: '::1', port: await freePort() }
  await t.rejects(serve(t, { addresses: [twice, twice] }), {
    message: `cannot listen on [::1]:${twice.port} (udp): another process has this port (EADDRINUSE)`
  })
})

void test('bindBoth looks for another port as long as TCP has none of that number', async (t) => {
  const closed: number[] = []
  let nextPort = 1_000
  const bindUdp = async (where: ListenAddress) => {
    const port = where.port === 0 ? nextPort++ : where.port
    return { port, close: async () => void closed.push(port) }
  }
  const refuse = (code: string, below: number) => async (where: ListenAddress) => {
    if (where.port < below) throw new ListenError({ ...where, transport: 'tcp' }, code, 'taken')
    return where.port
  }
  const any = { address: '127.0.0.1', port: 0 }
  const found = await bindBoth(any, bindUdp, refuse('EADDRINUSE', 1_003))
  t.equal(found.tcp, 1_003)
  t.equal(found.udp.port, 1_003)
  t.same(closed, [1_000, 1_001, 1_002])
  const rows: [name: string, where: ListenAddress, code: string, attempts: number][] = [
    ['a port that was asked for', { address: '127.0.0.1', port: 53 }, 'EADDRINUSE', 1],
    ['another cause', any, 'EACCES', 1],
    ['no end of taken ports', any, 'EADDRINUSE', 16]
  ]
  for (const [name, where, code, attempts] of rows) {
    closed.length = 0
    await t.rejects(bindBoth(where, bindUdp, refuse(code, 65_536)), { code }, name)
    t.equal(closed.length, attempts, name)
  }
})

void test('Listeners.stop lets queries in flight finish, and closes what is idle at once', async (t) => {
  const { listeners, responder, where, clock } = await serve(t)
  const udp = new UdpClient(t, where)
  udp.send(testQuery(1, 'later'))
  const [idle, busy] = [await TcpClient.open(t, where), await TcpClient.open(t, where)]
  busy.ask(testQuery(2, 'later'), testQuery(3, 'now'))
  await until('two wait', () => responder.waiting.length === 2)
  let unanswered: number | null = null
  const stopped = listeners.stop({ drainTimeoutMs: 5_000 }).then((count) => (unanswered = count))
  await idle.ends()
  t.notOk(busy.isEnded)
  busy.ask(testQuery(4, 'now'))
  udp.send(testQuery(5, 'now'))
  await udp.gets(1)
  t.equal(idOf(udp.received[0]!), 5, 'UDP goes on serving')
  const late = connect({ host: where.address, port: where.port })
  const [refusal] = (await once(late, 'error')) as [NodeJS.ErrnoException]
  t.equal(refusal.code, 'ECONNREFUSED', 'no new connections')
  responder.waiting.find(({ id }) => id === 2)!.answer()
  await busy.ends()
  t.same(busy.received.map(idOf), [3, 2], 'what came after the drain began is not taken')
  busy.socket.end()
  await turns(3)
  t.equal(unanswered, null, 'one is still in flight')
  responder.waiting[0]!.answer()
  await stopped
  await udp.gets(2)
  t.equal(unanswered, 0)
  t.equal(clock.pendingTimers, 0)
  const again = await serve(t, { addresses: [where] })
  t.same(again.listeners.addresses, [where], 'the port is free again')
})

void test('Listeners.stop answers what a connection has sent before, and waits a moment for its close', async (t) => {
  const { listeners, responder, where, clock } = await serve(t, { limits: { tcpInFlightPerConnection: 2 } })
  const client = await TcpClient.open(t, where)
  client.ask(...[1, 2, 3, 4, 5].map((id) => testQuery(id, 'later')))
  await until('two wait', () => responder.waiting.length === 2)
  let isStopped = false
  const stopped = listeners.stop({ drainTimeoutMs: 5_000 }).then(() => (isStopped = true))
  for (let answered = 0; answered < 5; answered++) {
    await until('one waits', () => responder.waiting.length > 0)
    responder.waiting[0]!.answer()
  }
  await client.ends()
  t.same(client.received.map(idOf), [1, 2, 3, 4, 5])
  await turns(10)
  t.notOk(isStopped, 'the client has not closed its side')
  await until('it lingers', () => clock.pendingTimers === 2)
  clock.advance(1_000)
  await stopped
  t.equal(clock.pendingTimers, 0)
})

void test('Listeners.stop ends the waiting when the time is over', async (t) => {
  const { listeners, responder, where, clock } = await serve(t)
  const udp = new UdpClient(t, where)
  udp.send(testQuery(1, 'later'), testQuery(2, 'later'))
  const tcp = await TcpClient.open(t, where)
  tcp.ask(testQuery(3, 'later'))
  await until('three wait', () => responder.waiting.length === 3)
  let unanswered: number | null = null
  const stopped = listeners.stop({ drainTimeoutMs: 5_000 }).then((count) => (unanswered = count))
  clock.advance(4_999)
  await turns(5)
  t.equal(unanswered, null)
  clock.advance(1)
  await stopped
  t.equal(unanswered, 3)
  await tcp.ends()
  while (responder.waiting.length > 0) responder.waiting[0]!.answer()
  await until('nothing is in flight', () => listeners.inFlightQueries === 0)
  t.equal(udp.received.length + tcp.received.length, 0, 'too late, and no harm done')
  t.equal(listeners.stats.udp.faultsTotal + listeners.stats.tcp.faultsTotal, 0)
})

void test('Listeners.stop is one stop however often it is called, and force ends it', async (t) => {
  const { listeners, responder, where, clock } = await serve(t)
  const tcp = await TcpClient.open(t, where)
  tcp.ask(testQuery(1, 'later'))
  await until('it waits', () => responder.waiting.length === 1)
  const first = listeners.stop({ drainTimeoutMs: 5_000 })
  const second = listeners.stop({ drainTimeoutMs: 60_000 })
  await turns(3)
  t.notOk(tcp.isEnded)
  const forced = listeners.stop({ drainTimeoutMs: 5_000, force: true })
  t.same(await Promise.all([first, second, forced]), [1, 1, 1])
  await tcp.ends()
  t.equal(clock.pendingTimers, 0)
  t.equal(await listeners.stop({ drainTimeoutMs: 5_000 }), 1, 'also afterwards')

  const other = await serve(t)
  const client = await TcpClient.open(t, other.where)
  client.ask(testQuery(1, 'later'))
  await until('it waits', () => other.responder.waiting.length === 1)
  t.equal(await other.listeners.stop({ drainTimeoutMs: 5_000, force: true }), 1, 'also as the first call')
})

void test('Listeners.stop cuts a client that does not read, when the time is over', async (t) => {
  const { listeners, where, clock } = await serve(t)
  const client = await TcpClient.open(t, where)
  client.socket.pause()
  client.ask(...Array.from({ length: 1_000 }, (_, id) => testQuery(id, 'size 50000')))
  await until('answers wait', () => listeners.tcpWaitingOctets > 0)
  const stopped = listeners.stop({ drainTimeoutMs: 5_000 })
  await turns(5)
  clock.advance(5_000)
  t.equal(await stopped, 0)
  t.equal(listeners.tcpWaitingOctets, 0)
})

void test('InFlightQueries count, bound and tell when none is left', async (t) => {
  const inFlight = new InFlightQueries(2)
  await inFlight.none()
  t.same([inFlight.tryEnter(), inFlight.tryEnter(), inFlight.tryEnter()], [true, true, false])
  const seen: string[] = []
  const waits = [1, 2].map(async (who) => inFlight.none().then(() => seen.push(`none ${who}`)))
  inFlight.leave()
  await turns(1)
  t.same([inFlight.count, seen], [1, []])
  inFlight.leave()
  await Promise.all(waits)
  t.same([inFlight.count, seen], [0, ['none 1', 'none 2']])
})
