/**
 * Policies with `enforce: false`: every name is answered as if they were not there, and on the side it is found out
 * what they would have answered. That costs a second answer, so it is bounded, and never waited for.
 */
import { unenforcedExamples, unenforcedInFlight, unenforcedPerSecond } from '../base/limits.ts'
import { typeToText } from '../wire/iana.ts'
import { nameToText } from '../wire/name.ts'
import { answerText } from './answer-text.ts'
import type { Answer } from './answer.ts'
import type { Parts } from './parts.ts'
import type { Query } from './query.ts'
import { policyOf, respond } from './respond.ts'

/** One answer that would have been another one. */
export type WouldChange = Readonly<{
  atEpochMs: number
  name: string
  type: string
  /** As it was answered, and as the policy would have answered: RCODE and data. */
  given: string
  instead: string
}>

export type UnenforcedStats = {
  /** Answers that would have been the same, and those that would not. TTLs are not looked at. */
  same: number
  changed: number
  /** Answers that were not looked at, since too many were being looked at already. */
  skipped: number
  /** The latest ones that would have changed, one for each name and type. */
  readonly examples: Map<string, WouldChange>
}

export class Unenforced {
  /** By the policy's name. */
  readonly stats = new Map<string, UnenforcedStats>()
  #inFlight = 0
  #secondAtMs = Number.NEGATIVE_INFINITY
  #inSecond = 0
  #hasLogged = false

  /** Hears each answer; does nothing but a look where no policy is unenforced. */
  observe(parts: Parts, query: Query, answer: Answer): void {
    if (parts.withUnenforced === null) return
    const would: Parts = { ...parts, policies: parts.withUnenforced, withUnenforced: null }
    const policy = policyOf(would, query)
    if (policy === null || policy.enforce) return
    const stats = this.#statsOf(policy.name)
    if (!this.#mayLook(parts.clock.nowMs())) {
      stats.skipped++
      return
    }
    this.#inFlight++
    // The message and the client's object belong to the listener, which goes on.
    const again: Query = {
      ...query,
      message: null,
      client: { ...query.client },
      trace: null,
      receivedAtMs: parts.clock.nowMs()
    }
    respond(would, again)
      .then((instead) => this.#compare(stats, parts, again, answer, instead))
      .catch((error: unknown) => {
        if (!this.#hasLogged) parts.log.error({ err: error }, 'a bug: an unenforced policy was not looked at')
        this.#hasLogged = true
      })
      .finally(() => this.#inFlight--)
  }

  #mayLook(nowMs: number): boolean {
    if (nowMs - this.#secondAtMs >= 1_000) {
      this.#secondAtMs = nowMs
      this.#inSecond = 0
    }
    if (this.#inFlight >= unenforcedInFlight || this.#inSecond >= unenforcedPerSecond) return false
    this.#inSecond++
    return true
  }

  #compare(stats: UnenforcedStats, { clock }: Parts, query: Query, answer: Answer, instead: Answer): void {
    const [given, other] = [answerText(answer), answerText(instead)]
    if (given === other) {
      stats.same++
      return
    }
    stats.changed++
    const [name, type] = [nameToText(query.qname), typeToText(query.qtype)]
    const key = `${name} ${type}`
    // Begins anew at the end of the map, which is in the order of time.
    stats.examples.delete(key)
    stats.examples.set(key, { atEpochMs: clock.epochMs(), name, type, given, instead: other })
    if (stats.examples.size > unenforcedExamples) stats.examples.delete(stats.examples.keys().next().value!)
  }

  #statsOf(policy: string): UnenforcedStats {
    let stats = this.stats.get(policy)
    if (stats === undefined) {
      this.stats.set(policy, (stats = { same: 0, changed: 0, skipped: 0, examples: new Map() }))
    }
    return stats
  }
}
