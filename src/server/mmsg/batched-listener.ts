/**
 * One UDP socket that is read and answered in batches: one system call takes what waits, one sends what was answered.
 *
 * It does what UdpListener does, with the same limits and counters. The event loop says when something can be read;
 * then the queue is drained without waiting, but no more than a fixed number of messages before everybody else gets a
 * turn. A socket on 0.0.0.0 or :: answers from the address that was asked.
 */
import { udpBatchesPerTurn } from '../../base/limits.ts'
import type { InFlightQueries } from '../in-flight.ts'
import { DROP, MISS, type Client, type Responder } from '../responder.ts'
import type { UdpSocket } from '../udp-io.ts'
import type { UdpListenerOptions, UdpStats } from '../udp-stats.ts'
import { Backlog } from '../backlog.ts'
import type { BatchedSocket } from './batched-socket.ts'
import type { ClientTexts } from './client-texts.ts'
import type { Libc, Poll } from './libc.ts'
import type { Lingering } from './lingering.ts'
import type { ForwardRing } from './forward-ring.ts'
import type { ClientWords, Destination, MessageBatch } from './message-batch.ts'

/** What all sockets of one kind share: they are read one after the other. */
export type BatchParts = Readonly<{ libc: Libc; batch: MessageBatch; texts: ClientTexts; lingering: Lingering }>

type Queued = Readonly<{ destination: Destination; octets: Uint8Array }>

export class BatchedListener implements UdpSocket {
  readonly port: number
  readonly #socket: BatchedSocket
  readonly #batch: MessageBatch
  readonly #texts: ClientTexts
  readonly #lingering: Lingering
  readonly #libc: Libc
  /** Null while there is nothing to wait for. */
  #poll: Poll | null = null
  #canWait = false
  readonly #responder: Responder
  readonly #inFlight: InFlightQueries
  readonly #stats: UdpStats
  readonly #backlog: Backlog
  readonly #sendQueueOctets: number
  readonly #onFault: (error: unknown) => void
  /** Who asks, for the time of one call: one object for all messages. */
  readonly #client: Client = { address: '', port: 0, transport: 'udp' }
  readonly #words: ClientWords = { a: 0, b: 0, c: 0, d: 0 }
  /** Answers that the kernel did not take yet. */
  #queue: Queued[] = []
  #queuedOctets = 0
  /** Answers that had to wait, and go out together when everybody else had a turn. */
  #resolved: Queued[] = []
  #onFlushed: (() => void)[] = []
  #isClosed = false
  #isPaused = false
  #isTurnDue = false
  readonly #othersAnswered: () => number
  #othersAnsweredBefore = 0

  constructor(socket: BatchedSocket, { libc, batch, texts, lingering }: BatchParts, options: UdpListenerOptions) {
    this.#socket = socket
    this.#libc = libc
    this.#batch = batch
    this.#texts = texts
    this.#lingering = lingering
    this.#responder = options.responder
    this.#inFlight = options.inFlight
    this.#stats = options.stats
    this.#sendQueueOctets = options.sendQueueOctets
    this.#onFault = options.onFault
    this.#othersAnswered = options.othersAnswered
    this.port = socket.port
    // Where the kernel refuses, its default serves too; it only loses more of a burst.
    const set = (octets: number): void => void socket.setReceiveBuffer(octets)
    this.#backlog = new Backlog({ roomyOctets: options.receiveBufferOctets, set, stats: options.stats }, options.clock)
    this.#wait()
  }

  get fd(): number {
    return this.#socket.fd
  }

  async flushed(): Promise<void> {
    this.#sendResolved()
    if (this.#queue.length === 0) return
    await new Promise<void>((resolve) => {
      this.#onFlushed.push(resolve)
    })
  }

  pause(): void {
    this.#isPaused = true
    this.#wait()
  }

  resume(): void {
    this.#isPaused = false
    this.#wait()
  }

  takeIn(ring: ForwardRing, meet: (client: ClientWords, text: string) => void, sinceMs: number | null): void {
    try {
      const batch = this.#batch
      const lost = ring.take(batch, sinceMs)
      this.#stats.receivedTotal += lost
      this.#stats.overloadedTotal += lost
      if (this.#isClosed) return
      const { received } = batch
      for (let slot = 0; slot < received; slot++) {
        batch.clientWords(slot, this.#words)
        meet(this.#words, this.#texts.of(batch, slot))
        this.#answer(slot)
      }
      if (batch.answered > 0) this.#send()
    } catch (error) {
      this.#fault(error)
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#poll?.close()
    this.#socket.close()
    this.#queue = []
    this.#resolved = []
    this.#tellFlushed()
  }

  /** Tells the event loop what to wait for, which is nothing at all while the socket is another process's. */
  #wait(): void {
    if (this.#isClosed) return
    const events = { readable: !this.#isPaused, writable: this.#queue.length > 0 }
    if (!events.readable && !events.writable) {
      this.#poll?.close()
      this.#poll = null
      return
    }
    if (this.#poll === null) {
      this.#poll = this.#libc.poll(this.#socket.fd, this.#turn)
      // A poll forbids it, each time that one begins.
      this.#canWait = this.#socket.allowWaiting()
      // That is what a new one waits for.
      if (events.readable && !events.writable) return
    }
    this.#poll.start(events, this.#turn)
  }

  /** Called by the event loop. Nothing catches what it throws, so it must not. */
  readonly #turn = (): void => {
    try {
      if (this.#queue.length > 0) this.#sendQueued()
      if (this.#isPaused) return
      let isFirst = true
      let isWaiting = false
      for (let fullBatches = 0; fullBatches < udpBatchesPerTurn; isFirst = false) {
        const received = this.#socket.receive(isWaiting)
        if (received < 0) this.#stats.receiveErrorsTotal += 1
        if (received <= 0) {
          if (isWaiting) this.#lingering.waitedForNothing()
          this.#backlog.noteEmptied()
          return
        }
        for (let slot = 0; slot < received; slot++) this.#answer(slot)
        if (this.#batch.answered > 0) this.#send()
        if (this.#isClosed) return
        isWaiting = received < this.#batch.slots
        if (!isWaiting) {
          fullBatches += 1
          continue
        }
        this.#backlog.noteEmptied()
        if (!this.#canWait || !this.#lingering.mayWait(this, isFirst, this.#isAlone())) return
      }
      this.#backlog.noteLeft()
    } catch (error) {
      this.#fault(error)
    }
  }

  /** Nothing waits for the event loop that comes from us, and TCP has been quiet since the last look. */
  #isAlone(): boolean {
    const answered = this.#othersAnswered()
    const isQuiet = answered === this.#othersAnsweredBefore
    this.#othersAnsweredBefore = answered
    return isQuiet && this.#inFlight.count === 0 && this.#queue.length === 0
  }

  #answer(slot: number): void {
    const batch = this.#batch
    const stats = this.#stats
    stats.receivedTotal += 1
    const port = batch.port(slot)
    if (port === 0) {
      // Nobody can be sent anything at port 0: the source is forged.
      stats.droppedTotal += 1
      return
    }
    const client = this.#client
    client.address = this.#texts.of(batch, slot)
    client.port = port
    const querySize = batch.querySize(slot)
    try {
      const size = this.#responder.answer(batch.queries[slot]!, querySize, client, batch.nextAnswer)
      if (size > DROP) {
        stats.answeredTotal += 1
        batch.answer(slot, size)
      } else if (size === MISS) {
        this.#ask(slot, querySize, { ...client })
      } else {
        stats.droppedTotal += 1
      }
    } catch (error) {
      this.#fault(error)
    }
  }

  /** Hands over what is not in memory, or refuses it while too many others wait. Throws what the responder throws. */
  #ask(slot: number, querySize: number, client: Client): void {
    const query = this.#batch.queries[slot]!.subarray(0, querySize)
    if (!this.#inFlight.tryEnter()) {
      this.#stats.overloadedTotal += 1
      const refusal = this.#responder.overload?.(query, client) ?? null
      if (refusal === null) return
      this.#batch.nextAnswer.set(refusal)
      this.#batch.answer(slot, refusal.length)
      return
    }
    this.#askForTurn()
    let answer: Promise<Uint8Array | null>
    try {
      answer = this.#responder.resolve(query, client)
    } catch (error) {
      this.#inFlight.leave()
      throw error
    }
    void this.#sendLater(answer, this.#batch.destinationOf(slot))
  }

  async #sendLater(answer: Promise<Uint8Array | null>, destination: Destination): Promise<void> {
    try {
      const octets = await answer
      if (octets === null) {
        this.#stats.droppedTotal += 1
      } else if (!this.#isClosed) {
        this.#stats.resolvedTotal += 1
        // What comes in one turn of the loop mostly comes together: exchanges are read one after the other.
        if (this.#resolved.push({ destination, octets }) === 1) setImmediate(this.#sendResolved)
      }
    } catch (error) {
      this.#fault(error)
    } finally {
      this.#inFlight.leave()
    }
  }

  /**
   * The callback of a poll does not run what promises have become due in it, as Node's own callbacks do: they would
   * wait for whatever the loop does next. So one is asked for that does.
   */
  #askForTurn(): void {
    if (this.#isTurnDue) return
    this.#isTurnDue = true
    // Runs in this turn of the loop, with all that promises and nextTick have become due behind it.
    setImmediate(() => {
      this.#isTurnDue = false
    })
  }

  readonly #sendResolved = (): void => {
    const resolved = this.#resolved
    if (resolved.length === 0) return
    this.#resolved = []
    try {
      for (let at = 0; at < resolved.length;) {
        this.#batch.beginSend()
        for (; at < resolved.length; at++) {
          const { destination, octets } = resolved[at]!
          if (!this.#batch.addAnswer(destination, octets)) break
        }
        this.#send()
      }
    } catch (error) {
      this.#fault(error)
    }
  }

  /** Sends the batch's answers, and keeps copies of those that the kernel does not take now. */
  #send(): void {
    const { errors, end } = this.#socket.send()
    this.#stats.sendErrorsTotal += errors
    const count = this.#batch.answered
    if (end === count) return
    for (let answer = end; answer < count; answer++) this.#keep(this.#batch.copyOfAnswer(answer))
    if (this.#queue.length > 0) this.#wait()
  }

  #keep(queued: Queued): void {
    if (this.#queuedOctets + queued.octets.length > this.#sendQueueOctets) {
      this.#stats.sendQueueFullTotal += 1
      return
    }
    this.#stats.copiedTotal += 1
    this.#queuedOctets += queued.octets.length
    this.#queue.push(queued)
  }

  #sendQueued(): void {
    const batch = this.#batch
    batch.beginSend()
    for (const { destination, octets } of this.#queue) if (!batch.addAnswer(destination, octets)) break
    const { errors, end } = this.#socket.send()
    this.#stats.sendErrorsTotal += errors
    for (const { octets } of this.#queue.splice(0, end)) this.#queuedOctets -= octets.length
    if (this.#queue.length > 0) return
    this.#wait()
    this.#tellFlushed()
  }

  #tellFlushed(): void {
    const flushed = this.#onFlushed
    this.#onFlushed = []
    for (const done of flushed) done()
  }

  #fault(error: unknown): void {
    this.#stats.faultsTotal += 1
    this.#onFault(error)
  }
}
