/**
 * All listening sockets: each address serves UDP and TCP on the same port, on IPv4 and IPv6 side by side.
 *
 * Either all addresses are listened on or none. Draining goes: no new TCP connections, idle ones close; queries in
 * flight get their answers while UDP goes on serving; then everything closes.
 */
import type { Clock } from '../base/clock.ts'
import { ListenError } from '../base/errors.ts'
import { freePortAttempts } from '../base/limits.ts'
import { InFlightQueries } from './in-flight.ts'
import type { ListenAddress } from './listen-address.ts'
import { defaultListenerLimits, type ListenerLimits } from './listener-limits.ts'
import type { Responder } from './responder.ts'
import { TcpConnections } from './tcp-connections.ts'
import { TcpListener } from './tcp-listener.ts'
import type { ListeningSockets } from './takeover/listening-sockets.ts'
import { makeTcpStats, type TcpStats } from './tcp-stats.ts'
import type { UdpIo, UdpSocket } from './udp-io.ts'
import { dgramIo } from './udp-listener.ts'
import { makeUdpStats, type UdpListenerOptions, type UdpStats } from './udp-stats.ts'

export type ListenersOptions = Readonly<{
  addresses: readonly ListenAddress[]
  responder: Responder
  clock: Clock
  limits?: Partial<ListenerLimits>
  /** How datagrams are read and sent; one at a time unless given. */
  udpIo?: UdpIo
  /** UDP sockets for each address, where they are read in batches. */
  udpSockets?: number
  /** The sockets that can be handed over to another process, or were handed over by one; null: none. */
  sockets?: ListeningSockets | null
  /** Told of what the responder threw, which it must not. */
  onFault?: (error: unknown) => void
}>

export type ListenerStats = Readonly<{ udp: UdpStats; tcp: TcpStats }>

export type StopOptions = Readonly<{
  /** How long queries in flight may take. */
  drainTimeoutMs: number
  /** Close at once, also where a drain is under way. */
  force?: boolean
}>

type Bound = Readonly<{ where: ListenAddress; udp: UdpSocket[]; tcp: TcpListener }>

type Closable = { close(): Promise<void> }

/**
 * Binds UDP, then TCP to the port UDP got. Where any port will do, another one is tried as long as the first is taken
 * for TCP.
 */
export async function bindBoth<Udp extends Closable & { port: number }, Tcp>(
  where: ListenAddress,
  bindUdp: (where: ListenAddress) => Promise<Udp>,
  bindTcp: (where: ListenAddress) => Promise<Tcp>
): Promise<{ udp: Udp; tcp: Tcp }> {
  for (let attempt = 1; ; attempt++) {
    const udp = await bindUdp(where)
    try {
      return { udp, tcp: await bindTcp({ ...where, port: udp.port }) }
    } catch (error) {
      await udp.close()
      const isTaken = error instanceof ListenError && error.code === 'EADDRINUSE'
      if (where.port !== 0 || !isTaken || attempt === freePortAttempts) throw error
    }
  }
}

export class Listeners {
  readonly stats: ListenerStats
  /** Where it listens, with the ports that were found for port 0. */
  readonly addresses: readonly ListenAddress[]
  /** The UDP sockets of each of them, in the order in which they were bound. */
  readonly udpOf: readonly (readonly UdpSocket[])[]
  readonly #udp: readonly UdpSocket[]
  readonly #tcp: readonly TcpListener[]
  readonly #connections: TcpConnections
  readonly #inFlight: InFlightQueries
  readonly #clock: Clock
  readonly #delegated = new Set<object>()
  #isPaused = false
  #stopped: Promise<number> | null = null
  #endWaiting: () => void = () => {}

  /** Listens on every address; throws a ListenError where one fails, with nothing left open. */
  static async open(options: ListenersOptions): Promise<Listeners> {
    const { responder, clock, udpIo = dgramIo, sockets = null, onFault = () => {}, udpSockets = 1 } = options
    const limits = { ...defaultListenerLimits, ...options.limits }
    const inFlight = new InFlightQueries(limits.inFlightQueries)
    const stats = { udp: makeUdpStats(), tcp: makeTcpStats() }
    const connections = new TcpConnections({ responder, inFlight, limits, clock, stats: stats.tcp, onFault })
    const udpOptions: UdpListenerOptions = {
      responder,
      inFlight,
      clock,
      stats: stats.udp,
      receiveBufferOctets: limits.udpReceiveBufferOctets,
      sendQueueOctets: limits.udpSendQueueOctets,
      sockets,
      isShared: udpSockets > 1,
      onFault,
      othersAnswered: () => stats.tcp.receivedTotal + stats.tcp.connectionsTotal
    }
    const bound: Bound[] = []
    try {
      for (const where of options.addresses) {
        const both = await bindBoth(
          where,
          async (at) => udpIo.bind(at, udpOptions),
          (at) => TcpListener.bind(at, connections, sockets)
        )
        const at = { address: where.address, port: both.udp.port }
        const udp = [both.udp]
        bound.push({ where: at, udp, tcp: both.tcp })
        if (both.udp.fd === null) continue
        sockets?.keepUdp(at, both.udp.fd)
        // Those of a process that had more are read too: something may wait in them.
        const count = Math.max(udpSockets, sockets?.udpSockets(at) ?? 1)
        for (let number = 1; number < count; number++) {
          const more = await udpIo.bind(at, udpOptions, number)
          udp.push(more)
          if (more.fd !== null) sockets?.keepUdp(at, more.fd, number)
        }
      }
    } catch (error) {
      const closed = bound.flatMap(({ udp, tcp }) => [...udp.map(async (socket) => socket.close()), tcp.close()])
      connections.destroyAll()
      await Promise.all(closed)
      throw error
    }
    return new Listeners(bound, { stats, connections, inFlight, clock })
  }

  private constructor(
    bound: readonly Bound[],
    shared: Readonly<{ stats: ListenerStats; connections: TcpConnections; inFlight: InFlightQueries; clock: Clock }>
  ) {
    this.addresses = bound.map(({ where }) => where)
    this.udpOf = bound.map(({ udp }) => udp)
    this.#udp = this.udpOf.flat()
    this.#tcp = bound.map(({ tcp }) => tcp)
    this.stats = shared.stats
    this.#connections = shared.connections
    this.#inFlight = shared.inFlight
    this.#clock = shared.clock
  }

  /** Queries that wait for somebody else now. */
  get inFlightQueries(): number {
    return this.#inFlight.count
  }

  /** Octets of answers that TCP clients have not taken yet. */
  get tcpWaitingOctets(): number {
    return this.#connections.waitingOctets
  }

  /** Octets from TCP clients that are not yet a query, or not yet taken. */
  get tcpUnreadOctets(): number {
    return this.#connections.unreadOctets
  }

  /** Takes in nothing new until `resume`, because another process does; what is in flight and connections go on. */
  pause(): void {
    this.#isPaused = true
    for (const socket of [...this.#udp, ...this.#tcp]) socket.pause()
  }

  resume(): void {
    this.#isPaused = false
    for (const socket of [...this.#udp, ...this.#tcp]) if (!this.#delegated.has(socket)) socket.resume()
  }

  /** Leaves the reading of UDP sockets to somebody else in this process, or takes it back. */
  delegate(sockets: readonly UdpSocket[], isDelegated: boolean): void {
    for (const socket of sockets) {
      if (isDelegated) {
        this.#delegated.add(socket)
        socket.pause()
      } else {
        this.#delegated.delete(socket)
        if (!this.#isPaused) socket.resume()
      }
    }
  }

  /**
   * Drains and closes. Resolves, when everything is closed, to the number of queries that were left without an answer.
   * A second call waits for the first; with `force` it ends the first one's waiting.
   */
  async stop(options: StopOptions): Promise<number> {
    this.#stopped ??= this.#drain(options.drainTimeoutMs)
    if (options.force === true) this.#endWaiting()
    return this.#stopped
  }

  async #drain(timeoutMs: number): Promise<number> {
    const tcpClosed = Promise.all(this.#tcp.map(async (listener) => listener.close()))
    const timeIsUp = Promise.withResolvers<void>()
    this.#endWaiting = timeIsUp.resolve
    const cancel = this.#clock.after(timeoutMs, timeIsUp.resolve)
    this.#connections.drain()
    await Promise.race([timeIsUp.promise, this.#answersSent(tcpClosed)])
    cancel()
    const unanswered = this.#inFlight.count
    this.#connections.destroyAll()
    await Promise.all([tcpClosed, ...this.#udp.map(async (listener) => listener.close())])
    return unanswered
  }

  async #answersSent(tcpClosed: Promise<unknown>): Promise<void> {
    await this.#inFlight.none()
    await Promise.all([tcpClosed, ...this.#udp.map(async (listener) => listener.flushed())])
  }
}
