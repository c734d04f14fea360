/**
 * The UDP sockets to one server: fresh random source ports, fresh random ids, and a strict look at whatever comes back.
 * RFC 5452.
 *
 * A question gets a port of its own until some are open; from then on it gets a random one of these. Each takes new
 * questions for a moment only, and none any more as soon as anything comes to it that nobody asked for, or a question
 * stays without an answer: who guesses has to begin anew, and what lies between may have kept a dead way for that port.
 */
import type { Cancel, Clock } from '../base/clock.ts'
import { udpPortLifeMs, udpPortQuestions, udpPortsPerServer } from '../base/limits.ts'
import { headerOctets, messageId } from '../wire/header.ts'
import { errorText, failedExchange, type Exchange, type ExchangeEnd, type OnExchangeEnd } from './exchange.ts'
import { isResponseTo, type PeerQuery } from './peer-query.ts'
import type { PeerStats } from './peer-types.ts'
import { randomId } from './random-id.ts'
import type { Server } from './server-table.ts'
import { openDgramSocket, type OpenUdpSocket, type UdpSocket } from './udp-socket.ts'

type Where = Readonly<Pick<Server, 'address' | 'port' | 'family'>>

const openByDgram = (): OpenUdpSocket => openDgramSocket

export class UdpPorts {
  readonly #where: Where
  readonly #clock: Clock
  readonly #stats: PeerStats
  readonly #openSocket: () => OpenUdpSocket
  /** Those that take new questions. */
  readonly #open: UdpPort[] = []
  readonly #unclosed = new Set<UdpPort>()
  #onAllClosed: (() => void) | null = null
  #isClosed = false

  /** @param openSocket tells how sockets are opened now */
  constructor(where: Where, clock: Clock, stats: PeerStats, openSocket = openByDgram) {
    this.#where = where
    this.#clock = clock
    this.#stats = stats
    this.#openSocket = openSocket
  }

  /** Sends the question; ends with the first response that is to it. Others are counted and waiting goes on. */
  exchange(query: PeerQuery, withEdns: boolean, onEnd: OnExchangeEnd): Exchange {
    this.#stats.udpExchanges++
    const exchange = new UdpExchange(query, withEdns, this.#stats, onEnd)
    if (this.#isClosed) queueMicrotask(() => exchange.end(failedExchange('network', 'closed')))
    else exchange.begin(this.#portForOne())
    return exchange
  }

  /** Takes leave of all sockets; what is on its way may still be answered. */
  retire(): void {
    for (const port of this.#open.slice()) port.retire()
  }

  /** Ends all exchanges with `network`; resolves when the sockets are closed. */
  close(): Promise<void> {
    this.#isClosed = true
    if (this.#unclosed.size === 0) return Promise.resolve()
    return new Promise((done) => {
      this.#onAllClosed = done
      for (const port of this.#unclosed) port.fail('closed')
    })
  }

  #portForOne(): UdpPort {
    const open = this.#open
    if (open.length >= udpPortsPerServer) return open[randomId() % open.length]!
    const port: UdpPort = new UdpPort(this.#stats, {
      retired: () => {
        cancelTimer()
        const at = open.indexOf(port)
        if (at >= 0) open.splice(at, 1)
      },
      closed: () => {
        this.#unclosed.delete(port)
        if (this.#unclosed.size === 0) this.#onAllClosed?.()
      }
    })
    const cancelTimer: Cancel = this.#clock.after(udpPortLifeMs, () => port.retire())
    open.push(port)
    this.#unclosed.add(port)
    port.connect(this.#openSocket(), this.#where)
    return port
  }
}

type PortOwner = Readonly<{
  /** It takes no new questions any more. */
  retired(): void
  closed(): void
}>

/**
 * One socket. It is connected, so the kernel drops what comes from elsewhere and tells us of a closed port (ICMP).
 */
class UdpPort {
  readonly #stats: PeerStats
  readonly #owner: PortOwner
  #socket: UdpSocket | null = null
  /** By id, which no other question of this port has had; null: that one is over, and its answer is of no use. */
  readonly #byId = new Map<number, UdpExchange | null>()
  #waiting = 0
  #isConnected = false
  #isRetired = false
  #isClosed = false

  constructor(stats: PeerStats, owner: PortOwner) {
    this.#stats = stats
    this.#owner = owner
  }

  /** Where that fails, everybody who comes gets to know why. */
  connect(open: OpenUdpSocket, where: Where): void {
    this.#socket = open(where, {
      connected: () => this.#connected(),
      message: (octets, isFromServer) => this.#receive(octets, isFromServer),
      failed: (error) => this.fail(errorText(error))
    })
  }

  /** Takes a question, and sends it as soon as the socket is connected. Returns its id. */
  add(exchange: UdpExchange): number {
    let id = randomId()
    while (this.#byId.has(id)) id = randomId()
    this.#byId.set(id, exchange)
    this.#waiting++
    if (this.#byId.size >= udpPortQuestions) this.retire()
    if (this.#isConnected) this.#send(exchange, id)
    return id
  }

  /** False where nothing can be sent now. */
  sendAgain(id: number, exchange: UdpExchange): boolean {
    if (this.#isClosed || !this.#isConnected) return false
    this.#send(exchange, id)
    return true
  }

  /** The question is over: the answer came, or nobody waits for it. */
  leave(id: number): void {
    this.#byId.set(id, null)
    this.#waiting--
    if (this.#isRetired && this.#waiting === 0) this.#close()
  }

  retire(): void {
    if (this.#isRetired) return
    this.#isRetired = true
    this.#owner.retired()
    if (this.#waiting === 0) this.#close()
  }

  fail(why: string): void {
    this.retire()
    for (const exchange of this.#byId.values()) exchange?.end(failedExchange('network', why))
    this.#close()
  }

  #connected(): void {
    if (this.#isClosed) return
    this.#isConnected = true
    for (const [id, exchange] of this.#byId) if (exchange !== null) this.#send(exchange, id)
  }

  #send(exchange: UdpExchange, id: number): void {
    this.#socket!.send(exchange.octets(id))
  }

  #receive(octets: Uint8Array, isFromServer: boolean): void {
    if (this.#isClosed) return
    const exchange = isFromServer && octets.length >= headerOctets ? this.#byId.get(messageId(octets)) : undefined
    // Nobody waits for it any more.
    if (exchange === null) return
    if (exchange?.take(octets) === true) return
    this.#stats.strays++
    this.retire()
  }

  #close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#socket!.close(() => this.#owner.closed())
  }
}

class UdpExchange implements Exchange {
  readonly #onEnd: OnExchangeEnd
  readonly #query: PeerQuery
  readonly #withEdns: boolean
  readonly #stats: PeerStats
  #port: UdpPort | null = null
  #id = 0
  #isOver = false

  constructor(query: PeerQuery, withEdns: boolean, stats: PeerStats, onEnd: OnExchangeEnd) {
    this.#onEnd = onEnd
    this.#query = query
    this.#withEdns = withEdns
    this.#stats = stats
  }

  begin(port: UdpPort): void {
    this.#port = port
    this.#id = port.add(this)
  }

  octets(id: number): Uint8Array {
    return this.#query.octets(id, this.#withEdns)
  }

  /** Ends with these octets, if they are the response. */
  take(octets: Uint8Array): boolean {
    if (!isResponseTo(octets, this.#id, this.#query.question)) return false
    this.end({ kind: 'response', octets })
    return true
  }

  end(result: ExchangeEnd): void {
    if (this.#isOver) return
    this.cancel()
    this.#onEnd(result)
  }

  resend(): boolean {
    if (this.#isOver || this.#port?.sendAgain(this.#id, this) !== true) return false
    this.#stats.udpResent++
    return true
  }

  markSlow(): void {
    if (!this.#isOver) this.#port?.retire()
  }

  cancel(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#port?.leave(this.#id)
  }
}
