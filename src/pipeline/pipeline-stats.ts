/** What the pipeline counts: plain numbers that the metrics read when they are scraped. */
import { Histogram } from '../base/histogram.ts'
import { knownAgeMs, staleForMs, type Answer, type Origin } from './answer.ts'

/** Bounds of the age histogram in seconds. */
const ageBoundsSeconds = [0.001, 0.01, 0.05, 0.25, 1, 2.5, 5, 10, 15, 30, 60, 300, 3600]
/** Bounds of the duration histogram in seconds. */
const durationBoundsSeconds = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2]

export type Source = Origin['from']
const sources: readonly Source[] = ['zone', 'mirror', 'cache', 'peer', 'upstream', 'policy']
const rcodeSlots = 24

export class PipelineStats {
  queriesUdp = 0
  queriesTcp = 0
  /** Messages that got no reply: too short, or responses. */
  dropped = 0
  malformed = 0
  /** Queries answered with SERVFAIL because of a bug. */
  bugs = 0
  overloaded = 0
  stale = 0
  truncated = 0
  /** Queries that had to wait for somebody else. */
  misses = 0
  inFlight = 0
  readonly responsesByRcode = new Float64Array(rcodeSlots)
  readonly responsesBySource = new Map<Source, number>(sources.map((source) => [source, 0]))
  /** Answers by the policy that decided them. Policies are few, so this may be a label. */
  readonly answersByPolicy = new Map<string, Map<string, number>>()
  readonly answerAgeSeconds = new Histogram(ageBoundsSeconds)
  readonly missDurationSeconds = new Histogram(durationBoundsSeconds)

  countRcode(rcode: number): void {
    if (rcode < rcodeSlots) this.responsesByRcode[rcode]!++
  }

  countAnswer(answer: Answer): void {
    const { origin } = answer
    if (staleForMs(answer) > 0) this.stale++
    this.countServed(
      answer.sections.rcode,
      origin.from,
      knownAgeMs(answer),
      answer.policy,
      'target' in origin ? origin.target : null
    )
  }

  /** The same from its parts, for answers that are not stale. */
  countServed(rcode: number, from: Source, ageMs: number, policy: string | null, target: string | null): void {
    this.countRcode(rcode)
    this.responsesBySource.set(from, this.responsesBySource.get(from)! + 1)
    if (from !== 'policy') this.answerAgeSeconds.observe(ageMs / 1000)
    if (policy !== null) this.#countPolicy(policy, target ?? from)
  }

  #countPolicy(policy: string, target: string): void {
    let counts = this.answersByPolicy.get(policy)
    if (counts === undefined) this.answersByPolicy.set(policy, (counts = new Map()))
    counts.set(target, (counts.get(target) ?? 0) + 1)
  }
}
