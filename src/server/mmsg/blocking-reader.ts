/**
 * Reads and answers UDP sockets in a thread that has nothing else to do: it waits in the kernel, not in an event loop.
 *
 * What it answers comes from memory (`answer`); everything else goes through a ring to the thread that has the event
 * loop, which answers through the same socket. That thread says by a word in shared memory when to stop.
 */
import type { Clock } from '../../base/clock.ts'
import { udpBatchesPerTurn } from '../../base/limits.ts'
import {
  workerHelpTurns,
  workerReadErrors,
  workerReportMs,
  workerSendWaitMs,
  workerWaitMs
} from '../../base/socket-limits.ts'
import { Backlog } from '../backlog.ts'
import type { BatchedSocket } from './batched-socket.ts'
import type { ForwardRing } from './forward-ring.ts'
import { linux, pollFd, rusage, timeval } from './layout.ts'
import type { Libc } from './libc.ts'
import type { ClientWords, MessageBatch } from './message-batch.ts'

/** What the other thread wants, as the first word of `command`. */
export const command = { serve: 0, pause: 1, stop: 2, prepare: 3 } as const

/** What a worker counts, as numbers in shared memory that it alone writes. */
export const counter = {
  received: 0,
  answered: 1,
  /** Queries without a reply: too short, responses, or from port 0. */
  dropped: 2,
  /** The same, without those from port 0. */
  notQueries: 3,
  forwarded: 4,
  /** Queries that were lost because the other thread had too many of them. */
  lost: 5,
  sendErrors: 6,
  sendQueueFull: 7,
  receiveErrors: 8,
  backlogs: 9,
  /** Time that this thread has had on a processor, in milliseconds, as of its last report. */
  cpuMs: 10,
  size: 16
} as const

export type BlockingReaderParts = Readonly<{
  libc: Libc
  batch: MessageBatch
  sockets: readonly BatchedSocket[]
  clock: Clock
  /** A time that all threads agree on. */
  processTimeMs(): number
  receiveBufferOctets: number
  ring: ForwardRing
  command: Int32Array
  counters: Float64Array
  /** Writes what a query gets, from memory, into `out` and returns its octets; 0: it is for the other thread. */
  answer(query: Uint8Array, size: number, client: ClientWords, out: Uint8Array): number
  /** A batch of queries has come. */
  onBatch(): void
  /** Wakes the other thread, which finds queries in the ring. */
  wake(): void
  /** More comes than can be answered here. */
  cryForHelp(): void
}>

const headerOctets = 12

export class BlockingReader {
  readonly #parts: BlockingReaderParts
  readonly #backlogs: readonly Backlog[]
  readonly #waiting: Uint8Array
  readonly #client: ClientWords = { a: 0, b: 0, c: 0, d: 0 }
  #reportedAtMs = Number.NEGATIVE_INFINITY
  #errorsInARow = 0
  /** Turns in a row that left something in the queue. */
  #leftInARow = 0

  constructor(parts: BlockingReaderParts) {
    this.#parts = parts
    const { sockets, clock, counters, receiveBufferOctets: roomyOctets } = parts
    const stats = {
      get backlogsTotal(): number {
        return counters[counter.backlogs]!
      },
      set backlogsTotal(total: number) {
        counters[counter.backlogs] = total
      }
    }
    this.#backlogs = sockets.map(
      (socket) => new Backlog({ roomyOctets, set: (octets) => void socket.setReceiveBuffer(octets), stats }, clock)
    )
    this.#waiting = new Uint8Array(sockets.length * pollFd.size)
    const view = new DataView(this.#waiting.buffer)
    for (const [at, socket] of sockets.entries()) {
      view.setInt32(at * pollFd.size + pollFd.fd, socket.fd, true)
      view.setInt16(at * pollFd.size + pollFd.events, linux.POLLIN, true)
      socket.allowWaiting(workerWaitMs * 1_000)
    }
  }

  /** Serves until it is told to stop. @throws where the sockets give nothing but errors, and what `answer` throws. */
  run(): void {
    const { command: word, sockets } = this.#parts
    for (;;) {
      const wanted = Atomics.load(word, 0)
      if (wanted === command.stop) return
      if (wanted === command.pause) Atomics.wait(word, 0, command.pause)
      else if (sockets.length === 1) this.#serve(0, true)
      else this.#serveReadable()
      this.#report()
    }
  }

  #serveReadable(): void {
    const { libc, sockets } = this.#parts
    const waiting = this.#waiting
    const ready = libc.waitFor(waiting, sockets.length, workerWaitMs)
    if (ready <= 0) return
    for (let socket = 0; socket < sockets.length; socket++) {
      const at = socket * pollFd.size + pollFd.revents
      if (waiting[at] !== 0 || waiting[at + 1] !== 0) this.#serve(socket, false)
    }
  }

  /** Answers what waits in one socket, or at most so much that others get their turn. */
  #serve(number: number, isWaiting: boolean): void {
    const { sockets, batch, clock, counters } = this.#parts
    const socket = sockets[number]!
    const backlog = this.#backlogs[number]!
    for (let fullBatches = 0; fullBatches < udpBatchesPerTurn; fullBatches++) {
      const mayWait = isWaiting && fullBatches === 0
      const beganAtMs = mayWait ? clock.nowMs() : 0
      const received = socket.receive(mayWait)
      if (received < 0) this.#noteError()
      if (received <= 0) {
        // The other thread has used the socket in its event loop, which forbids waiting, or shortens it.
        if (mayWait && clock.nowMs() - beganAtMs < workerWaitMs / 2) socket.allowWaiting(workerWaitMs * 1_000)
        backlog.noteEmptied()
        this.#leftInARow = 0
        return
      }
      this.#errorsInARow = 0
      counters[counter.received]! += received
      this.#answer(number, received)
      if (batch.answered > 0) this.#send(socket)
      if (received < batch.slots) {
        backlog.noteEmptied()
        this.#leftInARow = 0
        return
      }
    }
    backlog.noteLeft()
    this.#leftInARow += 1
    if (this.#leftInARow % workerHelpTurns === 0) this.#parts.cryForHelp()
  }

  #answer(socket: number, received: number): void {
    const { batch, counters, ring } = this.#parts
    this.#parts.onBatch()
    let isForwarded = false
    let nowMs: number | null = null
    for (let slot = 0; slot < received; slot++) {
      const size = batch.querySize(slot)
      const query = batch.queries[slot]!
      const isQuery = size >= headerOctets && (query[2]! & 0x80) === 0
      // Nobody can be sent anything at port 0: the source is forged.
      if (!isQuery || batch.port(slot) === 0) {
        counters[counter.dropped]! += 1
        if (!isQuery) counters[counter.notQueries]! += 1
        continue
      }
      batch.clientWords(slot, this.#client)
      const written = this.#parts.answer(query, size, this.#client, batch.nextAnswer)
      if (written > 0) {
        batch.answer(slot, written)
        counters[counter.answered]! += 1
      } else if (ring.push(socket, batch, slot, (nowMs ??= this.#parts.processTimeMs()))) {
        counters[counter.forwarded]! += 1
        isForwarded = true
      } else {
        counters[counter.lost]! += 1
      }
    }
    if (isForwarded && ring.mustWake()) this.#parts.wake()
  }

  /** Sends the batch's answers; a kernel that takes no more gets a moment, and what it then does not take is lost. */
  #send(socket: BatchedSocket): void {
    const { libc, batch, counters } = this.#parts
    const count = batch.answered
    let { errors, end } = socket.send()
    while (end < count) {
      const writable = new Uint8Array(pollFd.size)
      const view = new DataView(writable.buffer)
      view.setInt32(pollFd.fd, socket.fd, true)
      view.setInt16(pollFd.events, linux.POLLOUT, true)
      if (libc.waitFor(writable, 1, workerSendWaitMs) <= 0) break
      const before = end
      const outcome = socket.send(end)
      errors += outcome.errors
      end = outcome.end
      if (end === before) break
    }
    counters[counter.sendErrors]! += errors
    counters[counter.sendQueueFull]! += count - end
  }

  #noteError(): void {
    this.#parts.counters[counter.receiveErrors]! += 1
    this.#errorsInARow += 1
    if (this.#errorsInARow > workerReadErrors) throw new Error('a socket gives nothing but errors')
  }

  /** Tells how much of a processor this thread has had. */
  #report(): void {
    const { libc, clock, counters } = this.#parts
    const nowMs = clock.nowMs()
    if (nowMs - this.#reportedAtMs < workerReportMs) return
    this.#reportedAtMs = nowMs
    const usage = new Uint8Array(rusage.room)
    if (libc.getrusage(linux.RUSAGE_THREAD, usage) < 0) return
    const view = new DataView(usage.buffer)
    const ms = (at: number): number =>
      Number(view.getBigInt64(at + timeval.seconds, true)) * 1e3 +
      Number(view.getBigInt64(at + timeval.microseconds, true)) / 1e3
    counters[counter.cpuMs] = ms(rusage.user) + ms(rusage.system)
  }
}
