/**
 * All open TCP connections, over every address: keeps the limit on their number and drains them together.
 *
 * At the limit the new connection is let in and the one that has been idle longest goes: whoever only holds
 * connections loses them, and whoever asks is served (RFC 7766 §6.2.2 lets a server close idle ones early). Only where
 * every connection has a query in flight is the new one closed at once.
 */
import type { Socket } from 'node:net'
import type { Clock } from '../base/clock.ts'
import { maxMessageOctets } from '../base/limits.ts'
import { clientAddress } from './client-address.ts'
import type { InFlightQueries } from './in-flight.ts'
import type { ListenerLimits } from './listener-limits.ts'
import type { Responder } from './responder.ts'
import { TcpConnection } from './tcp-connection.ts'
import type { TcpShared } from './tcp-shared.ts'
import type { TcpStats } from './tcp-stats.ts'

export type TcpConnectionsOptions = Readonly<{
  responder: Responder
  inFlight: InFlightQueries
  limits: ListenerLimits
  clock: Clock
  stats: TcpStats
  /** Told of what the responder threw, which it must not. */
  onFault: (error: unknown) => void
}>

export class TcpConnections {
  readonly #shared: TcpShared
  readonly #open = new Set<TcpConnection>()

  constructor(options: TcpConnectionsOptions) {
    this.#shared = { ...options, out: Buffer.allocUnsafeSlow(maxMessageOctets), waitingOctets: 0, unreadOctets: 0 }
  }

  /** Octets that wait to be sent, over all connections. */
  get waitingOctets(): number {
    return this.#shared.waitingOctets
  }

  /** Octets that came and are not yet a query, or not yet taken, over all connections. */
  get unreadOctets(): number {
    return this.#shared.unreadOctets
  }

  accept(socket: Socket): void {
    const { stats, limits } = this.#shared
    stats.connectionsTotal += 1
    const { remoteAddress, remotePort } = socket
    if (remoteAddress === undefined || remotePort === undefined) {
      // Gone again before we looked.
      stats.acceptErrorsTotal += 1
      socket.destroy()
      return
    }
    if (this.#open.size >= limits.tcpConnections && !this.#evictLongestIdle()) {
      stats.refusedTotal += 1
      socket.destroy()
      return
    }
    const client = { address: clientAddress(remoteAddress), port: remotePort, transport: 'tcp' } as const
    this.#open.add(new TcpConnection(socket, client, this.#shared, this.#forget))
    stats.connectionsOpen = this.#open.size
  }

  noteAcceptError(): void {
    this.#shared.stats.acceptErrorsTotal += 1
  }

  /** Closes idle connections now, and the others after their answers. */
  drain(): void {
    for (const connection of this.#open) connection.drain()
  }

  destroyAll(): void {
    for (const connection of this.#open) connection.destroy()
  }

  /** False when no connection is idle. Looks at all of them, which costs little beside accepting one. */
  #evictLongestIdle(): boolean {
    let longest: TcpConnection | null = null
    for (const connection of this.#open) {
      if (connection.isIdle && (longest === null || connection.lastActiveMs < longest.lastActiveMs))
        longest = connection
    }
    if (longest === null) return false
    this.#shared.stats.evictedTotal += 1
    longest.destroy()
    return true
  }

  readonly #forget = (connection: TcpConnection): void => {
    this.#open.delete(connection)
    this.#shared.stats.connectionsOpen = this.#open.size
  }
}
