/** One set of listeners takes over the sockets of another one, as two processes do. */
import { test, type Test } from 'tap'
import { Listeners } from '../../../src/server/listeners.ts'
import type { ListenAddress } from '../../../src/server/listen-address.ts'
import { chooseUdpIo } from '../../../src/server/mmsg/batched-io.ts'
import { loadLibc } from '../../../src/server/mmsg/libc.ts'
import { ListeningSockets, socketKey } from '../../../src/server/takeover/listening-sockets.ts'
import { parseMessage } from '../../../src/server/takeover/messages.ts'
import { Predecessor } from '../../../src/server/takeover/predecessor.ts'
import { Successors } from '../../../src/server/takeover/successors.ts'
import { loopClock } from '../../support/loop-clock.ts'
import { TcpClient, UdpClient, until } from '../clients.ts'
import { idOf, ScriptedResponder, testQuery } from '../scripted-responder.ts'

void test('parseMessage takes what is one, and nothing else', async (t) => {
  t.same(parseMessage('{"kind":"take"}'), { kind: 'take' })
  t.same(parseMessage('{"kind":"socket","key":"udp 127.0.0.1:53"}'), { kind: 'socket', key: 'udp 127.0.0.1:53' })
  for (const text of ['', '{', 'null', '7', '{"kind":"socket"}', '{"kind":"hello","protocol":"x"}', '{"kind":"x"}']) {
    t.equal(parseMessage(text), null, text)
  }
})

const libc = await loadLibc().catch(() => null)
if (libc === null) {
  void test('takeover of sockets', { skip: 'koffi is not installed, or this is no Linux' }, () => {})
} else {
  const { udpIo } = await chooseUdpIo(loopClock)

  /** What is one process elsewhere. */
  class Server {
    readonly responder = new ScriptedResponder()
    readonly events: string[] = []
    readonly sockets: ListeningSockets
    listeners!: Listeners
    successors!: Successors

    constructor(taken: ReadonlyMap<string, number> = new Map()) {
      this.sockets = new ListeningSockets(libc!, taken)
    }

    async open(t: Test, addresses: readonly ListenAddress[]): Promise<this> {
      const { responder, sockets } = this
      this.listeners = await Listeners.open({ addresses, responder, clock: loopClock, udpIo, sockets })
      sockets.closeUnused()
      t.teardown(async () => this.stop())
      this.successors = new Successors(libc!, this.listeners.addresses, () => sockets.kept, {
        onHello: () => this.events.push('hello'),
        onTaken: () => {
          this.events.push('taken')
          this.listeners.pause()
        },
        onReturned: () => {
          this.events.push('returned')
          this.listeners.resume()
        },
        onProblem: (error) => this.events.push(String(error))
      })
      return this
    }

    get where(): ListenAddress {
      return this.listeners.addresses[0]!
    }

    get asked(): number[] {
      return this.responder.asked.map(({ id }) => id)
    }

    async stop(): Promise<void> {
      this.successors.close()
      await this.listeners.stop({ drainTimeoutMs: 1_000 })
      this.sockets.close()
    }
  }

  const anyPort = [{ address: '127.0.0.1', port: 0 }]

  void test('takeover: the new one answers, and what waited in the sockets too', async (t) => {
    const old = await new Server().open(t, anyPort)
    const client = new UdpClient(t, old.where)
    client.send(testQuery(1, 'now'))
    await client.gets(1)
    const predecessor = Predecessor.find(libc, [old.where])!
    t.teardown(() => predecessor.close())
    await until('it said hello', () => old.events.length === 1)
    // Nobody reads for a moment: these lie in the sockets when they are handed over.
    old.listeners.pause()
    client.send(testQuery(2, 'now'), testQuery(3, 'now'))
    const early = await TcpClient.open(t, old.where)
    early.ask(testQuery(4, 'now'))
    const taken = await predecessor.take()
    t.same([...taken!.keys()].sort(), [socketKey('tcp', old.where), socketKey('udp', old.where)])
    t.same(old.events, ['hello', 'taken'])
    t.ok(old.successors.isTaken)
    const next = await new Server(taken!).open(t, [old.where])
    await client.gets(3)
    await early.gets(1)
    t.same(new Set(next.asked), new Set([2, 3, 4]))
    t.same(old.asked, [1])
    await old.stop()
    client.send(testQuery(5, 'now'))
    await client.gets(4)
    t.same(new Set(client.received.map(idOf)), new Set([1, 2, 3, 5]))
  })

  void test('takeover: queries in flight and connections stay with the old one', async (t) => {
    const old = await new Server().open(t, anyPort)
    const client = new UdpClient(t, old.where)
    const connection = await TcpClient.open(t, old.where)
    client.send(testQuery(1, 'later'))
    connection.ask(testQuery(2, 'now'))
    await until('one waits', () => old.responder.waiting.length === 1)
    await connection.gets(1)
    const predecessor = Predecessor.find(libc, [old.where])!
    t.teardown(() => predecessor.close())
    const next = await new Server((await predecessor.take())!).open(t, [old.where])
    connection.ask(testQuery(3, 'now'))
    await connection.gets(2)
    t.same(next.asked, [])
    const stopped = old.stop()
    old.responder.waiting[0]!.answer()
    await client.gets(1)
    await stopped
    await connection.ends()
  })

  void test('takeover: when the new one is gone, the old one serves on, and can be taken over again', async (t) => {
    const old = await new Server().open(t, anyPort)
    const client = new UdpClient(t, old.where)
    for (let round = 0; round < 3; round++) {
      const predecessor = Predecessor.find(libc, [old.where])!
      const next = await new Server((await predecessor.take())!).open(t, [old.where])
      await next.stop()
      client.send(testQuery(round, 'now'))
      predecessor.close()
      await client.gets(round + 1)
      const connection = await TcpClient.open(t, old.where)
      connection.ask(testQuery(round, 'now'))
      await connection.gets(1)
      await until('others can find it', () => old.events.length === 3 * (round + 1))
    }
    t.same(old.events, Array.from({ length: 3 }, () => ['hello', 'taken', 'returned']).flat())
  })

  void test('takeover: of two that wait, one gets the sockets', async (t) => {
    const old = await new Server().open(t, anyPort)
    const [first, second] = [Predecessor.find(libc, [old.where])!, Predecessor.find(libc, [old.where])!]
    t.teardown(() => [first, second].forEach((one) => one.close()))
    await until('both said hello', () => old.events.length === 2)
    let isDecided = false
    void old.successors.decided().then(() => (isDecided = true))
    const next = await new Server((await second.take())!).open(t, [old.where])
    t.equal(await first.take(), null)
    await first.gone
    t.ok(isDecided, 'a process that was told to stop waits no longer')
    const third = Predecessor.find(libc, [old.where])!
    t.teardown(() => third.close())
    await until('the next one is found under the name', () => next.events.length === 1)
  })

  void test('takeover: a waiting one that goes away is waited for no longer', async (t) => {
    const old = await new Server().open(t, anyPort)
    await old.successors.decided()
    const predecessor = Predecessor.find(libc, [old.where])!
    await until('it said hello', () => old.events.length === 1)
    const decided = old.successors.decided()
    predecessor.close()
    await decided
    t.notOk(old.successors.isTaken)
  })

  void test('takeover: an old one that ends before it gives leaves nothing behind', async (t) => {
    const old = await new Server().open(t, anyPort)
    const predecessor = Predecessor.find(libc, [{ address: '192.0.2.1', port: 53 }, { ...old.where }])!
    await old.stop()
    await predecessor.gone
    t.equal(await predecessor.take(), null)
    t.equal(Predecessor.find(libc, [old.where]), null)
    t.equal(Predecessor.find(libc, anyPort), null)
  })

  void test('ListeningSockets: what was taken over and is not wanted is closed', async (t) => {
    const old = await new Server().open(t, [...anyPort, ...anyPort])
    const [first] = old.listeners.addresses
    const predecessor = Predecessor.find(libc, [first!])!
    t.teardown(() => predecessor.close())
    const taken = await predecessor.take()
    t.equal(taken!.size, 4)
    const next = await new Server(taken!).open(t, [first!])
    t.same([...next.sockets.kept.keys()].sort(), [socketKey('tcp', first!), socketKey('udp', first!)])
  })

  void test('ListeningSockets: an address that is taken, and zones', async (t) => {
    const old = await new Server().open(t, anyPort)
    const sockets = new ListeningSockets(libc)
    t.teardown(() => sockets.close())
    t.throws(() => sockets.tcp(old.where, { ipv6Only: false }), { code: 'EADDRINUSE' })
    t.equal(sockets.tcp({ address: 'fe80::1%lo', port: 0 }, { ipv6Only: true }), null)
    t.equal(sockets.kept.size, 0)
    await t.rejects(new Server().open(t, [old.where]), { code: 'EADDRINUSE' })
  })
}
