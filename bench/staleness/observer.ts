/**
 * The client on B, as a process of its own: asks for names every 5 ms and tells when the last answer came that held a
 * dead endpoint. It knows nothing of the servers but their addresses.
 */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { aRdata } from '../../src/wire/rdata.ts'
import { parseName } from '../../src/wire/name.ts'
import { addressQuery } from '../scale/prober.ts'
import { BlackHole } from './black-hole.ts'
import { monotonicMs } from './monotonic.ts'
import type { FromObserver, LatencyFigures, ObservedServer, SetUpId, ToObserver } from './observations.ts'
import { raisePriority } from './priority.ts'
import { Sample } from './sample.ts'

const pollMs = 5
const idlePollMs = 1_000
const unansweredMs = 1_000
/** How long `InetAddress` keeps an answer where nothing else is configured. */
const javaCacheMs = 30_000
const receiveBufferOctets = 4 << 20

type Answered = (answer: Buffer | null, atMs: number) => void
type Sent = { readonly sentAtMs: number; readonly answered: Answered | null }

/** One server, asked over one socket. */
class Asked {
  readonly server: ObservedServer
  readonly latency = new Sample()
  readonly #socket: Socket
  /** In the order they were sent. */
  readonly #waiting = new Map<number, Sent>()
  #id = 0

  private constructor(server: ObservedServer, socket: Socket) {
    this.server = server
    this.#socket = socket
    socket.on('message', (answer) => this.#take(answer))
    // Nobody listens there: unanswered.
    socket.on('error', () => {})
  }

  static async open(server: ObservedServer): Promise<Asked> {
    const socket = createSocket({ type: 'udp4', recvBufferSize: receiveBufferOctets })
    socket.connect(server.port, server.host)
    await once(socket, 'connect')
    return new Asked(server, socket)
  }

  /** @param query whose id is written into it; it is sent before this returns */
  ask(query: Buffer, answered: Answered | null): void {
    this.#id = (this.#id + 1) & 0xffff
    query.writeUInt16BE(this.#id, 0)
    this.#waiting.set(this.#id, { sentAtMs: monotonicMs(), answered })
    // A copy, since the next question for this name may be made before the kernel has this one.
    this.#socket.send(Buffer.from(query))
  }

  dropUnanswered(nowMs: number): void {
    for (const [id, { sentAtMs, answered }] of this.#waiting) {
      if (nowMs - sentAtMs < unansweredMs) break
      this.#waiting.delete(id)
      answered?.(null, nowMs)
    }
  }

  close(): void {
    this.#socket.close()
  }

  #take(answer: Buffer): void {
    const nowMs = monotonicMs()
    const id = answer.readUInt16BE(0)
    const sent = this.#waiting.get(id)
    if (sent === undefined) return
    this.#waiting.delete(id)
    if (sent.answered === null) return
    this.latency.add(nowMs - sent.sentAtMs)
    sent.answered(answer, nowMs)
  }
}

/** An A record's RDLENGTH and RDATA, which do not turn up elsewhere in an answer. */
const recordOf = (address: string): Buffer => Buffer.concat([Buffer.from([0, 4]), aRdata(address)])
const queryFor = (name: string): Buffer => addressQuery(parseName(name))
const rcodeOf = (answer: Buffer): number => answer[3]! & 0xf

type Poll = { readonly asked: Asked; readonly hole: BlackHole; readonly onAnswer: Answered; dueAtMs: number }

/** One name whose endpoint dies, at all servers. */
class Trial {
  readonly query: Buffer
  readonly record: Buffer
  readonly holes = new Map<SetUpId, BlackHole>()
  polls: Poll[] = []

  constructor(name: string, address: string, servers: readonly Asked[], nowMs: number) {
    this.query = queryFor(name)
    this.record = recordOf(address)
    for (const asked of servers) {
      const hole = new BlackHole()
      this.holes.set(asked.server.id, hole)
      const onAnswer: Answered = (answer, atMs) => {
        if (answer === null) hole.failed('unanswered')
        else if (rcodeOf(answer) !== 0) hole.failed('error')
        else hole.answered(atMs, answer.includes(this.record))
      }
      this.polls.push({ asked, hole, onAnswer, dueAtMs: nowMs + Math.random() * pollMs })
    }
  }
}

class Observer {
  readonly #tell: (message: FromObserver) => void
  readonly #trials = new Map<number, Trial>()
  readonly #lag = new Sample()
  #skipped = 0
  #asked: readonly Asked[] = []
  #idle: { query: Buffer; dueAtMs: number }[] = []
  #isRunning = false

  constructor(tell: (message: FromObserver) => void) {
    this.#tell = tell
  }

  async take(message: ToObserver): Promise<void> {
    switch (message.kind) {
      case 'observe':
        this.#asked = await Promise.all(message.servers.map(async (server) => Asked.open(server)))
        this.#idle = message.names.map((name, at) => ({
          query: queryFor(name),
          dueAtMs: monotonicMs() + (at * idlePollMs) / message.names.length
        }))
        this.#isRunning = true
        this.#tick()
        this.#tell({ kind: 'ready' })
        break
      case 'watch':
        this.#trials.set(message.trial, new Trial(message.name, message.address, this.#asked, monotonicMs()))
        break
      case 'killed':
        this.#killed(message.trial, message.atMs)
        break
      case 'stop':
        this.#stop()
        break
    }
  }

  #killed(number: number, atMs: number): void {
    const trial = this.#trials.get(number)!
    for (const hole of trial.holes.values()) hole.killed(atMs)
    for (const asked of this.#asked) {
      if (asked.server.hasJavaClient === true) this.#useForLong(number, trial, asked, atMs, Math.random() * javaCacheMs)
    }
  }

  /** It looked the name up at some moment of the 30 s before, and looks again when they are over. */
  #useForLong(number: number, trial: Trial, asked: Asked, killedAtMs: number, againAfterMs: number): void {
    const lookUp = (): void => {
      if (!this.#isRunning) return
      asked.ask(trial.query, (answer) => {
        if (answer !== null && answer.includes(trial.record)) {
          this.#useForLong(number, trial, asked, killedAtMs, againAfterMs + javaCacheMs)
        } else this.#tell({ kind: 'java', trial: number, setUp: asked.server.id, blackHoleMs: againAfterMs })
      })
    }
    setTimeout(lookUp, killedAtMs + againAfterMs - monotonicMs())
  }

  readonly #tick = (): void => {
    if (!this.#isRunning) return
    const nowMs = monotonicMs()
    for (const one of this.#idle) {
      if (one.dueAtMs > nowMs) continue
      for (const asked of this.#asked) asked.ask(one.query, null)
      one.dueAtMs += idlePollMs
    }
    for (const [number, trial] of this.#trials) {
      if (trial.polls.length > 0) this.#poll(number, trial)
    }
    for (const asked of this.#asked) asked.dropUnanswered(nowMs)
    setTimeout(this.#tick, 1)
  }

  #poll(number: number, trial: Trial): void {
    for (const poll of trial.polls) {
      const nowMs = monotonicMs()
      if (poll.dueAtMs > nowMs) continue
      this.#lag.add(nowMs - poll.dueAtMs)
      poll.asked.ask(trial.query, poll.onAnswer)
      poll.dueAtMs += pollMs
      while (poll.dueAtMs < nowMs) {
        poll.dueAtMs += pollMs
        this.#skipped++
      }
    }
    const nowMs = monotonicMs()
    const left = trial.polls.filter(({ hole }) => !hole.isDone(nowMs))
    if (left.length === trial.polls.length) return
    trial.polls = left
    if (left.length > 0) return
    const bySetUp = Object.fromEntries(Array.from(trial.holes, ([id, hole]) => [id, hole.result()]))
    this.#tell({ kind: 'observed', trial: number, bySetUp })
  }

  #stop(): void {
    this.#isRunning = false
    const latency = Object.fromEntries(
      this.#asked.map(({ server, latency }): [SetUpId, LatencyFigures] => [
        server.id,
        { answers: latency.count, medianMs: latency.percentile(0.5), p99Ms: latency.percentile(0.99) }
      ])
    )
    for (const asked of this.#asked) asked.close()
    const { count: polls, max: maxMs } = this.#lag
    const [medianMs, p99Ms] = [this.#lag.percentile(0.5), this.#lag.percentile(0.99)]
    this.#tell({ kind: 'stopped', lag: { polls, medianMs, p99Ms, maxMs, skipped: this.#skipped }, latency })
  }
}

raisePriority()
const observer = new Observer((message) => process.send!(message))
process.on('message', (message: ToObserver) => void observer.take(message))
process.once('disconnect', () => process.exit(0))
