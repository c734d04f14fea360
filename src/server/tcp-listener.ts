/** One TCP socket that accepts connections, and hands them to what all addresses share. */
import { createServer, isIPv6, type AddressInfo, type Server } from 'node:net'
import { listenError, type ListenAddress } from './listen-address.ts'
import type { ListeningSockets } from './takeover/listening-sockets.ts'
import type { TcpConnections } from './tcp-connections.ts'

export class TcpListener {
  readonly port: number
  readonly #where: ListenAddress
  readonly #connections: TcpConnections
  readonly #sockets: ListeningSockets | null
  /** Null while another process accepts. */
  #server: Server | null = null
  /** One for each time that it stopped accepting: resolved when the last connection of that time is closed. */
  readonly #closed: Promise<void>[] = []

  /** Listens; throws a ListenError where that fails. */
  static async bind(
    where: ListenAddress,
    connections: TcpConnections,
    sockets: ListeningSockets | null = null
  ): Promise<TcpListener> {
    const server = serverOf(connections)
    await new Promise<void>((resolve, reject) => {
      const fail = (error: NodeJS.ErrnoException): void => {
        server.close()
        reject(listenError(where, 'tcp', error))
      }
      server.once('error', fail)
      try {
        listen(server, where, sockets, resolve)
      } catch (error) {
        fail(error as NodeJS.ErrnoException)
      }
    })
    server.removeAllListeners('error')
    return new TcpListener(server, where, connections, sockets)
  }

  private constructor(
    server: Server,
    where: ListenAddress,
    connections: TcpConnections,
    sockets: ListeningSockets | null
  ) {
    // A server that listens on an address, not on a pipe, has this form.
    this.port = (server.address() as AddressInfo).port
    this.#where = { address: where.address, port: this.port }
    this.#connections = connections
    this.#sockets = sockets
    this.#use(server)
  }

  /** Accepts no more until `resume`; connections go on. */
  pause(): void {
    const server = this.#server
    if (server === null) return
    this.#server = null
    this.#closed.push(
      new Promise((resolve) => {
        server.close(() => resolve())
      })
    )
  }

  resume(): void {
    if (this.#server !== null) return
    const server = serverOf(this.#connections)
    this.#use(server)
    try {
      listen(server, this.#where, this.#sockets)
    } catch {
      this.#connections.noteAcceptError()
    }
  }

  /** Accepts no more; resolves when the last of its connections is closed. */
  async close(): Promise<void> {
    this.pause()
    await Promise.all(this.#closed)
  }

  #use(server: Server): void {
    server.on('error', () => this.#connections.noteAcceptError())
    this.#server = server
  }
}

// Half open: a client that has closed its side still gets its answers.
const serverOf = (connections: TcpConnections): Server =>
  createServer({ allowHalfOpen: true, noDelay: true }, (socket) => connections.accept(socket))

/** @throws an error with a `code` where a socket of our own cannot be bound */
function listen(server: Server, where: ListenAddress, sockets: ListeningSockets | null, done?: () => void): void {
  const ipv6Only = isIPv6(where.address)
  const bound = sockets?.tcp(where, { ipv6Only }) ?? null
  if (bound === null) server.listen({ host: where.address, port: where.port, ipv6Only, exclusive: true }, done)
  else server.listen({ fd: bound.fd }, done)
}
