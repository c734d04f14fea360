/** Turns the decision of a policy into an answer, with its TTL caps and its reasons. */
import type { Decision } from '../policy/decide.ts'
import { isOfSinglePod, readKubernetesName } from '../policy/kubernetes-name.ts'
import { mergeSections, unionOf } from '../policy/merge.ts'
import type { Target } from '../policy/policy.ts'
import { whyLeftOut } from '../policy/standing.ts'
import { EDE, isAddressType, RCODE, typeToText } from '../wire/iana.ts'
import { isAtOrBelow } from '../wire/name.ts'
import type { Sections } from '../wire/rr.ts'
import {
  answerOf,
  errorAnswer,
  isDenial,
  lowestTtlSeconds,
  settledSections,
  staleForMs,
  unlimitedTtlSeconds,
  type Answer,
  type Ede
} from './answer.ts'
import { copyHasExpired } from './from-copy.ts'
import { noDataByRule, staticAddressSet } from './made-here.ts'
import type { Parts } from './parts.ts'
import type { Outcome } from './peer-target.ts'
import type { Query } from './query.ts'
import { healthyAddresses, refreshTarget, type Deliberation } from './target-outcome.ts'

/** TTL in seconds of a denial that could not be confirmed by everybody who might know better. */
export const doubtfulTtlSeconds = 1

export function conclude(
  parts: Parts,
  query: Query,
  talk: Deliberation,
  decision: Exclude<Decision<Answer>, { kind: 'ask' }>
): Answer {
  const { policy } = talk.match
  const name = (target: number): string => policy.targets[target]!.peer ?? policy.targets[target]!.id
  const why = (targets: readonly number[]): string =>
    targets
      .map(
        (target) => `${name(target)}: ${whyUnreachable(parts, policy.targets[target]!, talk.outcomes[target] ?? null)}`
      )
      .join('; ')
  query.trace?.add(parts.clock.nowMs(), {
    step: 'policy',
    detail: `${policy.name}: ${decision.kind}${'target' in decision ? ` ${name(decision.target)}` : ''}`
  })
  if (decision.kind === 'use') return withOtherDenials(withCaps(decision.reply, talk, []), talk)
  if (decision.kind === 'merge') return withCaps(mergedAnswer(parts, talk, decision), talk, [])
  if (decision.kind === 'stale') {
    // What a dead target said last may still be within its TTL: then nothing about it is stale.
    const isHeld = decision.reply.origin.from === 'cache' || decision.reply.origin.from === 'mirror'
    if (isHeld && staleForMs(decision.reply) === 0) return withCaps(decision.reply, talk, [])
    // A copy of the zone is kept fresh by transfer.
    if (decision.reply.origin.from === 'cache') refreshTarget(parts, query, talk, policy.targets[decision.target]!)
    const code = decision.reply.sections.rcode === RCODE.NXDOMAIN ? EDE.STALE_NXDOMAIN : EDE.STALE_ANSWER
    return withCaps(decision.reply, talk, [{ code, text: `${policy.name}: ${why(decision.unreachable)}` }])
  }
  const isByHand = decision.unreachable.every((target) => parts.standings.of(policy.targets[target]!) === 'drained')
  const code = isByHand ? EDE.BLOCKED : EDE.NO_REACHABLE_AUTHORITY
  const more =
    decision.kind === 'unknown-type'
      ? `; ${name(decision.target)} has the name, and was not asked for ${typeToText(query.qtype)} while it could be reached`
      : ''
  const ede: Ede[] = [{ code, text: `${policy.name}: ${why(decision.unreachable)}${more}` }]
  for (const target of decision.unreachable) {
    if (!copyHasExpired(parts, talk.match, policy.targets[target]!, query.qname)) continue
    ede.push({ code: EDE.INVALID_DATA, text: `our copy of the zone of ${name(target)} has expired` })
  }
  if (decision.kind === 'doubtful-denial') {
    return { ...withCaps(decision.reply, talk, ede), maxTtlSeconds: doubtfulTtlSeconds }
  }
  // Whoever asks for both kinds of addresses takes an error of one for both (musl).
  if (decision.kind === 'unknown-type' && isAddressType(query.qtype)) {
    return noDataByRule(parts, talk.match, query, doubtfulTtlSeconds, ...ede)
  }
  const failed = decision.unreachable.map((target) => talk.outcomes[target])
  if (failed.length > 0 && failed.every((outcome) => outcome?.kind === 'unreachable' && outcome.isCached)) {
    ede.push({ code: EDE.CACHED_ERROR, text: 'the failure is remembered for a second' })
  }
  return { ...errorAnswer(RCODE.SERVFAIL, ...ede), policy: policy.name }
}

/** Who is down has one wording, whether it was asked all the same or not. */
function whyUnreachable(parts: Parts, target: Target, outcome: Outcome | null): string {
  if (outcome?.kind !== 'unreachable') return 'not asked'
  const isSilent = outcome.why.split(', ').every((one) => one.endsWith('timeout'))
  return isSilent && parts.standings.of(target) === 'down' ? whyLeftOut('down') : outcome.why
}

/** A denial rests on every target that denied, and one of them may have done so a while ago. RFC 2308 §5. */
function withOtherDenials(answer: Answer, { outcomes }: Deliberation): Answer {
  if (answer.sections.rcode !== RCODE.NXDOMAIN) return answer
  let { maxTtlSeconds } = answer
  for (const outcome of outcomes) {
    if (outcome?.kind !== 'absent') continue
    maxTtlSeconds = Math.min(maxTtlSeconds, lowestTtlSeconds(outcome.reply) ?? maxTtlSeconds)
  }
  return maxTtlSeconds === answer.maxTtlSeconds ? answer : { ...answer, maxTtlSeconds }
}

/** The union of several answers. It counts as the first one's, and is authoritative only if all are. */
function mergedAnswer(
  parts: Parts,
  talk: Deliberation,
  { targets, replies }: Readonly<{ targets: readonly number[]; replies: readonly Answer[] }>
): Answer {
  const capped = replies.map((reply) => withCaps(reply, talk, []))
  const settled = capped.map(settledSections)
  const sections = mergeSections(settled)
  const whole = withStaticAddresses(parts, talk, targets, sections)
  const only = settled.indexOf(sections)
  if (only >= 0) return whole === sections ? capped[only]! : { ...capped[only]!, sections: whole, ageSeconds: 0 }
  return answerOf(whole, {
    authoritative: replies.every(({ authoritative }) => authoritative),
    origin: replies[0]!.origin
  })
}

/**
 * Targets with addresses have no SRV records, and so add nothing to the addresses beside them. Who asks for those gets
 * the union, and must not find another set here (RFC 2181 §5).
 */
function withStaticAddresses(
  parts: Parts,
  { match }: Deliberation,
  targets: readonly number[],
  sections: Sections
): Sections {
  const fixed = targets.map((target) => match.policy.targets[target]!).filter(({ kind }) => kind === 'addresses')
  if (fixed.length === 0 || sections.additional.length === 0) return sections
  const added = sections.additional.flatMap(({ owner, type }) => {
    if (!isAtOrBelow(owner, match.dnsName)) return []
    if (isOfSinglePod(owner, readKubernetesName(owner, match.zone))) return []
    return fixed.flatMap(
      (target) => staticAddressSet(match, target, owner, type, healthyAddresses(parts, target)) ?? []
    )
  })
  return added.length === 0 ? sections : { ...sections, additional: unionOf([...sections.additional, ...added]) }
}

function withCaps(answer: Answer, talk: Deliberation, ede: readonly Ede[]): Answer {
  const { policy } = talk.match
  const policyCap = isDenial(answer.sections)
    ? policy.maxNegativeTtlSeconds
    : (policy.maxTtlSeconds ?? unlimitedTtlSeconds)
  // Where the next window chooses anew, nobody may keep what this one gave.
  const cap = Math.min(policyCap, Math.floor(talk.order.holdsForMs / 1000))
  return {
    ...answerOf(answer.sections, answer),
    maxTtlSeconds: Math.min(answer.maxTtlSeconds, cap),
    ede: ede.length === 0 ? answer.ede : [...answer.ede, ...ede],
    policy: policy.name
  }
}
