/** The UDP sockets to one server: which port a question gets, and what that port believes. */
import { createSocket, type Socket } from 'node:dgram'
import { test, type Test } from 'tap'
import { udpPortLifeMs, udpPortQuestions, udpPortsPerServer } from '../../src/base/limits.ts'
import type { Exchange } from '../../src/peer/exchange.ts'
import { PeerQuery } from '../../src/peer/peer-query.ts'
import { newPeerStats } from '../../src/peer/peer-types.ts'
import { UdpPorts } from '../../src/peer/udp-ports.ts'
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

const atATime = 32
const query = new PeerQuery(southQuestion('api'), false)

async function portsTo(t: Test, server: Server) {
  const clock = new ManualClock()
  const stats = newPeerStats()
  const ports = new UdpPorts(server.where, clock, stats)
  t.teardown(() => ports.close())
  /** Asks so often, a few at a time so that the kernel loses none, and resolves when the server has all of them. */
  const ask = async (count: number) => {
    const exchanges: Exchange[] = []
    while (exchanges.length < count) {
      const some = Math.min(count - exchanges.length, atATime)
      const before = server.asked.length
      for (let at = 0; at < some; at++) exchanges.push(ports.exchange(query, true))
      await server.until(before + some)
    }
    return exchanges
  }
  return { ports, stats, clock, ask }
}

const portsOf = (asked: readonly Asked[]): Set<number> => new Set(asked.map(({ port }) => port))

/** Answers from the `from`th question on, and waits for all of these. */
async function answerAll(server: Server, exchanges: readonly Exchange[], from: number): Promise<void> {
  for (const asked of server.asked.slice(from)) server.answer(asked)
  await Promise.all(exchanges.map(async ({ done }) => done))
}

void test('UdpPorts: a port of its own for each question until some are open, then one of these, and an id that it had not', async (t) => {
  const server = await new Server().start(t)
  const { ask } = await portsTo(t, server)
  const few = await ask(udpPortsPerServer)
  t.equal(portsOf(server.asked).size, udpPortsPerServer)
  const many = await ask(8 * udpPortsPerServer)
  t.equal(portsOf(server.asked).size, udpPortsPerServer)
  t.equal(new Set(server.asked.map(({ id, port }) => `${id} ${port}`)).size, server.asked.length)
  await answerAll(server, [...few, ...many], 0)
})

void test('UdpPorts: no new questions for a port after its time, a stray, or a silence', async (t) => {
  const server = await new Server().start(t)
  const { ask, clock, stats } = await portsTo(t, server)
  const open: Exchange[] = []
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

void test('UdpPorts: no new questions for a port after its number', async (t) => {
  const server = await new Server().start(t)
  const { ask } = await portsTo(t, server)
  for (let asked = 0; asked <= udpPortsPerServer * udpPortQuestions; asked += atATime) {
    await answerAll(server, await ask(atATime), asked)
  }
  const questions = new Map<number, number>()
  for (const { port } of server.asked) questions.set(port, (questions.get(port) ?? 0) + 1)
  t.ok(questions.size > udpPortsPerServer)
  t.ok(Math.max(...questions.values()) <= udpPortQuestions)
})

void test('UdpPorts: an answer that comes twice, or too late, is no stray', async (t) => {
  const server = await new Server().start(t)
  const { ask, stats } = await portsTo(t, server)
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

void test('UdpPorts.close: who waits gets `network`, no timer stays, and nothing is asked any more', async (t) => {
  const server = await new Server().start(t)
  const { ports, ask, clock } = await portsTo(t, server)
  const exchanges = await ask(2 * udpPortsPerServer)
  const closed = ports.close()
  for (const { done } of exchanges) t.match(await done, { kind: 'failed', outcome: 'network' })
  await closed
  t.equal(clock.pendingTimers, 0)
  t.match(await ports.exchange(query, true).done, { kind: 'failed', outcome: 'network' })
})
