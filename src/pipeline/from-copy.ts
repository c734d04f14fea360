/**
 * What a copy of a peer's zone says of a question, as if that peer had been asked: fresh while the peer gives signs of
 * life, stale behind that, nothing where the copy cannot know.
 */
import type { AdaptiveTtl } from '../cache/adaptive-ttl.ts'
import type { PolicyMatch } from '../policy/policy-table.ts'
import type { Target } from '../policy/policy.ts'
import type { Standings } from '../policy/standing.ts'
import { toTheirs, zoneMapping } from '../policy/zone-mapping.ts'
import type { DomainName } from '../wire/name.ts'
import type { MirroredZone } from '../transfer/mirrored-zone.ts'
import { isDenial, lowestTtlSeconds, type Answer } from './answer.ts'
import { answerFromZone, type OwnZones } from './from-zone.ts'
import type { Parts } from './parts.ts'
import type { Query } from './query.ts'
import { staleTtlSeconds, type Remembered, type TargetQuestion, type TtlCaps } from './remembered.ts'

/** The zones of one peer that are kept here by transfer. */
export type PeerCopies = Readonly<{
  /** false: none are kept, so there is nothing to find. */
  areKept: boolean
  /** The copy that holds a name, as the peer calls it; null where there is none. */
  find(name: DomainName): MirroredZone | null
  /**
   * Whether an answer for the name that was asked for at `askedAtMs` may be from before a change (`outdated`), or what
   * comes now may still be (`settling`); null: neither.
   */
  doubt(name: DomainName, askedAtMs: number): 'outdated' | 'settling' | null
  /** Caps TTLs by what was seen to change; null: the peer tells of changes of this name by itself. */
  adaptiveTtl(name: DomainName): AdaptiveTtl | null
}>

/** Null where there is no copy, where it cannot know, or where it is too old to be given out. */
export function fromCopy(
  parts: Parts,
  copies: PeerCopies | null,
  question: TargetQuestion,
  query: Query,
  caps: TtlCaps
): Remembered | null {
  const zone = copies?.find(question.name) ?? null
  const copy = zone?.copy ?? null
  if (zone === null || copy === null) return null
  const { store, coverage } = copy
  if (query.dnssecOk && coverage.hasSignatures) return null
  if (!coverage.isWhole && !coverage.covers(question.name, store.exists(question.name))) return null
  const isLive = zone.isLive()
  const ageMs = zone.ageMs()!
  const answer = answerFromZone(
    { zones: parts.own.zones, hasSynced: always, signOfLifeAgeMs: () => ageMs } satisfies OwnZones,
    store,
    { qname: question.name, qtype: question.type, nowEpochMs: 0, wantsServiceState: true }
  )
  if (!isLive && !mayBeStale(parts, zone, capOf(answer, parts, caps), answer)) return null
  const staleForMs = isLive ? 0 : Math.max(1, zone.unconfirmedMs()!)
  const origin = {
    from: 'mirror',
    zone: store.apex,
    target: question.target,
    server: zone.server,
    ageMs,
    staleForMs
  } as const
  const given: Answer = {
    ...answer,
    origin,
    authoritative: isLive,
    // What its aliases lead to is looked up as the peer's, by whoever asked us.
    pendingAlias: null,
    maxTtlSeconds: isLive ? capOf(answer, parts, caps) : staleTtlSeconds
  }
  return { kind: isLive ? 'fresh' : 'stale', answer: given }
}

const always = (): boolean => true

/**
 * Whether the copy may be given out although its peer is silent: not past the stale window, which begins when the TTL
 * has run out since the last sign of life, nor the zone's own EXPIRE.
 */
function mayBeStale({ cacheLimits }: Parts, zone: MirroredZone, capSeconds: number, answer: Answer): boolean {
  const { serveStaleSeconds } = cacheLimits
  if (serveStaleSeconds === 0 || zone.isExpired()) return false
  const ttlSeconds = Math.min(lowestTtlSeconds(answer) ?? 0, capSeconds)
  return zone.unconfirmedMs()! <= (ttlSeconds + serveStaleSeconds) * 1000
}

const capOf = ({ sections }: Answer, { cacheLimits }: Parts, caps: TtlCaps): number =>
  isDenial(sections) ? caps.maxNegativeTtlSeconds : Math.min(caps.maxTtlSeconds, cacheLimits.maxTtlSeconds)

/**
 * What stands for or against each target for one name: a copy of the peer's zone stands for the peer while it lives,
 * whatever probes say; a copy whose peer is silent leaves it to the probes to show that the peer can be asked.
 */
export function standingsByCopies(parts: Parts, match: PolicyMatch, qname: DomainName): Standings {
  const { standings } = parts
  if (!match.policy.targets.some(({ peer }) => peer !== null && parts.peers.get(peer)?.copies?.areKept === true))
    return standings
  return {
    ...standings,
    of(target) {
      const standing = standings.of(target)
      const zone = standing === 'drained' ? null : copyFor(parts, match, target, qname)
      if (zone === null) return standing
      if (zone.isLive()) return 'up'
      return standing === 'unknown' ? 'down' : standing
    }
  }
}

/** Whether there is a copy of the target's zone, too old to be given out at all. */
export const copyHasExpired = (parts: Parts, match: PolicyMatch, target: Target, qname: DomainName): boolean =>
  copyFor(parts, match, target, qname)?.isExpired() ?? false

function copyFor(parts: Parts, match: PolicyMatch, target: Target, qname: DomainName): MirroredZone | null {
  const copies = target.peer === null ? null : (parts.peers.get(target.peer)?.copies ?? null)
  if (copies === null || !copies.areKept) return null
  const theirs = toTheirs(qname, zoneMapping(match.mappedZone, target))
  return theirs === null ? null : copies.find(theirs)
}
