/** Takes out of the cache what one peer says has changed, and remembers for a moment what that was. */
import type { Cancel, Clock } from '../base/clock.ts'
import { evictedNames, evictionSettleMs, notifyTrustMs, suffixEvictionEveryMs } from '../base/transfer-limits.ts'
import type { AnswerCache } from '../cache/answer-cache.ts'
import { isAtOrBelow, parentOf, type DomainName } from '../wire/name.ts'

export type EvictionStats = { names: number; suffixes: number; answers: number }

export class CacheEviction {
  readonly stats: EvictionStats = { names: 0, suffixes: 0, answers: 0 }
  readonly #clock: Clock
  readonly #target: string
  readonly #cache: () => AnswerCache
  /** When each name was last taken out, the latest last. */
  readonly #names = new Map<DomainName, number>()
  readonly #suffixes = new Map<DomainName, { atMs: number; cancel: Cancel | null }>()

  /** @param target as the cache calls the peer's answers. */
  constructor(clock: Clock, target: string, cache: () => AnswerCache) {
    this.#clock = clock
    this.#target = target
    this.#cache = cache
  }

  /** These names may have other answers now, and with them whether those above exist, up to the zone. */
  evict(names: readonly DomainName[], apex: DomainName): void {
    const nowMs = this.#clock.nowMs()
    const all = new Set<DomainName>()
    for (const name of names) {
      for (let at: DomainName | null = name; at !== null && at.length > apex.length; at = parentOf(at)) all.add(at)
    }
    for (const name of all) {
      this.stats.answers += this.#cache().flushName(name, this.#target)
      this.#names.delete(name)
      this.#names.set(name, nowMs)
      if (this.#names.size > evictedNames) this.#names.delete(this.#names.keys().next().value!)
    }
    this.stats.names += all.size
  }

  /** All at or below a name may have other answers now; many such words in a short time come together to few. */
  evictSuffix(suffix: DomainName): void {
    const nowMs = this.#clock.nowMs()
    const last = this.#suffixes.get(suffix)
    if (last !== undefined && last.cancel !== null) return
    const waitMs = last === undefined ? 0 : last.atMs + suffixEvictionEveryMs - nowMs
    if (waitMs > 0) {
      last!.cancel = this.#clock.after(waitMs, () => this.#evictNow(suffix))
      return
    }
    this.#evictNow(suffix)
  }

  /**
   * Whether an answer for the name that was asked for at `askedAtMs` may be from before a change, and whether what
   * comes now may still be: other servers of the peer may learn of it a little later.
   */
  doubt(name: DomainName, askedAtMs: number): 'outdated' | 'settling' | null {
    let evictedAtMs = this.#names.get(name) ?? Number.NEGATIVE_INFINITY
    for (const [suffix, { atMs }] of this.#suffixes) {
      if (atMs > evictedAtMs && isAtOrBelow(name, suffix)) evictedAtMs = atMs
    }
    if (evictedAtMs >= askedAtMs) return 'outdated'
    return this.#clock.nowMs() - evictedAtMs < evictionSettleMs ? 'settling' : null
  }

  /** Whether a change of the suffix that a name lies in was ever told by NOTIFY, lately enough to rely on it. */
  wasTold(name: DomainName): boolean {
    const sinceMs = this.#clock.nowMs() - notifyTrustMs
    for (const [suffix, { atMs }] of this.#suffixes) if (atMs >= sinceMs && isAtOrBelow(name, suffix)) return true
    return false
  }

  close(): void {
    for (const { cancel } of this.#suffixes.values()) cancel?.()
    this.#suffixes.clear()
  }

  #evictNow(suffix: DomainName): void {
    this.#suffixes.set(suffix, { atMs: this.#clock.nowMs(), cancel: null })
    this.stats.suffixes++
    this.stats.answers += this.#cache().flushSuffix(suffix, this.#target)
  }
}
