/**
 * How long answers may be kept of a server that tells nobody when they change: by how lately they were seen to change.
 *
 * What was found to be another answer than the time before is given a TTL of a tenth of the time since then, so that a
 * name that has just changed is asked for again soon, and one that has been the same for long keeps its TTL. What was
 * never seen to change has no cap. Heuristic freshness as RFC 9111 §4.2.2 has it, here only ever below the TTL that
 * came.
 */
import { fnv1a, fnvPrime } from '../base/fnv1a.ts'
import { adaptiveTtlMinSeconds, adaptiveTtlNames, adaptiveTtlShare } from '../base/transfer-limits.ts'
import { parentOf, type DomainName } from '../wire/name.ts'
import type { Sections } from '../wire/rr.ts'

export type AdaptiveTtlStats = {
  /** Answers that were other ones than the time before. */
  changes: number
  /** Answers whose TTL became lower by the cap. */
  capped: number
}

/** A Service's change concerns the names of its ports and hosts: `_port._proto.<svc>` and `<host>.<svc>`. */
const namesAbove = 2

const noCap = Number.POSITIVE_INFINITY

export class AdaptiveTtl {
  readonly stats: AdaptiveTtlStats = { changes: 0, capped: 0 }
  /** What was last seen, by question; with many of them, the one seen last is the last one. */
  readonly #seen = new Map<string, number>()
  /** When each name was last seen to change, on a monotonic clock; the latest is the last one. */
  readonly #changedAtMs = new Map<DomainName, number>()

  /** Names that a cap stands on now. */
  get names(): number {
    return this.#changedAtMs.size
  }

  /**
   * Takes note of an answer that came now, and gives the highest TTL in seconds that it may have; infinite where there
   * is no cap.
   * @param key tells questions with different answers apart.
   */
  note(key: string, name: DomainName, sections: Sections, nowMs: number): number {
    const now = fingerprint(sections)
    const before = this.#seen.get(key)
    if (before !== undefined && before !== now) {
      this.stats.changes++
      put(this.#changedAtMs, name, nowMs)
    }
    // While there is plenty of room, the order in which they go matters little, and to renew it costs much.
    if (before !== now || this.#seen.size > adaptiveTtlNames / 2) put(this.#seen, key, now)
    return this.#capSeconds(name, nowMs)
  }

  #capSeconds(name: DomainName, nowMs: number): number {
    if (this.#changedAtMs.size === 0) return noCap
    let changedAtMs = Number.NEGATIVE_INFINITY
    for (let at: DomainName | null = name, above = 0; at !== null && above <= namesAbove; at = parentOf(at), above++) {
      changedAtMs = Math.max(changedAtMs, this.#changedAtMs.get(at) ?? Number.NEGATIVE_INFINITY)
    }
    return Math.max(adaptiveTtlMinSeconds, Math.floor(((nowMs - changedAtMs) / 1000) * adaptiveTtlShare))
  }
}

/** Puts an entry last, and lets the first ones go where there are too many. */
function put<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
  map.delete(key)
  map.set(key, value)
  if (map.size > adaptiveTtlNames) map.delete(map.keys().next().value!)
}

/**
 * Equal for answers that say the same, in whatever order and with whatever TTL. 32 bits: a change may go unseen once in
 * 2^32.
 */
function fingerprint({ rcode, answer }: Sections): number {
  let sum = rcode + 1
  for (const { owner, type, rdata } of answer) {
    const start = fnv1a(Math.imul(type + 1, fnvPrime), owner, 0, owner.length)
    for (const octets of rdata) {
      let hash = start
      for (const octet of octets) hash = Math.imul(hash ^ octet, fnvPrime)
      sum = (sum + (hash ^ (hash >>> 15))) | 0
    }
  }
  return sum
}
