/**
 * One text in one ConfigMap: followed by list and watch, and changed without losing what others wrote meanwhile.
 *
 * The rights that it needs are `list`, `watch` and `patch` of that one object. Where it is missing it is made, which
 * needs `create`; whoever grants less has it in place from the beginning.
 */
import type { Clock } from '../../../base/clock.ts'
import {
  apiObjectOctets,
  overrideStartWaitMs,
  overrideWriteAttempts,
  watchGraceMs,
  watchMaxSeconds,
  watchMinSeconds,
  watchProvenMs
} from '../../../base/limits.ts'
import type { ApiAccess } from './api-access.ts'
import { ApiError, asApiError, errorOfStatus } from './api-error.ts'
import { ApiConnection } from './api-requests.ts'
import { BackOff } from './back-off.ts'
import { LineSplitter } from './line-splitter.ts'
import { compareResourceVersions } from './resource-version.ts'
import { Sleeper } from './sleeper.ts'

export type ConfigMapTextOptions = Readonly<{
  access: ApiAccess
  clock: Clock
  random: () => number
  /** null: the namespace that the access is for. */
  namespace: string | null
  name: string
  /** The key of `data` that holds the text. */
  key: string
}>

export type ConfigMapListener = Readonly<{
  /** The text whenever it may have changed; null: there is none. */
  onText(text: string | null): void
  /** Why it cannot be read; null: it can be again. */
  onUnreadable(reason: string | null): void
}>

/** What is there: `resourceVersion` null where the object is not. */
type Found = Readonly<{ text: string | null; resourceVersion: string | null; listVersion: string }>

export class ConfigMapText {
  readonly #options: ConfigMapTextOptions
  readonly #reading: ApiConnection
  readonly #writing: ApiConnection
  readonly #backOff: BackOff
  readonly #sleeper: Sleeper
  #listener: ConfigMapListener | null = null
  #running: Promise<void> | null = null
  /** Changes follow one another. */
  #queue: Promise<unknown> = Promise.resolve()
  /** What was read or written last; a watch may still tell of something before it. */
  #resourceVersion = ''
  #wasBehind = false
  /** The watch of this round was answered. */
  #isFollowing = false
  /** And it held for a while. */
  #isProven = false
  #isClosed = false

  constructor(options: ConfigMapTextOptions) {
    this.#options = options
    this.#reading = new ApiConnection(options.access, options.clock)
    this.#writing = new ApiConnection(options.access, options.clock)
    this.#backOff = new BackOff(options.random)
    this.#sleeper = new Sleeper(options.clock)
  }

  /**
   * Begins to follow it. Resolves when it was looked at, could not be, or the API server takes its time. Never rejects.
   */
  async start(listener: ConfigMapListener): Promise<void> {
    this.#listener = listener
    const hasLooked = Promise.withResolvers<void>()
    const stopWaiting = this.#options.clock.after(overrideStartWaitMs, hasLooked.resolve)
    this.#running = this.#run(hasLooked.resolve)
    await hasLooked.promise
    stopWaiting()
  }

  /**
   * Exchanges the text by one conditional write.
   * @param edit is called with the text that is there, again where somebody else was quicker; null: it stays as it is.
   * @throws ApiError
   */
  async change(edit: (text: string | null) => string | null): Promise<void> {
    const done = this.#queue.then(async () => this.#change(edit))
    this.#queue = done.catch(() => {})
    return done
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#reading.close()
    this.#writing.close()
    this.#sleeper.close()
    await Promise.all([this.#running, this.#queue])
  }

  async #run(onLooked: () => void): Promise<void> {
    while (!this.#isClosed) {
      let error: ApiError | null = null
      try {
        await this.#follow(onLooked)
      } catch (thrown) {
        error = asApiError(thrown)
      }
      if (this.#isClosed) break
      // One watch that breaks is nothing: the next list tells what it would have told.
      if (error !== null && (!this.#isFollowing || this.#backOff.failures > 0)) {
        this.#listener?.onUnreadable(error.message)
      }
      onLooked()
      if (error === null && this.#isProven) continue
      await this.#sleeper.sleep(this.#backOff.nextMs(error))
    }
    onLooked()
  }

  /** One list and one watch from there; ends when the watch does. */
  async #follow(onLooked: () => void): Promise<void> {
    this.#isFollowing = false
    this.#isProven = false
    const found = await this.#list(this.#reading)
    this.#noteHistory(found.listVersion)
    this.#take(found.text, found.resourceVersion ?? found.listVersion)
    onLooked()
    const { clock, random } = this.#options
    const seconds = watchMinSeconds + Math.floor(random() * (watchMaxSeconds - watchMinSeconds + 1))
    const path = await this.#path()
    const { body, cut } = await this.#reading.open(path, {
      ...this.#selector,
      watch: 'true',
      resourceVersion: found.listVersion,
      timeoutSeconds: String(seconds)
    })
    this.#isFollowing = true
    this.#listener?.onUnreadable(null)
    const stopProving = clock.after(watchProvenMs, () => {
      this.#isProven = true
      this.#backOff.reset()
    })
    const stopWaiting = clock.after(seconds * 1000 + watchGraceMs, () =>
      cut(new ApiError('timeout', 'a watch that does not end'))
    )
    try {
      const splitter = new LineSplitter(apiObjectOctets)
      for await (const chunk of body) for (const line of splitter.push(chunk)) this.#takeEvent(line)
    } finally {
      stopProving()
      stopWaiting()
    }
  }

  /**
   * A list may have been begun before our own last write; a second one that is still behind it means that the storage
   * was emptied or rolled back, and what it holds counts.
   */
  #noteHistory(listVersion: string): void {
    const isBehind = compareResourceVersions(listVersion, this.#resourceVersion) < 0
    if (isBehind && this.#wasBehind) this.#resourceVersion = ''
    this.#wasBehind = isBehind
  }

  #takeEvent(line: string): void {
    let event: unknown
    try {
      event = JSON.parse(line)
    } catch {
      throw new ApiError('format', 'a watch event that is not JSON')
    }
    const { type, object } = fieldsOf(event)
    if (type === 'ERROR') throw errorOfStatus(object, 0)
    const { name, resourceVersion } = fieldsOf(fieldsOf(object)['metadata'])
    if (name !== this.#options.name || typeof resourceVersion !== 'string') return
    if (type === 'ADDED' || type === 'MODIFIED') this.#take(this.#textOf(object), resourceVersion)
    else if (type === 'DELETED') this.#take(null, resourceVersion)
  }

  #take(text: string | null, resourceVersion: string): void {
    if (this.#isClosed || compareResourceVersions(resourceVersion, this.#resourceVersion) < 0) return
    this.#resourceVersion = resourceVersion
    this.#listener?.onText(text)
  }

  async #change(edit: (text: string | null) => string | null): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      const found = await this.#list(this.#writing)
      const text = edit(found.text)
      if (text === null) return
      try {
        const written = await this.#write(text, found.resourceVersion)
        const { resourceVersion } = fieldsOf(fieldsOf(written)['metadata'])
        if (typeof resourceVersion === 'string') this.#take(text, resourceVersion)
        return
      } catch (thrown) {
        const error = asApiError(thrown)
        // Somebody else wrote, made or deleted it between our look and our write.
        const isOvertaken = error.status === 409 || (error.status === 404 && found.resourceVersion !== null)
        if (!isOvertaken || attempt >= overrideWriteAttempts) throw error
      }
    }
  }

  async #write(text: string, resourceVersion: string | null): Promise<unknown> {
    const { name, key } = this.#options
    const path = await this.#path()
    const data = { [key]: text }
    if (resourceVersion !== null) {
      return this.#writing.write('PATCH', `${path}/${name}`, { metadata: { resourceVersion }, data })
    }
    return this.#writing.write('POST', path, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data })
  }

  async #list(connection: ApiConnection): Promise<Found> {
    const list = fieldsOf(await connection.document(await this.#path(), this.#selector))
    const listVersion = fieldsOf(list['metadata'])['resourceVersion']
    if (typeof listVersion !== 'string') throw new ApiError('format', 'a list without a resourceVersion')
    const items: readonly unknown[] = Array.isArray(list['items']) ? list['items'] : []
    const object = items.find((item) => fieldsOf(fieldsOf(item)['metadata'])['name'] === this.#options.name)
    if (object === undefined) return { text: null, resourceVersion: null, listVersion }
    const { resourceVersion } = fieldsOf(fieldsOf(object)['metadata'])
    return { text: this.#textOf(object), resourceVersion: String(resourceVersion), listVersion }
  }

  #textOf(object: unknown): string | null {
    const text = fieldsOf(fieldsOf(object)['data'])[this.#options.key]
    return typeof text === 'string' ? text : null
  }

  async #path(): Promise<string> {
    const namespace = this.#options.namespace ?? (await this.#options.access.target()).namespace
    return `/api/v1/namespaces/${namespace}/configmaps`
  }

  get #selector(): Readonly<Record<string, string>> {
    return { fieldSelector: `metadata.name=${this.#options.name}` }
  }
}

const fieldsOf = (value: unknown): Record<string, unknown> =>
  typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
