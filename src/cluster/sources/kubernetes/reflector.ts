/**
 * Keeps up with one resource of the API server for ever: lists it, watches it from there, and begins again where that
 * breaks. It ends only by close().
 *
 *     locate -> list -> watch (20 to 25 s) -> watch -> ...
 *
 * Every watch is asked to end soon, so one that does not is known to be dead: a quiet API server sends nothing for
 * minutes, and a connection can die without a sign. And before every further watch the API server is asked how far its
 * history reaches: if that is less than we know, its storage was emptied or rolled back, and a watch would stay silent.
 */
import type { Clock } from '../../../base/clock.ts'
import {
  apiBackoffMaxMs,
  apiDiscoveryMaxMs,
  apiDiscoveryMinMs,
  watchGraceMs,
  watchMaxSeconds,
  watchMinSeconds
} from '../../../base/limits.ts'
import type { Logger } from '../../../base/log.ts'
import type { ObjectKind } from '../../object-event.ts'
import type { ApiAccess } from './api-access.ts'
import { ApiError, asApiError } from './api-error.ts'
import { ApiConnection } from './api-requests.ts'
import type { Query } from './api-requests.ts'
import { BackOff } from './back-off.ts'
import type { Resource } from './discovery.ts'
import { EventQueue } from './event-queue.ts'
import type { OnEvents } from './event-queue.ts'
import { HeldObjects } from './held-objects.ts'
import { accepted, readList, readListVersion } from './list-reader.ts'
import type { ListRequest } from './list-reader.ts'
import { LossLog } from './loss-log.ts'
import { compareResourceVersions } from './resource-version.ts'
import type { MessageType } from './protobuf/message.ts'
import { Sleeper } from './sleeper.ts'
import type { Turns } from './turns.ts'
import { WatchPace } from './watch-pace.ts'
import { readWatch } from './watch-reader.ts'

export type ReflectorState = 'listing' | 'watching' | 'waiting'

export type ResourceStatus = Readonly<{
  name: string
  kind: ObjectKind
  /** null: this cluster has no such resource, or nothing is known yet. */
  path: string | null
  state: ReflectorState
  /** Whether it has been listed whole once, or is known to be missing. */
  hasSynced: boolean
  objects: number
  lastSignOfLifeAgeMs: number | null
  resourceVersion: string
  lists: number
  watches: number
  /** Events told. */
  events: number
  /** Requests that failed, watches that did not end as they should, and answers that could not be read. */
  errors: number
  /** Of these, those that could not be read. */
  unreadable: number
  /** Events that the listener threw at. */
  handlerErrors: number
  audits: number
  /** Objects that an audit found to differ. */
  drift: number
  lastError: Readonly<{ text: string; ageMs: number }> | null
}>

export type ReflectorOptions = Readonly<{
  resource: Resource
  access: ApiAccess
  clock: Clock
  log: Logger
  random: () => number
  turns: Turns
  onEvents: OnEvents
  /** Called once, when the first list has been told whole. */
  onSynced: () => void
  /** Called when a watch broke, and goes on from where it was: what is known should be compared. */
  onDoubt: () => void
  /** Called after each list, with the time at which it was begun. */
  onListed?: (beganAtMs: number) => void
  /** Called when a request failed, or a watch broke. */
  onInterrupted?: () => void
}>

export class Reflector {
  readonly resource: Resource
  readonly held: HeldObjects
  /** Counts since the start; never reset. `drift` is counted by the audit, and `events` are those told. */
  readonly stats = { lists: 0, watches: 0, errors: 0, unreadable: 0, drift: 0, audits: 0 }
  readonly #options: ReflectorOptions
  readonly #connection: ApiConnection
  readonly #queue: EventQueue
  readonly #backOff: BackOff
  readonly #lossLog: LossLog
  readonly #sleeper: Sleeper
  readonly #pace: WatchPace
  #state: ReflectorState = 'waiting'
  #path: string | null = null
  #resourceVersion = ''
  #mustList = true
  #isListFresh = false
  /** How objects are read in protobuf; null once that failed, and where it cannot be. */
  #message: MessageType | null
  #hasSynced = false
  #lastSignOfLifeMs: number | null = null
  #lastError: Readonly<{ text: string; atMs: number }> | null = null
  #running: Promise<void> | null = null
  #isClosed = false

  constructor(options: ReflectorOptions) {
    const { resource, access, clock, log, onEvents } = options
    this.#options = options
    this.resource = resource
    this.#message = resource.message
    this.held = new HeldObjects(resource.kind)
    this.#connection = new ApiConnection(access, clock)
    this.#queue = new EventQueue(resource.kind, clock, log, onEvents)
    this.#backOff = new BackOff(options.random)
    this.#lossLog = new LossLog(resource.name, clock, log, () => this.#backOff.reset())
    this.#sleeper = new Sleeper(clock)
    this.#pace = new WatchPace(clock)
  }

  get state(): ReflectorState {
    return this.#state
  }

  get hasSynced(): boolean {
    return this.#hasSynced
  }

  /** null: this cluster has no such resource, or nothing is known yet. */
  get path(): string | null {
    return this.#path
  }

  start(): void {
    this.#running ??= this.#run()
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#queue.close()
    this.#lossLog.close()
    this.#connection.close()
    this.#sleeper.close()
    await this.#running
  }

  /** Lists everything again, at once where a watch is running. */
  relist(why: string): void {
    this.#mustList = true
    if (this.#state === 'watching') this.#connection.cut(new ApiError('cut', why))
  }

  /** Null before the first sign of life. */
  signOfLifeAgeMs(): number | null {
    return this.#lastSignOfLifeMs === null ? null : this.#options.clock.nowMs() - this.#lastSignOfLifeMs
  }

  status(): ResourceStatus {
    const nowMs = this.#options.clock.nowMs()
    return {
      name: this.resource.name,
      kind: this.resource.kind,
      path: this.#path,
      state: this.#state,
      hasSynced: this.#hasSynced,
      objects: this.held.size,
      lastSignOfLifeAgeMs: this.signOfLifeAgeMs(),
      resourceVersion: this.#resourceVersion,
      ...this.stats,
      events: this.#queue.stats.events,
      handlerErrors: this.#queue.stats.handlerErrors,
      lastError: this.#lastError === null ? null : { text: this.#lastError.text, ageMs: nowMs - this.#lastError.atMs }
    }
  }

  /** Never rejects, whatever bug there is. */
  async #run(): Promise<void> {
    while (!this.#isClosed) {
      try {
        await this.#advance().catch((error: unknown) => this.#recover(error))
      } catch (error) {
        this.#options.log.error({ err: error, resource: this.resource.name }, 'a bug: tried again')
        await this.#sleeper.sleep(apiBackoffMaxMs)
      }
    }
  }

  async #advance(): Promise<void> {
    if (this.#mustList) await this.#list()
    else if (this.#path === null) await this.#waitForResource()
    else await this.#watch()
  }

  async #list(): Promise<void> {
    this.#state = 'listing'
    const { resource, clock, onSynced, onListed } = this.#options
    const beganAtMs = clock.nowMs()
    const path = await resource.locate(this.#connection)
    // A path that is fixed says nothing of the API server: what the list sends does.
    if (path === null) {
      this.#signOfLife()
      this.held.beginList()
    } else {
      this.#queue.arrived()
      this.#resourceVersion = await readList(this.#listRequest(path))
    }
    this.#noteMove(path)
    this.#path = path
    await this.#dropVanished()
    this.stats.lists++
    this.#mustList = false
    this.#isListFresh = true
    if (this.#isClosed) return
    onListed?.(beganAtMs)
    if (this.#hasSynced) return
    this.#hasSynced = true
    onSynced()
  }

  /** Says where a resource that may be missing has come or gone, or has another version. */
  #noteMove(path: string | null): void {
    if (!this.#hasSynced || path === this.#path) return
    const { log, resource } = this.#options
    if (path === null) log.info({ resource: resource.name }, 'the API server no longer has this resource')
    else log.info({ resource: resource.name, path }, 'the API server has this resource now')
  }

  async #dropVanished(): Promise<void> {
    const { turns } = this.#options
    this.#queue.arrived()
    for (const key of this.held.vanished()) {
      this.#queue.take(null, (events) => this.held.drop(key, events))
      if (turns.hasRoom()) continue
      this.#queue.flush()
      await turns.next()
    }
    this.#queue.flush()
  }

  /** The resource may come: it is looked for again and again, which is also the sign of life while it is missing. */
  async #waitForResource(): Promise<void> {
    this.#state = 'waiting'
    this.#resourceVersion = ''
    this.#mustList = true
    this.#lossLog.proven()
    const { random } = this.#options
    await this.#sleeper.sleep(apiDiscoveryMinMs + random() * (apiDiscoveryMaxMs - apiDiscoveryMinMs))
  }

  async #watch(): Promise<void> {
    if (!this.#isListFresh) await this.#checkHistory()
    this.#isListFresh = false
    const { clock, random, turns } = this.#options
    const seconds = watchMinSeconds + Math.floor(random() * (watchMaxSeconds - watchMinSeconds + 1))
    const query = {
      ...this.#selector,
      watch: 'true',
      allowWatchBookmarks: 'true',
      resourceVersion: this.#resourceVersion,
      timeoutSeconds: String(seconds)
    }
    const { body, contentType, cut } = await this.#connection.open(this.#path!, query, accepted(this.#message))
    this.#signOfLife()
    this.stats.watches++
    this.#state = 'watching'
    this.#lossLog.began()
    const startedAtMs = clock.nowMs()
    // It may have been asked for while the watch was being opened.
    if (this.#mustList) cut(new ApiError('cut', 'a list was asked for'))
    const limitMs = seconds * 1000 + watchGraceMs
    const stopWaiting = clock.after(limitMs, () =>
      cut(new ApiError('timeout', `a watch that does not end, for ${limitMs} ms`))
    )
    try {
      await readWatch({
        body,
        contentType,
        message: this.#message,
        held: this.held,
        queue: this.#queue,
        turns,
        pace: this.#pace,
        sleep: (ms) => this.#sleeper.sleep(ms),
        resourceVersion: this.#resourceVersion,
        onResourceVersion: (resourceVersion) => (this.#resourceVersion = resourceVersion),
        // Too many requests will pass; anything else may come again at the same place.
        onErrorEvent: ({ status }) => (this.#mustList ||= status !== 429),
        onSignOfLife: () => this.#signOfLife()
      })
    } finally {
      stopWaiting()
      this.#lossLog.ended()
      this.#state = 'waiting'
    }
    if (clock.nowMs() - startedAtMs >= (seconds - 1) * 1000) return
    // Ended politely but too early: perhaps the API server is about to go.
    this.#lossLog.lost({ message: 'the watch ended early' })
    this.#options.onDoubt()
    this.#options.onInterrupted?.()
    await this.#sleeper.sleep(this.#backOff.nextMs(null))
  }

  /** Whether the API server still knows a state as late as ours; if not, everything is listed again. */
  async #checkHistory(): Promise<void> {
    const resourceVersion = await readListVersion(this.#listRequest(this.#path!))
    if (compareResourceVersions(resourceVersion, this.#resourceVersion) >= 0) return
    throw new ApiError('history', `the API server is at ${resourceVersion}, before ${this.#resourceVersion}`)
  }

  async #recover(thrown: unknown): Promise<void> {
    if (this.#isClosed) return
    this.#state = 'waiting'
    const error = asApiError(thrown)
    if (error.kind === 'cut') return
    this.stats.errors++
    this.#lastError = { text: error.message, atMs: this.#options.clock.nowMs() }
    const isBug = !(thrown instanceof ApiError)
    if (isBug) this.#options.log.error({ err: thrown, resource: this.resource.name }, 'a bug: the list begins anew')
    if (error.kind === 'format') this.#noteUnreadable(error)
    if (error.kind === 'history') {
      const { name } = this.resource
      this.#options.log.warn(
        { resource: name, reason: error.message },
        'the API server went back in time: listed again'
      )
    }
    if (isBug || needsList(error, this.resource)) this.#mustList = true
    if (!this.#mustList) this.#options.onDoubt()
    this.#lossLog.lost(error)
    this.#options.onInterrupted?.()
    await this.#sleeper.sleep(this.#backOff.nextMs(error))
  }

  #noteUnreadable(error: ApiError): void {
    this.stats.unreadable++
    // What is sent may be right and our reading wrong: JSON says the same in another way.
    this.#message = null
    if (this.stats.unreadable > 1) return
    this.#options.log.warn(
      { resource: this.resource.name, reason: error.message },
      'the API server cannot be understood'
    )
  }

  #listRequest(path: string): ListRequest {
    const { clock, turns } = this.#options
    return {
      connection: this.#connection,
      clock,
      turns,
      path,
      query: this.#selector,
      message: this.#message,
      onBegin: () => this.held.beginList(),
      onItem: (raw) => this.#queue.take(raw, (events) => this.held.put(raw, events)),
      onSlice: () => this.#queue.flush(),
      onSignOfLife: () => this.#signOfLife()
    }
  }

  get #selector(): Query {
    const { fieldSelector } = this.resource
    return fieldSelector === null ? {} : { fieldSelector }
  }

  #signOfLife(): void {
    this.#lastSignOfLifeMs = this.#options.clock.nowMs()
  }
}

/** Whether a failed request cannot be repeated from where we are. */
function needsList(error: ApiError, { isOptional }: Resource): boolean {
  if (error.kind === 'format' || error.kind === 'history' || error.isExpired || error.isFromTheFuture) return true
  if (error.status === 404) return isOptional
  return error.status >= 400 && error.status < 500 && ![401, 403, 429].includes(error.status)
}
