/** One TCP socket that accepts connections, and hands them to what all addresses share. */
import { createServer, isIPv6, type AddressInfo, type Server } from 'node:net'
import { listenError, type ListenAddress } from './listen-address.ts'
import type { TcpConnections } from './tcp-connections.ts'

export class TcpListener {
  readonly port: number
  readonly #server: Server
  #closed: Promise<void> | null = null

  /** Listens; throws a ListenError where that fails. */
  static async bind(where: ListenAddress, connections: TcpConnections): Promise<TcpListener> {
    // Half open: a client that has closed its side still gets its answers.
    const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => connections.accept(socket))
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => {
        server.close()
        reject(listenError(where, 'tcp', error))
      })
      const ipv6Only = isIPv6(where.address)
      server.listen({ host: where.address, port: where.port, ipv6Only, exclusive: true }, resolve)
    })
    server.removeAllListeners('error')
    server.on('error', () => connections.noteAcceptError())
    return new TcpListener(server)
  }

  private constructor(server: Server) {
    this.#server = server
    // A server that listens on an address, not on a pipe, has this form.
    this.port = (server.address() as AddressInfo).port
  }

  /** Accepts no more; resolves when the last of its connections is closed. */
  async close(): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      this.#server.close(() => resolve())
    })
    await this.#closed
  }
}
