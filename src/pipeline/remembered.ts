/** What the answer cache holds of one target's answers, as the pipeline sees it. */
import { answerKey } from '../cache/answer-cache.ts'
import type { TargetId } from '../policy/policy.ts'
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import { answerOf, unlimitedTtlSeconds, type Answer } from './answer.ts'
import type { Parts } from './parts.ts'
import type { Query } from './query.ts'

/**
 * TTL of a stale answer in seconds: long enough to spare the dead target, short enough to notice its return. RFC 8767
 * §5 allows 30.
 */
export const staleTtlSeconds = 5
/** How long a target's failure for one question is remembered. RFC 2308 §7 allows five minutes. */
export const failureTtlSeconds = 1

/** TTL caps that a policy or the forward rule sets on what it uses. Seconds. */
export type TtlCaps = Readonly<{ maxTtlSeconds: number; maxNegativeTtlSeconds: number }>

/** A question as it is asked at one target. */
export type TargetQuestion = Readonly<{ target: TargetId; name: DomainName; type: number }>

// One query looks its answers up several times, and joining and hashing the key costs more than the look-up.
const lastKeys = { name: '' as DomainName, target: '', type: -1, dnssecOk: false, checkingDisabled: false, key: '' }

export function keyOf({ target, name, type }: TargetQuestion, { dnssecOk, checkingDisabled }: Query): string {
  const last = lastKeys
  const isSame =
    name === last.name &&
    type === last.type &&
    target === last.target &&
    dnssecOk === last.dnssecOk &&
    checkingDisabled === last.checkingDisabled
  if (isSame) return last.key
  last.name = name
  last.target = target
  last.type = type
  last.dnssecOk = dnssecOk
  last.checkingDisabled = checkingDisabled
  last.key = answerKey({ target, name, type, class: 1, dnssecOk, checkingDisabled })
  return last.key
}

export type Remembered =
  | Readonly<{ kind: 'fresh'; answer: Answer }>
  /** Past its TTL (or past the caps of whoever asks), but not past the stale window. */
  | Readonly<{ kind: 'stale'; answer: Answer }>

/**
 * The last answer of a target to this question, as far as it is still of use; null where nothing is held.
 * `isFirstLook` false: the cache was asked for this query before, and counts nothing now.
 */
export function remembered(
  parts: Parts,
  question: TargetQuestion,
  query: Query,
  caps: TtlCaps,
  isFirstLook = true
): Remembered | null {
  if (!parts.cache.concerns(question.name)) {
    if (isFirstLook) parts.cache.countMiss()
    return null
  }
  const key = keyOf(question, query)
  const nowMs = parts.clock.nowMs()
  const hit = isFirstLook ? parts.cache.get(key, nowMs) : parts.cache.peek(key, nowMs)
  if (hit === null) return null
  const { entry, ageMs } = hit
  const isNegative = entry.kind === 'nodata' || entry.kind === 'nxdomain'
  const capSeconds = isNegative ? caps.maxNegativeTtlSeconds : caps.maxTtlSeconds
  const staleForMs = Math.max(hit.staleForMs, ageMs - capSeconds * 1000, 0)
  const origin = {
    from: 'cache',
    target: entry.targetId,
    server: entry.server,
    ageMs,
    sourceAgeMs: entry.sourceAgeMs,
    staleForMs
  } as const
  const { sections, isEmpty } = entry
  if (staleForMs > 0) {
    return { kind: 'stale', answer: answerOf(sections, { origin, maxTtlSeconds: staleTtlSeconds, isEmpty }) }
  }
  const ageSeconds = Math.floor(ageMs / 1000)
  const maxTtlSeconds = capSeconds >= unlimitedTtlSeconds ? unlimitedTtlSeconds : capSeconds - ageSeconds
  return { kind: 'fresh', answer: answerOf(sections, { origin, ageSeconds, maxTtlSeconds, isEmpty }) }
}

/** Types that are looked up to see whether a target has a name: those that clients ask for. */
const usualTypes: readonly number[] = [RRTYPE.A, RRTYPE.AAAA, RRTYPE.SRV]

/**
 * Whether the target's last word on a name that is still of use, by other types than the asked one, was that it exists.
 * A few look-ups, which only a query that nobody answered is worth.
 */
export function isNameHeld(parts: Parts, question: TargetQuestion, query: Query): boolean {
  if (!parts.cache.concerns(question.name)) return false
  const nowMs = parts.clock.nowMs()
  let isHeld = false
  let newestMs = Number.NEGATIVE_INFINITY
  for (const type of usualTypes.includes(question.type) ? usualTypes : [question.type, ...usualTypes]) {
    const hit = parts.cache.peek(keyOf({ ...question, type }, query), nowMs)
    if (hit === null || hit.entry.kind === 'failure') continue
    // An alias whose end is missing: the type was asked for, and what came of it is of no use.
    if (type === question.type && hit.entry.kind !== 'nxdomain') return false
    if (hit.entry.storedAtMs < newestMs) continue
    newestMs = hit.entry.storedAtMs
    isHeld = hit.entry.kind !== 'nxdomain'
  }
  return isHeld
}

/** Failures are kept beside answers, not over them: the last good answer must survive to be served stale. */
const failureKeyOf = (question: TargetQuestion, query: Query): string => `${keyOf(question, query)}!`

/** Why the target failed this question a moment ago; null where it did not. */
export function rememberedFailure(parts: Parts, question: TargetQuestion, query: Query): string | null {
  if (!parts.cache.concerns(question.name)) return null
  const hit = parts.cache.peek(failureKeyOf(question, query), parts.clock.nowMs())
  return hit === null || hit.staleForMs > 0 ? null : (hit.entry.failure ?? 'it failed a moment ago')
}

export function rememberFailure(parts: Parts, question: TargetQuestion, query: Query, why: string): void {
  parts.cache.putFailure(failureKeyOf(question, query), {
    nowMs: parts.clock.nowMs(),
    targetId: question.target,
    server: '',
    ttlSeconds: failureTtlSeconds,
    failure: why
  })
}
