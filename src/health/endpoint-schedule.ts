/**
 * The health of addresses that are checked: one after the other, evenly spread, so that however many there are they
 * cost no more than a fixed number of checks a second. The check itself goes out through a function that is given.
 */
import type { Cancel, Clock } from '../base/clock.ts'
import {
  endpointCheckEveryMs,
  endpointCheckFall,
  endpointCheckGapMinMs,
  endpointCheckRise,
  endpointChecksInFlight,
  endpointCheckTimeoutMs
} from '../base/endpoint-limits.ts'
import { newHealthState, nextHealth, type HealthState } from './health-state.ts'

/** Something that is checked; `key` tells it from others. */
export type CheckedEndpoint = Readonly<{ key: string; address: string; check: string }>

export type EndpointTransition = Readonly<{ endpoint: CheckedEndpoint; isDown: boolean; reason: string }>

export type EndpointScheduleOptions = Readonly<{
  clock: Clock
  random: () => number
  /** Those that there are at the moment; asked for again once all have had their turn. */
  endpoints: () => readonly CheckedEndpoint[]
  /** Never rejects. */
  ask: (endpoint: CheckedEndpoint, timeoutMs: number) => Promise<Readonly<{ isSuccess: boolean; reason: string }>>
  onTransition: (transition: EndpointTransition) => void
}>

/** Where checks come to no verdict, or there is nothing to check, it is looked at again after this. */
const idleMs = endpointCheckEveryMs
const jitterShare = 0.3

export class EndpointSchedule {
  readonly stats = { checks: 0, failures: 0, transitions: 0 }
  readonly #options: EndpointScheduleOptions
  readonly #states = new Map<string, HealthState>()
  #round: CheckedEndpoint[] = []
  #gapMs = idleMs
  #inFlight = 0
  #cancel: Cancel = () => {}
  #isRunning = false

  constructor(options: EndpointScheduleOptions) {
    this.#options = options
  }

  /** @param down keys of what is taken to be down until it has been checked. */
  start(down: Iterable<string> = []): void {
    if (this.#isRunning) return
    this.#isRunning = true
    const nowMs = this.#options.clock.nowMs()
    for (const key of down) this.#states.set(key, { ...newHealthState(nowMs), health: 'down' })
    this.#next(0)
  }

  /** Ends checking, and forgets what was found. */
  stop(): void {
    this.#isRunning = false
    this.#cancel()
    this.#states.clear()
    this.#round = []
  }

  /** Keys of those that are down. */
  get down(): ReadonlySet<string> {
    return new Set([...this.#states].filter(([, { health }]) => health === 'down').map(([key]) => key))
  }

  #next(delayMs: number): void {
    this.#cancel = this.#options.clock.after(delayMs, () => this.#turn())
  }

  #turn(): void {
    if (this.#round.length === 0) this.#beginRound()
    const endpoint = this.#inFlight < endpointChecksInFlight ? this.#round.shift() : undefined
    if (endpoint !== undefined) void this.#check(endpoint)
    this.#next(this.#gapMs * (1 - jitterShare + 2 * jitterShare * this.#options.random()))
  }

  #beginRound(): void {
    this.#round = [...this.#options.endpoints()]
    const present = new Set(this.#round.map(({ key }) => key))
    for (const key of this.#states.keys()) if (!present.has(key)) this.#states.delete(key)
    this.#gapMs = Math.max(
      endpointCheckGapMinMs,
      this.#round.length === 0 ? idleMs : endpointCheckEveryMs / this.#round.length
    )
  }

  async #check(endpoint: CheckedEndpoint): Promise<void> {
    const { clock, ask, onTransition } = this.#options
    const startedAtMs = clock.nowMs()
    this.#inFlight++
    this.stats.checks++
    const { isSuccess, reason } = await ask(endpoint, endpointCheckTimeoutMs)
    this.#inFlight--
    if (!this.#isRunning) return
    if (!isSuccess) this.stats.failures++
    const before = this.#states.get(endpoint.key) ?? newHealthState(startedAtMs)
    const options = { fall: endpointCheckFall, rise: endpointCheckRise }
    const after = nextHealth(before, { from: 'probe', isSuccess, reason, startedAtMs }, options, clock.nowMs())
    this.#states.set(endpoint.key, after)
    const isDown = after.health === 'down'
    if (isDown === (before.health === 'down')) return
    this.stats.transitions++
    onTransition({ endpoint, isDown, reason })
  }
}
