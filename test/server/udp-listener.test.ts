/** UDP: what a datagram gets back, what it costs when the kernel or the responder says no, and who asked. */
import { execFile } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { networkInterfaces } from 'node:os'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { test } from 'tap'
import { loopClock, turns } from '../support/loop-clock.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { udpBacklogMs, udpBacklogRestMs } from '../../src/base/socket-limits.ts'
import { clientAddress } from '../../src/server/client-address.ts'
import { chooseUdpIo } from '../../src/server/mmsg/batched-io.ts'
import { DROP, type Responder } from '../../src/server/responder.ts'
import { dgramIo } from '../../src/server/udp-listener.ts'
import type { UdpIo } from '../../src/server/udp-io.ts'
import { serve, UdpClient, until } from './clients.ts'
import { idOf, testQuery, textOf } from './scripted-responder.ts'

const run = promisify(execFile)

const { udpIo: chosen, whyNotBatched } = await chooseUdpIo(loopClock)
const all: UdpIo[] = whyNotBatched === null ? [dgramIo, chosen] : [dgramIo]

void test('datagrams are read in batches where koffi is installed', async (t) => {
  if (whyNotBatched === null) t.equal(chosen.name, 'mmsg')
  else t.comment(`only dgram is tested: ${whyNotBatched}`)
})

for (const udpIo of all) {
  for (const address of ['127.0.0.1', '::1']) {
    void test(`${udpIo.name}: on ${address} answers from memory, and later what has to wait`, async (t) => {
      const { where, responder, listeners } = await serve(t, { udpIo, addresses: [{ address, port: 0 }] })
      const client = new UdpClient(t, where)
      client.send(testQuery(1, 'now'), testQuery(2, 'later'), testQuery(3, 'later'), testQuery(4, 'now'))
      await client.gets(2)
      t.same(client.received.map(idOf), [1, 4], 'those that wait hold up nobody')
      t.equal(client.received[0]![2]! & 0x80, 0x80)
      t.equal(textOf(client.received[0]!), 'now')
      await until('two wait', () => responder.waiting.length === 2)
      t.equal(listeners.inFlightQueries, 2)
      responder.waiting[1]!.answer(' answered')
      await client.gets(3)
      t.equal(idOf(client.received[2]!), 3)
      t.equal(textOf(client.received[2]!), 'later answered')
      responder.waiting[0]!.nothing()
      await until('none waits', () => listeners.inFlightQueries === 0)
      t.match(responder.asked[0]!.client, { address, transport: 'udp' })
      t.ok(responder.asked[0]!.client.port > 0)
      t.match(listeners.stats.udp, { receivedTotal: 4, answeredTotal: 2, resolvedTotal: 1, droppedTotal: 1 })
    })
  }

  void test(`${udpIo.name}: gives no reply where the responder gives none, and goes on after what it throws`, async (t) => {
    const { where, faults, listeners } = await serve(t, { udpIo })
    const client = new UdpClient(t, where)
    const response = testQuery(5, 'now')
    response[2] = 0x80
    const rows: [name: string, message: Uint8Array][] = [
      ['nothing at all', Buffer.alloc(0)],
      ['eleven octets', Buffer.alloc(11)],
      ['a response', response],
      ['dropped', testQuery(6, 'drop')],
      ['answer throws', testQuery(7, 'throw')],
      ['resolve throws', testQuery(8, 'resolve throws')],
      ['resolve rejects', testQuery(9, 'resolve rejects')],
      ['the largest datagram', Buffer.alloc(65_507)]
    ]
    for (const [index, [name, message]] of rows.entries()) {
      client.send(message, testQuery(100 + index, 'now'))
      await client.gets(client.received.length + (name === 'the largest datagram' ? 2 : 1))
      t.equal(idOf(client.received.at(-1)!), 100 + index, name)
    }
    t.same(faults, ['answer throws', 'resolve throws', 'resolve rejects'])
    t.equal(client.received.length, rows.length + 1)
    t.match(listeners.stats.udp, { faultsTotal: 3, droppedTotal: 4, receivedTotal: 2 * rows.length })
    t.equal(listeners.inFlightQueries, 0, 'what throws is not in flight any more')
  })

  void test(`${udpIo.name}: refuses at once what would have to wait above the limit`, async (t) => {
    const { where, responder, listeners } = await serve(t, { udpIo, limits: { inFlightQueries: 2 } })
    const client = new UdpClient(t, where)
    client.send(testQuery(1, 'later'), testQuery(2, 'later'), testQuery(3, 'later'), testQuery(4, 'now'))
    await client.gets(2)
    t.same(client.received.map(idOf), [3, 4])
    t.equal(textOf(client.received[0]!), 'later SERVFAIL')
    t.equal(responder.mostWaiting, 2)
    responder.waiting[0]!.answer()
    await client.gets(3)
    client.send(testQuery(5, 'later'))
    await until('there is room again', () => responder.waiting.some(({ id }) => id === 5))
    t.equal(listeners.stats.udp.overloadedTotal, 1)
  })

  void test(`${udpIo.name}: drops what is too much where the responder has no word for it`, async (t) => {
    const responder: Responder = { answer: () => -1, resolve: async () => new Promise(() => {}) }
    const { where, listeners } = await serve(t, { udpIo, responder, limits: { inFlightQueries: 1 } })
    const client = new UdpClient(t, where)
    client.send(testQuery(1, ''), testQuery(2, ''))
    await until('one is too much', () => listeners.stats.udp.overloadedTotal === 1)
    await turns(3)
    t.equal(client.received.length, 0)
  })

  void test(`${udpIo.name}: counts what cannot be sent and goes on`, async (t) => {
    const { where, responder, listeners } = await serve(t, { udpIo })
    const client = new UdpClient(t, where)
    client.send(testQuery(1, 'size 65535'), testQuery(2, 'now'))
    await client.gets(1)
    t.equal(idOf(client.received[0]!), 2, 'one octet too many for UDP is never sent')
    t.equal(listeners.stats.udp.sendErrorsTotal, 1)
    // A client that is gone: the kernel tells us by ICMP, which must not become an error of ours.
    const gone = createSocket('udp4')
    await new Promise((resolve) => gone.send(testQuery(3, 'later'), where.port, where.address, resolve))
    await until('it waits', () => responder.waiting.length === 1)
    await new Promise<void>((resolve) => gone.close(resolve))
    responder.waiting[0]!.answer()
    await until('it was answered', () => listeners.stats.udp.resolvedTotal === 1)
    client.send(testQuery(4, 'now'))
    await client.gets(2)
    t.match(listeners.stats.udp, { receiveErrorsTotal: 0, faultsTotal: 0 })
  })

  void test(`${udpIo.name}: answers each of a burst of 5,000 datagrams with its own octets`, async (t) => {
    const { where, listeners } = await serve(t, { udpIo })
    const client = new UdpClient(t, where)
    const count = 5_000
    for (let id = 0; id < count; id++) {
      client.send(testQuery(id, `now ${id}`))
      if (id % 100 === 99) await turns(1)
    }
    await client.gets(count)
    t.same(new Set(client.received.map(textOf)), new Set(Array.from({ length: count }, (_, id) => `now ${id}`)))
    t.ok(client.received.every((message) => textOf(message) === `now ${idOf(message)}`))
    t.match(listeners.stats.udp, { receivedTotal: count, answeredTotal: count, sendErrorsTotal: 0 })
  })

  void test(`${udpIo.name}: drops what comes from port 0`, async (t) => {
    const { where, responder, listeners } = await serve(t, { udpIo })
    // Only a raw socket can send this.
    const script = `
import socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
s.sendto(struct.pack('!HHHH', 0, int(sys.argv[1]), 8 + 12, 0) + bytes(12), ('127.0.0.1', 0))`
    const isSent = await run('python3', ['-c', script, String(where.port)]).then(
      () => true,
      () => false
    )
    if (!isSent) {
      t.comment('skipped: no python3 with the right to use raw sockets here')
      return
    }
    await until('it came', () => listeners.stats.udp.receivedTotal === 1)
    const client = new UdpClient(t, where)
    client.send(testQuery(1, 'now'))
    await client.gets(1)
    t.equal(responder.asked.length, 1, 'the responder never sees it')
    t.equal(listeners.stats.udp.droppedTotal, 1)
  })

  void test(`${udpIo.name}: keeps the zone of a link-local client for sending only`, async (t) => {
    const linkLocal = Object.entries(networkInterfaces()).flatMap(([name, addresses]) =>
      (addresses ?? []).filter((it) => it.address.startsWith('fe80:')).map((it) => ({ name, address: it.address }))
    )[0]
    if (linkLocal === undefined) {
      t.comment('skipped: no interface here has a link-local address')
      return
    }
    const address = `${linkLocal.address}%${linkLocal.name}`
    const { where, responder } = await serve(t, { udpIo, addresses: [{ address, port: 0 }] })
    const client = new UdpClient(t, where)
    client.send(testQuery(1, 'now'))
    await client.gets(1)
    t.equal(responder.asked[0]!.client.address, linkLocal.address)
  })
}

void test('UdpListener makes a queue short that is never emptied, and does so again in the next overload', async (t) => {
  const clock = new ManualClock()
  const answer = (): number => {
    // Slow enough for a burst of 250 to be an overload.
    clock.advance(udpBacklogMs / 100)
    return DROP
  }
  const responder: Responder = { answer, resolve: async () => null }
  const { where, listeners } = await serve(t, { udpIo: dgramIo, responder, clock })
  const client = new UdpClient(t, where)
  const { udp } = listeners.stats
  let sent = 0
  const receive = async (count: number): Promise<void> => {
    client.send(...Array.from({ length: count }, (_, id) => testQuery(id, 'now')))
    sent += count
    await until('all have come', () => udp.receivedTotal === sent)
    await turns(1)
  }
  await receive(1)
  for (let burst = 0; burst < 5; burst++) await receive(40)
  t.equal(udp.backlogsTotal, 0, 'bursts that are emptied are none')
  await receive(250)
  t.equal(udp.backlogsTotal, 1)
  await receive(250)
  t.equal(udp.backlogsTotal, 1, 'it is short already')
  clock.advance(udpBacklogRestMs)
  await receive(1)
  await receive(250)
  t.equal(udp.backlogsTotal, 2)
})

void test('UdpListener keeps answers apart while the kernel takes no more', async (t) => {
  // With this option Node queues every send, as it does where the kernel says EAGAIN.
  const script = fileURLToPath(new URL('./queued-sends.ts', import.meta.url))
  const { stdout } = await run(process.execPath, ['--test-udp-no-try-send', script])
  const result = JSON.parse(stdout) as Record<string, number>
  t.match(result, { asked: 300, right: 300, wrong: 0, droppedFull: 0, askedBeforeStop: 40, sentBeforeStop: 40 })
  t.ok(result['copied']! > 0, `some were copied: ${result['copied']}`)
  t.ok(result['fullWhenNoneMayWait']! > 0, 'and above the limit of waiting octets they are dropped')
})

void test('clientAddress writes one address in one way', async (t) => {
  const rows: [name: string, given: string, wanted: string][] = [
    ['v4', '192.0.2.1', '192.0.2.1'],
    ['v6', '2001:db8::1', '2001:db8::1'],
    ['v4-mapped', '::ffff:192.0.2.1', '192.0.2.1'],
    ['with a zone', 'fe80::1%eth0', 'fe80::1'],
    ['with a number for its zone', 'fe80::1%2', 'fe80::1'],
    ['only looks mapped', '::ffff:0:1', '::ffff:0:1'],
    ['all zeros', '::', '::']
  ]
  for (const [name, given, wanted] of rows) t.equal(clientAddress(given), wanted, name)
})
