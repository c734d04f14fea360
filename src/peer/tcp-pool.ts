/** The TCP connections to one server: few, shared by many questions, closed when nobody needs them. RFC 7766 §6.2. */
import type { Cancel, Clock } from '../base/clock.ts'
import { pooledTcpConnections, pooledTcpIdleMs, tcpQueriesPerPeerConnection } from '../base/limits.ts'
import { failedExchange, type Exchange, type OnExchangeEnd } from './exchange.ts'
import type { PeerQuery } from './peer-query.ts'
import type { PeerStats } from './peer-types.ts'
import { TcpConnection, type CarriedEnd, type ConnectionOwner } from './tcp-connection.ts'

/**
 * Questions on every connection before another one is opened, so that a server that answers in turn is no bottleneck.
 */
const fairShare = Math.ceil(tcpQueriesPerPeerConnection / pooledTcpConnections)

/** Where one exchange is at the moment: it moves to a fresh connection at most once. */
type Place = { connection: TcpConnection; id: number }

export class TcpPool {
  readonly #address: string
  readonly #port: number
  readonly #clock: Clock
  readonly #stats: PeerStats
  /** Those that may be used or still have questions. */
  readonly #connections = new Set<TcpConnection>()
  readonly #unclosed = new Set<TcpConnection>()
  readonly #idle = new Map<TcpConnection, Cancel>()
  readonly #owner: ConnectionOwner
  #onAllClosed: (() => void) | null = null
  #isClosed = false

  constructor(server: { address: string; port: number }, clock: Clock, stats: PeerStats) {
    this.#address = server.address
    this.#port = server.port
    this.#clock = clock
    this.#stats = stats
    this.#owner = {
      onIdle: (connection) => this.#rest(connection),
      onDrop: (connection) => {
        this.#wake(connection)
        this.#connections.delete(connection)
      },
      onClose: (connection) => {
        this.#unclosed.delete(connection)
        if (this.#unclosed.size === 0) this.#onAllClosed?.()
      },
      onStray: () => this.#stats.strays++
    }
  }

  get connections(): number {
    return this.#connections.size
  }

  /**
   * Sends a question over a connection in use, or a new one. If a connection that had been in use before ends without
   * the answer (the server closed it while it was idle, or is another process by now), it is sent once more over a
   * fresh one. It does not count as that once if the connection answered others meanwhile: such a server takes one
   * question for each connection, and each time one question fewer is left.
   */
  exchange(query: PeerQuery, withEdns: boolean, onEnd: OnExchangeEnd): Exchange {
    let place: Place | null = null
    let isOver = false
    let isResent = false
    const begin = (isAgain: boolean): void => {
      const connection = this.#connectionFor(isAgain)
      if (connection === null) {
        const end = failedExchange(this.#isClosed ? 'network' : 'overload', 'no room on the connections to the server')
        queueMicrotask(() => {
          if (isOver) return
          isOver = true
          onEnd(end)
        })
        return
      }
      const settle = (end: CarriedEnd): void => {
        if (isOver) return
        if (end.kind === 'ended' && !this.#isClosed && (end.answeredOthers || (end.isReused && !isResent))) {
          isResent ||= !end.answeredOthers
          this.#stats.tcpResent++
          begin(true)
          return
        }
        isOver = true
        if (end.kind === 'response') onEnd(end)
        else onEnd(failedExchange(end.kind === 'ended' ? 'network' : 'nonsense', end.detail))
      }
      place = { connection, id: connection.send(query, withEdns, settle) }
    }
    this.#stats.tcpExchanges++
    begin(false)
    return {
      resend: () => false,
      markSlow() {
        if (!isOver) place?.connection.markSlow(place.id)
      },
      cancel() {
        if (isOver) return
        isOver = true
        place?.connection.cancel(place.id)
      }
    }
  }

  /** Ends all connections; who waits gets `network`. Resolves when they are closed. */
  close(): Promise<void> {
    this.#isClosed = true
    if (this.#unclosed.size === 0) return Promise.resolve()
    return new Promise((done) => {
      this.#onAllClosed = done
      for (const connection of this.#connections) connection.destroy('closed')
    })
  }

  /**
   * The connection with the fewest questions; a new one where all have their share. For a question sent again: a fresh
   * one.
   */
  #connectionFor(isAgain: boolean): TcpConnection | null {
    if (this.#isClosed) return null
    let best = this.#leastBusy((connection) => !isAgain || connection.isFresh)
    if (best === null || best.waiting >= fairShare) {
      if (best === null && this.#connections.size >= pooledTcpConnections) this.#makeRoom(isAgain)
      if (this.#connections.size < pooledTcpConnections) best = this.#open()
    }
    best ??= this.#leastBusy(() => true)
    if (best !== null) this.#wake(best)
    return best
  }

  #leastBusy(isWanted: (connection: TcpConnection) => boolean): TcpConnection | null {
    let best: TcpConnection | null = null
    for (const connection of this.#connections) {
      if (!connection.isUsable || !isWanted(connection)) continue
      if (best === null || connection.waiting < best.waiting) best = connection
    }
    return best
  }

  #open(): TcpConnection {
    const connection = new TcpConnection(this.#address, this.#port, this.#owner)
    this.#connections.add(connection)
    this.#unclosed.add(connection)
    this.#stats.tcpConnections++
    return connection
  }

  /** Drops a connection that owes answers for too long; for a question sent again also one that is idle. */
  #makeRoom(isAgain: boolean): void {
    for (const connection of this.#connections) {
      if (!connection.isSuspect && !(isAgain && connection.waiting === 0)) continue
      connection.drop()
      return
    }
  }

  #rest(connection: TcpConnection): void {
    this.#wake(connection)
    this.#idle.set(
      connection,
      this.#clock.after(pooledTcpIdleMs, () => connection.destroy('idle'))
    )
  }

  #wake(connection: TcpConnection): void {
    this.#idle.get(connection)?.()
    this.#idle.delete(connection)
  }
}
