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
import type { LeasePattern } from '../../lease-objects.ts'
import { SourceClusters } from '../../source-clusters.ts'
import type { SourceClusterStatus } from '../../source-clusters.ts'
import { endpointSlices, leasesOf, namespaces, pods, serviceImports, services } from './discovery.ts'
import type { OnEvents } from './event-queue.ts'
import { Reflector } from './reflector.ts'
import type { ReflectorOptions, ResourceStatus } from './reflector.ts'
import { Turns } from './turns.ts'

export type KubernetesSourceOptions = Readonly<{
  access: ApiAccess
  /** Whether Pods are needed: only for `pods: verified`. */
  withPods: boolean
  /** Leases of source clusters, and what follows from them; null, the default: they are not looked at. */
  leases?: LeaseOptions | null
  clock: Clock
  log: Logger
  /** From 0 to below 1; for what must not happen in step with others. */
  random: () => number
  /** Gets every difference, in the order of each resource, about `objectEventsPerBatch` at a time at most. */
  onEvents: OnEvents
  /** Called once, when every resource has been listed whole. */
  onSynced: () => void
}>

export type LeaseOptions = Readonly<{
  pattern: LeasePattern
  /** A cluster leaves the answers or comes back: gives the Services that have to be computed again. */
  onChange: (cluster: string, isLost: boolean) => readonly string[]
  /** Gets all of these, a few at a time. */
  rewrite: (services: readonly string[]) => void
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
  /** Those that have a Lease. */
  sourceClusters: readonly SourceClusterStatus[]
  /** How often one of them was lost, and came back. */
  sourceClusterChanges: SourceClusters['stats']
}>

/** Services of a source cluster that are computed again in one go. */
const servicesPerRewrite = 20

export class KubernetesSource {
  readonly #reflectors: readonly Reflector[]
  readonly #audit: Audit
  readonly #turns: Turns
  readonly #log: Logger
  readonly #sourceClusters: SourceClusters | null
  #rewriting: Promise<unknown> = Promise.resolve()
  #isClosed = false
  #hasSynced = false
  #isStarted = false

  constructor(options: KubernetesSourceOptions) {
    const { access, withPods, leases = null, clock, log, random, onEvents, onSynced } = options
    this.#turns = new Turns(clock)
    this.#log = log
    const leaseResource = leases === null ? null : leasesOf(leases.pattern)
    const resources = [services, endpointSlices, namespaces, serviceImports, ...(withPods ? [pods] : [])]
    if (leaseResource !== null) resources.push(leaseResource)
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
        onDoubt: () => this.#audit.doubt(reflector),
        ...(resource === leaseResource ? this.#leaseListeners(onEvents) : {})
      })
      return reflector
    })
    this.#sourceClusters = leases === null ? null : this.#followLeases(leases, clock, log)
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
    this.#isClosed = true
    this.#sourceClusters?.close()
    await Promise.all([...this.#reflectors.map((reflector) => reflector.close()), this.#audit.close()])
    await this.#rewriting
  }

  /**
   * Of the resource that was heard of longest ago, null while one never was. Asked with every answer, so it allocates
   * nothing.
   */
  signOfLifeAgeMs(): number | null {
    let oldestAgeMs = 0
    for (const reflector of this.#reflectors) {
      const ageMs = reflector.signOfLifeAgeMs()
      if (ageMs === null) return null
      if (ageMs > oldestAgeMs) oldestAgeMs = ageMs
    }
    return oldestAgeMs
  }

  status(): KubernetesSourceStatus {
    const resources = this.#reflectors.map((reflector) => reflector.status())
    return {
      hasSynced: this.#hasSynced,
      lastSignOfLifeAgeMs: this.signOfLifeAgeMs(),
      audits: { ...this.#audit.stats },
      longestTurnMs: this.#turns.stats.longestMs,
      resources,
      sourceClusters: this.#sourceClusters?.status() ?? [],
      sourceClusterChanges: { ...(this.#sourceClusters?.stats ?? { lossesTotal: 0, returnsTotal: 0 }) }
    }
  }

  /**
   * Calls this once in each turn of the event loop, as long as it says that something is left. Never rejects.
   * @returns false: the source was closed before the end.
   */
  async inTurns(step: () => boolean): Promise<boolean> {
    for (let isLeft = true; isLeft && !this.#isClosed;) {
      try {
        isLeft = step()
      } catch (error) {
        this.#log.error({ err: error }, 'a bug: a Service could not be computed')
      }
      await this.#turns.next()
    }
    return !this.#isClosed
  }

  #leaseListeners(onEvents: OnEvents): Pick<ReflectorOptions, 'onEvents' | 'onListed' | 'onInterrupted'> {
    return {
      onEvents: (events, originAtMs) => {
        onEvents(events, originAtMs)
        this.#sourceClusters!.take(events)
      },
      onListed: (beganAtMs) => this.#sourceClusters!.listed(beganAtMs),
      onInterrupted: () => this.#sourceClusters!.interrupted()
    }
  }

  #followLeases({ pattern, onChange, rewrite }: LeaseOptions, clock: Clock, log: Logger): SourceClusters {
    const reflector = this.#reflectors.at(-1)!
    return new SourceClusters({
      pattern,
      clock,
      log,
      askAgain: (why) => reflector.relist(why),
      onChange: (cluster, isLost) => {
        // A cluster may have thousands of Services, and nobody shall wait for all of them.
        const rest = [...onChange(cluster, isLost)]
        this.#rewriting = this.#rewriting.then(async () =>
          this.inTurns(() => {
            rewrite(rest.splice(-servicesPerRewrite))
            return rest.length > 0
          })
        )
      }
    })
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
