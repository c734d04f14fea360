/**
 * The targets of one query that are being asked, and how long each is waited for.
 *
 * - A target that is silent for longer than its share of the time has failed this query, and the next one is asked. It
 *   is listened to further on: its late answer is better than another target's denial.
 * - A doubtful one is waited for only for a moment, unless there is nobody else and nothing to give.
 * - One that takes longer than it usually does has the next one asked meanwhile (for 5 % of its questions), whose
 *   answer is used only once the first has failed: else names would change their target with each slow answer.
 */
import {
  downSilenceMs,
  hedgeAfterMinMs,
  lateAnswerMs,
  lateRoundTrips,
  targetSilenceMaxMs,
  targetSilenceMs
} from '../base/limits.ts'
import type { Decision } from '../policy/decide.ts'
import type { Answer } from './answer.ts'
import type { Parts } from './parts.ts'
import type { Query } from './query.ts'
import { askTarget, hasFallback, staleOf, type Deliberation } from './target-outcome.ts'

const nobody = (): void => {}

export class Asking {
  readonly #parts: Parts
  readonly #query: Query
  readonly #talk: Deliberation
  readonly #deadlineMs: number
  /** When each target was asked; not there: it was not. */
  readonly #startedAtMs: (number | undefined)[] = []
  /** Targets whose outcome is not in place yet. */
  #pending = 0
  /** Targets that were given up, and may still answer. */
  #late: number[] = []
  /** It reaches whoever waits; where nobody does any more, it must not end the process. */
  #bug: Readonly<{ error: unknown }> | null = null
  /** Tells who waits that something has come. */
  #wake: () => void = nobody

  constructor(parts: Parts, query: Query, talk: Deliberation, deadlineMs: number) {
    this.#parts = parts
    this.#query = query
    this.#talk = talk
    this.#deadlineMs = deadlineMs
  }

  /** Asks a target, unless it is being asked already. */
  start(target: number): void {
    if (this.#startedAtMs[target] !== undefined) return
    this.#startedAtMs[target] = this.#parts.clock.nowMs()
    this.#pending++
    void this.#ask(target)
  }

  async #ask(target: number): Promise<void> {
    try {
      this.#talk.outcomes[target] = await askTarget(this.#parts, this.#query, this.#talk, target, this.#deadlineMs)
      this.#pending--
      if (this.#late.includes(target)) this.#late = this.#late.filter((late) => late !== target)
    } catch (error) {
      this.#bug ??= { error }
    }
    this.#wake()
  }

  /** Waits until any target has said something, or this one is given up. */
  async wait(target: number): Promise<void> {
    const { clock } = this.#parts
    const startedAtMs = this.#startedAtMs[target]!
    const endMs = startedAtMs + this.#patienceMs(target)
    const hedgeMs = startedAtMs + this.#usualMs(target)
    const next = clock.nowMs() < hedgeMs && hedgeMs < endMs ? this.#nextAfter(target) : null
    if (next !== null) {
      if (await this.#anyOutcome(hedgeMs - clock.nowMs())) return
      if (this.#peerOf(target)?.mayHedge() === true) this.start(next)
    }
    if (await this.#anyOutcome(endMs - clock.nowMs())) return
    this.#giveUp(target)
  }

  /** Whether nobody is worth waiting for any more, with this decision at hand. */
  isOver(decision: Decision<Answer>): boolean {
    if (this.#late.length === 0 || decision.kind === 'stale' || decision.kind === 'merge') return true
    if (decision.kind === 'use' && this.#talk.outcomes[decision.target]?.kind === 'has') return true
    return this.#lateRestMs(decision) <= 0
  }

  /** Waits for one that was given up. */
  async waitForLate(decision: Decision<Answer>): Promise<void> {
    await this.#anyOutcome(this.#lateRestMs(decision))
  }

  #lateRestMs(decision: Decision<Answer>): number {
    const graceMs = decision.kind === 'failure' ? Number.POSITIVE_INFINITY : this.#lateGraceMs()
    return Math.min(this.#deadlineMs, this.#query.receivedAtMs + graceMs) - this.#parts.clock.nowMs()
  }

  /** Who used to be quick and is silent now is dead rather than slow; of others that is not known. */
  #lateGraceMs(): number {
    let graceMs = lateAnswerMs
    for (const target of this.#late) {
      const rttMs = this.#peerOf(target)?.quickestRttMs ?? null
      if (rttMs === null) return Number.POSITIVE_INFINITY
      graceMs = Math.max(graceMs, lateRoundTrips * rttMs)
    }
    return graceMs
  }

  #giveUp(target: number): void {
    const { match, outcomes } = this.#talk
    const stale = staleOf(this.#parts, this.#query, match, match.policy.targets[target]!)
    outcomes[target] = { kind: 'unreachable', why: 'timeout', isCached: false, stale }
    if (!this.#isDoubtful(target)) this.#late.push(target)
  }

  #isDoubtful(target: number): boolean {
    return this.#parts.standings.of(this.#talk.match.policy.targets[target]!) === 'doubtful'
  }

  #peerOf(target: number) {
    const { peer } = this.#talk.match.policy.targets[target]!
    return peer === null ? undefined : this.#parts.peers.get(peer)?.peer
  }

  /** The time within which this target's answers usually come; infinite where that is not known. */
  #usualMs(target: number): number {
    const usualMs = this.#peerOf(target)?.usualMs ?? null
    return usualMs === null ? Number.POSITIVE_INFINITY : Math.max(hedgeAfterMinMs, usualMs)
  }

  /** The target whose turn is next if this one fails, where it is a peer that has not been asked. */
  #nextAfter(target: number): number | null {
    const { order, match, outcomes } = this.#talk
    if (!match.policy.nextOn.has('unreachable')) return null
    const inUse = order.order.slice(0, order.order.length - order.reserves)
    const next = inUse.slice(inUse.indexOf(target) + 1).find((other) => outcomes[other] === null)
    if (next === undefined || this.#startedAtMs[next] !== undefined) return null
    return match.policy.targets[next]!.kind === 'peer' ? next : null
  }

  /** How long a target may be silent. With nothing but failure behind it, all the time there is. */
  #patienceMs(target: number): number {
    const { outcomes, order } = this.#talk
    const usualMs = this.#usualMs(target)
    const silenceMs = Number.isFinite(usualMs)
      ? Math.min(targetSilenceMaxMs, Math.max(targetSilenceMs, 1.5 * usualMs))
      : targetSilenceMs
    const restMs = this.#deadlineMs - this.#startedAtMs[target]!
    const open = outcomes.filter((outcome) => outcome === null).length
    // Whoever counts as down is asked for the case that the probes are wrong: not for long, if there is something to
    // give.
    const { match } = this.#talk
    const canFallBack =
      (order.allDown || open <= 1) && hasFallback(this.#parts, this.#query, this.#talk, match.policy.targets[target]!)
    if (order.allDown && canFallBack) return downSilenceMs
    if (open <= 1 && !canFallBack) return restMs
    if (this.#isDoubtful(target)) return Math.min(downSilenceMs, restMs)
    return Math.min(silenceMs, restMs / open)
  }

  /** Waits for any outcome; false where none came in time. */
  async #anyOutcome(withinMs: number): Promise<boolean> {
    let came = true
    if (this.#pending > 0 && this.#bug === null) {
      came = await new Promise<boolean>((resolve) => {
        const cancel = this.#parts.clock.after(Math.max(0, withinMs), () => resolve(false))
        this.#wake = () => {
          cancel()
          resolve(true)
        }
      })
      this.#wake = nobody
    }
    if (this.#bug !== null) throw this.#bug.error
    return came
  }
}
