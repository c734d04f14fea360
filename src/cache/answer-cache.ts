/**
 * The answer cache: keeps what peers and upstreams told us while its TTL runs, and for the stale window after that.
 *
 * The cluster zone is not kept here; its store is in memory already and follows events. Time enters only as an
 * argument, so nothing here starts a timer. lru-cache keeps the order of use and the bound in octets. Its own TTLs
 * are left unused: they take 0 for "for ever", know no stale window, and start a timer for each millisecond under
 * load. A heap finds what is past its stale window instead, so that it leaves before anything still of use.
 *
 * Every entry is listed under each name that it depends on (its question's, owners, ends of aliases), so that a
 * change of some names takes out just what it concerns.
 */
import { LRUCache } from 'lru-cache'
import { Histogram } from '../base/histogram.ts'
import { failureTtlMaxSeconds } from '../base/limits.ts'
import { RCODE, RRTYPE } from '../wire/iana.ts'
import { isAtOrBelow, type DomainName } from '../wire/name.ts'
import { readNameRdata } from '../wire/rdata.ts'
import type { Sections } from '../wire/rr.ts'
import { questionOf, type AnswerKey } from './answer-key.ts'
import { entrySizeOctets } from './answer-size.ts'
import type {
  CachedAnswer,
  CacheFilter,
  CacheHit,
  CacheListing,
  PutFailureOptions,
  PutOptions
} from './cached-answer.ts'
import { ExpiryHeap } from './expiry-heap.ts'
import { NameIndex } from './name-index.ts'
import { retentionOf } from './retention.ts'

export { answerKey, type AnswerKey } from './answer-key.ts'
export type { CachedAnswer, CacheHit } from './cached-answer.ts'

export type AnswerCacheOptions = Readonly<{
  /** Bound of what all entries take together, by `entrySizeOctets`. */
  maxBytes: number
  /** How long an answer may still be given out after its TTL ran out; 0: not at all. */
  serveStaleMs: number
}>

/** An entry's place in the cache. */
type Slot = {
  readonly key: AnswerKey
  readonly entry: CachedAnswer
  readonly names: readonly DomainName[]
  readonly sizeOctets: number
  /** From then on it is of no use to anybody. */
  readonly deadAtMs: number
  heapIndex: number
}

const renewEveryMs = 1_000
const ageBoundsSeconds = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 300, 3_600]

export class AnswerCache {
  readonly stats = {
    /** Fresh answers found. */
    hits: 0,
    /** Times that somebody has to be asked: nothing is held, or only a stale answer. */
    misses: 0,
    /** Entries put in, replacements included. */
    insertions: 0,
    /** Entries that were of some use still, but had to make room. */
    evictions: 0,
    /** Entries dropped past their stale window. */
    expirations: 0,
    /** Entries dropped on request, or because what they say has changed. */
    flushed: 0,
    /** What is held now. */
    octets: 0,
    entries: 0
  }
  /** Ages of the answers given out, in seconds. */
  readonly ageSeconds = new Histogram(ageBoundsSeconds)
  readonly #maxBytes: number
  readonly #serveStaleMs: number
  readonly #slots: LRUCache<AnswerKey, Slot>
  readonly #byDeath = new ExpiryHeap<Slot>()
  readonly #byName = new NameIndex<Slot>()
  /** Is told of each entry that leaves; null: nobody is. */
  #onGone: ((key: AnswerKey) => void) | null = null

  constructor({ maxBytes, serveStaleMs }: AnswerCacheOptions) {
    this.#maxBytes = maxBytes
    this.#serveStaleMs = serveStaleMs
    this.#slots = new LRUCache({
      maxSize: maxBytes,
      sizeCalculation: (slot) => slot.sizeOctets,
      dispose: (slot, _key, reason) => {
        this.#unlink(slot)
        slot.entry.isHeld = false
        this.#onGone?.(slot.key)
        if (reason === 'evict') this.stats.evictions += 1
      }
    })
  }

  /**
   * The last answer to a question that is still of some use, and counts it: a fresh one as given out, a stale one as a
   * miss, since somebody has to be asked before it is given out.
   */
  get(key: AnswerKey, nowMs: number): CacheHit | null {
    const slot = this.#slots.get(key)
    const hit = slot === undefined ? null : this.#hitOf(slot, nowMs)
    if (slot !== undefined && hit === null) this.#expire(slot)
    if (hit === null || hit.staleForMs > 0) {
      this.stats.misses += 1
      return hit
    }
    this.stats.hits += 1
    this.#countServed(hit)
    return hit
  }

  /**
   * Counts a fresh answer that was given out by somebody who kept hold of it, as `get` does. Its place in the order of
   * use is renewed once a second at the most.
   */
  countUse(key: AnswerKey, entry: CachedAnswer, nowMs: number): void {
    if (nowMs - entry.renewedAtMs >= renewEveryMs) {
      entry.renewedAtMs = nowMs
      this.#slots.get(key)
    }
    this.stats.hits += 1
    entry.hits += 1
    this.ageSeconds.observe(Math.max(0, nowMs - entry.storedAtMs) / 1000)
  }

  /**
   * Calls back with the key of each entry as it leaves (`isHeld`), one listener only; the function returned ends that.
   */
  onGone(listener: (key: AnswerKey) => void): () => void {
    this.#onGone = listener
    return () => {
      if (this.#onGone === listener) this.#onGone = null
    }
  }

  /**
   * Whether anything held concerns a name, of use or not: where nothing does, no key for a question about it needs to be
   * made.
   */
  concerns(name: DomainName): boolean {
    return this.#byName.has(name)
  }

  /** Counts a question that nothing is held for, as `get` does. */
  countMiss(): void {
    this.stats.misses += 1
  }

  /** As `get`, but for looking only: nothing is counted, and the entry is not used for that. */
  peek(key: AnswerKey, nowMs: number): CacheHit | null {
    const slot = this.#slots.peek(key)
    return slot === undefined ? null : this.#hitOf(slot, nowMs)
  }

  /**
   * Keeps an answer by what `retentionOf` says, and takes out what was held before; null: it was not kept. An answer
   * whose TTL is 0 takes out the older one too, while one that may never be kept (a denial without SOA) leaves it.
   * The caller must not offer truncated messages, nor records that the target has no say in. RDATA must own its
   * memory, as it does when it comes from `wire`.
   */
  put(key: AnswerKey, sections: Sections, options: PutOptions): CachedAnswer | null {
    const question = questionOf(key)
    const retention = retentionOf(sections, question, options)
    if (retention === null) return null
    if (retention.ttlSeconds <= 0) {
      this.delete(key)
      return null
    }
    const entry: CachedAnswer = {
      kind: retention.kind,
      sections: retention.sections,
      storedAtMs: options.nowMs,
      expiresAtMs: options.nowMs + retention.ttlSeconds * 1000,
      ttlSeconds: retention.ttlSeconds,
      targetId: options.targetId,
      server: options.server,
      isEmpty: options.isEmpty ?? false,
      failure: null,
      sourceAgeMs: options.sourceAgeMs ?? 0,
      zoneApex: retention.zoneApex,
      hits: 0,
      isHeld: true,
      renewedAtMs: options.nowMs
    }
    return this.#insert(key, entry, concernedNames(question.name, entry.sections), this.#serveStaleMs)
  }

  /**
   * Keeps for a few seconds that a target gave no usable answer (RFC 2308 §7); never stale. It replaces what is held
   * under the key: for an older answer to survive and be served stale, the failure needs another target in its key.
   */
  putFailure(key: AnswerKey, options: PutFailureOptions): CachedAnswer | null {
    const ttlSeconds = Math.min(options.ttlSeconds, failureTtlMaxSeconds)
    if (!(ttlSeconds > 0)) return null
    const entry: CachedAnswer = {
      kind: 'failure',
      sections: noSections,
      storedAtMs: options.nowMs,
      expiresAtMs: options.nowMs + ttlSeconds * 1000,
      ttlSeconds,
      targetId: options.targetId,
      server: options.server,
      isEmpty: false,
      failure: options.failure,
      sourceAgeMs: 0,
      zoneApex: null,
      hits: 0,
      isHeld: true,
      renewedAtMs: options.nowMs
    }
    return this.#insert(key, entry, [questionOf(key).name], 0)
  }

  /** Whether there was such an entry. */
  delete(key: AnswerKey): boolean {
    const was = this.#slots.delete(key)
    this.#countHeld()
    return was
  }

  /** Drops everything; how many entries that were. */
  flush(): number {
    const entries = this.#slots.size
    this.#slots.clear()
    return this.#countFlushed(entries)
  }

  /**
   * Drops what concerns a name: answers to questions for it, and those that it is an owner or the end of an alias in.
   * The cost is that of the dropped entries. With `targetId` only that target's. How many entries that were.
   */
  flushName(name: DomainName, targetId: string | null = null): number {
    let flushed = 0
    for (const slot of this.#byName.itemsOf(name)) {
      if (targetId !== null && slot.entry.targetId !== targetId) continue
      this.#slots.delete(slot.key)
      flushed += 1
    }
    return this.#countFlushed(flushed)
  }

  /** As `flushName`, for all names at or below a suffix: one look at each name in the cache. */
  flushSuffix(suffix: DomainName, targetId: string | null = null): number {
    let flushed = 0
    const names = [...this.#byName.names()].filter((name) => isAtOrBelow(name, suffix))
    for (const name of names) flushed += this.flushName(name, targetId)
    return flushed
  }

  /**
   * Drops what is past its stale window, at most so many entries, the oldest first; how many it dropped. The cost is
   * that of the dropped entries, so a few hundred now and then keep the memory honest without a pause.
   */
  sweep(nowMs: number, maxEntries: number): number {
    let dropped = 0
    for (; dropped < maxEntries; dropped++) {
      const slot = this.#byDeath.first()
      if (slot === null || slot.deadAtMs > nowMs) break
      this.#expire(slot)
    }
    return dropped
  }

  /** The entries for questions for a name: all targets and types. */
  entriesFor(name: DomainName): CacheListing[] {
    return this.#byName
      .itemsOf(name)
      .map(listingOf)
      .filter(({ question }) => question.name === name)
  }

  /** At most `limit` entries that match, those used last first. */
  list(limit: number, filter: CacheFilter = {}): CacheListing[] {
    const listings: CacheListing[] = []
    if (limit <= 0) return listings
    for (const slot of this.#slots.values()) {
      const listing = listingOf(slot)
      if (!matches(listing, filter)) continue
      listings.push(listing)
      if (listings.length >= limit) break
    }
    return listings
  }

  #hitOf(slot: Slot, nowMs: number): CacheHit | null {
    if (nowMs >= slot.deadAtMs) return null
    const { entry } = slot
    const staleForMs = nowMs < entry.expiresAtMs ? 0 : Math.max(1, nowMs - entry.expiresAtMs)
    return { entry, ageMs: Math.max(0, nowMs - entry.storedAtMs), staleForMs }
  }

  #insert(
    key: AnswerKey,
    entry: CachedAnswer,
    names: readonly DomainName[],
    staleWindowMs: number
  ): CachedAnswer | null {
    this.#slots.delete(key)
    const textOctets = key.length + (entry.failure?.length ?? 0)
    const sizeOctets = entrySizeOctets(textOctets, names.length, entry.sections)
    if (sizeOctets > this.#maxBytes) {
      this.#countHeld()
      return null
    }
    this.#makeRoom(sizeOctets, entry.storedAtMs)
    const slot: Slot = { key, entry, names, sizeOctets, deadAtMs: entry.expiresAtMs + staleWindowMs, heapIndex: 0 }
    this.#slots.set(key, slot)
    this.#byDeath.add(slot)
    for (const name of names) this.#byName.add(name, slot)
    this.stats.insertions += 1
    this.#countHeld()
    return entry
  }

  /** Lets the dead go first; what then still lacks room is taken from the least recently used, by lru-cache. */
  #makeRoom(sizeOctets: number, nowMs: number): void {
    while (this.#slots.calculatedSize + sizeOctets > this.#maxBytes && this.sweep(nowMs, 1) > 0);
  }

  #expire(slot: Slot): void {
    this.#slots.delete(slot.key)
    this.stats.expirations += 1
    this.#countHeld()
  }

  #unlink(slot: Slot): void {
    this.#byDeath.remove(slot)
    for (const name of slot.names) this.#byName.remove(name, slot)
  }

  #countServed({ entry, ageMs }: CacheHit): void {
    entry.hits += 1
    this.ageSeconds.observe(ageMs / 1000)
  }

  #countFlushed(entries: number): number {
    this.stats.flushed += entries
    this.#countHeld()
    return entries
  }

  #countHeld(): void {
    this.stats.octets = this.#slots.calculatedSize
    this.stats.entries = this.#slots.size
  }
}

const noSections: Sections = { rcode: RCODE.SERVFAIL, answer: [], authority: [], additional: [] }

/** The names whose records an answer is made of, each once, its question's first. */
function concernedNames(qname: DomainName, { answer, additional }: Sections): DomainName[] {
  const names = new Set([qname])
  for (const rrset of answer) {
    names.add(rrset.owner)
    if (rrset.type === RRTYPE.CNAME) names.add(readNameRdata(rrset.rdata[0]!))
  }
  for (const rrset of additional) names.add(rrset.owner)
  return [...names]
}

const listingOf = ({ key, entry, sizeOctets }: Slot): CacheListing => ({
  key,
  question: questionOf(key),
  entry,
  sizeOctets
})

const matches = ({ question, entry }: CacheListing, { suffix, targetId, kind }: CacheFilter): boolean =>
  (suffix === undefined || isAtOrBelow(question.name, suffix)) &&
  (targetId === undefined || entry.targetId === targetId) &&
  (kind === undefined || entry.kind === kind)
