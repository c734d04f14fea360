/**
 * Answers by the policy table: asks a policy's targets in order, as `policy/decide` says, and turns the decision into
 * an answer with its reason.
 */
import { allDownBudgetMs, queryBudgetMs, targetPatienceMs } from '../base/limits.ts'
import { decide, type Decision } from '../policy/decide.ts'
import type { KubernetesName } from '../policy/kubernetes-name.ts'
import type { PolicyMatch } from '../policy/policy-table.ts'
import type { Policy, Target } from '../policy/policy.ts'
import { whyLeftOut } from '../policy/standing.ts'
import { targetOrder, type TargetOrder } from '../policy/target-order.ts'
import { toTheirs, zoneMapping } from '../policy/zone-mapping.ts'
import { EDE, RCODE, RRTYPE } from '../wire/iana.ts'
import { isAtOrBelow, rootName, type DomainName } from '../wire/name.ts'
import { denialByRule, staticAddressAnswer } from './made-here.ts'
import { answerOf, errorAnswer, isDenial, unlimitedTtlSeconds, type Answer, type Ede } from './answer.ts'
import { answerFromZone } from './from-zone.ts'
import type { Parts } from './parts.ts'
import { lastAnswer, peerOutcome, peerOutcomeFromMemory, type Outcome, type PeerRoute } from './peer-target.ts'
import type { Query } from './query.ts'

/** TTL in seconds of a denial that could not be confirmed by everybody who might know better. */
const doubtfulTtlSeconds = 1

const underscore = 0x5f

/** One query under one policy: what has been found out so far. */
type Deliberation = Readonly<{
  match: PolicyMatch
  order: TargetOrder
  outcomes: (Outcome | null)[]
  /** The Service that the name belongs to, if the schema tells, and whether the name is below it. */
  service: DomainName | null
  isBelowService: boolean
}>

/** @param name what the qname means in the zone that the policy's dnsName lies in. */
export function deliberate(parts: Parts, query: Query, match: PolicyMatch, name: KubernetesName | null): Deliberation {
  const { policy } = match
  const service = name?.service ?? null
  const order = targetOrder(policy, parts.standings, {
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
    const standing = parts.standings.of(policy.targets[target]!)
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

/** How a peer is asked on behalf of a policy. */
function peerRoute(parts: Parts, match: PolicyMatch, target: Target, qname: DomainName): PeerRoute | null {
  const peer = target.peer === null ? undefined : parts.peers.get(target.peer)
  if (peer === undefined) return null
  const { policy, zone } = match
  const mapping = zoneMapping(match.mappedZone, target)
  const theirZone = toTheirs(zone, mapping) ?? zone
  const isInZone = isAtOrBelow(qname, zone)
  return {
    peer: peer.peer,
    target: target.id,
    kind: 'peer',
    zone: isInZone ? theirZone : rootName,
    soaMayBeAbove: !match.isApexKnown && theirZone === zone,
    mapping,
    caps: {
      maxTtlSeconds: policy.maxTtlSeconds ?? unlimitedTtlSeconds,
      maxNegativeTtlSeconds: policy.maxNegativeTtlSeconds
    }
  }
}

const unreachable = (why: string): Outcome => ({ kind: 'unreachable', why, isCached: false, stale: null })

function localOutcome(parts: Parts, query: Query, qname: DomainName, qtype: number): Outcome {
  const zone = parts.own.zones.find(qname)
  if (zone === null) return unreachable('no zone of ours holds the name')
  const question = { qname, qtype, nowEpochMs: parts.clock.epochMs(), wantsServiceState: true }
  const answer = answerFromZone(parts.own, zone, question)
  query.trace?.add(parts.clock.nowMs(), { step: 'zone', detail: `local: serial ${zone.serial}`, ageMs: null })
  if (answer.sections.rcode === RCODE.SERVFAIL) return unreachable('the cluster has not been read yet')
  if (answer.isEmpty) return { kind: 'empty', reply: answer }
  return { kind: answer.sections.rcode === RCODE.NXDOMAIN ? 'absent' : 'has', reply: answer }
}

function outcomeFromMemory(parts: Parts, query: Query, talk: Deliberation, target: Target): Outcome | null {
  if (target.kind === 'addresses') return { kind: 'has', reply: staticAddressAnswer(talk.match, target, query) }
  if (target.kind === 'local') {
    const outcome = localOutcome(parts, query, query.qname, query.qtype)
    if (outcome.kind !== 'absent' || !needsServiceCheck(talk)) return outcome
    return ofService(outcome, localOutcome(parts, query, talk.service!, RRTYPE.A))
  }
  const route = peerRoute(parts, talk.match, target, query.qname)
  const theirs = route === null ? null : toTheirs(query.qname, route.mapping)
  if (route === null || theirs === null) return unreachable('the name has no place in its zone')
  const outcome = peerOutcomeFromMemory(parts, query, route, theirs, query.qtype)
  if (outcome?.kind !== 'absent' || !needsServiceCheck(talk)) return outcome
  const service = peerOutcomeFromMemory(parts, query, route, toTheirs(talk.service!, route.mapping)!, RRTYPE.A)
  return service === null ? null : ofService(outcome, service)
}

async function askTarget(
  parts: Parts,
  query: Query,
  talk: Deliberation,
  index: number,
  deadlineMs: number
): Promise<Outcome> {
  const target = talk.match.policy.targets[index]!
  const known = outcomeFromMemory(parts, query, talk, target)
  if (known !== null) return known
  const route = peerRoute(parts, talk.match, target, query.qname)!
  const theirs = toTheirs(query.qname, route.mapping)!
  let outcome = await peerOutcome(parts, query, route, theirs, query.qtype, deadlineMs)
  if (outcome.kind === 'absent' && needsServiceCheck(talk)) {
    const service = toTheirs(talk.service!, route.mapping)!
    outcome = ofService(outcome, await peerOutcome(parts, query, route, service, RRTYPE.A, deadlineMs))
  }
  const hasService = outcome.kind === 'has' || outcome.kind === 'empty'
  if (hasService && talk.service !== null) parts.knownServices.add(talk.service)
  return outcome
}

/**
 * A, AAAA, SRV and host names of one Service come from one target. So a denial of a name below a Service only sends
 * us on where that target does not have the Service itself.
 */
const needsServiceCheck = (talk: Deliberation): boolean =>
  talk.isBelowService && talk.service !== null && talk.match.policy.targets.length > 1

function ofService(denial: Outcome, service: Outcome): Outcome {
  if (denial.kind === 'unreachable') return denial
  if (service.kind === 'has') return { kind: 'has', reply: denial.reply }
  return service.kind === 'empty' ? { kind: 'empty', reply: denial.reply } : denial
}

function staleOf(parts: Parts, query: Query, match: PolicyMatch, target: Target): Answer | null {
  const route = peerRoute(parts, match, target, query.qname)
  const theirs = route === null ? null : toTheirs(query.qname, route.mapping)
  if (route === null || theirs === null) return null
  const outcome = peerOutcomeFromMemory(parts, query, route, theirs, query.qtype)
  if (outcome !== null) return outcome.kind === 'unreachable' ? outcome.stale : outcome.reply
  return lastAnswer(parts, query, route, theirs, query.qtype)
}

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

function conclude(
  parts: Parts,
  query: Query,
  talk: Deliberation,
  decision: Exclude<Decision<Answer>, { kind: 'ask' }>
): Answer {
  const { policy } = talk.match
  const name = (target: number): string => policy.targets[target]!.peer ?? policy.targets[target]!.id
  const why = (targets: readonly number[]): string =>
    targets
      .map((target) => {
        const outcome = talk.outcomes[target]
        return `${name(target)}: ${outcome?.kind === 'unreachable' ? outcome.why : 'not asked'}`
      })
      .join('; ')
  query.trace?.add(parts.clock.nowMs(), {
    step: 'policy',
    detail: `${policy.name}: ${decision.kind}${'target' in decision ? ` ${name(decision.target)}` : ''}`
  })
  if (decision.kind === 'use') return withCaps(decision.reply, talk, [])
  if (decision.kind === 'stale') {
    // What a dead target said last may still be within its TTL: then nothing about it is stale.
    const { origin } = decision.reply
    if (origin.from === 'cache' && origin.staleForMs === 0) return withCaps(decision.reply, talk, [])
    const code = decision.reply.sections.rcode === RCODE.NXDOMAIN ? EDE.STALE_NXDOMAIN : EDE.STALE_ANSWER
    return withCaps(decision.reply, talk, [{ code, text: `${policy.name}: ${why(decision.unreachable)}` }])
  }
  const isByHand = decision.unreachable.every((target) => parts.standings.of(policy.targets[target]!) === 'drained')
  const code = isByHand ? EDE.BLOCKED : EDE.NO_REACHABLE_AUTHORITY
  const ede: Ede[] = [{ code, text: `${policy.name}: ${why(decision.unreachable)}` }]
  if (decision.kind === 'doubtful-denial') {
    return { ...withCaps(decision.reply, talk, ede), maxTtlSeconds: doubtfulTtlSeconds }
  }
  const failed = decision.unreachable.map((target) => talk.outcomes[target])
  if (failed.length > 0 && failed.every((outcome) => outcome?.kind === 'unreachable' && outcome.isCached)) {
    ede.push({ code: EDE.CACHED_ERROR, text: 'the failure is remembered for a second' })
  }
  return { ...errorAnswer(RCODE.SERVFAIL, ...ede), policy: policy.name }
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
