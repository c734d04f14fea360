/**
 * One UDP socket: hands each datagram to the responder and sends what comes back.
 *
 * An answer from memory is written into one buffer that lives as long as the socket, and is sent in the same tick:
 * no copy, no promise, no closure for a datagram. `send` keeps that buffer only where the kernel takes no more at the
 * moment; until it lets go, answers are copied. Errors of sending are counted and never end anything.
 *
 * A socket on 0.0.0.0 or :: answers from the address the kernel chooses; where a machine has several addresses, list
 * them, so that the answer leaves from the one that was asked (or read in batches, which knows it).
 */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { isIPv6 } from 'node:net'
import { maxMessageOctets } from '../base/limits.ts'
import { dgramDatagramsPerTurn } from '../base/socket-limits.ts'
import { Backlog } from './backlog.ts'
import { clientAddress } from './client-address.ts'
import type { InFlightQueries } from './in-flight.ts'
import { listenError, type ListenAddress } from './listen-address.ts'
import { DROP, MISS, type Client, type Responder } from './responder.ts'
import type { UdpIo, UdpSocket } from './udp-io.ts'
import type { UdpListenerOptions, UdpStats } from './udp-stats.ts'

/** Addresses are never names here, so no look-up; answering at once lets `send` reach the kernel in the same tick. */
function literalAddress(
  address: string,
  _options: unknown,
  callback: (error: null, address: string, family: number) => void
): void {
  callback(null, address, address.includes(':') ? 6 : 4)
}

export class UdpListener implements UdpSocket {
  readonly port: number
  /** Node gives it to nobody. */
  readonly fd = null
  readonly #socket: Socket
  readonly #responder: Responder
  readonly #inFlight: InFlightQueries
  readonly #stats: UdpStats
  readonly #sendQueueOctets: number
  readonly #onFault: (error: unknown) => void
  /** Where answers from memory are written and sent from. */
  readonly #out: Buffer = Buffer.allocUnsafeSlow(maxMessageOctets)
  /** The socket may still read `#out`. */
  #isOutBusy = false
  /** Where answers are written while `#out` is busy, to be copied at once. */
  #spare: Buffer | null = null
  readonly #backlog: Backlog
  /** Datagrams in this turn of the event loop. */
  #receivedInTurn = 0
  /** Calls of `send` whose callback has not come yet. */
  #sending = 0
  #onFlushed: (() => void)[] = []
  #closed: Promise<void> | null = null

  /** Listens; throws a ListenError where that fails. */
  static async bind(where: ListenAddress, options: UdpListenerOptions): Promise<UdpListener> {
    const ipv6Only = isIPv6(where.address)
    const socket = createSocket({ type: ipv6Only ? 'udp6' : 'udp4', ipv6Only, lookup: literalAddress })
    await new Promise<void>((resolve, reject) => {
      socket.once('error', (error) => {
        socket.close()
        reject(listenError(where, 'udp', error))
      })
      socket.once('listening', resolve)
      socket.bind({ address: where.address, port: where.port, exclusive: true })
    })
    return new UdpListener(socket, options)
  }

  private constructor(socket: Socket, options: UdpListenerOptions) {
    this.#socket = socket
    this.#responder = options.responder
    this.#inFlight = options.inFlight
    this.#stats = options.stats
    this.#sendQueueOctets = options.sendQueueOctets
    this.#onFault = options.onFault
    this.port = socket.address().port
    const { receiveBufferOctets: roomyOctets, stats, clock } = options
    this.#backlog = new Backlog({ roomyOctets, set: this.#setReceiveBuffer, stats }, clock)
    socket.removeAllListeners('error')
    socket.on('error', () => {
      this.#stats.receiveErrorsTotal += 1
    })
    socket.on('message', this.#receive)
  }

  /** Resolves when the kernel has taken every answer handed to `send` so far. */
  async flushed(): Promise<void> {
    if (this.#sending === 0) return
    await new Promise<void>((resolve) => {
      this.#onFlushed.push(resolve)
    })
  }

  pause(): void {
    this.#socket.off('message', this.#receive)
  }

  resume(): void {
    this.pause()
    this.#socket.on('message', this.#receive)
  }

  /** Stops reading and closes; what still waits to be sent or answered is lost. */
  async close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#socket.close(resolve)
    })
    await this.#closed
  }

  readonly #setReceiveBuffer = (octets: number): void => {
    if (this.#closed !== null) return
    try {
      this.#socket.setRecvBufferSize(octets)
    } catch {
      // The kernel's default serves too; it only loses more of a burst.
    }
  }

  /** Behind all that came in this turn. */
  readonly #endTurn = (): void => {
    const isEmptied = this.#receivedInTurn < dgramDatagramsPerTurn
    this.#receivedInTurn = 0
    if (isEmptied) this.#backlog.noteEmptied()
    else this.#backlog.noteLeft()
  }

  readonly #receive = (query: Buffer, from: RemoteInfo): void => {
    const stats = this.#stats
    stats.receivedTotal += 1
    // Runs in this turn of the loop, behind all datagrams that it has.
    if (this.#receivedInTurn++ === 0) setImmediate(this.#endTurn)
    if (from.port === 0) {
      // Nobody can be sent anything at port 0 (the source is forged), and `send` would throw.
      stats.droppedTotal += 1
      return
    }
    const client: Client = { address: clientAddress(from.address), port: from.port, transport: 'udp' }
    const isCopied = this.#isOutBusy
    const out = isCopied ? (this.#spare ??= Buffer.allocUnsafeSlow(maxMessageOctets)) : this.#out
    try {
      const size = this.#responder.answer(query, query.length, client, out)
      if (size > DROP) {
        stats.answeredTotal += 1
        if (isCopied) {
          stats.copiedTotal += 1
          this.#send(Buffer.from(out.subarray(0, size)), from)
        } else {
          this.#sendOut(size, from)
        }
      } else if (size === MISS) {
        this.#ask(query, client, from)
      } else {
        stats.droppedTotal += 1
      }
    } catch (error) {
      this.#fault(error)
    }
  }

  /** Hands over what is not in memory, or refuses it while too many others wait. Throws what the responder throws. */
  #ask(query: Buffer, client: Client, from: RemoteInfo): void {
    if (!this.#inFlight.tryEnter()) {
      this.#stats.overloadedTotal += 1
      const refusal = this.#responder.overload?.(query, client) ?? null
      if (refusal !== null) this.#send(refusal, from)
      return
    }
    let answer: Promise<Uint8Array | null>
    try {
      answer = this.#responder.resolve(query, client)
    } catch (error) {
      this.#inFlight.leave()
      throw error
    }
    void this.#sendLater(answer, from)
  }

  async #sendLater(answer: Promise<Uint8Array | null>, from: RemoteInfo): Promise<void> {
    try {
      const octets = await answer
      if (octets === null) {
        this.#stats.droppedTotal += 1
      } else {
        this.#stats.resolvedTotal += 1
        this.#send(octets, from)
      }
    } catch (error) {
      this.#fault(error)
    } finally {
      this.#inFlight.leave()
    }
  }

  #sendOut(size: number, from: RemoteInfo): void {
    if (this.#closed !== null) return
    this.#socket.send(this.#out, 0, size, from.port, from.address, this.#afterOut)
    this.#sending += 1
    this.#isOutBusy = true
  }

  /** Sends octets that nobody changes until they are sent. */
  #send(octets: Uint8Array, from: RemoteInfo): void {
    if (this.#closed !== null) return
    if (this.#socket.getSendQueueSize() + octets.length > this.#sendQueueOctets) {
      this.#stats.sendQueueFullTotal += 1
      return
    }
    this.#socket.send(octets, 0, octets.length, from.port, from.address, this.#afterSend)
    this.#sending += 1
  }

  /**
   * The kernel has taken (or refused) what was in `#out`. Called in the same tick, except where the kernel was full.
   */
  readonly #afterOut = (error: Error | null): void => {
    this.#isOutBusy = false
    this.#afterSend(error)
  }

  readonly #afterSend = (error: Error | null): void => {
    if (error !== null) this.#stats.sendErrorsTotal += 1
    this.#sending -= 1
    if (this.#sending > 0 || this.#onFlushed.length === 0) return
    const flushed = this.#onFlushed
    this.#onFlushed = []
    for (const done of flushed) done()
  }

  #fault(error: unknown): void {
    this.#stats.faultsTotal += 1
    this.#onFault(error)
  }
}

/** One datagram at a time, by Node alone: everywhere. */
export const dgramIo: UdpIo = {
  name: 'dgram',
  bind: async (where, options) => UdpListener.bind(where, options)
}
