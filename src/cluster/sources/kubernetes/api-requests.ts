/**
 * Requests to the API server: one at a time on one connection that is kept, every wait bounded, every failure an
 * ApiError. Nothing in a cluster is changed but the ConfigMaps that keep what an operator set and which addresses are
 * down.
 */
import type { Agent as HttpAgent, ClientRequest, IncomingMessage } from 'node:http'
import type { Agent as HttpsAgent } from 'node:https'
import type { Clock } from '../../../base/clock.ts'
import { apiDocumentOctets, apiErrorBodyMs, apiErrorBodyOctets, apiHeadersTimeoutMs } from '../../../base/limits.ts'
import type { ApiAccess, ApiTarget, TlsOptions } from './api-access.ts'
import { ApiError, asApiError, errorOfStatus } from './api-error.ts'
import { isProtobuf, readEnveloped } from './protobuf/envelope.ts'
import { statusMessage } from './protobuf/kubernetes-messages.ts'

export type Query = Readonly<Record<string, string>>

type Method = 'GET' | 'PATCH' | 'POST'

/** What is sent, beside who we are. */
type Message = Readonly<{ method: Method; path: string; query: Query; accept: string; body: string | null }>

/** `cut` ends the connection; whoever reads the body gets that error. */
export type ApiResponse = Readonly<{
  body: AsyncIterable<Buffer>
  contentType: string
  cut: (error: ApiError) => void
}>

export class ApiConnection {
  readonly #access: ApiAccess
  readonly #clock: Clock
  #agent: HttpAgent | HttpsAgent | null = null
  #agentTls: TlsOptions | null = null
  #cutCurrent: (error: ApiError) => void = () => {}
  #isClosed = false

  constructor(access: ApiAccess, clock: Clock) {
    this.#access = access
    this.#clock = clock
  }

  /**
   * Sends a GET and resolves once the reply begins, if that is 200. The body has to be read to its end, or cut, before
   * the next request.
   * @throws ApiError
   */
  async open(path: string, query: Query, accept = 'application/json'): Promise<ApiResponse> {
    return this.#exchange({ method: 'GET', path, query, accept, body: null })
  }

  /**
   * Changes or makes an object and gives it as it is then: PATCH takes a JSON merge patch (RFC 7396).
   * @throws ApiError
   */
  async write(method: 'PATCH' | 'POST', path: string, body: unknown): Promise<unknown> {
    const message = { method, path, query: {}, accept: 'application/json', body: JSON.stringify(body) }
    return this.#documentOf(await this.#exchange(message), path)
  }

  async #exchange(message: Message): Promise<ApiResponse> {
    if (this.#isClosed) throw new ApiError('cut', 'closed')
    const exchange = new Exchange()
    this.#cutCurrent = exchange.cut
    const stopWaiting = this.#clock.after(apiHeadersTimeoutMs, () => {
      exchange.cut(new ApiError('timeout', `no reply within ${apiHeadersTimeoutMs} ms`))
    })
    let target: ApiTarget
    let reply: IncomingMessage
    try {
      target = await exchange.orCut(this.#access.target())
      reply = await exchange.orCut(exchange.send(this.#request(target, message), message.body))
    } finally {
      stopWaiting()
    }
    const isDone = reply.statusCode === 200 || (message.method === 'POST' && reply.statusCode === 201)
    const contentType = reply.headers['content-type'] ?? ''
    if (isDone) return { body: exchange.body(reply), contentType, cut: exchange.cut }
    if (reply.statusCode === 401) this.#access.forget(target)
    throw await this.#errorOf(exchange, reply)
  }

  /** One whole JSON document of bounded size. */
  async document(path: string, query: Query = {}): Promise<unknown> {
    return this.#documentOf(await this.open(path, query), path)
  }

  async #documentOf({ body, cut }: ApiResponse, path: string): Promise<unknown> {
    const stopWaiting = this.#clock.after(apiHeadersTimeoutMs, () =>
      cut(new ApiError('timeout', `${path} does not end`))
    )
    try {
      const { octets, isWhole } = await readUpTo(body, apiDocumentOctets)
      if (!isWhole) throw new ApiError('format', `${path} is larger than ${apiDocumentOctets} octets`)
      return JSON.parse(octets.toString('utf8'))
    } catch (error) {
      throw error instanceof SyntaxError ? new ApiError('format', `${path} is not JSON`) : error
    } finally {
      stopWaiting()
    }
  }

  /** Ends what is under way; the connection is made anew for the next request. */
  cut(error: ApiError): void {
    this.#cutCurrent(error)
  }

  close(): void {
    this.#isClosed = true
    this.cut(new ApiError('cut', 'closed'))
    this.#agent?.destroy()
  }

  #request({ url, headers, tls }: ApiTarget, { method, path, query, accept, body }: Message): ClientRequest {
    if (this.#isClosed) throw new ApiError('cut', 'closed')
    const isTls = url.protocol === 'https:'
    // Both take a while to load, and a server that reads manifests needs neither.
    const http = process.getBuiltinModule('node:http')
    const https = process.getBuiltinModule('node:https')
    if (this.#agent === null || this.#agentTls !== tls) {
      this.#agent?.destroy()
      const options = { keepAlive: true, maxSockets: 1, maxFreeSockets: 1 }
      this.#agent = isTls ? new https.Agent({ ...options, ...tls }) : new http.Agent(options)
      this.#agentTls = tls
    }
    const search = new URLSearchParams(query).toString()
    return (isTls ? https : http).request({
      // node:net wants addresses without brackets.
      hostname: url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: url.port === '' ? (isTls ? 443 : 80) : Number(url.port),
      path: url.pathname.replace(/\/$/, '') + path + (search === '' ? '' : `?${search}`),
      method,
      headers: { ...headers, ...(body === null ? {} : contentHeaders(method, body)), accept, 'user-agent': 'peerdns' },
      agent: this.#agent
    })
  }

  async #errorOf(exchange: Exchange, message: IncomingMessage): Promise<ApiError> {
    const stopWaiting = this.#clock.after(apiErrorBodyMs, () =>
      exchange.cut(new ApiError('timeout', 'an error that does not end'))
    )
    let status: unknown = null
    try {
      const { octets } = await readUpTo(exchange.body(message), apiErrorBodyOctets)
      status = isProtobuf(message.headers['content-type'] ?? '')
        ? readEnveloped(octets, statusMessage)
        : JSON.parse(octets.toString('utf8'))
    } catch {
      // Proxies answer in HTML, and a body may break off: the status code says enough.
    } finally {
      stopWaiting()
    }
    return errorOfStatus(status, message.statusCode ?? 0, message.headers['retry-after'])
  }
}

const contentHeaders = (method: Method, body: string): Record<string, string> => ({
  'content-type': method === 'PATCH' ? 'application/merge-patch+json' : 'application/json',
  'content-length': String(Buffer.byteLength(body))
})

/** One request and its reply, with one reason why it was cut. */
class Exchange {
  #request: ClientRequest | null = null
  #message: IncomingMessage | null = null
  #reason: ApiError | null = null
  #reject: (error: ApiError) => void = () => {}

  readonly cut = (error: ApiError): void => {
    this.#reason ??= error
    this.#reject(this.#reason)
    this.#request?.destroy(this.#reason)
    this.#message?.destroy(this.#reason)
  }

  /** Waits for the promise, but not beyond a cut. */
  async orCut<T>(promise: Promise<T>): Promise<T> {
    const isCut = new Promise<never>((_, reject) => {
      this.#reject = reject
      if (this.#reason !== null) reject(this.#reason)
    })
    return Promise.race([promise, isCut])
  }

  async send(request: ClientRequest, body: string | null): Promise<IncomingMessage> {
    this.#request = request
    return new Promise((resolve, reject) => {
      // Stays for good: a connection may break long after the reply has begun.
      request.on('error', (error) => reject(this.#reason ?? asApiError(error)))
      request.on('response', (message) => {
        this.#message = message
        message.on('error', () => {})
        resolve(message)
      })
      if (body === null) request.end()
      else request.end(body)
    })
  }

  async *body(message: IncomingMessage): AsyncGenerator<Buffer> {
    try {
      for await (const chunk of message) yield chunk as Buffer
    } catch (error) {
      throw this.#reason ?? asApiError(error)
    }
    if (this.#reason !== null) throw this.#reason
  }
}

async function readUpTo(body: AsyncIterable<Buffer>, maxOctets: number): Promise<{ octets: Buffer; isWhole: boolean }> {
  const parts: Buffer[] = []
  let length = 0
  for await (const chunk of body) {
    length += chunk.length
    parts.push(chunk)
    if (length > maxOctets) break
  }
  return { octets: Buffer.concat(parts, length), isWhole: length <= maxOctets }
}
