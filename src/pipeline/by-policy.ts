/**
 * Answers by the policy table: asks a policy's targets in order, as `policy/decide` says, and turns the decision into
 * an answer with its reason.
 */
import { allDownBudgetMs, queryBudgetMs, targetPatienceMs } from '../base/limits.ts'
import { decide } from '../policy/decide.ts'
import type { KubernetesName } from '../policy/kubernetes-name.ts'
import type { PolicyMatch } from '../policy/policy-table.ts'
import type { Policy } from '../policy/policy.ts'
import { whyLeftOut } from '../policy/standing.ts'
import { targetOrder, type TargetOrder } from '../policy/target-order.ts'
import { EDE } from '../wire/iana.ts'
import type { Answer } from './answer.ts'
import { conclude, doubtfulTtlSeconds } from './conclude.ts'
import { standingsByCopies } from './from-copy.ts'
import { denialByRule } from './made-here.ts'
import type { Parts } from './parts.ts'
import type { Outcome } from './peer-target.ts'
import type { Query } from './query.ts'
import { askTarget, outcomeFromMemory, staleOf, type Deliberation } from './target-outcome.ts'

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
    isBelowService: name?.kind === 'below-service'
  }
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
    const decision = decide(talk.order.order, policy.nextOn, talk.outcomes, talk.order.reserves)
    if (decision.kind !== 'ask') return conclude(parts, query, talk, decision)
    const outcome = outcomeFromMemory(parts, query, talk, policy.targets[decision.target]!)
    if (outcome === null) return null
    talk.outcomes[decision.target] = outcome
  }
}

/**
 * Goes on where memory did not suffice. Never rejects.
 *
 * A target that is silent for its share of the time counts as unreachable and the next one is asked, but it is listened to
 * further on: its late answer is better than another target's denial.
 */
export async function answerByPolicy(parts: Parts, query: Query, talk: Deliberation): Promise<Answer> {
  const { policy } = talk.match
  const denial = deniedAtOnce(parts, query, talk)
  if (denial !== null) return denial
  const deadlineMs = query.receivedAtMs + (talk.order.allDown ? allDownBudgetMs : queryBudgetMs)
  /** Targets that are being asked; each promise puts its outcome in place before it resolves. */
  const asking = new Map<number, Promise<void>>()
  for (;;) {
    const decision = decide(talk.order.order, policy.nextOn, talk.outcomes, talk.order.reserves)
    if (decision.kind === 'ask') {
      const { target } = decision
      if (!asking.has(target)) asking.set(target, startAsking(parts, query, talk, target, deadlineMs, asking))
      if (await isSilent(parts, talk, deadlineMs, asking)) giveUpOn(parts, query, talk, target)
      continue
    }
    const isFound = decision.kind === 'use' && talk.outcomes[decision.target]?.kind === 'has'
    if (isFound || asking.size === 0) return conclude(parts, query, talk, decision)
    await Promise.race(asking.values())
  }
}

async function startAsking(
  parts: Parts,
  query: Query,
  talk: Deliberation,
  target: number,
  deadlineMs: number,
  asking: Map<number, Promise<void>>
): Promise<void> {
  // By the time of the delete the caller has put this promise into the map: an await never goes on at once.
  talk.outcomes[target] = await askTarget(parts, query, talk, target, deadlineMs)
  asking.delete(target)
}

/** Waits for any outcome; true where none came within the share of time of the target that was asked last. */
async function isSilent(
  { clock }: Parts,
  talk: Deliberation,
  deadlineMs: number,
  asking: ReadonlyMap<number, Promise<void>>
): Promise<boolean> {
  const unasked = talk.outcomes.filter((outcome) => outcome === null).length
  const restMs = Math.max(0, deadlineMs - clock.nowMs())
  const patienceMs = unasked === 1 ? restMs : Math.min(targetPatienceMs, restMs / unasked)
  const timeIsUp = Promise.withResolvers<boolean>()
  const cancel = clock.after(patienceMs, () => timeIsUp.resolve(true))
  const wasSilent = await Promise.race([
    timeIsUp.promise,
    ...[...asking.values()].map(async (one) => one.then(() => false))
  ])
  cancel()
  return wasSilent
}

function giveUpOn(parts: Parts, query: Query, talk: Deliberation, target: number): void {
  const stale = staleOf(parts, query, talk.match, talk.match.policy.targets[target]!)
  talk.outcomes[target] = { kind: 'unreachable', why: 'silent', isCached: false, stale }
}

/** In which order a policy's targets stand now, without what is drawn for each name and client. */
export const policyOrder = (parts: Parts, policy: Policy): TargetOrder => targetOrder(policy, parts.standings, null)

/** With every target down, what no target ever gave is denied without waiting: else each search list would stall. */
function deniedAtOnce(parts: Parts, query: Query, talk: Deliberation): Answer | null {
  if (!talk.order.allDown || !talk.isBelowService || talk.service === null) return null
  // Search lists make host names (`google.com.<namespace>...`); who asks for a port or protocol means a Service.
  if (query.qname.charCodeAt(1) === underscore || parts.knownServices.has(talk.service)) return null
  const { policy } = talk.match
  const ede = {
    code: EDE.NO_REACHABLE_AUTHORITY,
    text: `${policy.name}: every target is down, and none ever gave this Service`
  }
  return denialByRule(parts, talk.match, query, doubtfulTtlSeconds, ede)
}
