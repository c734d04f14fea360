/**
 * A TCP proxy between a client and the API server that misbehaves on demand. It does not look into what it passes on,
 * so TLS goes through it: use it with `Cluster.kubeconfigVia(proxy.port)`.
 */
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { freePort } from '../../support/free-port.ts'

/**
 * - `pass`: as if it were not there.
 * - `swallow`: what either side sends is read and thrown away; connections stay open, and new ones are accepted. A
 *   connection that lost octets stays silent for ever, also when the mode changes.
 * - `freeze`: nothing is read from anybody, so the senders' buffers fill; nothing is lost, and all goes on after it.
 * - `refuse`: the port is closed. Connections that exist go on.
 */
export type ProxyMode = 'pass' | 'swallow' | 'freeze' | 'refuse'

type Link = { client: Socket; server: Socket; isPoisoned: boolean }

export class TcpProxy {
  readonly port: number
  /** Connections that were accepted, and octets that the server sent to clients. */
  readonly stats = { connections: 0, octetsToClients: 0 }
  readonly #targetPort: number
  readonly #links = new Set<Link>()
  #server: Server | null = null
  #mode: ProxyMode = 'pass'
  #delayMs = 0
  #octetsPerSecond = Infinity

  private constructor(port: number, targetPort: number) {
    this.port = port
    this.#targetPort = targetPort
  }

  /** In front of a port of 127.0.0.1. */
  static async start(targetPort: number): Promise<TcpProxy> {
    const proxy = new TcpProxy(await freePort(), targetPort)
    await proxy.#listen()
    return proxy
  }

  get mode(): ProxyMode {
    return this.#mode
  }

  /** Connections that are open now. */
  get openConnections(): number {
    return this.#links.size
  }

  async setMode(mode: ProxyMode): Promise<void> {
    this.#mode = mode
    if (mode === 'refuse') await this.#closePort()
    else await this.#listen()
    for (const link of this.#links) {
      for (const socket of [link.client, link.server]) {
        if (mode === 'freeze') socket.pause()
        else socket.resume()
      }
    }
  }

  /** What the server sends arrives this much later, and at most this fast, from now on; 0 and Infinity undo it. */
  slowDown({ delayMs = 0, octetsPerSecond = Infinity }: { delayMs?: number; octetsPerSecond?: number }): void {
    this.#delayMs = delayMs
    this.#octetsPerSecond = octetsPerSecond
  }

  /** Resets every open connection (RST), or ends it in order (FIN). */
  cut(how: 'reset' | 'end' = 'reset'): void {
    for (const { client, server } of this.#links) {
      if (how === 'reset') client.resetAndDestroy()
      else client.end()
      server.destroy()
    }
  }

  async close(): Promise<void> {
    this.cut()
    await this.#closePort()
  }

  async #listen(): Promise<void> {
    if (this.#server !== null) return
    const server = createServer({ pauseOnConnect: true }, (client) => this.#accept(client))
    this.#server = server
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject)
      server.listen(this.port, '127.0.0.1', resolve)
    })
    if ((server.address() as AddressInfo).port !== this.port) throw new Error('the proxy got another port')
  }

  /** Ends listening at once; `close` of Node would wait for the connections. */
  async #closePort(): Promise<void> {
    const server = this.#server
    this.#server = null
    if (server === null) return
    server.close()
    // The port is free as soon as the listening socket is gone, which is before the callback.
    await new Promise((resolve) => setImmediate(resolve))
  }

  #accept(client: Socket): void {
    this.stats.connections++
    const server = connect(this.#targetPort, '127.0.0.1')
    const link: Link = { client, server, isPoisoned: false }
    this.#links.add(link)
    const end = () => {
      this.#links.delete(link)
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) {
      socket.on('error', end)
      socket.once('close', end)
    }
    client.on('data', (chunk: Buffer) => this.#passOn(link, client, server, chunk))
    server.on('data', (chunk: Buffer) => {
      this.stats.octetsToClients += chunk.length
      this.#toClient(link, chunk)
    })
    client.on('end', () => server.end())
    server.on('end', () => client.end())
    if (this.#mode !== 'freeze') client.resume()
    else server.pause()
  }

  /** With a delay or a rate the server's octets wait here; the server is not read meanwhile, so order is kept. */
  #toClient(link: Link, chunk: Buffer): void {
    const waitMs = this.#delayMs + (chunk.length / this.#octetsPerSecond) * 1000
    if (waitMs < 1) {
      this.#passOn(link, link.server, link.client, chunk)
      return
    }
    link.server.pause()
    setTimeout(() => {
      this.#passOn(link, link.server, link.client, chunk)
      if (this.#mode !== 'freeze') link.server.resume()
    }, waitMs)
  }

  #passOn(link: Link, from: Socket, to: Socket, chunk: Buffer): void {
    if (this.#mode === 'swallow') link.isPoisoned = true
    if (link.isPoisoned || to.destroyed || to.write(chunk)) return
    from.pause()
    to.once('drain', () => {
      if (this.#mode !== 'freeze') from.resume()
    })
  }
}
