/**
 * The life of one query after it was accepted, whole on one screen: who answers it, and the end of its aliases.
 *
 * Both functions follow the same order. `respondFromMemory` gives null as soon as somebody else has to be asked;
 * `respond` may wait.
 *
 *   1. A policy (longest dnsName) decides, unless the name is reserved, impossible, or deeper in a zone of ours.
 *   2. A zone of ours answers.
 *   3. A question without RD for anything else is refused: there is no transit.
 *   4. `forward` answers.
 *   5. Nobody does: REFUSED.
 */
import { maxAliases, queryBudgetMs } from '../base/limits.ts'
import { isReserved, readKubernetesName, type KubernetesName } from '../policy/kubernetes-name.ts'
import type { PolicyMatch } from '../policy/policy-table.ts'
import type { Policy } from '../policy/policy.ts'
import { EDE, RCODE, RRTYPE } from '../wire/iana.ts'
import { readNameRdata } from '../wire/rdata.ts'
import type { RRset } from '../wire/rr.ts'
import { nameToText, rootName, type DomainName } from '../wire/name.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import { errorAnswer, lowestTtlSeconds, type Answer, type Ede } from './answer.ts'
import { answerByPolicy, answerByPolicyFromMemory, deliberate } from './by-policy.ts'
import { answerFromZone } from './from-zone.ts'
import { noRule } from './made-here.ts'
import type { Parts } from './parts.ts'
import { joinAlias, peerOutcome, peerOutcomeFromMemory, type Outcome, type PeerRoute } from './peer-target.ts'
import { queryFor, type Query } from './query.ts'
import { refreshStale } from './refresh-stale.ts'

type Route =
  | Readonly<{ by: 'policy'; match: PolicyMatch; name: KubernetesName | null }>
  | Readonly<{ by: 'zone'; zone: ZoneStore }>
  | Readonly<{ by: 'forward'; route: PeerRoute }>
  | Readonly<{ by: 'nobody' }>

export function respondFromMemory(parts: Parts, query: Query): Answer | null {
  let answer = oneAnswerFromMemory(parts, query)
  if (answer === null || answer.pendingAlias === null) return answer
  const seen = new Set<DomainName>([query.qname])
  while (answer.pendingAlias !== null && mayFollow(seen, answer.pendingAlias)) {
    if (seen.size > maxAliases + 1) return tooLong()
    const next = oneAnswerFromMemory(parts, queryFor(query, answer.pendingAlias, query.qtype))
    if (next === null) return null
    if (isUnanswered(next)) break
    answer = joinAlias(answer, next)
  }
  return answer
}

export async function respond(parts: Parts, query: Query): Promise<Answer> {
  let answer = await oneAnswer(parts, query)
  if (answer.pendingAlias === null) return answer
  const seen = new Set<DomainName>([query.qname])
  while (answer.pendingAlias !== null && mayFollow(seen, answer.pendingAlias)) {
    query.trace?.add(parts.clock.nowMs(), { step: 'alias', detail: `an alias of ${nameToText(answer.pendingAlias)}` })
    if (seen.size > maxAliases + 1) return tooLong()
    const next = await oneAnswer(parts, queryFor(query, answer.pendingAlias, query.qtype))
    if (isUnanswered(next)) break
    answer = joinAlias(answer, next)
  }
  return answer
}

/** Each alias once: a loop ends with what there is, NOERROR. */
function mayFollow(seen: Set<DomainName>, alias: DomainName): boolean {
  if (seen.has(alias)) return false
  seen.add(alias)
  return true
}

/** A chain that goes on for too long is an error, not an answer without data. */
const tooLong = (): Answer => errorAnswer(RCODE.SERVFAIL, { code: EDE.OTHER, text: `more than ${maxAliases} aliases` })

/** Nobody here is for the alias's end: the client gets the alias and may ask elsewhere. */
const isUnanswered = (answer: Answer): boolean => answer.sections.rcode === RCODE.REFUSED

function oneAnswerFromMemory(parts: Parts, query: Query): Answer | null {
  const route = routeOf(parts, query)
  if (route.by === 'policy')
    return answerByPolicyFromMemory(parts, query, deliberate(parts, query, route.match, route.name))
  if (route.by === 'zone') return zoneAnswer(parts, query, route.zone)
  if (route.by === 'nobody') return errorAnswer(RCODE.REFUSED, noRule)
  const outcome = peerOutcomeFromMemory(parts, query, route.route, query.qname, query.qtype)
  return outcome === null ? null : forwardAnswer(parts, query, outcome)
}

function oneAnswer(parts: Parts, query: Query): Promise<Answer> | Answer {
  const route = routeOf(parts, query)
  query.trace?.add(parts.clock.nowMs(), { step: 'route', detail: routeToText(route) })
  if (route.by === 'policy') return answerByPolicy(parts, query, deliberate(parts, query, route.match, route.name))
  if (route.by === 'zone') return zoneAnswer(parts, query, route.zone)
  if (route.by === 'nobody') return errorAnswer(RCODE.REFUSED, noRule)
  return answerByForward(parts, query, route.route)
}

async function answerByForward(parts: Parts, query: Query, route: PeerRoute): Promise<Answer> {
  const deadlineMs = query.receivedAtMs + queryBudgetMs
  return forwardAnswer(parts, query, await peerOutcome(parts, query, route, query.qname, query.qtype, deadlineMs))
}

/** The policy that decides the query; null where none does. */
export const policyOf = (parts: Parts, query: Query): Policy | null => policyMatchOf(parts, query)?.policy ?? null

/** The same with the dnsName that matched. */
export function policyMatchOf(parts: Parts, query: Query): PolicyMatch | null {
  const route = routeOf(parts, query)
  return route.by === 'policy' ? route.match : null
}

function routeOf(parts: Parts, query: Query): Route {
  const { qname } = query
  const zone = parts.own.zones.find(qname)
  const match = matchPolicy(parts, query)
  if (match !== null && (zone === null || match.dnsName.length >= zone.apex.length)) {
    const name = readKubernetesName(qname, match.zone)
    // Names that no Kubernetes object can have never leave the cluster: our own zone denies them.
    if (match.zone !== parts.clusterZone || name?.kind !== 'impossible') return { by: 'policy', match, name }
  }
  if (zone !== null) return { by: 'zone', zone }
  if (!query.recursionDesired || parts.forward === null) return { by: 'nobody' }
  return { by: 'forward', route: forwardRoute(parts, parts.forward) }
}

function matchPolicy(parts: Parts, query: Query): PolicyMatch | null {
  const { policies, clusterZone } = parts
  if (policies.policies.length === 0) return null
  return policies.match(query.qname, query.client.address, (policy) => {
    if (!query.recursionDesired && !policy.transit) return false
    if (policy.allowReserved) return true
    const name = readKubernetesName(query.qname, clusterZone)
    return name === null || !isReserved(name, clusterZone)
  })
}

function zoneAnswer(parts: Parts, query: Query, zone: ZoneStore): Answer {
  const answer = answerFromZone(parts.own, zone, {
    qname: query.qname,
    qtype: query.qtype,
    nowEpochMs: parts.clock.epochMs(),
    wantsServiceState: query.peerdns !== null
  })
  query.trace?.add(parts.clock.nowMs(), {
    step: 'zone',
    detail: `${nameToText(zone.apex)} serial ${zone.serial}`,
    ageMs: answer.origin.from === 'zone' ? answer.origin.ageMs : null,
    ttlSeconds: lowestTtlSeconds(answer)
  })
  return answer
}

const forwardTarget = 'forward'

function forwardRoute(parts: Parts, peer: PeerRoute['peer']): PeerRoute {
  const caps = parts.cacheLimits
  return {
    peer,
    target: forwardTarget,
    kind: 'upstream',
    copies: null,
    zone: rootName,
    soaMayBeAbove: false,
    mapping: null,
    caps,
    isBackground: false
  }
}

/** Nobody probes resolvers. */
const always = (): boolean => true

function forwardAnswer(parts: Parts, query: Query, outcome: Outcome): Answer {
  if (outcome.kind !== 'unreachable') return withOwnAliasEnds(parts, query, outcome.reply)
  if (outcome.stale !== null) {
    refreshStale(parts, query, forwardRoute(parts, parts.forward!), query.qname, query.qtype, always)
    const code = outcome.stale.sections.rcode === RCODE.NXDOMAIN ? EDE.STALE_NXDOMAIN : EDE.STALE_ANSWER
    return { ...outcome.stale, ede: [{ code, text: `forward: ${outcome.why}` }] }
  }
  const ede: Ede[] = [
    { code: EDE.NO_REACHABLE_AUTHORITY, text: 'forward: no resolver gave a usable answer' },
    { code: EDE.NETWORK_ERROR, text: outcome.why }
  ]
  if (outcome.isCached) ede.push({ code: EDE.CACHED_ERROR, text: 'the failure is remembered for a second' })
  return errorAnswer(RCODE.SERVFAIL, ...ede)
}

/**
 * A resolver has no say in our zones and below policies: where its aliases lead there, what it says of the end is
 * dropped and looked up by our rules. An alias that it leaves open is followed too.
 */
function withOwnAliasEnds(parts: Parts, query: Query, answer: Answer): Answer {
  const { answer: rrsets, rcode } = answer.sections
  if (!rrsets.some(({ type }) => type === RRTYPE.CNAME) || query.qtype === RRTYPE.CNAME) return answer
  const aliases: RRset[] = []
  let name = query.qname
  for (;;) {
    const alias = rrsets.find(({ owner, type }) => owner === name && type === RRTYPE.CNAME)
    if (alias === undefined || aliases.includes(alias)) break
    aliases.push(alias)
    name = readNameRdata(alias.rdata[0]!)
    const route = routeOf(parts, queryFor(query, name, query.qtype))
    if (route.by === 'zone' || route.by === 'policy') {
      const sections = { rcode: RCODE.NOERROR, answer: aliases, authority: [], additional: [] }
      return { ...answer, sections, pendingAlias: name }
    }
  }
  const isOpen = rcode === RCODE.NOERROR && !rrsets.some(({ owner, type }) => owner === name && type === query.qtype)
  const isDenied = answer.sections.authority.length > 0
  return isOpen && !isDenied ? { ...answer, pendingAlias: name } : answer
}

function routeToText(route: Route): string {
  if (route.by === 'policy') return `policy ${route.match.policy.name} (${nameToText(route.match.dnsName)})`
  if (route.by === 'zone') return `our zone ${nameToText(route.zone.apex)}`
  return route.by === 'forward' ? 'forward' : 'no rule'
}
