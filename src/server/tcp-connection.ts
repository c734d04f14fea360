/**
 * One client's TCP connection: frames in, answers out as they become ready, in any order (RFC 7766 §6.2.1.1, §7).
 *
 * Reading pauses while too many queries are in flight or too many octets wait to be sent, so a client can make us hold
 * no more than that. A client that closes its side still gets its answers (§6.2.4). What bounds a connection in time is
 * the last query or answer, never the last octet.
 */
import type { Socket } from 'node:net'
import type { Cancel } from '../base/clock.ts'
import { TcpFrameReader } from '../wire/tcp-frame.ts'
import { DROP, MISS, STREAM, type Client, type MessageStream } from './responder.ts'
import { TcpBuffers } from './tcp-buffers.ts'
import type { TcpShared } from './tcp-shared.ts'

const lengthOctets = 2

export class TcpConnection implements MessageStream {
  readonly #socket: Socket
  readonly #client: Client
  readonly #shared: TcpShared
  readonly #onClose: (connection: TcpConnection) => void
  readonly #reader = new TcpFrameReader()
  readonly #buffers: TcpBuffers
  #inFlight = 0
  #lastActiveMs: number
  #isReadingPaused = false
  /** Others have their turn before the next query is taken. */
  #isYielding = false
  /** The client has closed its side: no query comes any more. */
  #isClientDone = false
  #isDraining = false
  /** We have closed our side. */
  #isFinished = false
  #isClosed = false
  #cancelIdle: Cancel
  #cancelStall: Cancel | null = null
  #cancelLinger: Cancel | null = null
  /** Streams that wait until the socket takes more. */
  #waitingForRoom: (() => void)[] = []
  #closeCallbacks: (() => void)[] = []

  constructor(socket: Socket, client: Client, shared: TcpShared, onClose: (connection: TcpConnection) => void) {
    this.#socket = socket
    this.#client = client
    this.#shared = shared
    this.#onClose = onClose
    this.#buffers = new TcpBuffers(socket, this.#reader, shared)
    this.#lastActiveMs = shared.clock.nowMs()
    this.#cancelIdle = shared.clock.after(shared.limits.tcpIdleTimeoutMs, this.#checkIdle)
    socket.on('data', (chunk: Buffer) => {
      if (this.#isFinished || this.#isDraining) return
      this.#reader.push(chunk)
      this.#advance()
    })
    socket.on('end', () => {
      this.#isClientDone = true
      this.#advance()
    })
    socket.on('drain', () => {
      this.#endWaiting()
      this.#advance()
    })
    socket.on('error', () => {
      shared.stats.errorsTotal += 1
    })
    socket.on('close', () => this.#release())
  }

  /** Neither asks nor is owed anything. */
  get isIdle(): boolean {
    return this.#inFlight === 0 && !this.#isYielding && this.#socket.writableLength === 0
  }

  /** Monotonic time of the last query or answer, or of the start. */
  get lastActiveMs(): number {
    return this.#lastActiveMs
  }

  /** Reads no more; answers what was read, then closes. An idle connection closes at once. */
  drain(): void {
    this.#isDraining = true
    if (this.isIdle) this.destroy()
    else this.#advance()
  }

  /** Closes at once; answers that are not sent yet are lost. */
  destroy(): void {
    this.#socket.destroy()
    this.#release()
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  async send(message: Uint8Array): Promise<boolean> {
    if (this.#isClosed) return false
    this.#write(message, message.length)
    this.#settle()
    await new Promise<void>((resolve) => {
      if (this.#socket.writableNeedDrain && !this.#isClosed) this.#waitingForRoom.push(resolve)
      // Not a timer but the end of this turn of the event loop: other sockets come in between.
      else setImmediate(resolve)
    })
    return !this.#isClosed
  }

  push(message: Uint8Array): boolean {
    if (this.#isClosed || this.#isFinished) return false
    if (this.#socket.writableLength + message.length > this.#shared.limits.tcpPushBufferOctets) {
      this.#shared.stats.laggingTotal += 1
      this.destroy()
      return false
    }
    // Only what the client asks keeps its connection.
    const lastActiveMs = this.#lastActiveMs
    this.#write(message, message.length)
    this.#lastActiveMs = lastActiveMs
    this.#settle()
    return true
  }

  onClose(callback: () => void): void {
    if (this.#isClosed) callback()
    else this.#closeCallbacks.push(callback)
  }

  /** Takes as many of the queries read so far as the limits allow. */
  #advance(): void {
    if (this.#isClosed || this.#isFinished) return
    const { limits } = this.#shared
    let taken = 0
    // One write for all the answers of a turn.
    this.#socket.cork()
    while (!this.#isHeld()) {
      if (taken === limits.tcpQueriesPerTurn) {
        this.#isYielding = true
        // Not a timer but the end of this turn of the event loop: sockets that are ready come first.
        setImmediate(this.#resumeTurn)
        break
      }
      taken += 1
      const query = this.#reader.next()
      if (query === null) break
      // A frame without octets asks nothing.
      if (query.length > 0) this.#take(query)
    }
    this.#socket.uncork()
    this.#settle()
  }

  readonly #resumeTurn = (): void => {
    this.#isYielding = false
    this.#advance()
  }

  /** No further query may be taken at the moment. */
  #isHeld(): boolean {
    if (this.#isYielding) return true
    return this.#inFlight >= this.#shared.limits.tcpInFlightPerConnection || this.#buffers.isWriteFull
  }

  #take(query: Uint8Array): void {
    const { responder, stats, out } = this.#shared
    stats.receivedTotal += 1
    try {
      const size = responder.answer(query, query.length, this.#client, out)
      if (size > DROP) {
        stats.answeredTotal += 1
        this.#write(out, size)
      } else if (size === MISS || (size === STREAM && responder.stream !== undefined)) {
        this.#ask(query, size === STREAM)
      } else {
        stats.droppedTotal += 1
      }
    } catch (error) {
      this.#fault(error)
    }
  }

  /** Hands over what is not in memory, or refuses it while too many others wait. Throws what the responder throws. */
  #ask(query: Uint8Array, isStream: boolean): void {
    const { responder, inFlight, stats, clock } = this.#shared
    if (!inFlight.tryEnter()) {
      stats.overloadedTotal += 1
      const refusal = responder.overload?.(query, this.#client) ?? null
      if (refusal !== null) this.#write(refusal, refusal.length)
      return
    }
    let done: Promise<void>
    try {
      done = isStream
        ? this.#streamAll(responder.stream!(query, this.#client, this))
        : this.#writeLater(responder.resolve(query, this.#client))
    } catch (error) {
      inFlight.leave()
      throw error
    }
    this.#inFlight += 1
    this.#lastActiveMs = clock.nowMs()
    void this.#finishQuery(done)
  }

  async #writeLater(answer: Promise<Uint8Array | null>): Promise<void> {
    const { stats } = this.#shared
    const octets = await answer
    if (octets === null) {
      stats.droppedTotal += 1
    } else if (!this.#isClosed) {
      stats.resolvedTotal += 1
      this.#write(octets, octets.length)
    }
  }

  async #streamAll(sent: Promise<void>): Promise<void> {
    await sent
    this.#shared.stats.streamedTotal += 1
  }

  async #finishQuery(done: Promise<void>): Promise<void> {
    try {
      await done
    } catch (error) {
      this.#fault(error)
    } finally {
      this.#inFlight -= 1
      this.#shared.inFlight.leave()
      this.#advance()
    }
  }

  /** Length and message go out together, in one segment where they fit. RFC 7766 §8. */
  #write(message: Uint8Array, size: number): void {
    const frame = Buffer.allocUnsafe(lengthOctets + size)
    frame.writeUInt16BE(size, 0)
    frame.set(size === message.length ? message : message.subarray(0, size), lengthOctets)
    this.#buffers.noteWritten(frame.length)
    this.#lastActiveMs = this.#shared.clock.nowMs()
    this.#socket.write(frame)
  }

  /** Draws the consequences of what was read and written: cut, pause or go on, close. */
  #settle(): void {
    this.#buffers.count()
    if (this.#buffers.isReadCrowding) {
      this.#shared.stats.crowdingTotal += 1
      this.destroy()
      return
    }
    if (this.#buffers.waitingOctets > 0) this.#cancelStall ??= this.#watchStall()
    const isHeld = this.#isHeld()
    if (isHeld !== this.#isReadingPaused) {
      this.#isReadingPaused = isHeld
      if (isHeld) this.#socket.pause()
      else this.#socket.resume()
    }
    if (!isHeld && this.#inFlight === 0 && (this.#isClientDone || this.#isDraining)) this.#finish()
  }

  #watchStall(): Cancel {
    this.#buffers.mark()
    return this.#shared.clock.after(this.#shared.limits.tcpWriteStallMs, this.#checkStall)
  }

  /** A client that took none of its answers all the while is cut; one that takes them slowly is not. */
  readonly #checkStall = (): void => {
    this.#cancelStall = null
    this.#buffers.count()
    if (this.#buffers.waitingOctets === 0) return
    if (this.#buffers.hasMoved) {
      this.#cancelStall = this.#watchStall()
      return
    }
    this.#shared.stats.stalledTotal += 1
    this.destroy()
  }

  /** An octet now and then does not keep a connection: only queries and answers do. */
  readonly #checkIdle = (): void => {
    const { clock, limits, stats } = this.#shared
    const limitMs = limits.tcpIdleTimeoutMs
    const idleMs = clock.nowMs() - this.#lastActiveMs
    if (this.isIdle && idleMs >= limitMs) {
      stats.idleTimeoutsTotal += 1
      this.destroy()
      return
    }
    // Whoever is busy now becomes active once more when the answer is written.
    this.#cancelIdle = clock.after(this.isIdle ? limitMs - idleMs : limitMs, this.#checkIdle)
  }

  /** Closes our side once everything is sent, and waits a moment for the client to close its own. */
  #finish(): void {
    this.#isFinished = true
    this.#cancelIdle()
    this.#socket.end(() => {
      if (this.#isClosed) return
      const { clock, limits } = this.#shared
      this.#cancelLinger = clock.after(limits.tcpLingerMs, () => this.destroy())
    })
  }

  #release(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#isFinished = true
    this.#cancelIdle()
    this.#cancelStall?.()
    this.#cancelLinger?.()
    this.#buffers.release()
    this.#onClose(this)
    this.#endWaiting()
    for (const callback of this.#closeCallbacks.splice(0)) callback()
  }

  #endWaiting(): void {
    for (const resolve of this.#waitingForRoom.splice(0)) resolve()
  }

  #fault(error: unknown): void {
    this.#shared.stats.faultsTotal += 1
    this.#shared.onFault(error)
  }
}
