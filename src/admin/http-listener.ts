/**
 * One HTTP listener: a bounded node:http server in front of a router.
 *
 * A handler that throws costs its own request a 500. Nothing that a client sends, or fails to send, ends the process or
 * holds a connection for longer than the limits say.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Clock } from '../base/clock.ts'
import { ListenError, TextError } from '../base/errors.ts'
import type { ListenAddress } from '../base/host-port.ts'
import {
  httpBodyOctets,
  httpConnections,
  httpDrainTimeoutMs,
  httpHeaderOctets,
  httpHeadersTimeoutMs,
  httpKeepAliveMs,
  httpRequestTimeoutMs,
  httpSocketIdleMs
} from '../base/limits.ts'
import type { Logger } from '../base/log.ts'
import { errorReply, type Reply } from './reply.ts'
import { HttpConnections } from './http-connections.ts'
import { isOwnHost } from './own-host.ts'
import type { Router } from './router.ts'

export type HttpLimits = Readonly<{
  connections: number
  bodyOctets: number
  headersTimeoutMs: number
  requestTimeoutMs: number
  keepAliveMs: number
  drainTimeoutMs: number
}>

export const defaultHttpLimits: HttpLimits = {
  connections: httpConnections,
  bodyOctets: httpBodyOctets,
  headersTimeoutMs: httpHeadersTimeoutMs,
  requestTimeoutMs: httpRequestTimeoutMs,
  keepAliveMs: httpKeepAliveMs,
  drainTimeoutMs: httpDrainTimeoutMs
}

export type HttpListenerOptions = Readonly<{
  where: ListenAddress
  router: Router
  clock: Clock
  log: Logger
  limits?: Partial<HttpLimits>
  /** Whether the Host header must name this machine by address or as `localhost`; false by default. */
  refusesForeignHosts?: boolean
  openSocket?: OpenSocket
}>

/** Gives the descriptor of a socket that listens on an address already; null: Node is to open one. */
export type OpenSocket = (where: ListenAddress) => number | null

/** Counters since the start. */
export type HttpStats = {
  requestsTotal: number
  /** Answered with a status of 400 to 499. */
  refusedTotal: number
  /** Handlers that threw. */
  faultsTotal: number
}

export class HttpListener {
  readonly stats: HttpStats = { requestsTotal: 0, refusedTotal: 0, faultsTotal: 0 }
  /** A new one whenever it listens anew. */
  #server: Server
  readonly #router: Router
  readonly #clock: Clock
  readonly #log: Logger
  readonly #limits: HttpLimits
  readonly #connections: HttpConnections
  /** What it was told to listen on; null where any Host header will do. */
  readonly #ownHost: string | null
  readonly #openSocket: OpenSocket
  #address: ListenAddress
  /** Another process accepts. */
  #isPaused = false
  #closed: Promise<void> | null = null

  /** Listens; throws a ListenError where it cannot. */
  static async open(options: HttpListenerOptions): Promise<HttpListener> {
    const listener = new HttpListener(options)
    await listener.#listen()
    return listener
  }

  private constructor({ where, router, clock, log, limits, refusesForeignHosts, openSocket }: HttpListenerOptions) {
    this.#router = router
    this.#clock = clock
    this.#log = log
    this.#limits = { ...defaultHttpLimits, ...limits }
    this.#ownHost = refusesForeignHosts === true ? where.address : null
    this.#connections = new HttpConnections(this.#limits.connections, clock)
    this.#openSocket = openSocket ?? (() => null)
    this.#address = where
    this.#server = this.#newServer()
  }

  /** Where it listens, with the port that was found for port 0. */
  get address(): ListenAddress {
    return this.#address
  }

  /** Accepts no more until `resume`, because another process does; requests under way are answered. */
  pause(): void {
    if (this.#isPaused) return
    this.#isPaused = true
    const server = this.#server
    // Node would cut connections too whose request is on its way. Those that are kept for more get one more answer.
    server.closeIdleConnections = () => {}
    server.close()
    Reflect.deleteProperty(server, 'closeIdleConnections')
  }

  /** Accepts again, on the socket that `openSocket` gives. */
  async resume(): Promise<void> {
    if (!this.#isPaused || this.#closed !== null) return
    this.#isPaused = false
    this.#server = this.#newServer()
    await this.#listen()
  }

  /** Takes no more connections, lets answers under way finish for a moment, then cuts what is left. */
  close(): Promise<void> {
    this.#closed ??= new Promise((done) => {
      const cancel = this.#clock.after(this.#limits.drainTimeoutMs, () => this.#server.closeAllConnections())
      this.#server.close(() => {
        cancel()
        done()
      })
      this.#server.closeIdleConnections()
    })
    return this.#closed
  }

  #newServer(): Server {
    // An import would read every export of the module, and with them load all of fetch and WebSocket (30 ms at the
    // start).
    const server = process.getBuiltinModule('node:http').createServer({
      maxHeaderSize: httpHeaderOctets,
      headersTimeout: this.#limits.headersTimeoutMs,
      requestTimeout: this.#limits.requestTimeoutMs,
      keepAliveTimeout: this.#limits.keepAliveMs,
      connectionsCheckingInterval: Math.min(1_000, this.#limits.headersTimeoutMs)
    })
    server.setTimeout(httpSocketIdleMs)
    server.on('connection', (socket) => this.#connections.accept(socket))
    server.on('request', (request, response) => {
      this.#connections.noteRequest(request, response)
      void this.#serve(request, response)
    })
    return server
  }

  #listen(): Promise<void> {
    const { address, port } = this.#address
    const server = this.#server
    return new Promise((resolve, reject) => {
      const fail = (error: NodeJS.ErrnoException): void =>
        reject(new ListenError({ address, port, transport: 'tcp' }, error.code ?? 'UNKNOWN', error.message))
      const listening = (): void => {
        server.off('error', fail)
        server.on('error', (error) => this.#log.error({ err: error }, 'the HTTP listener met an error'))
        const bound = server.address()
        // What listens on an address, not on a pipe, has this form.
        if (bound !== null && typeof bound !== 'string') this.#address = { address: bound.address, port: bound.port }
        resolve()
      }
      server.once('error', fail)
      try {
        const fd = this.#openSocket(this.#address)
        if (fd === null) server.listen({ host: address, port }, listening)
        else server.listen({ fd }, listening)
      } catch (error) {
        fail(error as NodeJS.ErrnoException)
      }
    })
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.stats.requestsTotal++
    response.on('error', () => {}) // The client went away: nobody is left to tell.
    try {
      this.#send(response, await this.#reply(request, response))
    } catch (error) {
      this.stats.faultsTotal++
      this.#log.error({ err: error, method: request.method, url: request.url }, 'an HTTP request met a bug')
      this.#send(response, errorReply(500, 'internal error'))
    }
  }

  async #reply(request: IncomingMessage, response: ServerResponse): Promise<Reply> {
    const { host } = request.headers
    if (this.#ownHost !== null && host !== undefined && !isOwnHost(host, this.#ownHost)) {
      return errorReply(
        403,
        `the Host header names \`${host}\`: only an IP address, localhost and ${this.#ownHost} are answered here, so that no web site can read this through a name of its own`
      )
    }
    const url = request.url ?? '/'
    const queryAt = url.indexOf('?')
    const path = queryAt < 0 ? url : url.slice(0, queryAt)
    const found = this.#router.match(request.method ?? '', path)
    if (found.kind === 'unknown') return errorReply(404, `nothing is at ${path}`)
    if (found.kind === 'wrong-method') {
      response.setHeader('allow', found.allow.join(', '))
      return errorReply(405, `${path} takes ${found.allow.join(', ')}`)
    }
    const query = new URLSearchParams(queryAt < 0 ? '' : url.slice(queryAt + 1))
    try {
      const body = request.method === 'POST' ? await readBody(request, this.#limits.bodyOctets) : null
      const clientAddress = request.socket.remoteAddress ?? ''
      return await found.handler({ params: found.params, query, body, clientAddress })
    } catch (error) {
      if (error instanceof BodyError) return errorReply(error.status, error.message)
      if (error instanceof TextError) return errorReply(400, error.message)
      throw error
    }
  }

  #send(response: ServerResponse, reply: Reply): void {
    if (reply.status >= 400 && reply.status < 500) this.stats.refusedTotal++
    if (response.destroyed || response.headersSent) return
    // While we stop, no further request is wanted; the rest of a body that is too large is not waited for.
    if (this.#closed !== null || this.#isPaused || reply.status === 413) response.setHeader('connection', 'close')
    response.writeHead(reply.status, {
      'content-type': reply.contentType,
      'content-length': Buffer.byteLength(reply.body),
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff'
    })
    response.end(reply.body)
  }
}

/** A body that is not taken, with the status that says why. */
class BodyError extends Error {
  readonly status: 400 | 413 | 415
  constructor(status: 400 | 413 | 415, message: string) {
    super(message)
    this.name = 'BodyError'
    this.status = status
  }
}

/**
 * The parsed body; null where there is none.
 *
 * Only `application/json` is taken: a browser does not send that to another origin without asking first, and no answer
 * of ours allows it.
 */
async function readBody(request: IncomingMessage, maxOctets: number): Promise<unknown> {
  const tooLarge = (): BodyError => new BodyError(413, `the body is larger than ${maxOctets} octets`)
  if (Number(request.headers['content-length'] ?? 0) > maxOctets) throw tooLarge()
  const type = (request.headers['content-type'] ?? '').split(';', 1)[0]!.trim().toLowerCase()
  if (type !== 'application/json') throw new BodyError(415, 'the body must be application/json')
  const text = await bodyText(request, maxOctets)
  if (text === null) throw tooLarge()
  if (text.trim() === '') return null
  try {
    return JSON.parse(text) as unknown
  } catch (error) {
    if (error instanceof SyntaxError) throw new BodyError(400, `the body is not JSON: ${error.message}`)
    throw error
  }
}

/** The body's text, or null as soon as it is larger than allowed. */
function bodyText(request: IncomingMessage, maxOctets: number): Promise<string | null> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = []
    let octets = 0
    request.on('data', (chunk: Buffer) => {
      octets += chunk.length
      if (octets > maxOctets) {
        chunks.length = 0
        resolve(null)
      } else {
        chunks.push(chunk)
      }
    })
    request.on('end', () => resolve(Buffer.concat(chunks).toString('utf8')))
    // Cut before the end: the answer goes nowhere, but the request must not wait for ever.
    request.on('error', () => reject(new BodyError(400, 'the body broke off')))
    request.on('close', () => reject(new BodyError(400, 'the body broke off')))
  })
}
