/**
 * How long a change takes from where it happened to our clients, and how many of them were told the old meanwhile.
 *
 * Only what is told of changes can be looked at: copies of peers' zones, and caches that a peer's changes are taken out
 * of. Where nobody tells, an answer is as stale as its age lets it be, and more is not known.
 */
import type { Clock } from '../base/clock.ts'
import { Histogram } from '../base/histogram.ts'
import { changedNamesKept, changesOfNameKept, firstAnswerWithinMs, givenAnswersKept } from '../base/limits.ts'
import type { TargetId } from '../policy/policy.ts'
import type { DomainName } from '../wire/name.ts'
import type { Answer } from './answer.ts'
import { GivenAnswers, type GivenAnswer } from './given-answers.ts'
import type { Query } from './query.ts'

/** Bounds of the histograms in seconds. */
const boundsSeconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1, 2.5, 5, 10, 15, 30, 60, 300]

/** So late at most, but where the thread that notes them had no time for anything else either. */
const lateNotesMs = 200

/** A name that a change touched, as our clients know it. `types` null: whatever was said of it may be different now. */
export type TouchedName = Readonly<{ name: DomainName; types: readonly number[] | null }>

/** A change of a peer's zone that we have just learned of. */
export type LearnedChange = Readonly<{
  peer: string
  /** As answers of that peer name it. */
  target: TargetId
  zone: DomainName
  serial: number
  /** When it happened, by the wall clock of where it happened. Milliseconds since 1970. */
  originAtMs: number
  /** When the server that told us learned of it, by its wall clock. */
  primaryAtMs: number
  /** That clock less ours, in milliseconds; null where it is not known, and taken for 0. */
  clockOffsetMs: number | null
  /** It came with the whole zone: it happened at `originAtMs` or before. */
  cameWhole: boolean
  touched: readonly TouchedName[]
}>

/** What became of one name by one change. Times of ours are monotonic. */
export type ChangeOfName = Readonly<
  TouchedName &
    Omit<LearnedChange, 'touched'> & {
      /** When it happened, by our monotonic clock. */
      happenedAtMs: number
      /** Since when it is in what we answer from. */
      hereAtMs: number
      staleAnswers: number
      /** null: nobody was told the old. */
      lastStaleAtMs: number | null
      /** null: nobody has asked since, or not soon enough to tell anything. */
      firstFreshAtMs: number | null
    }
>
type Kept = { -readonly [Key in keyof ChangeOfName]: ChangeOfName[Key] }

/** What is known of an answer that lies ready; null: no policy decided. */
type ReadyAnswer = Readonly<{ name: DomainName; type: number; policy: string | null; target: TargetId | null }>

/** Answers that were no longer right, by whom they came from and who let them. */
export type StaleCount = {
  readonly peer: string
  readonly policy: string
  answers: number
  readonly seconds: Histogram
}

const newHistogram = (): Histogram => new Histogram(boundsSeconds)

export class Freshness {
  readonly stats = {
    /** From an event of our own API server until it is in our zone. */
    storeSeconds: newHistogram(),
    /** From there, at a peer, until it is in what we answer from. */
    peerSeconds: new Map<string, Histogram>(),
    /** From there until the first answer that is right again. */
    answerSeconds: new Map<string, Histogram>(),
    stale: new Map<string, StaleCount>()
  }
  readonly #clock: Clock
  readonly #given = new GivenAnswers(givenAnswersKept)
  #noteLate: (() => void) | null = null
  readonly #byName = new Map<DomainName, Kept[]>()
  /** Names that nobody has asked for since they changed. */
  readonly #waiting = new Map<DomainName, Kept[]>()
  #isFollowing = false
  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Whether some peer tells of its changes; without one nothing is remembered. */
  follow(isFollowing: boolean): void {
    this.#isFollowing = isFollowing
  }

  /** Some answers are noted a moment after they were given: `noteNow` does so before it is looked at what was given. */
  expectLateNotes(noteNow: () => void): void {
    this.#noteLate = noteNow
    this.#given.lateMs = lateNotesMs
  }

  /** Notes an answer that goes out now; nothing is looked up unless some name has just changed. */
  gave(query: Query, answer: Answer, nowMs: number): void {
    if (!this.#isFollowing || answer.policy === null) return
    const { origin } = answer
    let knownAtMs = Number.NEGATIVE_INFINITY
    if (origin.from === 'cache') knownAtMs = nowMs - origin.ageMs
    else if (origin.from === 'peer') knownAtMs = nowMs - origin.tookMs
    else if (origin.from !== 'mirror') return
    const name = answer.sections.answer[0]?.owner ?? query.qname
    const { policy } = answer
    const { target } = origin
    const given = { givenAtMs: nowMs, knownAtMs, name, type: query.qtype, policy, target }
    this.#given.add(given)
    // A copy is right as of now: what was learned is in it.
    if (this.#waiting.size > 0) this.#endWait(origin.from === 'mirror' ? { ...given, knownAtMs: nowMs } : given)
  }

  /**
   * The same for a policy's answer from the cache, or from a copy, that lay ready.
   * @param knownAtMs -Infinity for a copy
   */
  gaveReady({ name, type, policy, target }: ReadyAnswer, knownAtMs: number, nowMs: number): void {
    if (!this.#isFollowing || policy === null || target === null) return
    const given = { givenAtMs: nowMs, knownAtMs, name, type, policy, target }
    this.#given.add(given)
    const isOfCopy = knownAtMs === Number.NEGATIVE_INFINITY
    if (this.#waiting.size > 0) this.#endWait(isOfCopy ? { ...given, knownAtMs: nowMs } : given)
  }

  /** A change is in our own zone. */
  stored({ originAtMs, learnedAtMs }: Readonly<{ originAtMs: number; learnedAtMs: number }>): void {
    this.stats.storeSeconds.observe(Math.max(0, learnedAtMs - originAtMs) / 1000)
  }

  /** A change of a peer's zone is in what we answer from as of now. */
  learned(change: LearnedChange): void {
    this.#noteLate?.()
    const hereAtMs = this.#clock.nowMs()
    const agoMs = Math.max(0, this.#clock.epochMs() - (change.originAtMs - (change.clockOffsetMs ?? 0)))
    const happenedAtMs = hereAtMs - agoMs
    observeIn(this.stats.peerSeconds, change.peer, agoMs)
    const { touched, ...common } = change
    const kept = new Map<DomainName, Kept>()
    for (const { name, types } of touched) {
      kept.set(name, {
        ...common,
        name,
        types,
        happenedAtMs,
        hereAtMs,
        staleAnswers: 0,
        lastStaleAtMs: null,
        firstFreshAtMs: null
      })
    }
    this.#countStale(kept, happenedAtMs)
    for (const one of kept.values()) {
      push(this.#byName, one)
      push(this.#waiting, one)
    }
  }

  /** The last changes of a name as our clients know it, newest first. */
  changesOf(name: DomainName): readonly ChangeOfName[] {
    return this.#byName.get(name)?.toReversed() ?? []
  }

  #countStale(kept: ReadonlyMap<DomainName, Kept>, happenedAtMs: number): void {
    const last = new Map<string, { peer: string; policy: string; agoMs: number }>()
    for (const given of this.#given.since(happenedAtMs)) {
      const { name, policy, givenAtMs } = given
      const one = kept.get(name)
      if (one === undefined || given.knownAtMs >= happenedAtMs || !concerns(one, given)) continue
      one.staleAnswers++
      one.lastStaleAtMs ??= givenAtMs
      this.#staleOf(one.peer, policy).answers++
      // The newest come first, so the first one of a name is its last stale answer.
      const key = `${policy} ${name}`
      if (!last.has(key)) last.set(key, { peer: one.peer, policy, agoMs: givenAtMs - happenedAtMs })
    }
    for (const { peer, policy, agoMs } of last.values()) this.#staleOf(peer, policy).seconds.observe(agoMs / 1000)
  }

  #staleOf(peer: string, policy: string): StaleCount {
    const key = `${peer} ${policy}`
    let count = this.stats.stale.get(key)
    if (count === undefined) this.stats.stale.set(key, (count = { peer, policy, answers: 0, seconds: newHistogram() }))
    return count
  }

  #endWait(given: GivenAnswer): void {
    const { name, givenAtMs } = given
    const waiting = this.#waiting.get(name)
    if (waiting === undefined) return
    const rest = waiting.filter((one) => {
      if (givenAtMs - one.hereAtMs > firstAnswerWithinMs) return false
      if (!concerns(one, given) || given.knownAtMs < one.happenedAtMs) return true
      one.firstFreshAtMs = givenAtMs
      observeIn(this.stats.answerSeconds, one.peer, givenAtMs - one.happenedAtMs)
      return false
    })
    if (rest.length === 0) this.#waiting.delete(name)
    else this.#waiting.set(name, rest)
  }
}

const concerns = ({ types, target }: Kept, given: GivenAnswer): boolean =>
  target === given.target && (types === null || types.includes(given.type))

function observeIn(histograms: Map<string, Histogram>, peer: string, ms: number): void {
  let histogram = histograms.get(peer)
  if (histogram === undefined) histograms.set(peer, (histogram = newHistogram()))
  histogram.observe(ms / 1000)
}

/** Keeps the last changes of the names that changed last. */
function push(byName: Map<DomainName, Kept[]>, change: Kept): void {
  const changes = byName.get(change.name) ?? []
  byName.delete(change.name)
  byName.set(change.name, [...changes.slice(1 - changesOfNameKept), change])
  if (byName.size > changedNamesKept) byName.delete(byName.keys().next().value!)
}
