/**
 * A small client for the objects of a real API server: one request each, typed by kind, over a few connections that are
 * kept. It has no watch: what peerdns sees by watching is compared with what this client lists.
 */
import { readFileSync } from 'node:fs'
import { Agent, request } from 'node:https'
import { resources, type Kind, type KindMap, type KubeObject, type Resource } from './kinds.ts'
import { annotationOf, type HeldBack } from './kwok-stages.ts'

export type KubeApiOptions = Readonly<{
  /** `https://127.0.0.1:PORT` */
  baseUrl: string
  caFile: string
  /** Who asks: a client certificate or a token. */
  certificate?: Readonly<{ certFile: string; keyFile: string }>
  token?: string
  /** Connections at most; 8 unless told. */
  connections?: number
}>

export type ObjectKey = Readonly<{ name: string; namespace?: string }>

export type ListOptions = Readonly<{
  /** All namespaces unless told. */
  namespace?: string
  labelSelector?: string
  fieldSelector?: string
  /** The group and version asked, where another than the usual one is meant. */
  apiVersion?: string
  /** Objects in one page; 500 unless told. */
  limit?: number
}>

/** What the API server said no with; status 0 where it did not answer at all. */
export class KubeApiError extends Error {
  override readonly name = 'KubeApiError'
  readonly status: number
  /** `NotFound`, `AlreadyExists`, `Conflict`, `Invalid`, `Forbidden`, `Expired`, ... */
  readonly reason: string

  constructor(status: number, reason: string, message: string) {
    super(message)
    this.status = status
    this.reason = reason
  }
}

type RequestOptions = Readonly<{ body?: unknown; contentType?: string; timeoutMs?: number }>
type List<T> = { metadata: { continue?: string; resourceVersion: string }; items: T[] | null }

/** An API server that does not answer for this long counts as gone. */
const requestTimeoutMs = 20_000

export class KubeApi {
  readonly baseUrl: string
  readonly #agent: Agent
  readonly #token: string | null

  constructor({ baseUrl, caFile, certificate, token, connections = 8 }: KubeApiOptions) {
    this.baseUrl = baseUrl
    this.#token = token ?? null
    this.#agent = new Agent({
      keepAlive: true,
      maxSockets: connections,
      ca: readFileSync(caFile),
      ...(certificate && { cert: readFileSync(certificate.certFile), key: readFileSync(certificate.keyFile) })
    })
  }

  async get<K extends Kind>(kind: K, key: ObjectKey, apiVersion?: string): Promise<KindMap[K]> {
    return this.#json('GET', pathOf(resourceOf(kind, apiVersion), key))
  }

  /** Null where there is none. */
  async find<K extends Kind>(kind: K, key: ObjectKey): Promise<KindMap[K] | null> {
    return this.get(kind, key).catch((error: unknown) => {
      if (error instanceof KubeApiError && error.status === 404) return null
      throw error
    })
  }

  /** All of them, page by page. */
  async list<K extends Kind>(kind: K, options: ListOptions = {}): Promise<KindMap[K][]> {
    const { namespace, labelSelector, fieldSelector, apiVersion, limit = 500 } = options
    const path = collectionOf(resourceOf(kind, apiVersion), namespace)
    const items: KindMap[K][] = []
    let next = ''
    do {
      const query = new URLSearchParams({ limit: String(limit) })
      if (labelSelector !== undefined) query.set('labelSelector', labelSelector)
      if (fieldSelector !== undefined) query.set('fieldSelector', fieldSelector)
      if (next !== '') query.set('continue', next)
      const page = await this.#json<List<KindMap[K]>>('GET', `${path}?${query.toString()}`)
      items.push(...(page.items ?? []))
      next = page.metadata.continue ?? ''
    } while (next !== '')
    return items
  }

  async create<T extends KubeObject>(object: T): Promise<T> {
    const path = collectionOf(resourceOfObject(object), object.metadata.namespace ?? 'default')
    return this.#json('POST', path, { body: object })
  }

  /** Server-side apply: creates it, or makes the fields given here what they are here. */
  async apply<T extends KubeObject>(object: T): Promise<T> {
    const path = pathOf(resourceOfObject(object), object.metadata)
    return this.#json('PATCH', `${path}?fieldManager=e2e&force=true`, {
      body: object,
      contentType: 'application/apply-patch+yaml'
    })
  }

  /** Several, each only after those before it; `atOnce` of them together where their order does not matter. */
  async applyAll(objects: readonly KubeObject[], atOnce = 1): Promise<void> {
    const rest = objects.values()
    const applyRest = async () => {
      for (const object of rest) await this.apply(object)
    }
    await Promise.all(Array.from({ length: atOnce }, applyRest))
  }

  /** A JSON merge patch (RFC 7396) of the object, or of its `status`, `scale`, ... */
  async patch<K extends Kind>(kind: K, key: ObjectKey, patch: object, subresource?: string): Promise<KindMap[K]> {
    const path = pathOf(resourceOf(kind), key) + (subresource === undefined ? '' : `/${subresource}`)
    return this.#json('PATCH', path, { body: patch, contentType: 'application/merge-patch+json' })
  }

  /** A strategic merge patch, which adds to lists by their keys: conditions by type, for instance. */
  async patchStrategic<K extends Kind>(
    kind: K,
    key: ObjectKey,
    patch: object,
    subresource?: string
  ): Promise<KindMap[K]> {
    const path = pathOf(resourceOf(kind), key) + (subresource === undefined ? '' : `/${subresource}`)
    return this.#json('PATCH', path, { body: patch, contentType: 'application/strategic-merge-patch+json' })
  }

  async delete(kind: Kind, key: ObjectKey, options: Readonly<{ gracePeriodSeconds?: number }> = {}): Promise<void> {
    await this.#json('DELETE', pathOf(resourceOf(kind), key), {
      body: { apiVersion: 'v1', kind: 'DeleteOptions', propagationPolicy: 'Background', ...options }
    })
  }

  async scale(kind: 'Deployment' | 'StatefulSet' | 'ReplicaSet', key: ObjectKey, replicas: number): Promise<void> {
    await this.patch(kind, key, { spec: { replicas } }, 'scale')
  }

  /** Sets a pod's Ready condition, as a readiness probe would; kwok leaves it at that. */
  async setPodReady(key: ObjectKey, isReady: boolean): Promise<void> {
    const status = isReady ? 'True' : 'False'
    const conditions = ['Ready', 'ContainersReady'].map((type) => ({ type, status }))
    await this.patchStrategic('Pod', key, { status: { conditions } }, 'status')
  }

  /** Lets a pod start or end that an annotation holds back (`kwok-stages.ts`). */
  async letGo(key: ObjectKey, held: HeldBack): Promise<void> {
    await this.patch('Pod', key, { metadata: { annotations: { [annotationOf(held)]: null } } })
  }

  /** The body of any path, `/readyz` for instance. @throws KubeApiError for every status but 2xx. */
  async text(path: string, timeoutMs?: number): Promise<string> {
    return this.#request('GET', path, timeoutMs === undefined ? {} : { timeoutMs })
  }

  async post<T>(path: string, body: unknown): Promise<T> {
    return this.#json('POST', path, { body })
  }

  close(): void {
    this.#agent.destroy()
  }

  async #json<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
    return JSON.parse(await this.#request(method, path, options)) as T
  }

  async #request(method: string, path: string, options: RequestOptions): Promise<string> {
    const { body, contentType = 'application/json', timeoutMs = requestTimeoutMs } = options
    const headers: Record<string, string> = { accept: 'application/json' }
    const octets = body === undefined ? null : Buffer.from(JSON.stringify(body))
    if (octets !== null) {
      headers['content-type'] = contentType
      // Node gives a DELETE none by itself, and its body would be read as the connection's next request.
      headers['content-length'] = String(octets.length)
    }
    if (this.#token !== null) headers.authorization = `Bearer ${this.#token}`
    return new Promise((resolve, reject) => {
      const fail = (error: Error) => reject(new KubeApiError(0, 'NoAnswer', `${method} ${path}: ${error.message}`))
      const sent = request(this.baseUrl + path, { method, agent: this.#agent, headers }, (response) => {
        const chunks: Buffer[] = []
        response.on('data', (chunk: Buffer) => chunks.push(chunk))
        response.once('error', fail)
        response.once('end', () => {
          const text = Buffer.concat(chunks).toString('utf8')
          const status = response.statusCode ?? 0
          if (status >= 200 && status < 300) resolve(text)
          else reject(refusal(status, `${method} ${path}`, text))
        })
      })
      // Not the socket's idle time: an answer that trickles for ever is none either.
      const timer = setTimeout(() => sent.destroy(new Error(`no answer in ${timeoutMs} ms`)), timeoutMs)
      sent.once('close', () => clearTimeout(timer))
      sent.once('error', fail)
      sent.end(octets ?? undefined)
    })
  }
}

function refusal(status: number, what: string, text: string): KubeApiError {
  let reason = ''
  let message = text
  try {
    const said = JSON.parse(text) as { reason?: string; message?: string }
    reason = said.reason ?? ''
    message = said.message ?? text
  } catch {
    // Not a Status object: the text says it.
  }
  return new KubeApiError(status, reason, `${what}: ${status} ${message}`)
}

function resourceOf(kind: Kind, apiVersion?: string): Resource {
  return apiVersion === undefined ? resources[kind] : { ...resources[kind], apiVersion }
}

function resourceOfObject({ kind, apiVersion }: KubeObject): Resource {
  if (!Object.hasOwn(resources, kind)) throw new Error(`kinds.ts does not know ${kind}`)
  return resourceOf(kind as Kind, apiVersion)
}

function collectionOf({ apiVersion, plural, isNamespaced }: Resource, namespace: string | undefined): string {
  const root = apiVersion.includes('/') ? `/apis/${apiVersion}` : `/api/${apiVersion}`
  return isNamespaced && namespace !== undefined ? `${root}/namespaces/${namespace}/${plural}` : `${root}/${plural}`
}

function pathOf(resource: Resource, { name, namespace }: ObjectKey): string {
  return `${collectionOf(resource, namespace ?? 'default')}/${name}`
}
