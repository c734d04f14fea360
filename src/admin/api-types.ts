/**
 * What `/api/v1` answers, as JSON: read by the commands and the dashboard.
 *
 * Units are in the key names; ages and durations are in milliseconds, TTLs in seconds. Names and RDATA are in
 * presentation format, names with their last dot. What is not known is null.
 */
import type { ConfigProblem } from '../config/problem.ts'
import type { ResourceHealth, SourceClustersHealth } from './inspectable.ts'

/** `doubtful`: probes are answered, questions of clients are not. */
export type Health = 'up' | 'down' | 'unknown' | 'doubtful'

export type RecordJson = Readonly<{ name: string; type: string; ttlSeconds: number; data: string }>

/** Line and column count from 1. */
export type ConfigProblemJson = ConfigProblem

export type StatusJson = Readonly<{
  cluster: string
  region: string
  zone: string
  clustersetZone: string
  version: string
  startedAt: string
  uptimeMs: number
  isReady: boolean
  conditions: readonly Readonly<{ name: string; isMet: boolean; detail: string }>[]
  /** `host:port`. */
  dnsAddresses: readonly string[]
  config: Readonly<{
    file: string
    hash: string
    reloadsTaken: number
    reloadsRefused: number
    /** Why the newest file is not in use; empty: it is. */
    problems: readonly ConfigProblemJson[]
  }>
  source: Readonly<{
    kind: string
    hasSynced: boolean
    objects: Readonly<Record<string, number>>
    lastSignOfLifeAgeMs: number | null
    /** Each kind that is followed by list and watch. */
    resources: readonly ResourceHealth[]
    /** Source clusters of ServiceImports by their Leases; null unless `cluster.leases` is set. */
    sourceClusters: SourceClustersHealth | null
    problems: readonly Readonly<{ where: string; reason: string }>[]
    problemsTotal: number
  }>
  /** Who answers over UDP from memory, beside the main thread. */
  workers: Readonly<{
    wanted: number
    reading: number
    /** Why there are none though some are wanted. */
    whyNone: string | null
    answered: number
    /** Queries that the main thread answered for them. */
    forwarded: number
  }>
  queries: Readonly<{
    udp: number
    tcp: number
    dropped: number
    malformed: number
    overloaded: number
    bugs: number
    misses: number
    stale: number
    inFlight: number
    byRcode: Readonly<Record<string, number>>
    bySource: Readonly<Record<string, number>>
  }>
  cache: Readonly<{
    entries: number
    octets: number
    limitOctets: number
    hits: number
    misses: number
    evictions: number
  }>
  zones: number
  policies: number
  peers: readonly Readonly<{ name: string; health: Health }>[]
  mirrors: readonly (MirrorJson & Readonly<{ peer: string }>)[]
}>

export type ServerJson = Readonly<{
  server: string
  health: Health
  reason: string
  changedAgoMs: number | null
  rttMs: number | null
  inFlight: number
}>

export type PeerJson = Readonly<{
  name: string
  region: string
  health: Health
  /** Taken out by an operator; null: it is not. */
  drained: OverrideJson | null
  /** Policies that have it as a target. */
  policies: readonly string[]
  servers: readonly ServerJson[]
  /** Its zones that are kept here by transfer, or whose changes are listened to; empty: none. */
  mirrors: readonly MirrorJson[]
  /**
   * For names whose changes it does not tell: those that were seen to change, how often, and answers with a lower TTL
   * for it.
   */
  adaptiveTtl: Readonly<{ names: number; changes: number; capped: number }>
  stats: Readonly<Record<string, number>>
}>

export type MirrorJson = Readonly<{
  zone: string
  /** `following`, `refused`, `failing`, `expired`, `stale` (the peer is silent) or `waiting`. */
  state: string
  /** What is done about it: `connecting`, `asking`, `transferring`, `current`, `refused` or `failing`. */
  step: string
  /** false: only its changes are heard of. */
  keepsCopy: boolean
  isLive: boolean
  isExpired: boolean
  serial: number | null
  epoch: string | null
  server: string | null
  /** Since it was known to be right at its origin. */
  ageMs: number | null
  clockOffsetMs: number | null
  /** Whether the server tells of changes by itself. */
  pushes: boolean
  lastFault: string | null
}>

export type PeersJson = Readonly<{ peers: readonly PeerJson[] }>

export type TargetJson = Readonly<{
  id: string
  kind: string
  peer: string | null
  /** What that cluster calls its zone; ours where nothing else is configured. */
  zone: string
  weight: number
  region: string
  /** Fixed addresses that it answers with; only of kind `addresses`. */
  addresses: readonly string[]
  /** The alternative name servers that are asked for it. */
  servers: readonly ServerJson[]
  health: Health
  /** Its peer was taken out by an operator; null: it was not. */
  drained: OverrideJson | null
  /** 1 for the one that is asked first now; null: it counts as unreachable without being asked, or is passed over. */
  place: number | null
  /** What checks found of its addresses, in words; null: nothing bad, or nothing is checked. */
  why: string | null
  /** Answers that it gave for this policy since the start, and their share of the policy's answers (0 to 1). */
  answers: number
  answerShare: number | null
  /** Names of the peer whose TTLs have a cap since they were seen to change. */
  adaptiveTtlNames: number
}>

export type PolicyJson = Readonly<{
  name: string
  dnsNames: readonly string[]
  /** Networks; null: everyone. */
  clients: readonly string[] | null
  select: string
  nextOn: readonly string[]
  maxTtlSeconds: number | null
  maxNegativeTtlSeconds: number
  transit: boolean
  allowReserved: boolean
  enforce: boolean
  /** With `enforce: false`: what it would have answered otherwise; null: it is enforced. */
  wouldChange: WouldChangeJson | null
  /**
   * Taken out by an operator, alone or with all others: names are answered as if it were not there; null: it is in
   * force.
   */
  disabled: OverrideJson | null
  targets: readonly TargetJson[]
  /** Ids of the targets that are asked, first one first. */
  effectiveOrder: readonly string[]
  /** Every target is down: they are asked all the same, but not for long. */
  isAllDown: boolean
  answers: number
  /** Answers under this policy that no target gave: fixed addresses, denials by rule, failures. */
  madeHereAnswers: number
  /** What last changed something for it: a reload, the health of a target, an operator; null: nothing is remembered. */
  lastChange: EventJson | null
}>

export type WouldChangeJson = Readonly<{
  /** Answers that would have been the same, and those that would not; TTLs are not looked at. */
  same: number
  changed: number
  /** Answers that were not looked at, since too many were being looked at already. */
  skipped: number
  /** The latest ones that would have changed, newest first, one for each name and type. */
  examples: readonly Readonly<{ at: string; name: string; type: string; given: string; instead: string }>[]
}>

export type PoliciesJson = Readonly<{ policies: readonly PolicyJson[] }>

export type ZoneJson = Readonly<{
  zone: string
  /** Whose zone it is a copy of; null: it is ours. */
  peer: string | null
  serial: number
  epoch: string
  names: number
  rrsets: number
  lastChangeAgeMs: number
}>

export type ZonesJson = Readonly<{ zones: readonly ZoneJson[] }>

export type RecordsJson = Readonly<{
  zone: string
  /** Whose zone it is a copy of; null: it is ours. */
  peer: string | null
  serial: number
  records: readonly RecordJson[]
  /** False where `limit` cut the list. */
  isComplete: boolean
}>

export type CacheEntryJson = Readonly<{
  name: string
  type: string
  target: string
  server: string
  /** `positive`, `nodata`, `nxdomain` or `failure`. */
  kind: string
  rcode: string
  ageMs: number
  /** What is left of its TTL; 0 for a stale one. */
  ttlSeconds: number
  /** How long its TTL has been over; 0 while it runs. */
  staleForMs: number
  hits: number
  sizeOctets: number
  isEmpty: boolean
  dnssecOk: boolean
  failure: string | null
  records: readonly RecordJson[]
}>

export type CacheJson = Readonly<{ entries: readonly CacheEntryJson[]; isComplete: boolean }>

export type FlushJson = Readonly<{ flushedEntries: number }>

export type SourceJson = Readonly<{
  /** `zone`, `mirror` (our copy of a peer's zone), `cache`, `peer`, `upstream` or `policy` (made here). */
  from: string
  zone: string | null
  target: string | null
  /** Who was asked, now or when the answer was cached. */
  server: string | null
  /** How old the answer is; null for what was made here. */
  ageMs: number | null
  /** Since our zone changed; null for answers from elsewhere. */
  changedAgoMs: number | null
  staleForMs: number
}>

export type TraceStepJson = Readonly<{
  /** The cluster that took the step or was asked in it. */
  cluster: string
  step: string
  detail: string
  server: string | null
  atMs: number
  tookMs: number
  ttlSeconds: number | null
  ageMs: number | null
}>

export type TraceJson = Readonly<{
  cluster: string
  name: string
  type: string
  client: string
  recursionDesired: boolean
  tookMs: number
  rcode: string
  isAuthoritative: boolean
  policy: string | null
  source: SourceJson
  isEmpty: boolean
  extendedErrors: readonly Readonly<{ code: number; text: string }>[]
  answer: readonly RecordJson[]
  authority: readonly RecordJson[]
  additional: readonly RecordJson[]
  steps: readonly TraceStepJson[]
}>

export type EventJson = Readonly<{
  sequence: number
  /** RFC 3339. */
  at: string
  /** `start`, `reload`, `reload-refused`, `health`, `drain`, `undrain`, `disable`, `enable` or `overrides`. */
  kind: string
  peer: string | null
  policy: string | null
  /** The address that was checked, and the policies or Services (`<svc>.<ns>`) that have it checked; null: none was. */
  endpoint: Readonly<{ address: string; check: string; of: string }> | null
  text: string
}>

/** Oldest first. */
export type EventsJson = Readonly<{ events: readonly EventJson[] }>

export type OverrideJson = Readonly<{
  /** RFC 3339. */
  since: string
  /** null: until it is taken back. */
  until: string | null
  leftMs: number | null
  reason: string
  by: string
}>

export type NamedOverrideJson = Readonly<{ name: string }> & OverrideJson

export type OverridesJson = Readonly<{
  where: string
  /** Why it cannot be read, or is ignored; null: all is well. */
  problem: string | null
  drainedPeers: readonly NamedOverrideJson[]
  disabledPolicies: readonly NamedOverrideJson[]
  allPolicies: OverrideJson | null
  /** Those that are in force though all are disabled. */
  enabledPolicies: readonly string[]
}>

/** An action that was taken. */
export type ActionJson = Readonly<{
  action: string
  peer: string | null
  /** null also where it is about all of them. */
  policy: string | null
  override: OverrideJson | null
  /** What held before, and is replaced by it; null: nothing, or it is taken back. */
  replaced: OverrideJson | null
  /** Where it is kept, in words. */
  keptIn: string
}>

/** A change of a name. Durations count from when it happened. */
export type PropagationStepJson = Readonly<{
  zone: string
  /** null: it is a change of our own zone. */
  peer: string | null
  serial: number
  /** Types whose records changed; none: the name as a whole. */
  types: readonly string[]
  /** RFC 3339, by the clock of where it happened. */
  originAt: string
  /**
   * It came with the whole zone: what is known is the time of the zone's last change, so it happened then or before.
   */
  cameWhole: boolean
  /** That clock less ours; null where it is not known. */
  clockOffsetMs: number | null
  /** Until it was in the zone where it happened. */
  storeMs: number
  /** Until it was in what we answer from. */
  hereMs: number
  /** Answers that we gave meanwhile, as far as they are remembered. */
  staleAnswers: number
  /** Until the last one of these; null: there was none. */
  staleMs: number | null
  /** Until the first answer that was right again; null: nobody asked soon. */
  firstAnswerMs: number | null
}>

/** Newest first. */
export type PropagationJson = Readonly<{
  cluster: string
  name: string
  changes: readonly PropagationStepJson[]
}>

export type ErrorJson = Readonly<{ error: string }>
