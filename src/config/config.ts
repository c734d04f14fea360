/**
 * The configuration as the rest of the server gets it: checked, defaults filled in, units in the names, paths absolute.
 *
 * Deeply read-only. It says what the operator wants.
 */
import type { HostPort, ListenAddress } from '../base/host-port.ts'
import type { Network, NetworkSet } from '../base/network.ts'
import type { DomainName } from '../wire/name.ts'
import type { Rdata } from '../wire/rr.ts'
import type { ConfigProblem, Position } from './problem.ts'

export type Config = Readonly<{
  /** Absolute path of the file. */
  file: string
  /** SHA-256 of the file's content in hexadecimal: two servers with the same one do the same. */
  hash: string
  /** Where the options stand that belong to no peer and no policy, by path (`cluster.source`); only those written. */
  positions: ReadonlyMap<string, Position>
  /** What can be served, and does nothing. */
  warnings: readonly ConfigProblem[]
  cluster: ClusterConfig
  /** Where DNS is served, at least one; port 0 stands for a free one. */
  listen: readonly ListenAddress[]
  /** Read-only HTTP; null: off. */
  observe: ListenAddress | null
  /** HTTP with actions; null: off. */
  admin: ListenAddress | null
  /** Whose queries are answered. */
  allow: NetworkSet
  /** Who answers what is neither ours nor peered, in order; empty: REFUSED. */
  forward: readonly ForwardConfig[]
  cache: CacheConfig
  /** Threads that answer queries beside the main thread; 0: the main thread alone. */
  threads: number
  /** Whether datagrams are read and sent in batches where that works. */
  batching: 'auto' | 'off'
  /** Whether sockets are taken over from the process that has them, and given to the one that comes after us. */
  takeover: boolean
  /** How long queries are still taken after SIGTERM. */
  lameDuckMs: number
  overrides: OverridesConfig
  log: LogConfig
  limits: LimitsConfig
  /** Regions of clients; the longest prefix that holds the client counts. */
  regions: readonly RegionConfig[]
  /** In the file's order; names are unique. */
  peers: readonly PeerConfig[]
  /** In the file's order; names are unique. */
  policies: readonly PolicyConfig[]
  transfer: TransferConfig
}>

export type ClusterConfig = Readonly<{
  /** This cluster's id: a DNS label. */
  name: string
  /** '' where none is set. */
  region: string
  zone: DomainName
  clustersetZone: DomainName
  /** TTL of our own records. */
  ttlSeconds: number
  pods: 'disabled' | 'insecure' | 'verified'
  /** Networks whose PTR records are ours; no two equal ones. */
  reverse: readonly Network[]
  /** Whether a ServiceImport without a Service of its name is answered in `zone` too. */
  importsInZone: boolean
  records: readonly RecordConfig[]
  /**
   * `NAME` or `NAMESPACE/NAME` of the Leases of source clusters, with `{cluster}` in it; null: they are not looked at.
   */
  leases: string | null
  /** Whether endpoints are probed. */
  probes: boolean
  source: SourceConfig
}>

/** One hand-written record. */
export type RecordConfig = Readonly<{
  owner: DomainName
  type: number
  ttlSeconds: number
  rdata: Rdata
  position: Position
}>

export type SourceConfig =
  /** Absolute paths of files and folders. */
  | Readonly<{ kind: 'manifests'; paths: readonly string[] }>
  /** null: the pod's own token and certificate; the kubeconfig's current context. */
  | Readonly<{ kind: 'kubernetes'; kubeconfig: string | null; context: string | null }>
  /** `key`: name of the key in `transfer.keys`; null: none. */
  | Readonly<{ kind: 'mirror'; servers: readonly HostPort[]; key: DomainName | null }>

/** One entry of `forward`: a resolver, or the absolute path of a resolv.conf. */
export type ForwardConfig =
  Readonly<{ kind: 'server'; server: HostPort }> | Readonly<{ kind: 'resolv-conf'; path: string }>

export type CacheConfig = Readonly<{
  maxOctets: number
  maxTtlSeconds: number
  maxNegativeTtlSeconds: number
  /** How long after its TTL an answer may be given while its source is unreachable; 0: never. */
  serveStaleSeconds: number
}>

/** Where the operator's drains and disabled policies are kept. */
export type OverridesConfig =
  | Readonly<{ kind: 'off' }>
  /** Absolute path. */
  | Readonly<{ kind: 'file'; path: string }>
  /** `namespace` null: the one that we run in, or that of the kubeconfig. Only with `source.kubernetes`. */
  | Readonly<{ kind: 'config-map'; namespace: string | null; name: string }>

export type LogConfig = Readonly<{
  level: 'debug' | 'info' | 'warn' | 'error' | 'silent'
  /** One query of this many is logged; null: none. */
  querySample: number | null
}>

export type LimitsConfig = Readonly<{
  inFlightQueries: number
  tcpConnections: number
  tcpIdleTimeoutMs: number
}>

export type RegionConfig = Readonly<{ network: Network; region: string }>

export type PeerConfig = Readonly<{
  name: string
  /** At least one. */
  servers: readonly HostPort[]
  region: string
  /** RD of our queries to it. */
  recursion: boolean
  /** `auto`: UDP, and TCP where an answer is truncated. */
  transport: 'auto' | 'udp' | 'tcp'
  /** Address families its servers are asked over, at least one. */
  families: readonly (4 | 6)[]
  /** Whether its zones are kept here; `evict`: only their changes are heard of, and taken out of the cache. */
  mirror: boolean | 'evict'
  /** Name of the key in `transfer.keys` for its zones; null: none. */
  key: DomainName | null
  /** Without a sign of life for this long, a mirrored peer is unreachable. */
  leaseMs: number
  /** Data older than this make it unhealthy; null: age does not matter. */
  maxAgeMs: number | null
  /** Questions that may wait for it. */
  maxInFlight: number
  probe: ProbeConfig
  position: Position
}>

export type ProbeConfig = Readonly<{
  everyMs: number
  timeoutMs: number
  /** Failures in a row until down, answers in a row until up. */
  fall: number
  rise: number
  /** null: the first dnsName that is peered to this peer. */
  name: DomainName | null
  type: number
}>

/** Has the shape of `Policy` in policy/policy.ts, and what later parts need. */
export type PolicyConfig = Readonly<{
  name: string
  /** At least one, no two equal ones. */
  dnsNames: readonly DomainName[]
  /** At least one, in the file's order. */
  targets: readonly TargetConfig[]
  select: 'first' | 'weighted' | 'geo' | 'merge'
  nextOn: ReadonlySet<'unreachable' | 'absent' | 'empty'>
  /** null: everyone. */
  clients: NetworkSet | null
  /** null: no cap. */
  maxTtlSeconds: number | null
  maxNegativeTtlSeconds: number
  /** Whether questions with RD=0 may use it. */
  transit: boolean
  allowReserved: boolean
  /** false: answer as if it were not there, and count what it would have changed. */
  enforce: boolean
  allDown: 'next' | 'open' | 'closed'
  /** Percent of names and clients sent to the second target first. */
  tricklePercent: number
  position: Position
}>

export type TargetConfig = Readonly<{
  /** `local`, `peer:cluster-a` or `addresses:10.9.0.7,10.9.0.8`. */
  id: string
  kind: 'local' | 'peer' | 'addresses'
  /** Key of `peers`; null for the other kinds. */
  peer: string | null
  /** What the target calls its zone; null: as ours. */
  zone: DomainName | null
  /** Only for `addresses`; canonical. */
  addresses: readonly string[]
  /** How these are checked; null: they are not. */
  probe: string | null
  /** 0 to 100. */
  weight: number
  /** Its own, else the peer's, else for `local` the cluster's. */
  region: string
  position: Position
}>

export type TransferConfig = Readonly<{
  /** Who may take zones; empty: nobody. */
  allow: NetworkSet
  keys: readonly TransferKeyConfig[]
  notify: readonly HostPort[]
  export: Readonly<{
    /** Empty: all. */
    namespaces: readonly string[]
    /** `namespace/name`; empty: all. */
    services: readonly string[]
    address: 'clusterIP' | 'endpoints' | 'loadBalancer'
    hideEmpty: boolean
  }>
}>

export type TransferKeyConfig = Readonly<{
  name: DomainName
  algorithm: 'hmac-sha256' | 'hmac-sha512'
  /** Absolute path of the file with the secret. */
  file: string
}>
