/**
 * Compares what we know with what the API server holds, one resource after the other, all the time: the proof that
 * watches tell everything, and the repair where they do not.
 *
 * The list runs on a connection of its own while the watch goes on, and asks for the metadata alone.
 */
import type { Cancel, Clock } from '../../../base/clock.ts'
import { auditCatchUpMs, auditEveryMs, auditSoonMs } from '../../../base/limits.ts'
import type { Logger } from '../../../base/log.ts'
import type { ApiAccess } from './api-access.ts'
import { asApiError } from './api-error.ts'
import { ApiConnection } from './api-requests.ts'
import { keyOf, metadataOf } from './held-objects.ts'
import type { Version } from './held-objects.ts'
import { readList } from './list-reader.ts'
import { metadataMessage } from './protobuf/kubernetes-messages.ts'
import type { Reflector } from './reflector.ts'
import { Sleeper } from './sleeper.ts'
import type { Turns } from './turns.ts'

const metadataOnly = ';as=PartialObjectMetadataList;g=meta.k8s.io;v=v1'
/** Differing objects that are named in the log. */
const namedObjects = 5

export type AuditOptions = Readonly<{
  reflectors: readonly Reflector[]
  access: ApiAccess
  clock: Clock
  log: Logger
  random: () => number
  turns: Turns
}>

export class Audit {
  /** Audits that could not be finished: the API server failed, or the watch was not there. */
  readonly stats = { finished: 0, abandoned: 0 }
  readonly #options: AuditOptions
  readonly #sleeper: Sleeper
  #connection: ApiConnection | null = null
  readonly #doubtful = new Set<Reflector>()
  #cancelNext: Cancel = () => {}
  #cancelSoon: Cancel | null = null
  #running: Promise<void> = Promise.resolve()
  #next = 0
  #isClosed = false

  constructor(options: AuditOptions) {
    this.#options = options
    this.#sleeper = new Sleeper(options.clock)
  }

  /** Each resource's turn comes once in `auditEveryMs`, and never two at a time. */
  start(): void {
    const { clock, random, reflectors } = this.#options
    const delayMs = (auditEveryMs / reflectors.length) * (0.9 + random() * 0.2)
    this.#cancelNext = clock.after(delayMs, () => {
      this.#queue(reflectors[this.#next++ % reflectors.length]!)
      this.start()
    })
  }

  /** Says that a watch of this resource broke: it is compared soon, and again until that has succeeded. */
  doubt(reflector: Reflector): void {
    this.#doubtful.add(reflector)
    if (this.#isClosed) return
    this.#cancelSoon ??= this.#options.clock.after(auditSoonMs, () => {
      this.#cancelSoon = null
      for (const doubtful of this.#doubtful) this.#queue(doubtful)
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelNext()
    this.#cancelSoon?.()
    this.#sleeper.close()
    this.#connection?.close()
    await this.#running
  }

  #queue(reflector: Reflector): void {
    this.#running = this.#running.then(async () => {
      if (this.#isClosed) return
      this.#doubtful.delete(reflector)
      const { finished } = this.stats
      await this.#audit(reflector)
      if (this.stats.finished === finished && reflector.path !== null) this.doubt(reflector)
    })
  }

  async #audit(reflector: Reflector): Promise<void> {
    const { path, held, stats } = reflector
    if (path === null) return
    const { lists } = stats
    if (reflector.state !== 'watching') {
      this.stats.abandoned++
      return
    }
    held.beginAudit()
    try {
      const listed = await this.#list(reflector, path)
      await this.#sleeper.sleep(auditCatchUpMs)
      if (this.#isClosed) return
      if (reflector.state !== 'watching' || stats.lists !== lists) this.stats.abandoned++
      else await this.#compare(reflector, listed)
    } catch (error) {
      this.stats.abandoned++
      const reason = asApiError(error).message
      if (!this.#isClosed) this.#options.log.info({ resource: reflector.resource.name, reason }, 'an audit is put off')
    } finally {
      held.endAudit()
      this.#connection?.close()
      this.#connection = null
    }
  }

  async #list({ resource }: Reflector, path: string): Promise<Map<string, Version>> {
    const { access, clock, turns } = this.#options
    const listed = new Map<string, Version>()
    this.#connection = new ApiConnection(access, clock)
    await readList({
      connection: this.#connection,
      clock,
      turns,
      path,
      query: resource.fieldSelector === null ? {} : { fieldSelector: resource.fieldSelector },
      message: metadataMessage,
      parameters: metadataOnly,
      onBegin: () => listed.clear(),
      onItem: (raw) => {
        const { namespace, name, uid, resourceVersion } = metadataOf(raw)
        const ownNamespace = resource.kind === 'Namespace' ? '' : namespace || 'default'
        listed.set(keyOf(ownNamespace, name), { uid, resourceVersion })
      },
      onSlice: () => {},
      onSignOfLife: () => {}
    })
    return listed
  }

  async #compare(reflector: Reflector, listed: ReadonlyMap<string, Version>): Promise<void> {
    const { turns, log } = this.#options
    const found = { ghost: 0, missed: 0, other: 0 }
    const names: string[] = []
    for (const difference of reflector.held.differences(listed)) {
      if (difference !== null) {
        found[difference.what]++
        if (names.length < namedObjects) names.push(difference.key)
      }
      if (!turns.hasRoom()) await turns.next()
    }
    this.stats.finished++
    reflector.stats.audits++
    const drift = found.ghost + found.missed + found.other
    if (drift === 0) return
    reflector.stats.drift += drift
    log.error(
      { resource: reflector.resource.name, ...found, names },
      'objects differ from the API server: listed again'
    )
    reflector.relist('an audit found a difference')
  }
}
