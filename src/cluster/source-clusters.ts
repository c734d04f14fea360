/**
 * Which source clusters of ServiceImports are alive: each renews a Lease in this cluster, and one that no longer does
 * is left out of the answers until it does again. KEP-1645, "EndpointSlice TTL".
 *
 * A Lease counts from the moment at which we saw `renewTime` change, by our own monotonic clock: the clocks of the
 * clusters need not agree. Silence alone proves nothing, since the API server may be away, and then nobody can renew:
 * a Lease that runs out is asked for once more, and only an answer without a delay lets it go.
 */
import type { Cancel, Clock } from '../base/clock.ts'
import { leaseAnswerMaxMs, leaseClockSkewMs, leaseTimerMaxMs } from '../base/limits.ts'
import type { Logger } from '../base/log.ts'
import type { Lease, LeasePattern } from './lease-objects.ts'
import type { ObjectEvent } from './object-event.ts'

type Held = {
  cluster: string
  /** `namespace/name`. */
  name: string
  renewTime: string
  durationMs: number
  /** When we saw it renewed, or saw it first. */
  renewedAtMs: number
  /** Until when it holds. */
  untilMs: number
  isLost: boolean
}

export type SourceClusterStatus = Readonly<{
  cluster: string
  /** `namespace/name`. */
  lease: string
  isLost: boolean
  /** Since we saw the Lease renewed, or saw it first. */
  renewedAgoMs: number
  durationMs: number
}>

export type SourceClustersOptions = Readonly<{
  pattern: LeasePattern
  clock: Clock
  log: Logger
  /** Asks for all Leases; `listed` follows once they have been told. */
  askAgain: (why: string) => void
  /** A cluster leaves the answers, or comes back. */
  onChange: (cluster: string, isLost: boolean) => void
}>

export class SourceClusters {
  /** Counts since the start; never reset. */
  readonly stats = { lossesTotal: 0, returnsTotal: 0 }
  readonly #options: SourceClustersOptions
  /** By `namespace/name`. */
  readonly #leases = new Map<string, Held>()
  readonly #lost = new Set<string>()
  #timer: { cancel: Cancel; atMs: number } | null = null
  /** Since when an answer is waited for; null: it is not. */
  #askedAtMs: number | null = null
  #isClosed = false

  constructor(options: SourceClustersOptions) {
    this.#options = options
  }

  take(events: readonly ObjectEvent[]): void {
    for (const event of events) {
      if (event.type === 'put') {
        if (event.object.kind === 'Lease') this.#put(event.object)
        continue
      }
      // One that is deleted, or cannot be read, is as if it had never been.
      const { kind, namespace, name } = event.type === 'delete' ? event : event.identity
      if (kind === 'Lease') this.#remove(`${namespace}/${name}`)
    }
  }

  /** The API server does not answer, or the watch broke: what was renewed meanwhile is not known. */
  interrupted(): void {
    if (this.#isClosed || this.#askedAtMs !== null) return
    this.#askedAtMs = this.#options.clock.nowMs()
    this.#options.askAgain('the watch of Leases was interrupted')
  }

  /** All Leases have been told, by a list that was begun at this time. */
  listed(beganAtMs: number): void {
    const { clock, askAgain } = this.#options
    const askedAtMs = this.#askedAtMs
    if (askedAtMs === null || this.#isClosed) return
    if (beganAtMs < askedAtMs) {
      askAgain('a list of Leases was begun too early')
      return
    }
    this.#askedAtMs = null
    const nowMs = clock.nowMs()
    const wasAway = nowMs - askedAtMs > leaseAnswerMaxMs
    for (const lease of this.#leases.values()) {
      if (lease.isLost) continue
      // Nobody could renew while the API server was away: all get their whole time once more.
      if (wasAway) lease.untilMs = Math.max(lease.untilMs, nowMs + lease.durationMs)
      else if (lease.untilMs <= askedAtMs) this.#lose(lease)
    }
    this.#arm()
  }

  status(): SourceClusterStatus[] {
    const nowMs = this.#options.clock.nowMs()
    return [...this.#leases.values()].map(({ cluster, name, renewedAtMs, durationMs }) => ({
      cluster,
      lease: name,
      isLost: this.#lost.has(cluster),
      renewedAgoMs: nowMs - renewedAtMs,
      durationMs
    }))
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#timer = null
  }

  #put({ namespace, name, renewTime, durationSeconds }: Lease): void {
    const { clock, pattern } = this.#options
    const cluster = pattern.clusterOf({ namespace, name })
    if (cluster === null) return
    const nowMs = clock.nowMs()
    const durationMs = durationSeconds * 1000
    const key = `${namespace}/${name}`
    let lease = this.#leases.get(key)
    if (lease === undefined) {
      lease = {
        cluster,
        name: key,
        renewTime,
        durationMs,
        renewedAtMs: nowMs,
        untilMs: nowMs + durationMs,
        isLost: false
      }
      this.#leases.set(key, lease)
      // Its time begins now, unless it ran out so long ago that no difference of clocks explains it.
      lease.isLost = clock.epochMs() - Date.parse(renewTime) > durationMs + leaseClockSkewMs
      this.#judge(cluster)
    } else if (lease.renewTime === renewTime) {
      lease.untilMs += durationMs - lease.durationMs
      lease.durationMs = durationMs
    } else {
      Object.assign(lease, { renewTime, durationMs, renewedAtMs: nowMs, untilMs: nowMs + durationMs })
      if (lease.isLost) {
        lease.isLost = false
        this.#judge(cluster)
      }
    }
    // Renewals are frequent, and mostly there is a timer that fires early enough.
    if (this.#timer === null || this.#timer.atMs > lease.untilMs) this.#arm()
  }

  #remove(key: string): void {
    const lease = this.#leases.get(key)
    if (lease === undefined) return
    this.#leases.delete(key)
    this.#judge(lease.cluster)
  }

  #lose(lease: Held): void {
    lease.isLost = true
    this.#judge(lease.cluster)
  }

  /** A cluster is lost when it has Leases and all of them ran out. */
  #judge(cluster: string): void {
    const leases = [...this.#leases.values()].filter((lease) => lease.cluster === cluster)
    const isLost = leases.length > 0 && leases.every((lease) => lease.isLost)
    if (isLost === this.#lost.has(cluster)) return
    const { log, onChange } = this.#options
    if (isLost) {
      this.#lost.add(cluster)
      this.stats.lossesTotal++
      const [{ name, renewTime, durationMs }] = leases as [Held]
      log.warn(
        { cluster, lease: name, renewTime, durationSeconds: durationMs / 1000 },
        'a source cluster no longer renews its Lease: its endpoints are left out'
      )
    } else {
      this.#lost.delete(cluster)
      this.stats.returnsTotal++
      log.info({ cluster }, 'a source cluster is back: its endpoints are given out again')
    }
    onChange(cluster, isLost)
  }

  /** Sees to it that we wake up when the next Lease runs out. */
  #arm(): void {
    // While an answer is waited for, `listed` does it.
    if (this.#isClosed || this.#askedAtMs !== null) return
    const { clock } = this.#options
    const untilMs = Math.min(...[...this.#leases.values()].map((lease) => (lease.isLost ? Infinity : lease.untilMs)))
    this.#timer?.cancel()
    this.#timer = null
    if (untilMs === Infinity) return
    const nowMs = clock.nowMs()
    const delayMs = Math.min(leaseTimerMaxMs, Math.max(0, untilMs - nowMs))
    this.#timer = { atMs: nowMs + delayMs, cancel: clock.after(delayMs, () => this.#wake()) }
  }

  #wake(): void {
    this.#timer = null
    const { clock, askAgain } = this.#options
    const nowMs = clock.nowMs()
    if (![...this.#leases.values()].some(({ isLost, untilMs }) => !isLost && untilMs <= nowMs)) {
      this.#arm()
    } else if (this.#askedAtMs === null) {
      this.#askedAtMs = nowMs
      askAgain('a Lease ran out')
    }
  }
}
