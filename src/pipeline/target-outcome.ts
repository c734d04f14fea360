/**
 * What one target of a policy says of the name at hand: from our own zones, from the policy itself, or another
 * cluster's.
 */
import type { TargetOrder } from '../policy/target-order.ts'
import type { PolicyMatch } from '../policy/policy-table.ts'
import type { Target } from '../policy/policy.ts'
import type { TargetStanding } from '../policy/standing.ts'
import { toTheirs, zoneMapping } from '../policy/zone-mapping.ts'
import { isAddressType, RCODE, RRTYPE } from '../wire/iana.ts'
import { isAtOrBelow, rootName, type DomainName } from '../wire/name.ts'
import { closedByRule, staticAddressAnswer } from './made-here.ts'
import { unlimitedTtlSeconds, type Answer } from './answer.ts'
import { answerFromZone } from './from-zone.ts'
import type { Parts } from './parts.ts'
import { lastAnswer, peerOutcome, peerOutcomeFromMemory, type Outcome, type PeerRoute } from './peer-target.ts'
import type { Query } from './query.ts'
import { isNameHeld } from './remembered.ts'
import { refreshStale } from './refresh-stale.ts'

/** One query under one policy: what has been found out so far. */
export type Deliberation = Readonly<{
  match: PolicyMatch
  order: TargetOrder
  outcomes: (Outcome | null)[]
  /** The Service that the name belongs to, if the schema tells, and whether the name is below it. */
  service: DomainName | null
  isBelowService: boolean
  /** All targets are asked, and their answers are joined. */
  isMerged: boolean
}>

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
    copies: peer.copies,
    zone: isInZone ? theirZone : rootName,
    soaMayBeAbove: !match.isApexKnown && theirZone === zone,
    mapping,
    caps: {
      maxTtlSeconds: policy.maxTtlSeconds ?? unlimitedTtlSeconds,
      maxNegativeTtlSeconds: policy.maxNegativeTtlSeconds
    },
    isBackground: false
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

/** The addresses of a target that stand in the policy, without those that its probe found to be down. */
export const healthyAddresses = (parts: Parts, { addresses, probe }: Target): readonly string[] =>
  probe === null ? addresses : addresses.filter((address) => !parts.isDownEndpoint(address, probe))

/** Those that are healthy; where none is, all of them, as of a Service without ready endpoints. */
function addressesOutcome(parts: Parts, query: Query, { match }: Deliberation, target: Target): Outcome {
  const { addresses } = target
  const healthy = healthyAddresses(parts, target)
  if (healthy.length > 0) return { kind: 'has', reply: staticAddressAnswer(match, target, query, healthy) }
  return { kind: 'empty', reply: staticAddressAnswer(match, target, query, addresses) }
}

/** With `allDown` other than `next` a target without a healthy endpoint is the end of it. */
function settled(parts: Parts, query: Query, { match }: Deliberation, outcome: Outcome): Outcome {
  if (outcome.kind !== 'empty' || match.policy.allDown === 'next') return outcome
  const reply = match.policy.allDown === 'open' ? outcome.reply : closedByRule(parts, match, query)
  return { kind: 'has', reply }
}

export function outcomeFromMemory(parts: Parts, query: Query, talk: Deliberation, target: Target): Outcome | null {
  const outcome = unsettledFromMemory(parts, query, talk, target)
  if (outcome === null) return null
  if (target.kind === 'peer') noteService(parts, talk, outcome)
  return settled(parts, query, talk, outcome)
}

/** What came from the cache may have come there under another name. */
function noteService(parts: Parts, { service }: Deliberation, { kind }: Outcome): void {
  if (service !== null && (kind === 'has' || kind === 'empty')) parts.knownServices.add(service, parts.clock.nowMs())
}

function unsettledFromMemory(parts: Parts, query: Query, talk: Deliberation, target: Target): Outcome | null {
  if (target.kind === 'addresses') return addressesOutcome(parts, query, talk, target)
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

export async function askTarget(
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
  noteService(parts, talk, outcome)
  return settled(parts, query, talk, outcome)
}

/**
 * A, AAAA, SRV and host names of one Service come from one target. So a denial of a name below a Service only sends
 * us on where that target does not have the Service itself. With `merge` they come from all of them.
 */
const needsServiceCheck = ({ isBelowService, service, match: { policy } }: Deliberation): boolean =>
  isBelowService && service !== null && policy.targets.length > 1 && policy.select !== 'merge'

function ofService(denial: Outcome, service: Outcome): Outcome {
  if (denial.kind === 'unreachable') return denial
  if (service.kind === 'has') return { kind: 'has', reply: denial.reply }
  return service.kind === 'empty' ? { kind: 'empty', reply: denial.reply } : denial
}

export function staleOf(parts: Parts, query: Query, match: PolicyMatch, target: Target): Answer | null {
  const route = peerRoute(parts, match, target, query.qname)
  const theirs = route === null ? null : toTheirs(query.qname, route.mapping)
  if (route === null || theirs === null) return null
  const outcome = peerOutcomeFromMemory(parts, query, route, theirs, query.qtype)
  if (outcome !== null) return outcome.kind === 'unreachable' ? outcome.stale : outcome.reply
  return lastAnswer(parts, query, route, theirs, query.qtype)
}

/** Whether the target has the name by what is held of it, also of other types, and of whatever it was asked for. */
export function isKnownToHave(parts: Parts, query: Query, match: PolicyMatch, target: Target): boolean {
  if (target.peer === null || parts.standings.of(target) === 'drained') return false
  const name = toTheirs(query.qname, zoneMapping(match.mappedZone, target))
  return name !== null && isNameHeld(parts, { target: target.id, name, type: query.qtype }, query)
}

/** Whether there is something to say if this last target fails: a denial, a stale answer, or that it has the name. */
export function hasFallback(parts: Parts, query: Query, { match, outcomes }: Deliberation, last: Target): boolean {
  for (const outcome of outcomes) {
    if (outcome !== null && (outcome.kind !== 'unreachable' || outcome.stale !== null)) return true
  }
  if (staleOf(parts, query, match, last) !== null) return true
  return isAddressType(query.qtype) && isKnownToHave(parts, query, match, last)
}

const standingsToAsk: ReadonlySet<TargetStanding> = new Set(['up', 'unknown', 'returning'])

/**
 * Has a target asked again for its last answer, which was given out stale, as soon as there is hope that it answers.
 */
export function refreshTarget(parts: Parts, query: Query, { match }: Deliberation, target: Target): void {
  const route = peerRoute(parts, match, target, query.qname)
  const theirs = route === null ? null : toTheirs(query.qname, route.mapping)
  if (route === null || theirs === null) return
  refreshStale(parts, query, route, theirs, query.qtype, () => standingsToAsk.has(parts.standings.of(target)))
}

/** A doubtful peer is tried with what clients ask now. */
export function tellPassedOver(parts: Parts, query: Query, match: PolicyMatch, target: Target): void {
  const peer = target.peer === null ? undefined : parts.peers.get(target.peer)
  const name = toTheirs(query.qname, zoneMapping(match.mappedZone, target))
  if (name !== null) peer?.passedOver({ name, type: query.qtype })
}
