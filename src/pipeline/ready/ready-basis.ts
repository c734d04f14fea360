/**
 * Which answers may be given again without looking, and what they rest on.
 *
 * Only what is known to rest on nothing else is kept: one RRset or denial of a zone of ours, of a copy of a peer's zone
 * or of one target's cached answer, without reasons (Extended DNS Errors), where no policy decides, or one that the
 * name's first target answers whatever the client and the moment. Everything else is worked out for each query.
 */
import type { CachedAnswer } from '../../cache/answer-cache.ts'
import type { PolicyMatch } from '../../policy/policy-table.ts'
import { toTheirs, zoneMapping } from '../../policy/zone-mapping.ts'
import { RCODE, RRTYPE } from '../../wire/iana.ts'
import { isAtOrBelow, parentOf, type DomainName } from '../../wire/name.ts'
import { readNameRdata, readSrv } from '../../wire/rdata.ts'
import type { MirroredZone } from '../../transfer/mirrored-zone.ts'
import type { ZoneStore } from '../../zone/zone-store.ts'
import { isDenial, type Answer } from '../answer.ts'
import { policyOrder } from '../by-policy.ts'
import type { Parts } from '../parts.ts'
import type { Query } from '../query.ts'
import { keyOf } from '../remembered.ts'
import { policyMatchOf } from '../respond.ts'
import { maxDependencies } from './ready-table.ts'

/** What an answer came from; it is asked again, with each answer, whether it still holds. */
export type ReadySource = Readonly<{
  from: 'zone' | 'cache' | 'mirror'
  /** For `zone`; denials carry its serial. */
  zone: ZoneStore | null
  /** For `mirror`: where the copy is, and which one it was. It is not held here, since it may be exchanged. */
  mirror: MirroredZone | null
  copyNumber: number
  /** For `cache`, with its key there. */
  entry: CachedAnswer | null
  cacheKey: string
  target: string | null
  /** Monotonic milliseconds; infinite for zones and copies. */
  validUntilMs: number
  policy: string | null
  /** That of the standings, where a policy decided; else null. */
  revision: number | null
  rcode: number
  /** Owner of the answer, or the qname, and type: how Freshness remembers it. */
  name: DomainName
  type: number
}>

export type ReadyBasis = Readonly<{
  source: ReadySource
  /** Names of our zones, or of the copy, whose changes end it. */
  names: readonly DomainName[]
}>

const podLabel = '\x03pod'
/** A Service is at most so many labels above a name of its own. */
const serviceDepth = 3

/** Null where the answer is not to be kept. */
export function basisOf(parts: Parts, query: Query, answer: Answer): ReadyBasis | null {
  const { sections, origin } = answer
  // Who asks for the SOA or NS of a zone may be one who takes it.
  if (query.qtype === RRTYPE.SOA || query.qtype === RRTYPE.NS) return null
  if (answer.ede.length > 0 || answer.pendingAlias !== null || query.peerdns !== null) return null
  if (sections.rcode !== RCODE.NOERROR && sections.rcode !== RCODE.NXDOMAIN) return null
  // An alias joins answers of several names.
  if (sections.answer.some(({ type, owner }) => type === RRTYPE.CNAME || owner !== query.qname)) return null
  const match = policyMatchOf(parts, query)
  if ((match?.policy.name ?? null) !== answer.policy) return null
  if (match !== null && !(isDecisive(match, answer) && isFirstTargets(parts, match, answer))) return null
  if (origin.from === 'zone') return fromZone(parts, query, answer, match)
  if (origin.from === 'mirror') return fromMirror(parts, query, answer, match)
  return origin.from === 'cache' ? fromCache(parts, query, answer, match) : null
}

/** False where the other targets had to be looked at first: what they have may change without a sign to us. */
const isDecisive = ({ policy }: PolicyMatch, { sections, isEmpty }: Answer): boolean =>
  policy.targets.length === 1 || (sections.rcode !== RCODE.NXDOMAIN && !isEmpty)

/**
 * Whether the policy would let its first target decide for every client that it is for, now and until standings change.
 */
function isFirstTargets(parts: Parts, { policy }: PolicyMatch, { origin }: Answer): boolean {
  if (policy.select !== 'first' || policy.tricklePercent > 0) return false
  const { order, excluded, allDown } = policyOrder(parts, policy)
  const first = policy.targets[order[0]!]!
  const standing = parts.standings.of(first)
  if (allDown || excluded.includes(order[0]!) || (standing !== 'up' && standing !== 'unknown')) return false
  if (origin.from === 'zone') return first.kind === 'local'
  if (origin.from === 'mirror') return first.kind === 'peer' && origin.target === first.id
  // A copy of the peer's zone is asked before the cache, and says other things tomorrow.
  const copies = first.peer === null ? null : (parts.peers.get(first.peer)?.copies ?? null)
  return origin.from === 'cache' && first.kind === 'peer' && copies?.areKept !== true && origin.target === first.id
}

function fromZone(parts: Parts, query: Query, answer: Answer, match: PolicyMatch | null): ReadyBasis | null {
  const { qname } = query
  const zone = parts.own.zones.find(qname)
  if (zone === null || answer.origin.from !== 'zone' || answer.origin.zone !== zone.apex) return null
  // Names of pods may be computed, from what no change of the zone tells.
  if (isAtOrBelow(qname, (podLabel + zone.apex) as DomainName)) return null
  const names = new Set<DomainName>([qname])
  for (const { type, rdata } of answer.sections.answer) {
    if (type !== RRTYPE.SRV && type !== RRTYPE.NS) continue
    for (const octets of rdata) names.add(type === RRTYPE.SRV ? readSrv(octets).target : readNameRdata(octets))
  }
  if (match !== null) addServiceNames(names, qname)
  if (names.size > maxDependencies) return null
  const source = sourceOf(parts, query, answer, match, { ...nothing, from: 'zone', zone })
  return { source: { ...source, validUntilMs: Number.POSITIVE_INFINITY }, names: [...names] }
}

/** Whether a Service is empty makes a target give way. */
function addServiceNames(names: Set<DomainName>, name: DomainName): void {
  let above: DomainName | null = name
  for (let depth = 1; depth < serviceDepth && above !== null; depth++) {
    above = parentOf(above)
    if (above !== null) names.add(above)
  }
}

/** Names of hosts that come along have names of theirs, so those are left out; and so is what a signed zone adds. */
function fromMirror(parts: Parts, query: Query, answer: Answer, match: PolicyMatch | null): ReadyBasis | null {
  const { origin, sections } = answer
  if (match === null || origin.from !== 'mirror' || origin.staleForMs > 0 || query.dnssecOk) return null
  if (sections.additional.length > 0 || sections.answer.some(({ type }) => namingTypes.has(type))) return null
  const target = match.policy.targets.find(({ id }) => id === origin.target)
  if (target === undefined || target.peer === null) return null
  const theirs = toTheirs(query.qname, zoneMapping(match.mappedZone, target))
  const mirror = theirs === null ? null : (parts.peers.get(target.peer)?.copies?.find(theirs) ?? null)
  if (theirs === null || mirror === null) return null
  const { copy, copyNumber } = mirror
  if (copy === null || !copy.coverage.isWhole || copy.store.apex !== origin.zone) return null
  const names = new Set<DomainName>([theirs])
  addServiceNames(names, theirs)
  const source = sourceOf(parts, query, answer, match, { ...nothing, from: 'mirror', mirror, copyNumber })
  return { source: { ...source, target: origin.target, validUntilMs: Number.POSITIVE_INFINITY }, names: [...names] }
}

function fromCache(parts: Parts, query: Query, answer: Answer, match: PolicyMatch | null): ReadyBasis | null {
  const { origin, sections } = answer
  if (origin.from !== 'cache' || origin.staleForMs > 0) return null
  const target = match?.policy.targets.find(({ id }) => id === origin.target)
  const mapping = match === null || target === undefined ? null : zoneMapping(match.mappedZone, target)
  const name = toTheirs(query.qname, mapping)
  if (name === null) return null
  const cacheKey = keyOf({ target: origin.target, name, type: query.qtype }, query)
  const entry = parts.cache.peek(cacheKey, parts.clock.nowMs())?.entry ?? null
  if (entry === null || entry.targetId !== origin.target) return null
  const isNegative = entry.kind === 'nodata' || entry.kind === 'nxdomain'
  if (isNegative !== isDenial(sections) || entry.kind === 'failure') return null
  const caps =
    match === null
      ? parts.cacheLimits
      : {
          maxTtlSeconds: match.policy.maxTtlSeconds ?? Number.POSITIVE_INFINITY,
          maxNegativeTtlSeconds: match.policy.maxNegativeTtlSeconds
        }
  const capSeconds = isNegative ? caps.maxNegativeTtlSeconds : caps.maxTtlSeconds
  const validUntilMs = Math.min(entry.expiresAtMs, entry.storedAtMs + capSeconds * 1000)
  const source = sourceOf(parts, query, answer, match, { ...nothing, from: 'cache', entry, cacheKey })
  return { source: { ...source, target: origin.target, validUntilMs }, names: [] }
}

/** Types whose records name others. */
const namingTypes: ReadonlySet<number> = new Set([RRTYPE.SRV, RRTYPE.NS, RRTYPE.PTR, RRTYPE.MX])

type Given = Pick<ReadySource, 'from' | 'zone' | 'mirror' | 'copyNumber' | 'entry' | 'cacheKey'>
const nothing = { zone: null, mirror: null, copyNumber: 0, entry: null, cacheKey: '' } as const

const sourceOf = (
  parts: Parts,
  query: Query,
  answer: Answer,
  match: PolicyMatch | null,
  given: Given
): Omit<ReadySource, 'validUntilMs'> => ({
  ...given,
  target: null,
  policy: answer.policy,
  revision: match === null ? null : parts.standings.revision(),
  rcode: answer.sections.rcode,
  name: answer.sections.answer[0]?.owner ?? query.qname,
  type: query.qtype
})
