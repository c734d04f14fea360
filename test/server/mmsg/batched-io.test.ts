/** Reading in batches: whether it is chosen, from where it answers, and what it does while the kernel takes no more. */
import { createSocket } from 'node:dgram'
import { test } from 'tap'
import { loopClock, turns } from '../../support/loop-clock.ts'
import { udpBatchDatagrams, udpBatchesPerTurn, udpDenseBatches } from '../../../src/base/limits.ts'
import { linux } from '../../../src/server/mmsg/layout.ts'
import { chooseUdpIo } from '../../../src/server/mmsg/batched-io.ts'
import { loadLibc, type Libc } from '../../../src/server/mmsg/libc.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { serve, TcpClient, UdpClient, until } from '../clients.ts'
import { idOf, testQuery, textOf } from '../scripted-responder.ts'

const libc = await loadLibc().catch(() => null)

async function ioOf(change: Partial<Libc> = {}) {
  return chooseUdpIo(loopClock, async () => ({ ...libc!, ...change }))
}

void test('chooseUdpIo falls back to dgram and says why', async (t) => {
  const missing = await chooseUdpIo(loopClock, async () => Promise.reject(new Error("Cannot find package 'koffi'")))
  t.equal(missing.udpIo.name, 'dgram')
  t.equal(missing.whyNotBatched, "Cannot find package 'koffi'")
  if (libc === null) {
    t.comment('the rest is skipped: koffi is not installed, or this is no Linux that it is used on')
    return
  }
  const rows: [name: string, change: Partial<Libc>, why: RegExp][] = [
    ['no sockets', { socket: () => -1, errno: () => 1 }, /EPERM/],
    ['the kernel has no recvmmsg', { recvmmsg: () => -1, errno: () => 38 }, /recvmmsg did not receive/],
    ['fewer come', { recvmmsg: (...all) => Math.min(1, libc.recvmmsg(...all)) }, /recvmmsg did not receive/],
    ['nothing is sent', { sendmmsg: () => -1, errno: () => linux.EAGAIN }, /sendmmsg did not send/],
    ['an address that is none', { addressOf: () => 0 }, /no address/],
    ['a poll that says nothing', { poll: () => ({ start: () => {}, close: () => {} }) }, /did not become readable/]
  ]
  // A poll that is none keeps no process alive.
  const alive = setInterval(() => {}, 1_000)
  t.teardown(() => clearInterval(alive))
  for (const [name, change, why] of rows) {
    const { udpIo, whyNotBatched } = await ioOf(change)
    t.equal(udpIo.name, 'dgram', name)
    t.match(whyNotBatched, why, name)
  }
  const whole = await ioOf()
  t.match(whole, { udpIo: { name: 'mmsg' }, whyNotBatched: null })
})

if (libc !== null) {
  void test('mmsg: a bind that fails says so as dgram does', async (t) => {
    const { udpIo } = await ioOf()
    const taken = createSocket('udp4')
    await new Promise<void>((resolve) => taken.bind({ address: '127.0.0.1', port: 0, exclusive: true }, resolve))
    t.teardown(() => taken.close())
    await t.rejects(serve(t, { udpIo, addresses: [{ address: '127.0.0.1', port: taken.address().port }] }), {
      code: 'EADDRINUSE'
    })
    await t.rejects(serve(t, { udpIo, addresses: [{ address: '192.0.2.1', port: 0 }] }), { code: 'EADDRNOTAVAIL' })
  })

  for (const [wildcard, asked] of [
    ['0.0.0.0', '127.0.0.2'],
    ['::', '::1']
  ] as const) {
    void test(`mmsg: on ${wildcard} answers leave from the address that was asked`, async (t) => {
      const { udpIo } = await ioOf()
      const { where, responder } = await serve(t, { udpIo, addresses: [{ address: wildcard, port: 0 }] })
      const client = createSocket(wildcard === '::' ? 'udp6' : 'udp4')
      t.teardown(() => client.close())
      const from: string[] = []
      client.on('message', (_, { address }) => from.push(address))
      for (const text of ['now', 'later']) client.send(testQuery(1, text), where.port, asked)
      await until('one waits', () => responder.waiting.length === 1)
      responder.waiting[0]!.answer()
      await until('both came', () => from.length === 2)
      t.same(from, [asked, asked])
    })
  }

  void test('mmsg: answers are kept while the kernel takes no more, each with its own octets', async (t) => {
    let isFull = false
    const full: Partial<Libc> = {
      sendmmsg: (...all) => (isFull ? -1 : libc.sendmmsg(...all)),
      errno: () => (isFull ? linux.EAGAIN : libc.errno())
    }
    const { udpIo } = await ioOf(full)
    const { where, listeners, responder } = await serve(t, { udpIo, limits: { udpSendQueueOctets: 5_000 } })
    const client = new UdpClient(t, where)
    client.send(testQuery(1_000, 'later'))
    await until('one waits', () => responder.waiting.length === 1)
    isFull = true
    const texts = Array.from({ length: 300 }, (_, id) => `now ${String(id).padStart(4, '0')}`)
    for (const [id, text] of texts.entries()) client.send(testQuery(id, text))
    await until('all were asked', () => listeners.stats.udp.answeredTotal === texts.length)
    responder.waiting[0]!.answer()
    await until('all are answered', () => listeners.stats.udp.resolvedTotal === 1)
    await turns(5)
    t.equal(client.received.length, 0)
    const kept = Math.floor(5_000 / testQuery(0, texts[0]!).length)
    t.match(listeners.stats.udp, { copiedTotal: kept, sendQueueFullTotal: texts.length + 1 - kept })
    const stopped = listeners.stop({ drainTimeoutMs: 5_000 })
    isFull = false
    await stopped
    await client.gets(kept)
    t.same(client.received.map(textOf), texts.slice(0, kept), 'a stop waits for what is queued')
    t.match(listeners.stats.udp, { sendErrorsTotal: 0, faultsTotal: 0 })
  })

  void test('mmsg: what the kernel refuses is counted, and the others are sent', async (t) => {
    let refuses = 0
    let hasRefused = false
    const { udpIo } = await ioOf({
      sendmmsg: (...all) => {
        hasRefused = refuses > 0
        return hasRefused && refuses-- > 0 ? -1 : libc.sendmmsg(...all)
      },
      errno: () => (hasRefused ? 1 : libc.errno())
    })
    t.equal(udpIo.name, 'mmsg')
    const { where, listeners } = await serve(t, { udpIo })
    const client = new UdpClient(t, where)
    refuses = 1
    client.send(testQuery(1, 'now'), testQuery(2, 'now'), testQuery(3, 'now'))
    await client.gets(2)
    t.equal(listeners.stats.udp.sendErrorsTotal, 1)
  })

  void test('mmsg: a dense socket is waited for in the kernel, but not while anybody waits for the event loop', async (t) => {
    let waits = 0
    const counting: Libc = {
      ...libc,
      recvmmsg: (...all) => {
        if ((all[3] & linux.MSG_WAITFORONE) !== 0) waits++
        return libc.recvmmsg(...all)
      }
    }
    // On a clock that stands still everything comes densely.
    const { udpIo, whyNotBatched } = await chooseUdpIo(new ManualClock(), async () => counting)
    t.equal(whyNotBatched, null)
    const { where, listeners, responder } = await serve(t, { udpIo })
    const client = new UdpClient(t, where)
    const askOneByOne = async (count: number): Promise<void> => {
      const before = client.received.length
      for (let asked = 1; asked <= count; asked++) {
        client.send(testQuery(asked, 'now'))
        await client.gets(before + asked)
      }
    }
    waits = 0
    await askOneByOne(udpDenseBatches * 3)
    t.ok(waits > 0, `${waits} waits`)
    client.send(testQuery(1_000, 'later'))
    await until('one waits', () => responder.waiting.length === 1)
    waits = 0
    await askOneByOne(udpDenseBatches * 3)
    t.equal(waits, 0, 'one query is in flight')
    responder.waiting[0]!.answer()
    await client.gets(udpDenseBatches * 6 + 1)
    const tcp = await TcpClient.open(t, where)
    waits = 0
    for (let asked = 1; asked <= udpDenseBatches * 2; asked++) {
      tcp.ask(testQuery(asked, 'now'))
      await tcp.gets(asked)
      await askOneByOne(1)
    }
    t.equal(waits, 0, 'TCP is in use')
    t.match(listeners.stats.udp, { receiveErrorsTotal: 0, faultsTotal: 0 })
  })

  void test('mmsg: a full queue is drained in batches, and everybody else gets a turn', async (t) => {
    let turnsTaken = 0
    const batches: number[][] = []
    const { udpIo } = await ioOf({
      poll: (fd, callback) => libc.poll(fd, () => { turnsTaken++; batches.push([]); callback() }), // prettier-ignore
      recvmmsg: (...all) => {
        const count = libc.recvmmsg(...all)
        batches.at(-1)?.push(count)
        return count
      }
    })
    const { where } = await serve(t, { udpIo })
    const before = turnsTaken
    const client = new UdpClient(t, where)
    const perTurn = udpBatchDatagrams * udpBatchesPerTurn
    const count = perTurn * 2 + 10
    // Synchronous sends: all of them wait in the socket before the loop turns.
    for (let id = 0; id < count; id++) client.send(testQuery(id, 'now'))
    await client.gets(count)
    t.same(new Set(client.received.map(idOf)), new Set(Array.from({ length: count }, (_, id) => id)))
    t.ok(
      batches.every((turn) => turn.reduce((sum, one) => sum + Math.max(0, one), 0) <= perTurn),
      'bounded'
    )
    t.ok(batches.flat().some((one) => one > 1), 'several at once') // prettier-ignore
    t.ok(turnsTaken > before)
  })
}
