/**
 * The source `kubernetes`: the objects of an API server, as events, kept up by list and watch.
 *
 * It never gives up, and it never goes silently stale: `status` tells for each resource when it last gave a sign of
 * life, and an audit compares everything that is known with what the API server holds.
 */
import type { Clock } from '../../../base/clock.ts'
import type { Logger } from '../../../base/log.ts'
import type { ApiAccess } from './api-access.ts'
import { Audit } from './audit.ts'
import { endpointSlices, namespaces, pods, serviceImports, services } from './discovery.ts'
import type { OnEvents } from './event-queue.ts'
import { Reflector } from './reflector.ts'
import type { ResourceStatus } from './reflector.ts'
import { Turns } from './turns.ts'

export type KubernetesSourceOptions = Readonly<{
  access: ApiAccess
  /** Whether Pods are needed: only for `pods: verified`. */
  withPods: boolean
  clock: Clock
  log: Logger
  /** From 0 to below 1; for what must not happen in step with others. */
  random: () => number
  /** Gets every difference, in the order of each resource, at most `objectEventsPerBatch` at a time. */
  onEvents: OnEvents
  /** Called once, when every resource has been listed whole. */
  onSynced: () => void
}>

export type KubernetesSourceStatus = Readonly<{
  hasSynced: boolean
  /** Age of the last sign of life of the resource where that is oldest; null while one has given none. */
  lastSignOfLifeAgeMs: number | null
  /** Audits of all resources together. */
  audits: Readonly<{ finished: number; abandoned: number }>
  /** Longest time in milliseconds that lists and watches took from the event loop in one go. */
  longestTurnMs: number
  resources: readonly ResourceStatus[]
}>

export class KubernetesSource {
  readonly #reflectors: readonly Reflector[]
  readonly #audit: Audit
  readonly #turns: Turns
  #hasSynced = false
  #isStarted = false

  constructor(options: KubernetesSourceOptions) {
    const { access, withPods, clock, log, random, onEvents, onSynced } = options
    this.#turns = new Turns(clock)
    const resources = [services, endpointSlices, namespaces, serviceImports, ...(withPods ? [pods] : [])]
    this.#reflectors = resources.map((resource): Reflector => {
      const reflector = new Reflector({
        resource,
        access,
        clock,
        log,
        random,
        turns: this.#turns,
        onEvents,
        onSynced: () => this.#noteSynced(log, onSynced),
        onDoubt: () => this.#audit.doubt(reflector)
      })
      return reflector
    })
    this.#audit = new Audit({ reflectors: this.#reflectors, access, clock, log, random, turns: this.#turns })
  }

  /** Begins, and returns at once. Whatever fails is tried again for ever. */
  start(): void {
    if (this.#isStarted) return
    this.#isStarted = true
    for (const reflector of this.#reflectors) reflector.start()
    this.#audit.start()
  }

  /** Ends all connections and timers; nothing is told any more from the moment of this call. */
  async close(): Promise<void> {
    await Promise.all([...this.#reflectors.map((reflector) => reflector.close()), this.#audit.close()])
  }

  status(): KubernetesSourceStatus {
    const resources = this.#reflectors.map((reflector) => reflector.status())
    let lastSignOfLifeAgeMs: number | null = 0
    for (const { lastSignOfLifeAgeMs: ageMs } of resources) {
      lastSignOfLifeAgeMs = ageMs === null || lastSignOfLifeAgeMs === null ? null : Math.max(ageMs, lastSignOfLifeAgeMs)
    }
    return {
      hasSynced: this.#hasSynced,
      lastSignOfLifeAgeMs,
      audits: { ...this.#audit.stats },
      longestTurnMs: this.#turns.stats.longestMs,
      resources
    }
  }

  #noteSynced(log: Logger, onSynced: () => void): void {
    if (this.#hasSynced || !this.#reflectors.every(({ hasSynced }) => hasSynced)) return
    this.#hasSynced = true
    try {
      onSynced()
    } catch (error) {
      log.error({ err: error }, 'a bug: nobody took the news that all objects are known')
    }
  }
}
