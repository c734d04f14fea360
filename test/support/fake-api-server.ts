/**
 * A Kubernetes API server as far as list and watch go, on a real socket, with every fault that a test can ask for.
 *
 * Objects live in memory by path (`/api/v1/services`). Like the real one it numbers every change, keeps the history of
 * changes for watches until `compact`, hands out pages of a list that was begun earlier, and ends watches on time.
 */
import { createServer as createHttpServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { createServer as createHttpsServer } from 'node:https'
import type { AddressInfo, Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Cancel, Clock } from '../../src/base/clock.ts'
import { isProtobuf, protobufType } from '../../src/cluster/sources/kubernetes/protobuf/envelope.ts'
import { metadataMessage } from '../../src/cluster/sources/kubernetes/protobuf/kubernetes-messages.ts'
import type { MessageType } from '../../src/cluster/sources/kubernetes/protobuf/message.ts'
import { loopClock } from './loop-clock.ts'
import { encodeEvent, encodeList, messageAt } from './protobuf-objects.ts'

export type ApiObject = Record<string, unknown> & {
  kind: string
  metadata: { name: string; namespace?: string; uid?: string; resourceVersion?: string }
}
export type FakeRequest = Readonly<{
  path: string
  query: URLSearchParams
  kind: 'list' | 'watch' | 'write' | 'other'
  headers: IncomingMessage['headers']
  /** Whether it came with a client certificate that our CA signed. */
  isCertified: boolean
}>
type Change = Readonly<{ version: number; type: 'ADDED' | 'MODIFIED' | 'DELETED'; object: ApiObject }>
/** `pending` waits while the server is frozen; `message`: how objects are sent in protobuf, null where that is JSON. */
type Watch = { path: string; response: ServerResponse; cancel: Cancel; pending: string; message: MessageType | null }
/** Answers in the place of the server; false: it answers by itself after all. */
export type Fault = (request: FakeRequest, response: ServerResponse) => boolean

const mcsGroup = 'multicluster.x-k8s.io'
const keyOf = ({ metadata }: Pick<ApiObject, 'metadata'>): string => `${metadata.namespace ?? ''}/${metadata.name}`

export class FakeApiServer {
  readonly requests: FakeRequest[] = []
  /** Versions of the group of ServiceImports that are served; [] as long as the CRD is not there. */
  mcsVersions: string[] = []
  /** Connections accepted since the start. */
  connections = 0
  readonly #clock: Clock
  readonly #tls: { key: string; cert: string; ca?: string } | null
  readonly #knowsProtobuf: boolean
  #server: Server | null = null
  #port = 0
  readonly #sockets = new Set<Socket>()
  readonly #objects = new Map<string, Map<string, ApiObject>>()
  readonly #history = new Map<string, Change[]>()
  readonly #watches = new Set<Watch>()
  readonly #faults: { when: (request: FakeRequest) => boolean; fault: Fault; times: number }[] = []
  readonly #snapshots = new Map<string, { items: ApiObject[]; version: number }>()
  #version = 100
  #compactedVersion = 0
  #uids = 0
  #isFrozen = false
  #isSilent = false
  readonly #unanswered: (() => void)[] = []

  private constructor(clock: Clock, tls: { key: string; cert: string; ca?: string } | null, knowsProtobuf: boolean) {
    this.#clock = clock
    this.#tls = tls
    this.#knowsProtobuf = knowsProtobuf
  }

  /**
   * @param options `knowsProtobuf`: it answers so where it is asked to, as the real one; it knows JSON alone unless
   * told.
   */
  static async start(
    options: { clock?: Clock; tls?: { key: string; cert: string; ca?: string }; knowsProtobuf?: boolean } = {}
  ): Promise<FakeApiServer> {
    const server = new FakeApiServer(options.clock ?? loopClock, options.tls ?? null, options.knowsProtobuf ?? false)
    await server.listen()
    return server
  }

  get port(): number {
    return this.#port
  }

  get url(): URL {
    return new URL(`${this.#tls === null ? 'http' : 'https'}://127.0.0.1:${this.#port}`)
  }

  /** The number of the last change. */
  get version(): number {
    return this.#version
  }

  get openWatches(): number {
    return this.#watches.size
  }

  /** Listens, on the same port as before if there was one. */
  async listen(): Promise<void> {
    const answer = (request: IncomingMessage, response: ServerResponse) => this.#answer(request, response)
    this.#server =
      this.#tls === null
        ? createHttpServer(answer)
        : createHttpsServer({ ...this.#tls, requestCert: true, rejectUnauthorized: false }, answer)
    this.#server.on('connection', (socket: Socket) => {
      this.connections++
      this.#sockets.add(socket)
      socket.on('close', () => this.#sockets.delete(socket))
      socket.on('error', () => {})
    })
    await new Promise<void>((resolve, reject) => {
      this.#server!.once('error', reject)
      this.#server!.listen(this.#port, '127.0.0.1', resolve)
    })
    this.#port = (this.#server.address() as AddressInfo).port
  }

  /** Stops as by SIGKILL: connections are refused from now on, until `listen`. */
  async stop(): Promise<void> {
    const server = this.#server
    if (server === null) return
    this.#server = null
    for (const watch of this.#watches) watch.cancel()
    this.#watches.clear()
    for (const socket of this.#sockets) socket.destroy()
    await new Promise((resolve) => void server.close(resolve))
  }

  // What the cluster does.

  put(path: string, object: object): void {
    const { metadata, ...rest } = structuredClone(object) as ApiObject
    const objects = this.#objectsAt(path)
    const known = objects.get(keyOf({ metadata }))
    const uid = metadata.uid ?? known?.metadata.uid ?? `uid-${++this.#uids}`
    const version = ++this.#version
    const stored = { ...rest, metadata: { ...metadata, uid, resourceVersion: String(version) } } as ApiObject
    objects.set(keyOf(stored), stored)
    this.#tell(path, { version, type: known === undefined ? 'ADDED' : 'MODIFIED', object: stored })
  }

  delete(path: string, namespace: string, name: string): void {
    const key = `${namespace}/${name}`
    const object = this.#objectsAt(path).get(key)
    if (object === undefined) return
    this.#objectsAt(path).delete(key)
    const version = ++this.#version
    const last = { ...object, metadata: { ...object.metadata, resourceVersion: String(version) } }
    this.#tell(path, { version, type: 'DELETED', object: last })
  }

  /** Changes the storage without telling any watch: what a bug or a lost event would look like. */
  putUntold(path: string, object: object): void {
    this.#withoutTelling(() => this.put(path, object))
  }

  deleteUntold(path: string, namespace: string, name: string): void {
    this.#withoutTelling(() => this.delete(path, namespace, name))
  }

  /** All objects as they are stored. */
  objects(path: string): ApiObject[] {
    return [...this.#objectsAt(path).values()]
  }

  /** Forgets the history: watches from the past and pages of lists begun before get 410. */
  compact(): void {
    this.#compactedVersion = ++this.#version
    this.#history.clear()
    this.#snapshots.clear()
  }

  /** Storage as it would be after a restore: other content, another revision, and nobody is told. */
  restore(version: number, change: () => void): void {
    this.#withoutTelling(change)
    this.#version = version
    this.#compactedVersion = 0
    this.#history.clear()
    this.#snapshots.clear()
  }

  // What goes wrong.

  /** The fault answers the next `times` requests that it is for. */
  fail(when: (request: FakeRequest) => boolean, fault: Fault, times = 1): void {
    this.#faults.push({ when, fault, times })
  }

  clearFaults(): void {
    this.#faults.length = 0
  }

  /** As by SIGSTOP, or behind a proxy that swallows bytes: connections stay, and nothing comes. */
  freeze(): void {
    this.#isFrozen = true
  }

  /** Goes on with what has gathered. */
  thaw(): void {
    this.#isFrozen = false
    for (const watch of this.#watches) this.#write(watch, '')
    for (const answer of this.#unanswered.splice(0)) answer()
  }

  /** Ends the watches as the API server does at their time. */
  endWatches(path?: string): void {
    for (const watch of this.#watchesOf(path)) this.#end(watch)
  }

  /** Resets the watches' connections, after this text if given. */
  cutWatches(path?: string, text?: string): void {
    for (const watch of this.#watchesOf(path)) {
      this.#watches.delete(watch)
      watch.cancel()
      if (text === undefined) watch.response.destroy()
      else watch.response.write(text, () => watch.response.destroy())
    }
  }

  sendToWatches(path: string, text: string): void {
    for (const watch of this.#watchesOf(path)) this.#write(watch, text)
  }

  sendError(path: string, code: number, reason: string): void {
    this.sendToWatches(path, `${JSON.stringify({ type: 'ERROR', object: statusOf(code, reason) })}\n`)
    this.endWatches(path)
  }

  sendBookmarks(path: string, version = this.#version): void {
    const object = { kind: 'Bookmark', metadata: { resourceVersion: String(version) } }
    this.sendToWatches(path, `${JSON.stringify({ type: 'BOOKMARK', object })}\n`)
  }

  #watchesOf(path?: string): Watch[] {
    return [...this.#watches].filter((watch) => path === undefined || watch.path === path)
  }

  #withoutTelling(change: () => void): void {
    this.#isSilent = true
    change()
    this.#isSilent = false
  }

  #objectsAt(path: string): Map<string, ApiObject> {
    let objects = this.#objects.get(path)
    if (objects === undefined) this.#objects.set(path, (objects = new Map()))
    return objects
  }

  #tell(path: string, change: Change): void {
    if (this.#isSilent) return
    this.#history.set(path, [...(this.#history.get(path) ?? []), change])
    for (const watch of this.#watchesOf(path)) this.#write(watch, lineOf(change))
  }

  #write(watch: Watch, text: string): void {
    watch.pending += text
    if (this.#isFrozen || watch.pending === '') return
    watch.response.write(watch.message === null ? watch.pending : framesOf(watch.pending, watch.message))
    watch.pending = ''
  }

  #answer(message: IncomingMessage, response: ServerResponse): void {
    const { pathname: path, searchParams: query } = new URL(message.url ?? '/', 'http://any')
    const kind = !/\/(services|endpointslices|namespaces|pods|serviceimports|leases|configmaps)$/.test(path)
      ? 'other'
      : query.get('watch') === 'true'
        ? 'watch'
        : 'list'
    const isCertified = message.socket instanceof TLSSocket && message.socket.authorized
    const method = message.method ?? 'GET'
    const request: FakeRequest = { path, query, kind: method === 'GET' ? kind : 'write', headers: message.headers, isCertified } // prettier-ignore
    this.requests.push(request)
    if (method !== 'GET') void this.#takeWrite(message, request, response)
    else if (this.#isFrozen) this.#unanswered.push(() => this.#answerNow(request, response))
    else this.#answerNow(request, response)
  }

  /** POST makes an object, PATCH merges the body into one; conditional on its resourceVersion, as with the real one. */
  async #takeWrite(message: IncomingMessage, request: FakeRequest, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = []
    for await (const chunk of message) chunks.push(chunk as Buffer)
    if (this.#isFaulty(request, response)) return
    const body = JSON.parse(Buffer.concat(chunks).toString()) as ApiObject
    const isNew = message.method === 'POST'
    const path = isNew ? request.path : request.path.slice(0, request.path.lastIndexOf('/'))
    const name = isNew ? body.metadata.name : request.path.slice(path.length + 1)
    const namespace = /\/namespaces\/([^/]+)\//.exec(path)?.[1] ?? ''
    const known = this.#objectsAt(path).get(`${namespace}/${name}`)
    const wanted = body.metadata.resourceVersion
    if (isNew && known !== undefined) sendStatus(response, 409, 'AlreadyExists')
    else if (!isNew && known === undefined) sendStatus(response, 404, 'NotFound')
    else if (known !== undefined && wanted !== undefined && wanted !== known.metadata.resourceVersion) {
      sendStatus(response, 409, 'Conflict')
    } else {
      const data = { ...(known?.['data'] as object | undefined), ...(body['data'] as object) }
      this.put(path, { ...(known ?? body), metadata: { ...known?.metadata, name, namespace }, data })
      response.statusCode = isNew ? 201 : 200
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify(this.#objectsAt(path).get(`${namespace}/${name}`)))
    }
  }

  #isFaulty(request: FakeRequest, response: ServerResponse): boolean {
    const fault = this.#faults.find(({ when, times }) => times > 0 && when(request))
    if (fault === undefined) return false
    fault.times--
    return fault.fault(request, response)
  }

  #answerNow(request: FakeRequest, response: ServerResponse): void {
    const { path, kind } = request
    if (response.destroyed || this.#isFaulty(request, response)) return
    if (path.includes(mcsGroup)) {
      if (this.#answerMcs(request, response)) return
    }
    if (kind === 'watch') this.#watch(request, response)
    else if (kind === 'list') this.#list(request, response)
    else sendStatus(response, 404, 'NotFound')
  }

  /** Discovery, and 404 for what is not served; false: a list or watch of a version that is. */
  #answerMcs({ path }: FakeRequest, response: ServerResponse): boolean {
    const [, , group, version, plural] = path.split('/')
    const isServed = version === undefined ? this.mcsVersions.length > 0 : this.mcsVersions.includes(version)
    if (!isServed) sendStatus(response, 404, 'NotFound')
    else if (version === undefined) {
      const versions = this.mcsVersions.map((it) => ({ groupVersion: `${group}/${it}`, version: it }))
      sendJson(response, { kind: 'APIGroup', name: group, versions })
    } else if (plural === undefined) {
      sendJson(response, {
        kind: 'APIResourceList',
        resources: [{ name: 'serviceexports' }, { name: 'serviceimports' }]
      })
    }
    return !isServed || plural === undefined
  }

  /** How the objects are asked for in protobuf; null: in JSON, or it is not known. */
  #messageFor({ path, headers }: FakeRequest): MessageType | null {
    const { accept = '' } = headers
    if (!this.#knowsProtobuf || !isProtobuf(accept)) return null
    return accept.includes('as=PartialObjectMetadataList') ? metadataMessage : messageAt(path)
  }

  #list(request: FakeRequest, response: ServerResponse): void {
    const { path, query } = request
    const limit = Number(query.get('limit') ?? 0)
    const [token = '', offset = '0'] = (query.get('continue') ?? '').split('.')
    const snapshot = token === '' ? { items: this.objects(path), version: this.#version } : this.#snapshots.get(token)
    if (snapshot === undefined) {
      sendStatus(response, 410, 'Expired')
      return
    }
    const from = Number(offset)
    const end = limit === 0 ? snapshot.items.length : from + limit
    const isLast = end >= snapshot.items.length
    const nextToken = token === '' ? `t${this.requests.length}` : token
    if (!isLast) this.#snapshots.set(nextToken, snapshot)
    const items = snapshot.items
      .slice(from, end)
      .map(({ metadata, ...object }) => ({ metadata, ...object, kind: undefined, apiVersion: undefined }))
    const metadata = { resourceVersion: String(snapshot.version), ...(!isLast && { continue: `${nextToken}.${end}` }) }
    const kind = `${this.#kindAt(path)}List`
    const apiVersion = path.startsWith('/apis/') ? path.split('/').slice(2, 4).join('/') : 'v1'
    const message = this.#messageFor(request)
    if (message === null) {
      sendJson(response, { kind, apiVersion, metadata, items })
      return
    }
    response.writeHead(200, { 'content-type': protobufType })
    response.end(encodeList(message, kind, metadata, items, apiVersion))
  }

  #kindAt(path: string): string {
    return this.objects(path)[0]?.kind ?? 'Any'
  }

  #watch(request: FakeRequest, response: ServerResponse): void {
    const { path, query } = request
    const message = this.#messageFor(request)
    const write = (text: string): void => {
      if (text !== '') response.write(message === null ? text : framesOf(text, message))
    }
    const from = Number(query.get('resourceVersion'))
    response.writeHead(200, { 'content-type': message === null ? 'application/json' : `${protobufType};stream=watch` })
    response.flushHeaders()
    if (from < this.#compactedVersion) {
      write(`${JSON.stringify({ type: 'ERROR', object: statusOf(410, 'Expired') })}\n`)
      response.end()
      return
    }
    write(
      (this.#history.get(path) ?? [])
        .filter(({ version }) => version > from)
        .map(lineOf)
        .join('')
    )
    const seconds = Number(query.get('timeoutSeconds') ?? 300)
    const watch: Watch = {
      path,
      response,
      pending: '',
      message,
      cancel: this.#clock.after(seconds * 1000, () => {
        if (!this.#isFrozen) this.#end(watch)
      })
    }
    this.#watches.add(watch)
    response.on('close', () => {
      watch.cancel()
      this.#watches.delete(watch)
    })
  }

  #end(watch: Watch): void {
    watch.cancel()
    this.#watches.delete(watch)
    watch.response.end()
  }
}

/** Lines of JSON as frames of protobuf; what is no event stays as it is. */
const framesOf = (text: string, message: MessageType): Buffer =>
  Buffer.concat(
    text.split(/(?<=\n)/).map((line) => {
      try {
        return encodeEvent(message, JSON.parse(line) as { type: string; object: Record<string, unknown> })
      } catch {
        return Buffer.from(line)
      }
    })
  )

const lineOf = ({ type, object }: Change): string => `${JSON.stringify({ type, object })}\n`

const statusOf = (code: number, reason: string): object => ({
  kind: 'Status',
  apiVersion: 'v1',
  status: 'Failure',
  message: `${reason} (of the test)`,
  reason,
  code
})

export function sendStatus(
  response: ServerResponse,
  code: number,
  reason: string,
  headers: Record<string, string> = {}
): boolean {
  response.writeHead(code, { 'content-type': 'application/json', ...headers })
  response.end(JSON.stringify(statusOf(code, reason)))
  return true
}

function sendJson(response: ServerResponse, value: object): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  response.end(JSON.stringify(value))
}
