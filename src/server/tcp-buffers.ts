/**
 * What one TCP connection holds in memory, in both directions, as its share of what all of them may hold together.
 *
 * Single connections have their own bounds, but a thousand of them at their bounds would be too much for a small
 * machine. So the total of each direction is kept, and while it is used up every connection gets by on little.
 */
import type { Socket } from 'node:net'
import type { TcpFrameReader } from '../wire/tcp-frame.ts'
import type { TcpShared } from './tcp-shared.ts'

export class TcpBuffers {
  readonly #socket: Socket
  readonly #reader: TcpFrameReader
  readonly #shared: TcpShared
  #waitingOctets = 0
  #unreadOctets = 0
  /** Octets ever handed to the socket. */
  #writtenOctets = 0
  /** Octets that had left the socket at the mark. */
  #markOctets = 0

  constructor(socket: Socket, reader: TcpFrameReader, shared: TcpShared) {
    this.#socket = socket
    this.#reader = reader
    this.#shared = shared
  }

  /** Octets that wait to be sent, as of the last count. */
  get waitingOctets(): number {
    return this.#waitingOctets
  }

  /** Too much waits to be sent to make more: alone, or because all together hold too much. */
  get isWriteFull(): boolean {
    // Only where the socket promises a 'drain', or nobody would wake the connection.
    if (!this.#socket.writableNeedDrain) return false
    const { limits, waitingOctets } = this.#shared
    const waiting = this.#socket.writableLength
    if (waiting >= limits.tcpWriteBufferOctets) return true
    return waitingOctets - this.#waitingOctets + waiting >= limits.tcpWriteBuffersOctets
  }

  /** All together hold too much of what came, and this one more than its share, as of the last count. */
  get isReadCrowding(): boolean {
    const { limits, unreadOctets } = this.#shared
    return unreadOctets > limits.tcpReadBuffersOctets && this.#unreadOctets > limits.tcpReadShareOctets
  }

  noteWritten(octets: number): void {
    this.#writtenOctets += octets
  }

  /** Brings the totals up to date. */
  count(): void {
    this.#set(this.#socket.writableLength, this.#reader.bufferedOctets)
  }

  /** Remembers how much has left until now; `hasMoved` compares with that. */
  mark(): void {
    this.count()
    this.#markOctets = this.#writtenOctets - this.#waitingOctets
  }

  /** Whether any octet has left since the mark, as of the last count. */
  get hasMoved(): boolean {
    return this.#writtenOctets - this.#waitingOctets > this.#markOctets
  }

  /** Gives the shares back; the connection is gone. */
  release(): void {
    this.#set(0, 0)
  }

  #set(waitingOctets: number, unreadOctets: number): void {
    this.#shared.waitingOctets += waitingOctets - this.#waitingOctets
    this.#shared.unreadOctets += unreadOctets - this.#unreadOctets
    this.#waitingOctets = waitingOctets
    this.#unreadOctets = unreadOctets
  }
}
