/**
 * Probes the servers of one peer, before anybody needs them, and tells who is up and who is down.
 *
 * The question goes out through a function that is given, so over whatever transport the peer uses; what the outcome
 * means is decided here and in health-state.ts.
 */
import type { Cancel, Clock } from '../base/clock.ts'
import { probeBackoffMaxMs, probeExtraMinMs, probeRisingEveryMs } from '../base/limits.ts'
import { RCODE, rcodeToText } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import {
  newHealthState,
  nextHealth,
  type Health,
  type HealthOutcome,
  type HealthState,
  type HealthTransition
} from './health-state.ts'

export type ProbeOptions = Readonly<{
  everyMs: number
  timeoutMs: number
  /** Failures in a row that make a server `down`. */
  fall: number
  /** Successes in a row that make it `up` again. */
  rise: number
  /** What is asked; by default the SOA of the first suffix that is peered. */
  name: DomainName
  type: number
  /** A server whose data are older than this is not well; null: age does not matter. */
  maxAgeMs: number | null
}>

/** What came back, as far as health cares; a Peer's reply is one. */
export type ProbeReply =
  | Readonly<{
      kind: 'answer'
      sections: Readonly<{ rcode: number; answer: readonly unknown[] }>
      /** The authority section held the zone's SOA. */
      hasSoa: boolean
      /** Since its data were last proven right, in milliseconds; null where it does not tell. */
      dataAgeMs?: number | null
    }>
  | Readonly<{ kind: 'failed'; reason: string; rcode: number | null }>

export type ProbeQuestion = Readonly<{ name: DomainName; type: number }>

/** Asks one server (`host:port`), for at most `timeoutMs`. Never rejects. */
export type ProbeAsk = (server: string, question: ProbeQuestion, timeoutMs: number) => Promise<ProbeReply>

export type HealthChange = HealthTransition & Readonly<{ server: string }>

/** One server's health for people; times are wall time. */
export type HealthStatus = Readonly<{
  server: string
  health: Health
  sinceEpochMs: number
  probeSuccesses: number
  probeFailures: number
  lastReason: string
  history: readonly Readonly<{ from: Health; to: Health; reason: string; atEpochMs: number }>[]
}>

/** Probes start this share of `every` earlier or later, so that many of them do not march in step. */
const jitterShare = 0.1
/** Probes that traffic asks for are at least this share of `every` apart. */
const extraShare = 1 / 5

/** What a real question may meet at a server that is well. */
const doubtfulOutcomes: ReadonlySet<string> = new Set(['timeout', 'rcode', 'nonsense'])

type Probed = {
  state: HealthState
  cancelTimer: Cancel
  delayMs: number
  isAsking: boolean
  /** When a timeout of real traffic last had it probed; monotonic milliseconds. */
  lastExtraAtMs: number
}

export class ProbeSchedule {
  /** Probes sent, and those that failed. */
  readonly stats = { probes: 0, failures: 0, transitions: 0 }
  readonly #options: ProbeOptions
  readonly #clock: Clock
  readonly #random: () => number
  readonly #ask: ProbeAsk
  readonly #servers: () => readonly string[]
  readonly #probed = new Map<string, Probed>()
  readonly #listeners = new Set<(change: HealthChange) => void>()
  #cancelSurvey: Cancel = () => {}
  #isRunning = false

  /** @param parts `servers` gives those of the peer at the moment; it is asked again every `everyMs`. */
  constructor(
    options: ProbeOptions,
    parts: Readonly<{ clock: Clock; random: () => number; ask: ProbeAsk; servers: () => readonly string[] }>
  ) {
    this.#options = options
    this.#clock = parts.clock
    this.#random = parts.random
    this.#ask = parts.ask
    this.#servers = parts.servers
  }

  start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#survey()
  }

  /** Ends probing; what is known stays. A probe that is under way is forgotten. */
  stop(): void {
    this.#isRunning = false
    this.#cancelSurvey()
    for (const probed of this.#probed.values()) probed.cancelTimer()
  }

  /** What is known of one server; `unknown` for one that is not probed. */
  health(server: string): Health {
    return this.#probed.get(server)?.state.health ?? 'unknown'
  }

  /** Of all servers together: `down` only if every one is, `up` if one is. */
  get summary(): Health {
    let summary: Health = this.#probed.size === 0 ? 'unknown' : 'down'
    for (const { state } of this.#probed.values()) {
      if (state.health === 'up') return 'up'
      if (state.health === 'unknown') summary = 'unknown'
    }
    return summary
  }

  /**
   * Hears what became of a real question: what it failed of is judged by probes, but for `network`.
   *
   * - `network` counts as a failed probe does, since no single name can be the cause; a server that it brings down is
   *   probed at once.
   * - `timeout`, `rcode` and `nonsense` count for nothing, since a healthy server may fail for some names. They only
   *   ask for a probe, which is sent at once unless one is under way or the last one that was asked for is too recent.
   */
  observe(server: string, outcome: string, tookMs: number): void {
    const probed = this.#probed.get(server)
    if (probed === undefined) return
    const before = probed.state.health
    if (outcome === 'answer' || outcome === 'network') {
      const startedAtMs = this.#clock.nowMs() - tookMs
      this.#take(server, probed, { from: 'traffic', isSuccess: outcome === 'answer', reason: outcome, startedAtMs })
      if (before !== 'down' && probed.state.health === 'down') this.#probeNow(server, probed)
    } else if (doubtfulOutcomes.has(outcome) && before !== 'down') {
      // While it is down the back-off holds, however many still ask it.
      const gapMs = Math.max(probeExtraMinMs, this.#options.everyMs * extraShare)
      if (this.#clock.nowMs() - probed.lastExtraAtMs < gapMs) return
      if (this.#probeNow(server, probed)) probed.lastExtraAtMs = this.#clock.nowMs()
    }
  }

  /** Calls back after each transition; the returned function ends that. */
  subscribe(listener: (change: HealthChange) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  status(): readonly HealthStatus[] {
    const toEpochMs = (atMs: number): number => Math.round(this.#clock.epochMs() - (this.#clock.nowMs() - atMs))
    return [...this.#probed].map(([server, { state }]) => ({
      server,
      health: state.health,
      sinceEpochMs: toEpochMs(state.sinceMs),
      probeSuccesses: state.probeSuccesses,
      probeFailures: state.probeFailures,
      lastReason: state.lastReason,
      history: state.history.map(({ atMs, ...transition }) => ({ ...transition, atEpochMs: toEpochMs(atMs) }))
    }))
  }

  /** Begins with servers that are new and forgets those that are gone. */
  #survey(): void {
    const present = new Set(this.#servers())
    for (const [server, probed] of this.#probed) {
      if (present.has(server)) continue
      probed.cancelTimer()
      this.#probed.delete(server)
    }
    for (const server of present) {
      const known = this.#probed.get(server)
      if (known !== undefined) continue
      const probed: Probed = {
        state: newHealthState(this.#clock.nowMs()),
        cancelTimer: () => {},
        delayMs: this.#options.everyMs,
        isAsking: false,
        lastExtraAtMs: Number.NEGATIVE_INFINITY
      }
      this.#probed.set(server, probed)
      // The first probe comes soon, but not all of them in the same moment.
      this.#schedule(server, probed, this.#options.everyMs * jitterShare * this.#random())
    }
    this.#cancelSurvey = this.#clock.after(this.#options.everyMs, () => this.#survey())
  }

  #schedule(server: string, probed: Probed, delayMs: number): void {
    probed.cancelTimer = this.#clock.after(delayMs, () => void this.#probe(server, probed))
  }

  /** Probes out of turn; false where a probe is under way already, or none is wanted any more. */
  #probeNow(server: string, probed: Probed): boolean {
    if (probed.isAsking || !this.#isRunning) return false
    probed.cancelTimer()
    void this.#probe(server, probed)
    return true
  }

  /** One probe, and the timer for the next one, counted from this one's start. */
  async #probe(server: string, probed: Probed): Promise<void> {
    const { everyMs, timeoutMs, name, type, maxAgeMs } = this.#options
    const startedAtMs = this.#clock.nowMs()
    probed.isAsking = true
    this.stats.probes++
    const { isSuccess, reason } = judgeReply(await this.#ask(server, { name, type }, timeoutMs), maxAgeMs)
    probed.isAsking = false
    if (!this.#isRunning || this.#probed.get(server) !== probed) return
    if (!isSuccess) this.stats.failures++
    this.#take(server, probed, { from: 'probe', isSuccess, reason, startedAtMs })
    probed.delayMs = nextDelayMs(probed, isSuccess, everyMs)
    const spreadMs = probed.delayMs * (1 - jitterShare + 2 * jitterShare * this.#random())
    this.#schedule(server, probed, Math.max(0, startedAtMs + spreadMs - this.#clock.nowMs()))
  }

  #take(server: string, probed: Probed, outcome: HealthOutcome): void {
    const before = probed.state
    probed.state = nextHealth(before, outcome, this.#options, this.#clock.nowMs())
    if (probed.state.health === before.health) return
    this.stats.transitions++
    const transition = probed.state.history.at(-1)!
    for (const listener of this.#listeners) listener({ ...transition, server })
  }
}

/**
 * Time to the next probe: `every`, and later and later while a server is down. Only probes bring it back, so however
 * long `every` is, a server that is down is not left alone for longer than the backoff, and one that rises not at all.
 */
function nextDelayMs({ state, delayMs }: Probed, isSuccess: boolean, everyMs: number): number {
  if (state.health !== 'down') return everyMs
  if (isSuccess) return Math.min(everyMs, probeRisingEveryMs)
  return Math.min(Math.max(everyMs, delayMs * 2), probeBackoffMaxMs)
}

/**
 * Healthy is an answer, or a denial that the zone's SOA proves: a bare NOERROR may come from a server that has lost its
 * zone. RFC 2308 §2.
 */
export function judgeReply(reply: ProbeReply, maxAgeMs: number | null): { isSuccess: boolean; reason: string } {
  if (reply.kind === 'failed') {
    return { isSuccess: false, reason: reply.rcode === null ? reply.reason : rcodeToText(reply.rcode) }
  }
  const { rcode, answer } = reply.sections
  const text = rcodeToText(rcode)
  if (rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN) return { isSuccess: false, reason: text }
  const dataAgeMs = reply.dataAgeMs ?? 0
  if (maxAgeMs !== null && dataAgeMs > maxAgeMs) {
    return { isSuccess: false, reason: `data ${Math.round(dataAgeMs / 1000)} s old` }
  }
  if (answer.length > 0) return { isSuccess: true, reason: `${text} with records` }
  return reply.hasSoa
    ? { isSuccess: true, reason: `${text} with SOA` }
    : { isSuccess: false, reason: `${text} without SOA` }
}
