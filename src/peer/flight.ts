/**
 * One question on its way through a peer's servers: whom to ask next, when, and when to stop.
 *
 * A server that fails at once (an error RCODE, a closed port, nonsense) hands over to the next one at once. One that is
 * silent for its share of the time hands over too, but keeps being listened to: a slow answer is better than none. With
 * everybody asked, the silent ones are asked again. Several askers of the same question share one flight; each waits
 * as long as its own budget lasts, and the flight ends with the last of them.
 */
import type { Cancel } from '../base/clock.ts'
import {
  attemptFloorMs,
  attemptTimeoutMinMs,
  attemptTimeoutMs,
  firstAttemptTimeoutMs,
  hedgeAfterMinMs
} from '../base/limits.ts'
import { RCODE, rcodeToText } from '../wire/iana.ts'
import type { PeerQuery } from './peer-query.ts'
import type { Attempt, AttemptOutcome, FailureReason, PeerQuestion, PeerReply } from './peer-types.ts'
import { ServerAttempt, type AttemptEnd, type AttemptParts } from './server-attempt.ts'
import type { Server } from './server-table.ts'

/** What a flight tells about servers, for their order and for health. */
export type FlightObserver = Readonly<{
  /** An answer came `tookMs` after it was asked for, and `sinceLastMs` after the datagram was last sent again. */
  answered(server: Server, tookMs: number, sinceLastMs: number, question: PeerQuestion): void
  /** An attempt that began at `startedAtMs` failed; for `timeout` it may still be answered. */
  failed(
    server: Server,
    outcome: 'timeout' | 'network' | 'rcode' | 'nonsense',
    startedAtMs: number,
    question: PeerQuestion
  ): void
}>

type Waiter = Readonly<{
  startedAtMs: number
  cancelTimer: Cancel
  hear: (reply: PeerReply) => void
  resolve: (reply: PeerReply) => void
}>

export class Flight {
  readonly #query: PeerQuery
  readonly #parts: AttemptParts
  readonly #observer: FlightObserver
  readonly #onOver: () => void
  /** Attempts that may still be begun, and datagrams sent again. */
  #attemptsLeft: number
  #waiters: Waiter[] = []
  #deadlineMs = 0
  /** Servers in the order in which they are asked next; null until they are known. */
  #queue: Server[] | null = null
  #neverAsked = 0
  /** All attempts, in the order in which they were begun. */
  readonly #begun: ServerAttempt[] = []
  #pending: ServerAttempt[] = []
  readonly #failed: Server[] = []
  /** Whom each datagram or attempt went to, those sent again included. */
  readonly #sends: Server[] = []
  #latest: ServerAttempt | null = null
  #cancelStep: Cancel = () => {}
  /** Somebody was asked once more before anybody was slow; once for a question. */
  #hasHedged = false
  #isOver = false

  constructor(
    query: PeerQuery,
    maxAttempts: number,
    parts: AttemptParts,
    observer: FlightObserver,
    onOver: () => void
  ) {
    this.#query = query
    this.#attemptsLeft = maxAttempts
    this.#parts = parts
    this.#observer = observer
    this.#onOver = onOver
  }

  /**
   * Waits for the flight's end, or for the end of this budget. Join before start.
   * @param hear is told the same at once.
   */
  join(budgetMs: number, hear: (reply: PeerReply) => void): Promise<PeerReply> {
    const { clock } = this.#parts
    const startedAtMs = clock.nowMs()
    this.#deadlineMs = Math.max(this.#deadlineMs, startedAtMs + budgetMs)
    return new Promise((resolve) => {
      const cancelTimer = clock.after(budgetMs, () => this.#leave(waiter))
      const waiter: Waiter = { startedAtMs, cancelTimer, hear, resolve }
      this.#waiters.push(waiter)
    })
  }

  /** Begins with the first of these servers; the list is the flight's from then on. */
  start(plan: Server[]): void {
    if (this.#isOver || this.#queue !== null) return
    this.#queue = plan
    this.#neverAsked = plan.length
    this.#next()
  }

  /** Ends the flight without an answer: everybody who waits gets `failed`. */
  giveUp(): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#cancelStep()
    for (const attempt of this.#pending) {
      const isNews = !attempt.isSlow
      attempt.markSlow()
      attempt.cancel()
      const startedAtMs = attempt.startedAtMs
      if (isNews && this.#parts.clock.nowMs() - startedAtMs >= attemptFloorMs) {
        this.#observer.failed(attempt.server, 'timeout', startedAtMs, this.#query.question)
      }
    }
    this.#pending = []
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) settle(waiter, this.#failure(waiter))
    this.#onOver()
  }

  #leave(waiter: Waiter): void {
    if (this.#waiters.length > 1) {
      this.#waiters = this.#waiters.filter((other) => other !== waiter)
      settle(waiter, this.#failure(waiter))
    } else this.giveUp()
  }

  /** Asks the next server; without any that could be asked, waits for the silent ones or ends. */
  #next(): void {
    this.#cancelStep()
    const server = this.#pick()
    if (server === null) {
      if (this.#pending.length === 0) this.giveUp()
      return
    }
    this.#attemptsLeft--
    this.#sends.push(server)
    const silent = this.#begun.findLast((attempt) => attempt.server === server)
    if (silent?.resend() === true) {
      this.#latest = silent
      this.#armStep(silent)
      return
    }
    const attempt = new ServerAttempt(server, this.#query, this.#parts, () => this.#armStep(attempt))
    this.#begun.push(attempt)
    this.#pending.push(attempt)
    this.#latest = attempt
    this.#armStep(attempt)
    attempt.run((end) => this.#ended(attempt, end))
  }

  #pick(): Server | null {
    if (this.#queue === null || this.#attemptsLeft === 0) return null
    const restMs = this.#deadlineMs - this.#parts.clock.nowMs()
    if (restMs < attemptFloorMs && this.#pending.length > 0) return null
    for (let server = this.#queue.shift(); server !== undefined; server = this.#queue.shift()) {
      if (this.#neverAsked > 0) this.#neverAsked--
      if (this.#failed.includes(server)) continue
      this.#queue.push(server)
      return server
    }
    return null
  }

  /** When the newest attempt counts as slow: after its share of what is left, so that everybody is asked in time. */
  #armStep(attempt: ServerAttempt): void {
    if (attempt !== this.#latest) return
    const { clock } = this.#parts
    const shareMs = (this.#deadlineMs - clock.nowMs()) / (this.#neverAsked + 1)
    const stepMs = Math.max(attemptFloorMs, Math.min(this.#patienceMs(attempt.server), shareMs))
    const { percentileMs } = attempt.server.usualTime
    const hedgeMs = percentileMs === null ? stepMs : Math.max(hedgeAfterMinMs, percentileMs)
    this.#cancelStep()
    const step = (): void => {
      this.#markSlow()
      this.#next()
    }
    if (this.#hasHedged || hedgeMs >= stepMs) this.#cancelStep = clock.after(stepMs, step)
    else {
      this.#cancelStep = clock.after(hedgeMs, () => {
        this.#cancelStep = clock.after(stepMs - hedgeMs, step)
        this.#hedge()
      })
    }
  }

  /** Asks once more, the next server if there is one, while nothing speaks against the one that is asked yet. */
  #hedge(): void {
    if (this.#attemptsLeft < 2 || !this.#parts.hedges.trySpend()) return
    this.#hasHedged = true
    this.#parts.stats.hedged++
    this.#next()
  }

  /** Whoever is asked for longer than its patience lasts has failed; its answer is still welcome. */
  #markSlow(): void {
    const nowMs = this.#parts.clock.nowMs()
    for (const attempt of this.#pending) {
      const isLatest = attempt === this.#latest
      if (attempt.isSlow || (!isLatest && nowMs - attempt.startedAtMs < this.#patienceMs(attempt.server))) continue
      attempt.markSlow()
      this.#observer.failed(attempt.server, 'timeout', attempt.startedAtMs, this.#query.question)
    }
  }

  /**
   * How long this server may be silent: its own round trip and half of one, and twice as long after each time (RFC 1536
   * §1). A lost datagram has to be sent again, and answered, before a policy gives the target up.
   */
  #patienceMs(server: Server): number {
    const { rttMs } = server
    const firstMs = rttMs === null ? firstAttemptTimeoutMs : Math.max(attemptTimeoutMinMs, 20 + 1.5 * rttMs)
    let sends = 0
    for (const asked of this.#sends) if (asked === server) sends++
    return Math.min(attemptTimeoutMs, firstMs * 2 ** (Math.max(1, sends) - 1))
  }

  #ended(attempt: ServerAttempt, end: AttemptEnd): void {
    if (this.#isOver) return
    this.#forget(attempt)
    if (end.kind === 'answer') {
      const sinceLastMs = this.#parts.clock.nowMs() - attempt.lastSentAtMs
      this.#observer.answered(attempt.server, end.tookMs, sinceLastMs, this.#query.question)
      this.#finish(attempt.server, end)
      return
    }
    const isAskedAgain = this.#pending.some(({ server }) => server === attempt.server)
    // An old connection that ends at last says nothing about the question on a fresh one.
    if (attempt.isSlow && end.outcome === 'network' && isAskedAgain) return
    // A slow one was counted as a timeout already.
    if (end.outcome !== 'overload' && !attempt.isSlow)
      this.#observer.failed(attempt.server, end.outcome, attempt.startedAtMs, this.#query.question)
    this.#failed.push(attempt.server)
    // What the same server was asked before would end no better.
    for (const other of this.#pending.slice()) {
      if (other.server !== attempt.server) continue
      other.cancel()
      this.#forget(other)
    }
    if (attempt === this.#latest || this.#pending.length === 0) this.#next()
  }

  #forget(attempt: ServerAttempt): void {
    const at = this.#pending.indexOf(attempt)
    if (at >= 0) this.#pending.splice(at, 1)
  }

  #finish(server: Server, { sections, message, transport }: AttemptEnd & { kind: 'answer' }): void {
    this.#isOver = true
    this.#cancelStep()
    for (const attempt of this.#pending) attempt.cancel()
    this.#pending = []
    const attempts = this.#exchanges()
    const nowMs = this.#parts.clock.nowMs()
    const reply = {
      kind: 'answer' as const,
      sections,
      hasSoa: sections.authority.length > 0,
      authoritative: message.aa,
      options: message.edns?.options ?? [],
      server: server.text,
      transport,
      attempts
    }
    const waiters = this.#waiters
    this.#waiters = []
    for (const waiter of waiters) settle(waiter, { ...reply, tookMs: nowMs - waiter.startedAtMs })
    this.#onOver()
  }

  /** Every exchange that has ended, in the order in which its attempt was begun. */
  #exchanges(): Attempt[] {
    return this.#begun.length === 1 ? this.#begun[0]!.exchanges : this.#begun.flatMap(({ exchanges }) => exchanges)
  }

  #failure(waiter: Waiter): PeerReply {
    const attempts = this.#exchanges()
    const reason = failureReason(attempts, this.#pending.length > 0)
    return {
      kind: 'failed',
      reason,
      rcode: reason === 'rcode' ? (attempts.find(isFinalRcode)?.rcode ?? RCODE.SERVFAIL) : null,
      detail: reason === 'no-server' ? 'no address of a server is known' : attemptsToText(attempts),
      attempts,
      tookMs: this.#parts.clock.nowMs() - waiter.startedAtMs
    }
  }
}

function settle({ cancelTimer, hear, resolve }: Waiter, reply: PeerReply): void {
  cancelTimer()
  hear(reply)
  resolve(reply)
}

const isFinalRcode = ({ outcome }: Attempt): boolean => outcome === 'rcode'

/** Of several servers' failures the one that says most. */
const reasonsByWeight: readonly (AttemptOutcome & FailureReason)[] = [
  'rcode',
  'nonsense',
  'timeout',
  'network',
  'overload'
]

function failureReason(attempts: readonly Attempt[], hasPending: boolean): FailureReason {
  const found = reasonsByWeight.find((reason) => attempts.some(({ outcome }) => outcome === reason))
  if (found !== undefined) return found
  return hasPending || attempts.length > 0 ? 'timeout' : 'no-server'
}

/** `192.0.2.1:53 REFUSED, 192.0.2.2:53 timeout`, each once. */
function attemptsToText(attempts: readonly Attempt[]): string {
  const texts = attempts
    .filter(({ outcome }) => outcome !== 'truncated')
    .map(({ server, outcome, rcode }) => `${server} ${outcome === 'rcode' ? rcodeToText(rcode ?? -1) : outcome}`)
  return [...new Set(texts)].join(', ') || 'timeout'
}
