/** What the pipeline joins: built by main, exchanged as a whole when the configuration is reloaded. */
import type { Logger } from '../base/log.ts'
import type { Clock } from '../base/clock.ts'
import type { AnswerCache } from '../cache/answer-cache.ts'
import type { StaleRefresh } from '../cache/stale-refresh.ts'
import type { Peer } from '../peer/peer.ts'
import type { ClientRegions } from '../policy/client-regions.ts'
import type { PolicyTable } from '../policy/policy-table.ts'
import type { ClientSet } from '../policy/policy.ts'
import type { Standings } from '../policy/standing.ts'
import type { Primary } from '../transfer/primary.ts'
import type { DomainName } from '../wire/name.ts'
import type { PeerCopies } from './from-copy.ts'
import type { Freshness } from './freshness.ts'
import type { OwnZones } from './from-zone.ts'
import type { KnownServices } from './known-services.ts'

/** A peer as policies use it. */
export type PeerTarget = Readonly<{
  peer: Peer
  /** Its zones that are kept here by transfer; null: none are. */
  copies: PeerCopies | null
  /**
   * Is told what a client asked, as the peer calls it, that others are asked for first because the peer is doubtful.
   */
  passedOver: (question: Readonly<{ name: DomainName; type: number }>) => void
}>

export type Parts = Readonly<{
  /** Names this process in our EDNS option; hex. */
  instanceId: string
  clock: Clock
  log: Logger
  /** Uniform in [0, 1). */
  random: () => number
  own: OwnZones
  /** Gives our zones to others, as far as they may take them. */
  primary: Primary
  clusterZone: DomainName
  clustersetZone: DomainName
  /** Those that are in force. */
  policies: PolicyTable
  /** The same with those that only count what they would change (`enforce: false`); null: there are none. */
  withUnenforced: PolicyTable | null
  peers: ReadonlyMap<string, PeerTarget>
  /** What is known of targets before they are asked: health, and what the operator set by hand. */
  standings: Standings
  /** Whether a checked address was found to be down. */
  isDownEndpoint: (address: string, check: string) => boolean
  /** For `select: geo`. */
  clientRegions: ClientRegions
  /**
   * Hears who says by NOTIFY that a zone has changed, with the key that signed it, and gives the RCODE that answers it;
   * null: nobody's zone matters.
   */
  notified: ((address: string, zone: DomainName, key: DomainName | null) => number) | null
  /** Everything that is neither ours nor peered; null: refused. */
  forward: Peer | null
  cache: AnswerCache
  /** Asks again for what is given out stale. */
  staleRefresh: StaleRefresh
  cacheLimits: Readonly<{ maxTtlSeconds: number; maxNegativeTtlSeconds: number; serveStaleSeconds: number }>
  knownServices: KnownServices
  freshness: Freshness
  allow: ClientSet
  /** One query in this many is logged; null: none. */
  logQueriesEvery: number | null
}>
