/**
 * The UDP sockets to one server: which port a question gets, and what that port believes; with sockets of node:dgram,
 * and of the C library where this machine can.
 */
import { createSocket, type Socket } from 'node:dgram'
import { test, type Test } from 'tap'
import { udpPortLifeMs, udpPortQuestions, udpPortsPerServer } from '../../src/base/limits.ts'
import type { Exchange, ExchangeEnd } from '../../src/peer/exchange.ts'
import { PeerQuery } from '../../src/peer/peer-query.ts'
import { newPeerStats } from '../../src/peer/peer-types.ts'
import { UdpPorts } from '../../src/peer/udp-ports.ts'
import { openDgramSocket, type OpenUdpSocket } from '../../src/peer/udp-socket.ts'
import { connectedSockets } from '../../src/server/mmsg/connected-sockets.ts'
import { loadLibc } from '../../src/server/mmsg/libc.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { southQuestion } from '../support/south-peer.ts'

type Asked = Readonly<{ id: number; port: number; octets: Buffer }>

/** A server that answers when the test says so. */
class Server {
  readonly asked: Asked[] = []
  readonly #socket: Socket = createSocket('udp4')
  #onAsked: () => void = () => {}

  async start(t: Test): Promise<this> {
    this.#socket.on('message', (octets, { port }) => {
      this.asked.push({ id: octets.readUInt16BE(0), port, octets })
      this.#onAsked()
    })
    await new Promise<void>((resolve) => this.#socket.bind(0, '127.0.0.1', resolve))
    t.teardown(() => this.#socket.close())
    return this
  }

  get where() {
    return { address: '127.0.0.1', port: this.#socket.address().port, family: 4 } as const
  }

  /** Resolves when so many questions have come in all. */
  async until(count: number): Promise<void> {
    await new Promise<void>((resolve) => {
      this.#onAsked = () => {
        if (this.asked.length >= count) resolve()
      }
      this.#onAsked()
    })
  }

  /** Sends the question back as a response, with another id where one is given. */
  answer({ octets, port }: Asked, id = octets.readUInt16BE(0)): void {
    const response = Buffer.from(octets)
    response.writeUInt16BE(id, 0)
    response[2]! |= 0x80
    this.#socket.send(response, port, '127.0.0.1')
  }
}

type Begun = Exchange & Readonly<{ done: Promise<ExchangeEnd> }>

function begin(ports: UdpPorts): Begun {
  const { promise: done, resolve } = Promise.withResolvers<ExchangeEnd>()
  const exchange = ports.exchange(query, true, resolve)
  return {
    done,
    resend: () => exchange.resend(),
    markSlow: () => exchange.markSlow(),
    cancel: () => exchange.cancel()
  }
}

const atATime = 32
const query = new PeerQuery(southQuestion('api'), false)

const ways: [way: string, open: OpenUdpSocket][] = [['dgram', openDgramSocket]]
const libc = await loadLibc().catch(() => null)
if (libc !== null) ways.push(['mmsg', connectedSockets(libc, openDgramSocket)])

async function portsTo(t: Test, server: Server, open: OpenUdpSocket) {
  const clock = new ManualClock()
  const stats = newPeerStats()
  const ports = new UdpPorts(server.where, clock, stats, () => open)
  t.teardown(() => ports.close())
  /** Asks so often, a few at a time so that the kernel loses none, and resolves when the server has all of them. */
  const ask = async (count: number) => {
    const exchanges: Begun[] = []
    while (exchanges.length < count) {
      const some = Math.min(count - exchanges.length, atATime)
      const before = server.asked.length
      for (let at = 0; at < some; at++) exchanges.push(begin(ports))
      await server.until(before + some)
    }
    return exchanges
  }
  return { ports, stats, clock, ask }
}

/** A port that stays taken and refuses everybody: its socket is connected to itself. */
async function refusingPort(t: Test): Promise<number> {
  const holder = createSocket('udp4')
  t.teardown(() => holder.close())
  await new Promise<void>((resolve) => holder.bind(0, '127.0.0.1', resolve))
  const { port } = holder.address()
  await new Promise<void>((resolve) => holder.connect(port, '127.0.0.1', resolve))
  return port
}

const portsOf = (asked: readonly Asked[]): Set<number> => new Set(asked.map(({ port }) => port))

/** Answers from the `from`th question on, and waits for all of these. */
async function answerAll(server: Server, exchanges: readonly Begun[], from: number): Promise<void> {
  for (const asked of server.asked.slice(from)) server.answer(asked)
  await Promise.all(exchanges.map(async ({ done }) => done))
}

for (const [way, openSocket] of ways) {
  void test(`UdpPorts: a port of its own for each question until some are open, then one of these, and an id that it had not, ${way}`, async (t) => {
    const server = await new Server().start(t)
    const { ask } = await portsTo(t, server, openSocket)
    const few = await ask(udpPortsPerServer)
    t.equal(portsOf(server.asked).size, udpPortsPerServer)
    const many = await ask(8 * udpPortsPerServer)
    t.equal(portsOf(server.asked).size, udpPortsPerServer)
    t.equal(new Set(server.asked.map(({ id, port }) => `${id} ${port}`)).size, server.asked.length)
    await answerAll(server, [...few, ...many], 0)
  })

  void test(`UdpPorts: no new questions for a port after its time, a stray, or a silence, ${way}`, async (t) => {
    const server = await new Server().start(t)
    const { ask, clock, stats } = await portsTo(t, server, openSocket)
    const open: Begun[] = []
    /** The ports that another round of questions goes out from: likely all of those that are open. */
    const round = async (): Promise<Set<number>> => {
      const from = server.asked.length
      open.push(...(await ask(8 * udpPortsPerServer)))
      return portsOf(server.asked.slice(from))
    }
    const first = await round()
    clock.advance(udpPortLifeMs)
    const second = await round()
    t.notOk(
      [...second].some((port) => first.has(port)),
      'after its time'
    )

    const guessed = server.asked.at(-1)!
    server.answer(guessed, guessed.id ^ 1)
    server.answer(guessed)
    t.match(await Promise.any(open.map(async ({ done }) => done)), { kind: 'response' }, 'who waits there is answered')
    t.equal(stats.strays, 1)
    t.notOk((await round()).has(guessed.port), 'after a stray')

    const [slow] = await ask(1)
    open.push(slow!)
    const silent = server.asked.at(-1)!
    slow!.markSlow()
    t.notOk((await round()).has(silent.port), 'after a silence')
    t.ok(slow!.resend(), 'the question itself is sent again from there')
    await server.until(open.length + 1)
    t.match(server.asked.pop(), { port: silent.port, id: silent.id })
    await answerAll(server, open, 0)
  })

  void test(`UdpPorts: no new questions for a port after its number, ${way}`, async (t) => {
    const server = await new Server().start(t)
    const { ask } = await portsTo(t, server, openSocket)
    for (let asked = 0; asked <= udpPortsPerServer * udpPortQuestions; asked += atATime) {
      await answerAll(server, await ask(atATime), asked)
    }
    const questions = new Map<number, number>()
    for (const { port } of server.asked) questions.set(port, (questions.get(port) ?? 0) + 1)
    t.ok(questions.size > udpPortsPerServer)
    t.ok(Math.max(...questions.values()) <= udpPortQuestions)
  })

  void test(`UdpPorts: an answer that comes twice, or too late, is no stray, ${way}`, async (t) => {
    const server = await new Server().start(t)
    const { ask, stats } = await portsTo(t, server, openSocket)
    const exchanges = await ask(udpPortsPerServer)
    exchanges[0]!.cancel()
    for (const asked of server.asked) {
      server.answer(asked)
      server.answer(asked)
    }
    await Promise.all(exchanges.slice(1).map(async ({ done }) => done))
    // What comes behind is read behind.
    const more = await ask(4 * udpPortsPerServer)
    await answerAll(server, more, exchanges.length)
    t.equal(stats.strays, 0)
  })

  void test(`UdpPorts.close: who waits gets network, no timer stays, and nothing is asked any more, ${way}`, async (t) => {
    const server = await new Server().start(t)
    const { ports, ask, clock } = await portsTo(t, server, openSocket)
    const exchanges = await ask(2 * udpPortsPerServer)
    const closed = ports.close()
    for (const { done } of exchanges) t.match(await done, { kind: 'failed', outcome: 'network' })
    await closed
    t.equal(clock.pendingTimers, 0)
    t.match(await begin(ports).done, { kind: 'failed', outcome: 'network' })
  })

  void test(`UdpPorts: a port that nobody listens on is told of, ${way}`, async (t) => {
    const port = await refusingPort(t)
    const ports = new UdpPorts(
      { address: '127.0.0.1', port, family: 4 },
      new ManualClock(),
      newPeerStats(),
      () => openSocket
    )
    t.teardown(() => ports.close())
    // What ICMP brings back is told with the answer that is waited for, or with the next question.
    const ends = await Promise.all([1, 2, 3].map(async () => begin(ports).done))
    for (const end of ends) t.match(end, { kind: 'failed', outcome: 'network', detail: 'ECONNREFUSED' })
  })

  void test(`UdpPorts: an address that cannot be reached is told of, ${way}`, async (t) => {
    // Port 0 is nobody's.
    const ports = new UdpPorts(
      { address: '::1', port: 0, family: 6 },
      new ManualClock(),
      newPeerStats(),
      () => openSocket
    )
    t.teardown(() => ports.close())
    t.match(await begin(ports).done, { kind: 'failed', outcome: 'network' })
  })
}

for (const [way, openSocket] of ways) {
  void test(`UdpPorts: questions leave from an address of ours, wherever they go, ${way}`, async (t) => {
    const far = createSocket('udp4')
    t.teardown(() => far.close())
    await new Promise<void>((resolve) => far.bind(0, '127.0.0.2', resolve))
    const from = new Promise<string>((resolve) => far.once('message', (_, { address }) => resolve(address)))
    const where = { address: '127.0.0.2', port: far.address().port, family: 4 } as const
    const ports = new UdpPorts(where, new ManualClock(), newPeerStats(), () => openSocket)
    const { done } = begin(ports)
    t.not(await from, '127.0.0.2')
    await ports.close()
    t.match(await done, { kind: 'failed' })
  })

  void test(`UdpPorts: nobody there or no way there, they can be closed, ${way}`, async (t) => {
    for (const address of ['192.0.2.53', '255.255.255.255', '240.0.0.1']) {
      const where = { address, port: 53, family: 4 } as const
      const ports = new UdpPorts(where, new ManualClock(), newPeerStats(), () => openSocket)
      const { done } = begin(ports)
      const closed = ports.close()
      t.match(await done, { kind: 'failed' }, address)
      await closed
    }
  })
}
