/**
 * Answers by the policy table: asks a policy's targets in order, as `policy/decide` says, and turns the decision into
 * an answer with its reason.
 */
import { allDownBudgetMs, queryBudgetMs } from '../base/limits.ts'
import { decide, decideMerge, heedingOtherTypes, type Decision } from '../policy/decide.ts'
import { isOfSinglePod, type KubernetesName } from '../policy/kubernetes-name.ts'
import type { PolicyMatch } from '../policy/policy-table.ts'
import type { Policy } from '../policy/policy.ts'
import { isMergedType } from '../policy/merge.ts'
import { whyLeftOut } from '../policy/standing.ts'
import { targetOrder, type TargetOrder } from '../policy/target-order.ts'
import { EDE, RCODE, RRTYPE } from '../wire/iana.ts'
import { isAtOrBelow, parentOf, type DomainName } from '../wire/name.ts'
import type { Answer } from './answer.ts'
import { conclude, doubtfulTtlSeconds } from './conclude.ts'
import { standingsByCopies } from './from-copy.ts'
import { denialByRule } from './made-here.ts'
import type { Parts } from './parts.ts'
import type { Outcome } from './peer-target.ts'
import type { Query } from './query.ts'
import { Asking } from './asking.ts'
import {
  askTarget,
  hasFallback,
  isKnownToHave,
  outcomeFromMemory,
  staleOf,
  tellPassedOver,
  type Deliberation
} from './target-outcome.ts'

const underscore = 0x5f

/** @param name what the qname means in the zone that the policy's dnsName lies in. */
export function deliberate(parts: Parts, query: Query, match: PolicyMatch, name: KubernetesName | null): Deliberation {
  const { policy } = match
  const service = name?.service ?? null
  const standings = standingsByCopies(parts, match, query.qname)
  const order = targetOrder(policy, standings, {
    name: query.qname,
    service,
    clientAddress: query.client.address,
    region: policy.select === 'geo' ? parts.clientRegions.regionOf(query.client.address) : '',
    epochMs: parts.clock.epochMs()
  })
  const outcomes: (Outcome | null)[] = policy.targets.map(() => null)
  const talk = {
    match,
    order,
    outcomes,
    service,
    isBelowService: name?.kind === 'below-service',
    isMerged: policy.select === 'merge' && isMergedType(query.qtype) && !isOfSinglePod(query.qname, name)
  }
  for (const target of order.doubtful) tellPassedOver(parts, query, match, policy.targets[target]!)
  for (const target of order.excluded) {
    const standing = standings.of(policy.targets[target]!)
    const stale = standing === 'drained' ? null : staleOf(parts, query, match, policy.targets[target]!)
    outcomes[target] = { kind: 'unreachable', why: whyLeftOut(standing), isCached: false, stale }
  }
  return talk
}

/** The answer from what is in memory; null where somebody has to be asked. */
export function answerByPolicyFromMemory(parts: Parts, query: Query, talk: Deliberation): Answer | null {
  const { policy } = talk.match
  const denial = deniedAtOnce(parts, query, talk)
  if (denial !== null) return denial
  for (;;) {
    const decision = decisionOf(parts, query, talk)
    if (decision.kind !== 'ask') return conclude(parts, query, talk, decision)
    const outcome = outcomeFromMemory(parts, query, talk, policy.targets[decision.target]!)
    if (outcome === null) return null
    talk.outcomes[decision.target] = outcome
  }
}

/** Goes on where memory did not suffice. Never rejects. */
export async function answerByPolicy(parts: Parts, query: Query, talk: Deliberation): Promise<Answer> {
  const denial = deniedAtOnce(parts, query, talk)
  if (denial !== null) return denial
  const { allDown } = talk.order
  const deadlineMs = query.receivedAtMs + (allDown ? allDownBudgetMs : queryBudgetMs)
  let asking: Asking | null = null
  for (;;) {
    const decision = decisionOf(parts, query, talk)
    if (decision.kind === 'ask') {
      if (asking === null && isOnlyHope(parts, query, talk, decision.target)) {
        talk.outcomes[decision.target] = await askTarget(parts, query, talk, decision.target, deadlineMs)
        continue
      }
      asking ??= new Asking(parts, query, talk, deadlineMs)
      asking.start(decision.target)
      // Where they are wanted together, or none is likely to answer, they are asked together.
      if (talk.isMerged || allDown) for (const target of openTargets(talk)) asking.start(target)
      await asking.wait(decision.target)
    } else if (asking === null || asking.isOver(decision)) {
      return conclude(parts, query, talk, decision)
    } else {
      await asking.waitForLate(decision)
    }
  }
}

/**
 * Whether a target has all the time there is, since nobody else is left to ask and nothing is there to give: then it is
 * waited for without a watch on it.
 */
function isOnlyHope(parts: Parts, query: Query, talk: Deliberation, target: number): boolean {
  const { outcomes, match } = talk
  for (let other = 0; other < outcomes.length; other++) {
    if (other !== target && outcomes[other] === null) return false
  }
  return !hasFallback(parts, query, talk, match.policy.targets[target]!)
}

/** Targets in use of which nothing is known yet. */
const openTargets = ({ order: { order, reserves }, outcomes }: Deliberation): number[] =>
  order.slice(0, order.length - reserves).filter((target) => outcomes[target] === null)

function decisionOf(parts: Parts, query: Query, { order, outcomes, match, isMerged }: Deliberation): Decision<Answer> {
  const decision = isMerged
    ? decideMerge(order.order, match.policy.nextOn, outcomes, order.reserves)
    : decide(order.order, match.policy.nextOn, outcomes, order.reserves)
  if (!('unreachable' in decision)) return decision
  return heedingOtherTypes(
    decision,
    (target) => isKnownToHave(parts, query, match, match.policy.targets[target]!),
    isNameError
  )
}

const isNameError = ({ sections }: Answer): boolean => sections.rcode === RCODE.NXDOMAIN

/** In which order a policy's targets stand now, without what is drawn for each name and client. */
export const policyOrder = (parts: Parts, policy: Policy): TargetOrder => targetOrder(policy, parts.standings, null)

/**
 * With every target down or drained, what no target ever gave is denied without waiting: else each search list would
 * stall or end there. Search lists make host names (`google.com.<namespace>.svc...`) and, where a policy is for `svc`
 * as a whole, Services of namespaces that nobody has (`google.com.svc...`).
 */
function deniedAtOnce(parts: Parts, query: Query, talk: Deliberation): Answer | null {
  const { order, service, isBelowService } = talk
  const isNobodyLeft = order.allDown || order.excluded.length === order.order.length
  if (!isNobodyLeft || service === null) return null
  // Who asks for a port or protocol means a Service.
  if (query.qname.charCodeAt(1) === underscore || parts.knownServices.has(service)) return null
  if (!isBelowService && isNamespaceKnown(parts, talk.match, parentOf(service)!)) return null
  const { policy } = talk.match
  const isByHand = !order.allDown
  const how = isByHand ? 'drained by the operator' : order.excluded.length > 0 ? 'down or drained' : 'down'
  const ede = {
    code: isByHand ? EDE.BLOCKED : EDE.NO_REACHABLE_AUTHORITY,
    text: `${policy.name}: every target is ${how}, and none ever gave this Service`
  }
  return denialByRule(parts, talk.match, query, doubtfulTtlSeconds, ede)
}

/**
 * Whether anything speaks for a namespace: our own cluster has it (KEP-1645 §namespace sameness), a target gave a
 * Service of it, or the policy names it.
 */
function isNamespaceKnown(parts: Parts, match: PolicyMatch, namespace: DomainName): boolean {
  if (isAtOrBelow(match.dnsName, namespace) || parts.knownServices.hasNamespace(namespace)) return true
  const zone = parts.own.zones.find(namespace)
  return zone !== null && (!parts.own.hasSynced(zone) || zone.lookup(namespace, RRTYPE.A).kind !== 'nxdomain')
}
