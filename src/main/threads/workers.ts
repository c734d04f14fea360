/**
 * The threads that answer UDP from memory (`threads`), as the main thread sees them: it starts them, answers what they
 * cannot, counts what they did, and chooses among their sockets.
 *
 * They are started before there are sockets, so that a process which takes sockets over can answer from them at once.
 * One worker gets everything while it can bear it, since fuller batches cost less; with more load, more of them do. The
 * sockets of a worker that is not there are read by the main thread.
 */
import { Worker } from 'node:worker_threads'
import { processTimeMs, type Cancel, type Clock } from '../../base/clock.ts'
import { udpReceiveBufferOctets } from '../../base/limits.ts'
import {
  forwardedBatchesPerTurn,
  forwardedQueryOctets,
  forwardedTurnMs,
  workerPrepareMs,
  workerRestartMaxMs,
  workerRestartMinMs,
  workerTickMs
} from '../../base/socket-limits.ts'
import type { Logger } from '../../base/log.ts'
import type { WorkersStatus } from '../../admin/inspectable.ts'
import type { DataPlane } from '../../pipeline/data-plane.ts'
import type { Listeners } from '../../server/listeners.ts'
import { command, counter } from '../../server/mmsg/blocking-reader.ts'
import { ForwardPatience } from '../../server/mmsg/forward-patience.ts'
import { ForwardRing, forwardRingOctets } from '../../server/mmsg/forward-ring.ts'
import type { Libc } from '../../server/mmsg/libc.ts'
import type { ClientWords } from '../../server/mmsg/message-batch.ts'
import { steer } from '../../server/mmsg/reuseport-group.ts'
import type { UdpSocket } from '../../server/udp-io.ts'
import { Spread } from './spread.ts'
import type { WorkerData, WorkerMessage } from './worker.ts'

export type WorkersParts = Readonly<{
  libc: Libc
  dataPlane: DataPlane
  clock: Clock
  log: Logger
}>

/** A worker's place, which it leaves to another one when it ends. */
type Seat = {
  readonly number: number
  /** What it reads: its socket of each address; empty until there are any. */
  sockets: readonly UdpSocket[]
  /** The same as WorkerData has it. */
  readonly descriptors: Int32Array
  readonly command: Int32Array
  readonly counters: Float64Array
  /** The counters as they were last added up. */
  readonly counted: Float64Array
  ring: ForwardRing
  readonly patience: ForwardPatience
  worker: Worker | null
  isPrepared: boolean
  isReading: boolean
  restartMs: number
  ended: Promise<void>
}

const workerFile = new URL(import.meta.url.endsWith('.ts') ? './worker.ts' : './worker.js', import.meta.url)

export class Workers {
  readonly #parts: WorkersParts
  readonly #seats: readonly Seat[]
  readonly #spread: Spread
  /** Null until there are any. */
  #listeners: Listeners | null = null
  #whenPrepared: () => void = () => {}
  #steeredTo = ''
  /** Another process has the sockets, and says how they are chosen from. */
  #isPaused = false
  #isClosed = false
  #cancelTick: Cancel = () => {}
  readonly #cancelRestarts = new Set<Cancel>()

  /** Starts them. @param addresses how many there will be sockets for, at most */
  constructor(threads: number, addresses: number, parts: WorkersParts) {
    this.#parts = parts
    this.#spread = new Spread(threads, parts.clock)
    this.#seats = Array.from({ length: threads }, (_, number) => ({
      number,
      sockets: [],
      descriptors: new Int32Array(new SharedArrayBuffer(4 * (1 + addresses))),
      command: sharedWord(command.prepare),
      counters: new Float64Array(new SharedArrayBuffer(counter.size * 8)),
      counted: new Float64Array(counter.size),
      ring: newRing().ring,
      patience: new ForwardPatience(),
      worker: null,
      isPrepared: false,
      isReading: false,
      restartMs: workerRestartMinMs,
      ended: Promise.resolve()
    }))
    for (const seat of this.#seats) this.#begin(seat)
  }

  /** Resolves once all of them can read, or have failed to come that far, or take long. */
  async prepared(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const cancel = this.#parts.clock.after(workerPrepareMs, resolve)
    this.#whenPrepared = () => {
      if (this.#seats.every(({ worker, isPrepared }) => worker === null || isPrepared)) resolve()
    }
    this.#whenPrepared()
    await promise
    cancel()
  }

  /** Gives them the sockets, of which each address has as many as there are workers. */
  serve(listeners: Listeners): void {
    this.#listeners = listeners
    for (const seat of this.#seats) {
      seat.sockets = listeners.udpOf.flatMap((group) => group[seat.number] ?? []).filter(({ fd }) => fd !== null)
      seat.descriptors.set([seat.sockets.length, ...seat.sockets.map(({ fd }) => fd!)])
    }
    this.#command(command.serve)
    this.#steer()
    this.#tick()
  }

  /** How many there are to be. */
  get size(): number {
    return this.#seats.length
  }

  /** Those that read now. */
  get reading(): readonly Worker[] {
    return this.#seats.flatMap(({ worker, isReading }) => (isReading && worker !== null ? [worker] : []))
  }

  get status(): Omit<WorkersStatus, 'wanted' | 'whyNone'> {
    const sum = (which: number): number => this.#seats.reduce((total, { counters }) => total + counters[which]!, 0)
    const reading = this.reading.length
    return {
      reading,
      steered: Math.min(reading, this.#spread.wanted),
      answered: sum(counter.answered),
      forwarded: sum(counter.forwarded),
      dropped: sum(counter.dropped),
      lost: sum(counter.lost)
    }
  }

  /** Adds up what they have done until now, where everything else is counted. */
  count(): void {
    this.#parts.dataPlane.ready?.count()
    if (this.#listeners === null) return
    const { udp } = this.#listeners.stats
    for (const { counters, counted } of this.#seats) {
      const more = (which: number): number => {
        const now = counters[which]!
        const difference = now - counted[which]!
        counted[which] = now
        return difference
      }
      const [answered, dropped, lost] = [more(counter.answered), more(counter.dropped), more(counter.lost)]
      // What they handed over is counted by who answers it.
      udp.receivedTotal += answered + dropped + lost
      udp.answeredTotal += answered
      udp.droppedTotal += dropped
      udp.overloadedTotal += lost
      udp.sendErrorsTotal += more(counter.sendErrors)
      udp.sendQueueFullTotal += more(counter.sendQueueFull)
      udp.receiveErrorsTotal += more(counter.receiveErrors)
      udp.backlogsTotal += more(counter.backlogs)
      const { dataPlane } = this.#parts
      const notQueries = more(counter.notQueries)
      dataPlane.stats.queriesUdp += notQueries
      dataPlane.stats.dropped += notQueries
    }
  }

  /** Lets them read no more until `resume`, but for what they have begun. */
  pause(): void {
    this.#isPaused = true
    this.#command(command.pause)
  }

  resume(): void {
    this.#isPaused = false
    this.#command(command.serve)
    this.#steeredTo = ''
    this.#steer()
  }

  /** Ends them, which takes some tens of milliseconds; their sockets are the main thread's again. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#cancelTick()
    for (const cancel of this.#cancelRestarts) cancel()
    this.#command(command.stop)
    await Promise.all(this.#seats.map(({ ended }) => ended))
    this.count()
    for (const seat of this.#seats) {
      this.#takeIn(seat, seat.ring)
      this.#listeners?.delegate(seat.sockets, false)
    }
  }

  #command(wanted: number): void {
    for (const { command: word } of this.#seats) {
      Atomics.store(word, 0, wanted)
      Atomics.notify(word, 0)
    }
  }

  #begin(seat: Seat): void {
    const { dataPlane, log } = this.#parts
    const { ring, buffer } = newRing()
    seat.ring = ring
    const data: WorkerData = {
      number: seat.number,
      ready: dataPlane.ready!.shared!.buffers,
      ring: buffer,
      command: seat.command.buffer as SharedArrayBuffer,
      counters: seat.counters.buffer as SharedArrayBuffer,
      sockets: seat.descriptors.buffer as SharedArrayBuffer,
      receiveBufferOctets: udpReceiveBufferOctets
    }
    const worker = new Worker(workerFile, { workerData: data, name: `worker ${seat.number}`, resourceLimits })
    seat.worker = worker
    worker.on('message', (message: WorkerMessage) => this.#hear(seat, message))
    worker.on('error', (error: unknown) => log.error({ err: error, worker: seat.number }, 'a worker met a bug'))
    const ended = Promise.withResolvers<void>()
    seat.ended = ended.promise
    worker.on('exit', () => {
      this.#end(seat)
      ended.resolve()
    })
  }

  #hear(seat: Seat, message: WorkerMessage): void {
    if (message === 'prepared') {
      seat.isPrepared = true
      this.#whenPrepared()
    } else if (message === 'reading') {
      // Nobody has given it sockets where it was stopped before.
      if (this.#isClosed || this.#listeners === null) return
      seat.isReading = true
      this.#listeners.delegate(seat.sockets, true)
      this.#steer()
    } else if (message === 'busy') {
      this.#spread.more()
      this.#steer()
    } else {
      this.#takeIn(seat, seat.ring)
    }
  }

  /** Answers what a worker has handed over; others get their turn now and then. */
  #takeIn(seat: Seat, ring: ForwardRing): void {
    const { patience } = seat
    const beganAtMs = processTimeMs()
    let nowMs = beganAtMs
    for (let batches = 0; batches < forwardedBatchesPerTurn && nowMs - beganAtMs < forwardedTurnMs; batches++) {
      const { nextSocket } = ring
      if (nextSocket >= 0) {
        seat.sockets[nextSocket]!.takeIn!(ring, this.#meet, patience.sinceMs(nowMs))
        nowMs = processTimeMs()
        continue
      }
      patience.noteEmptied()
      if (ring.sleep()) return
    }
    // Behind what else the loop has to do.
    setImmediate(() => this.#takeIn(seat, ring))
  }

  readonly #meet = (client: ClientWords, text: string): void => this.#parts.dataPlane.ready!.meet(client, text)

  /** A worker is gone: the main thread reads what it has read. */
  #end(seat: Seat): void {
    const { clock, log } = this.#parts
    const wasReading = seat.isReading
    seat.worker = null
    seat.isPrepared = false
    seat.isReading = false
    this.#whenPrepared()
    if (this.#isClosed) return
    this.#steer()
    this.#listeners?.delegate(seat.sockets, false)
    this.#takeIn(seat, seat.ring)
    if (wasReading) seat.restartMs = workerRestartMinMs
    log.error({ worker: seat.number, restartMs: seat.restartMs }, 'a worker has ended; it is started again')
    const cancel = clock.after(seat.restartMs, () => {
      this.#cancelRestarts.delete(cancel)
      this.#begin(seat)
    })
    this.#cancelRestarts.add(cancel)
    seat.restartMs = Math.min(seat.restartMs * 2, workerRestartMaxMs)
  }

  #tick(): void {
    const { clock, dataPlane } = this.#parts
    dataPlane.ready!.shared!.tell()
    this.count()
    this.#spread.look(this.#seats.map(({ counters, isReading }) => (isReading ? counters[counter.cpuMs]! : null)))
    this.#steer()
    this.#cancelTick = clock.after(workerTickMs, () => this.#tick())
  }

  /** Lets the kernel choose among as many workers as the load needs. */
  #steer(): void {
    const { libc } = this.#parts
    if (this.#isPaused || this.#listeners === null) return
    const reading = this.#seats.filter(({ isReading }) => isReading).map(({ number }) => number)
    const numbers = reading.length === 0 ? [0] : reading.slice(0, this.#spread.wanted)
    if (numbers.join() === this.#steeredTo) return
    this.#steeredTo = numbers.join()
    for (const group of this.#listeners.udpOf) if (group.length > 1) steer(libc, group[0]!.fd!, numbers)
  }
}

/**
 * Where there are no workers: the process before us may have had more sockets for an address, which are all read here;
 * one of them is enough from now on.
 */
export function readFirstSockets(libc: Libc, listeners: Listeners): void {
  for (const [first, ...others] of listeners.udpOf) if (others.length > 0) steer(libc, first!.fd!, [0])
}

/** A worker holds next to nothing of its own. */
const resourceLimits = { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: 8 }

function newRing(): { ring: ForwardRing; buffer: SharedArrayBuffer } {
  const buffer = new SharedArrayBuffer(forwardRingOctets(forwardedQueryOctets))
  return { ring: new ForwardRing(buffer), buffer }
}

function sharedWord(value: number): Int32Array {
  const word = new Int32Array(new SharedArrayBuffer(4))
  word[0] = value
  return word
}
