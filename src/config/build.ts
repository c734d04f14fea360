/** Makes the typed Config of a file's content that has passed every check. */
import { basename, extname, isAbsolute, join, resolve } from 'node:path'
import { NetworkSet, parseNetworks, type Network } from '../base/network.ts'
import { parseRecordLine } from '../wire/record-text.ts'
import type {
  ClusterConfig,
  Config,
  ForwardConfig,
  OverridesConfig,
  PeerConfig,
  PolicyConfig,
  SourceConfig,
  TargetConfig,
  TransferConfig
} from './config.ts'
import type { Forward } from './option.ts'
import type { ConfigProblem, PathStep, Position } from './problem.ts'
import type { FileContent } from './schema.ts'

/** What surrounds a file's content. */
export type Surroundings = Readonly<{
  /** Absolute path of the file. */
  file: string
  hash: string
  positions: ReadonlyMap<string, Position>
  warnings: readonly ConfigProblem[]
  /** What `~` stands for. */
  home: string
  /** Where the key at a path stands. */
  positionOf(path: readonly PathStep[]): Position
  /** Relative paths start here. */
  folder: string
}>

export function buildConfig(content: FileContent, around: Surroundings): Config {
  return {
    file: around.file,
    hash: around.hash,
    positions: around.positions,
    warnings: around.warnings,
    cluster: buildCluster(content.cluster, around),
    listen: content.listen,
    observe: content.observe,
    admin: content.admin,
    allow: new NetworkSet(content.allow.flat()),
    forward: content.forward.map((entry) => buildForward(entry, around)),
    cache: {
      maxOctets: content.cache.maxBytes,
      maxTtlSeconds: content.cache.maxTtl,
      maxNegativeTtlSeconds: content.cache.maxNegativeTtl,
      serveStaleSeconds: content.cache.serveStale
    },
    threads: content.threads,
    batching: content.batching,
    takeover: content.takeover === 'on',
    lameDuckMs: content.lameDuck,
    overrides: buildOverrides(content, around),
    log: {
      level: content.log.level,
      querySample: content.log.queries === 'off' ? null : content.log.queries.sample
    },
    limits: {
      inFlightQueries: content.limits.inFlight,
      tcpConnections: content.limits.tcpConnections,
      tcpIdleTimeoutMs: content.limits.tcpIdleTimeout
    },
    regions: Object.entries(content.regions).flatMap(([text, region]) =>
      parseNetworks(text).map((network) => ({ network, region }))
    ),
    peers: Object.entries(content.peers).map(([name, peer]) => buildPeer(name, peer, around)),
    policies: content.policies.map((policy, index) => buildPolicy(policy, index, content, around)),
    transfer: buildTransfer(content.transfer, around)
  }
}

/** An absolute path of what stands in the file: `~` is the home folder, relative paths start at the file's folder. */
export function absolutePath(written: string, { folder, home }: Pick<Surroundings, 'folder' | 'home'>): string {
  if (written === '~' || written.startsWith('~/')) return join(home, written.slice(1))
  return isAbsolute(written) ? written : resolve(folder, written)
}

function buildCluster(cluster: FileContent['cluster'], around: Surroundings): ClusterConfig {
  return {
    name: cluster.name,
    region: cluster.region,
    zone: cluster.zone,
    clustersetZone: cluster.clustersetZone,
    ttlSeconds: cluster.ttl,
    pods: cluster.pods,
    reverse: uniqueNetworks(cluster.reverse.flat()),
    importsInZone: cluster.importsInZone,
    records: cluster.records.map((line, index) => ({
      ...parseRecordLine(line, { defaultTtlSeconds: cluster.ttl }),
      position: around.positionOf(['cluster', 'records', index])
    })),
    leases: cluster.leases,
    probes: cluster.probes === 'on',
    source: buildSource(cluster.source, around)
  }
}

function uniqueNetworks(networks: readonly Network[]): Network[] {
  return [...new Map(networks.map((network) => [network.text, network])).values()]
}

function buildSource(source: FileContent['cluster']['source'], around: Surroundings): SourceConfig {
  if (source.manifests !== undefined) {
    return { kind: 'manifests', paths: source.manifests.map((path) => absolutePath(path, around)) }
  }
  if (source.mirror !== undefined) return { kind: 'mirror', servers: source.mirror, key: source.key ?? null }
  const { kubeconfig, context } = source.kubernetes ?? {}
  return {
    kind: 'kubernetes',
    kubeconfig: kubeconfig === undefined ? null : absolutePath(kubeconfig, around),
    context: context ?? null
  }
}

/** What the operator sets at run time is kept under this name, unless another one is configured. */
const overridesConfigMap = 'peerdns-overrides'

function buildOverrides({ overrides, cluster }: FileContent, around: Surroundings): OverridesConfig {
  if (overrides === 'off') return { kind: 'off' }
  const given = overrides === 'auto' ? {} : overrides
  if (given.file !== undefined) return { kind: 'file', path: absolutePath(given.file, around) }
  if (given.configMap === undefined && cluster.source.kubernetes === undefined) {
    // Not `.yaml` or `.json`: the folder may also be one of manifests.
    const name = `${basename(around.file, extname(around.file))}.state`
    return { kind: 'file', path: resolve(around.folder, name) }
  }
  const [name = overridesConfigMap, namespace = null] = given.configMap?.split('/').reverse() ?? []
  return { kind: 'config-map', namespace, name }
}

function buildForward(entry: Forward, around: Surroundings): ForwardConfig {
  return entry.kind === 'server' ? entry : { kind: 'resolv-conf', path: absolutePath(entry.path, around) }
}

function buildPeer(name: string, peer: FileContent['peers'][string], around: Surroundings): PeerConfig {
  return {
    name,
    servers: peer.servers,
    region: peer.region,
    recursion: peer.recursion,
    transport: peer.transport,
    families: peer.families,
    mirror: peer.mirror,
    key: peer.key ?? null,
    leaseMs: peer.lease,
    maxAgeMs: peer.maxAge,
    maxInFlight: peer.maxInFlight,
    probe: {
      everyMs: peer.probe.every,
      timeoutMs: peer.probe.timeout,
      fall: peer.probe.fall,
      rise: peer.probe.rise,
      name: peer.probe.name ?? null,
      type: peer.probe.type
    },
    position: around.positionOf(['peers', name])
  }
}

function buildPolicy(
  policy: FileContent['policies'][number],
  index: number,
  content: FileContent,
  around: Surroundings
): PolicyConfig {
  return {
    name: policy.name,
    dnsNames: [policy.dnsName].flat(),
    targets: policy.targets.map((target, at) =>
      buildTarget(target, content, around.positionOf(['policies', index, 'targets', at]))
    ),
    select: policy.select,
    nextOn: new Set(policy.nextOn),
    clients: policy.clients === 'everyone' ? null : new NetworkSet(policy.clients.flat()),
    maxTtlSeconds: policy.maxTtl,
    maxNegativeTtlSeconds: policy.maxNegativeTtl,
    transit: policy.transit,
    allowReserved: policy.allowReserved,
    enforce: policy.enforce,
    allDown: policy.allDown,
    tricklePercent: policy.trickle,
    position: around.positionOf(['policies', index])
  }
}

type WrittenTarget = FileContent['policies'][number]['targets'][number]

function buildTarget(written: WrittenTarget, content: FileContent, position: Position): TargetConfig {
  const target = typeof written === 'string' ? longForm(written) : written
  const rest = {
    zone: target.zone ?? null,
    weight: target.weight,
    addresses: target.addresses ?? [],
    probe: target.probe ?? null,
    position
  }
  if (target.peer !== undefined) {
    const region = target.region ?? content.peers[target.peer]?.region ?? ''
    return { id: `peer:${target.peer}`, kind: 'peer', peer: target.peer, region, ...rest }
  }
  if (target.addresses !== undefined) {
    const id = `addresses:${target.addresses.join(',')}`
    return { id, kind: 'addresses', peer: null, region: target.region ?? '', ...rest }
  }
  return { id: 'local', kind: 'local', peer: null, region: target.region ?? content.cluster.region, ...rest }
}

/** What the short form of a target, `local` or a peer's name, is short for. */
function longForm(name: string): Exclude<WrittenTarget, string> {
  return name === 'local' ? { local: true, weight: 1 } : { peer: name, weight: 1 }
}

function buildTransfer(transfer: FileContent['transfer'], around: Surroundings): TransferConfig {
  return {
    allow: new NetworkSet(transfer.allow.flat()),
    keys: transfer.keys.map((key) => ({ ...key, file: absolutePath(key.file, around) })),
    notify: transfer.notify,
    export: transfer.export
  }
}
