/**
 * The one object that metrics, health, the status API and the commands read, so that they cannot disagree.
 * main implements it; everything here is a type.
 */
import type { CacheListing } from '../cache/cached-answer.ts'
import type { Config } from '../config/config.ts'
import type { ConfigProblem } from '../config/problem.ts'
import type { EventRing } from '../operator/event-ring.ts'
import type { Override, OverrideAction, Overrides } from '../operator/overrides.ts'
import type { PeerStats } from '../peer/peer-types.ts'
import type { Answer } from '../pipeline/answer.ts'
import type { DataPlane } from '../pipeline/data-plane.ts'
import type { Parts } from '../pipeline/parts.ts'
import type { ShownOrder } from '../pipeline/shown-order.ts'
import type { TraceStep } from '../pipeline/trace.ts'
import type { Policy } from '../policy/policy.ts'
import type { ListenerStats } from '../server/listeners.ts'
import type { MirrorStatus } from '../transfer/mirror-types.ts'
import type { DomainName } from '../wire/name.ts'
import type { ZoneStore } from '../zone/zone-store.ts'

/** Why the server is not ready, in words; empty: it is. */
export type Readiness = Readonly<{
  isReady: boolean
  /** Each thing that readiness depends on: `zone cluster.local`, `sockets`, `draining`. */
  conditions: readonly Readonly<{ name: string; isMet: boolean; detail: string }>[]
}>

/** One kind of object that is followed by list and watch. */
export type ResourceHealth = Readonly<{
  name: string
  state: string
  hasSynced: boolean
  objects: number
  lastSignOfLifeAgeMs: number | null
  lists: number
  watches: number
  events: number
  errors: number
  /** Objects that an audit found to differ from the API server's. */
  drift: number
  lastError: Readonly<{ text: string; ageMs: number }> | null
}>

/** A source cluster of ServiceImports that renews a Lease in this cluster. */
export type SourceClusterHealth = Readonly<{
  cluster: string
  /** `namespace/name`. */
  lease: string
  /** Whether its endpoints are left out of the answers. */
  isLost: boolean
  /** Since we saw the Lease renewed, or saw it first. */
  renewedAgoMs: number
  durationMs: number
}>

export type SourceClustersHealth = Readonly<{
  clusters: readonly SourceClusterHealth[]
  lossesTotal: number
  returnsTotal: number
}>

export type SourceStatus = Readonly<{
  kind: 'manifests' | 'kubernetes' | 'mirror'
  hasSynced: boolean
  /** Objects held, by kind. */
  objects: Readonly<Record<string, number>>
  /** Milliseconds since the source last gave a sign of life; null before the first. */
  lastSignOfLifeAgeMs: number | null
  /** Each kind that is followed by list and watch; empty for manifests. */
  resources: readonly ResourceHealth[]
  /** null where nobody looks at Leases. */
  sourceClusters: SourceClustersHealth | null
  /** What was left out or could not be read, bounded; `total` counts all since the start. */
  problems: readonly Readonly<{ where: string; reason: string }>[]
  problemsTotal: number
}>

export type ServerStatusOfPeer = Readonly<{
  server: string
  health: 'up' | 'down' | 'unknown' | 'doubtful'
  /** Why, and since when (milliseconds ago); null where nothing changed yet. */
  reason: string
  changedAgoMs: number | null
  rttMs: number | null
  inFlight: number
}>

export type PeerStatus = Readonly<{
  name: string
  region: string
  health: 'up' | 'down' | 'unknown' | 'doubtful'
  servers: readonly ServerStatusOfPeer[]
  stats: Readonly<PeerStats>
}>

/** What the operator set beside the configuration, as it holds now, and where it is kept. */
export type OverridesStatus = Overrides &
  Readonly<{
    /** In words. */
    where: string
    /** Why the place cannot be read, or its content is ignored; null: all is well. */
    problem: string | null
  }>

export type EndpointsStatus = Readonly<{
  /** Whether another replica checks, or we for all, or we for ourselves; null where nothing is checked. */
  role: 'following' | 'holding' | 'alone' | null
  /** Each with how it is checked: `tcp:8080 10.9.0.7`. */
  down: readonly string[]
  /** `<svc>.<ns>` of each virtual address that is down, once for each of them. */
  servicesDown: readonly string[]
  checks: number
  failures: number
  transitions: number
}>

export type ActionRequest = Readonly<{
  action: OverrideAction
  /** Where the request came from, for the log. */
  clientAddress: string
}>

export type WorkersStatus = Readonly<
  Record<'reading' | 'steered' | 'answered' | 'forwarded' | 'dropped' | 'lost', number> & {
    /** What the configuration asks for: `threads`. */
    wanted: number
    /** Why there are none though some are wanted; null: nothing keeps them from being there. */
    whyNone: string | null
  }
>

export type SimulationQuestion = Readonly<{
  /** Name of the policy. */
  policy: string
  /** Peers that are taken to be down. */
  down: readonly string[]
  /** Who asks; null: the first address that the policy is for, or 127.0.0.1, or anybody where `region` is given. */
  clientAddress: string | null
  /** Where who asks is taken to be; null: where `regions` has its address. */
  region: string | null
  /** Names that are answered both ways; empty: those that are cached of the policy's targets. */
  names: readonly DomainName[]
}>

export type SimulatedOrder = Readonly<{
  /** Ids of the targets that are asked, first one first, without what is drawn for each name and client. */
  order: readonly string[]
  /** Ids of those among them that are only asked when no other one can be reached. */
  reserves: readonly string[]
  /** Ids of those that count as unreachable. */
  leftOut: readonly string[]
  /** Share of names and clients that each target is asked first for. */
  firstShares: Readonly<Record<string, number>>
}>

export type Simulation = Readonly<{
  /** For whom it holds; null: whoever is in the region. `region` '' where none is known. */
  clientAddress: string | null
  region: string
  now: SimulatedOrder
  ifDown: SimulatedOrder
  /** Nobody could be asked: stale answers for so long, then SERVFAIL; null: somebody can. */
  staleForSeconds: number | null
  names: readonly Readonly<{ name: DomainName; type: number; now: string; ifDown: string }>[]
}>

export type TraceResult = Readonly<{ answer: Answer; steps: readonly TraceStep[]; tookMs: number }>

export type TraceQuestion = Readonly<{
  name: DomainName
  type: number
  clientAddress: string
  recursionDesired: boolean
}>

export type MirrorOfPeer = Readonly<{
  peer: string
  zones: readonly MirrorStatus[]
  evictions: Readonly<{ names: number; suffixes: number; answers: number }> | null
  /** Names whose TTLs have a cap since they were seen to change; changes seen; answers whose TTL became lower. */
  adaptiveTtl: Readonly<{ names: number; changes: number; capped: number }>
}>

export type CopyOfPeer = Readonly<{ peer: string; zone: ZoneStore }>

export interface Inspectable {
  readonly version: string
  /** Wall time of the start in milliseconds since 1970. */
  readonly startedAtEpochMs: number
  readonly dataPlane: DataPlane
  readonly dnsAddresses: readonly Readonly<{ host: string; port: number }>[]
  config(): Config
  /** The newest configuration file that was refused, while an older one is in use; empty: none. */
  configProblems(): readonly ConfigProblem[]
  /** Reloads since the start that were taken and that were refused. */
  reloads(): Readonly<{ taken: number; refused: number }>
  parts(): Parts
  readiness(): Readiness
  source(): SourceStatus
  zones(): readonly ZoneStore[]
  /** Peers' zones that are kept here, as far as they have come. */
  copies(): readonly CopyOfPeer[]
  /** Peers of the configuration, and `forward` where there is one. */
  peers(): readonly PeerStatus[]
  /** Addresses that are checked for health: those that are down, and counts since the start. */
  endpoints(): EndpointsStatus
  /** Zones of each peer that are kept or followed here, and what its changes took out of the cache. */
  mirrors(): readonly MirrorOfPeer[]
  /** What happened lately. */
  readonly events: EventRing
  overrides(): OverridesStatus
  /** What an operator disabled a policy by; null: nothing. */
  disablingOf(policy: string): Override | null
  /** Takes an action for good; why it could not be taken, or null. */
  act(request: ActionRequest): Promise<string | null>
  /** In which order the policy's targets would be asked now. */
  policyOrder(policy: Policy): ShownOrder
  listenerStats(): ListenerStats
  /** Threads that answer from memory: how many read, over how many the load is spread, and what they did with queries. */
  workers(): WorkersStatus
  /** Cached answers, newest use first, at most `limit`; `suffix` null: all. */
  cacheEntries(suffix: DomainName | null, limit: number): readonly Readonly<CacheListing & { ageMs: number }>[]
  /** Drops cached answers and says how many: of one name, at or below a suffix, or all. */
  flushCache(what: Readonly<{ name: DomainName } | { suffix: DomainName } | { all: true }>): number
  /** What a policy would do if peers were down, from live state; null: no policy is called so. */
  simulate(question: SimulationQuestion): Promise<Simulation | null>
  trace(question: TraceQuestion): Promise<TraceResult>
}
