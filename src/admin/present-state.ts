/** The server's state, its policies and its peers as JSON. */
import { hostPortToText } from '../base/host-port.ts'
import { rcodeToText } from '../wire/iana.ts'
import { nameToText } from '../wire/name.ts'
import type { Target } from '../policy/policy.ts'
import type { PolicyConfig } from '../config/config.ts'
import type {
  MirrorJson,
  EventJson,
  Health,
  OverrideJson,
  PeerJson,
  PolicyJson,
  ServerJson,
  StatusJson,
  TargetJson,
  WouldChangeJson
} from './api-types.ts'
import type { Inspectable, MirrorOfPeer, PeerStatus, ServerStatusOfPeer } from './inspectable.ts'
import { shownMirrorState } from './mirror-state.ts'
import { answersOfPolicy } from './policy-answers.ts'
import { presentEvent, presentOverride } from './present-overrides.ts'

export function presentStatus(inspect: Inspectable): StatusJson {
  const config = inspect.config()
  const { cluster } = config
  const readiness = inspect.readiness()
  const reloads = inspect.reloads()
  const source = inspect.source()
  const { stats } = inspect.dataPlane
  const { wanted, reading, whyNone, answered, forwarded } = inspect.workers()
  const parts = inspect.parts()
  const cache = parts.cache.stats
  return {
    cluster: cluster.name,
    region: cluster.region,
    zone: nameToText(cluster.zone),
    clustersetZone: nameToText(cluster.clustersetZone),
    version: inspect.version,
    startedAt: new Date(inspect.startedAtEpochMs).toISOString(),
    uptimeMs: Math.max(0, parts.clock.epochMs() - inspect.startedAtEpochMs),
    isReady: readiness.isReady,
    conditions: readiness.conditions,
    dnsAddresses: inspect.dnsAddresses.map(({ host, port }) => hostPortToText(host, port)),
    config: {
      file: config.file,
      hash: config.hash,
      reloadsTaken: reloads.taken,
      reloadsRefused: reloads.refused,
      problems: inspect.configProblems()
    },
    source,
    workers: { wanted, reading, whyNone, answered, forwarded },
    queries: {
      udp: stats.queriesUdp,
      tcp: stats.queriesTcp,
      dropped: stats.dropped,
      malformed: stats.malformed,
      overloaded: stats.overloaded,
      bugs: stats.bugs,
      misses: stats.misses,
      stale: stats.stale,
      inFlight: stats.inFlight,
      byRcode: Object.fromEntries(
        [...stats.responsesByRcode.entries()]
          .filter(([, count]) => count > 0)
          .map(([rcode, count]) => [rcodeToText(rcode), count])
      ),
      bySource: Object.fromEntries(stats.responsesBySource)
    },
    cache: {
      entries: cache.entries,
      octets: cache.octets,
      limitOctets: config.cache.maxOctets,
      hits: cache.hits,
      misses: cache.misses,
      evictions: cache.evictions
    },
    zones: inspect.zones().length,
    policies: parts.policies.policies.length,
    peers: inspect.peers().map(({ name, health }) => ({ name, health })),
    mirrors: inspect.mirrors().flatMap(({ peer, zones }) => zones.map((zone) => ({ peer, ...presentMirror(zone) })))
  }
}

const presentServer = ({ server, health, reason, changedAgoMs, rttMs, inFlight }: ServerStatusOfPeer): ServerJson => ({
  server,
  health,
  reason,
  changedAgoMs,
  rttMs,
  inFlight
})

const presentDrain = (inspect: Inspectable, peer: string | null): OverrideJson | null => {
  const drained = peer === null ? undefined : inspect.overrides().drainedPeers.get(peer)
  return drained === undefined ? null : presentOverride(inspect, drained)
}

function presentMirror(status: MirrorOfPeer['zones'][number]): MirrorJson {
  const { apex, stats: _stats, state: step, ...rest } = status
  return { zone: nameToText(apex), ...rest, state: shownMirrorState(status), step }
}

const mirrorOf = (inspect: Inspectable, peer: string | null): MirrorOfPeer | undefined =>
  inspect.mirrors().find((mirror) => mirror.peer === peer)

export const presentPeer = (inspect: Inspectable, peer: PeerStatus): PeerJson => ({
  name: peer.name,
  region: peer.region,
  health: peer.health,
  mirrors: (mirrorOf(inspect, peer.name)?.zones ?? []).map(presentMirror),
  adaptiveTtl: mirrorOf(inspect, peer.name)?.adaptiveTtl ?? { names: 0, changes: 0, capped: 0 },
  drained: presentDrain(inspect, peer.name),
  policies: inspect
    .config()
    .policies.filter(({ targets }) => targets.some((it) => it.peer === peer.name))
    .map(({ name }) => name),
  servers: peer.servers.map(presentServer),
  stats: peer.stats
})

export function presentPolicies(inspect: Inspectable, policies: readonly PolicyConfig[]): PolicyJson[] {
  const peers = new Map(inspect.peers().map((peer) => [peer.name, peer]))
  return policies.map((policy) => presentPolicy(inspect, policy, peers))
}

function presentPolicy(inspect: Inspectable, policy: PolicyConfig, peers: ReadonlyMap<string, PeerStatus>): PolicyJson {
  const config = inspect.config()
  const { asked, allDown } = inspect.policyOrder(policy)
  const answers = answersOfPolicy(inspect.dataPlane.stats, policy.name)
  const total = [...answers.values()].reduce((sum, count) => sum + count, 0)
  const targets = policy.targets.map((target, index): TargetJson => {
    const peer = target.peer === null ? undefined : peers.get(target.peer)
    const place = asked.indexOf(index)
    const given = answers.get(target.id) ?? 0
    return {
      id: target.id,
      kind: target.kind,
      peer: target.peer,
      zone: nameToText(target.zone ?? config.cluster.zone),
      weight: target.weight,
      region: target.region,
      addresses: target.addresses,
      servers: peer?.servers.map(presentServer) ?? [],
      health: healthOf(inspect, target, peer),
      drained: presentDrain(inspect, target.peer),
      place: place < 0 ? null : place + 1,
      why: whyOf(inspect, policy, target),
      answers: given,
      answerShare: total === 0 ? null : given / total,
      adaptiveTtlNames: mirrorOf(inspect, target.peer)?.adaptiveTtl.names ?? 0
    }
  })
  const { clients } = policy
  const disabled = inspect.disablingOf(policy.name)
  return {
    name: policy.name,
    dnsNames: policy.dnsNames.map(nameToText),
    clients: clients === null ? null : clients.networks.map(({ text }) => text),
    select: policy.select,
    nextOn: [...policy.nextOn],
    maxTtlSeconds: policy.maxTtlSeconds,
    maxNegativeTtlSeconds: policy.maxNegativeTtlSeconds,
    transit: policy.transit,
    allowReserved: policy.allowReserved,
    enforce: policy.enforce,
    wouldChange: policy.enforce ? null : presentWouldChange(inspect, policy.name),
    disabled: disabled === null ? null : presentOverride(inspect, disabled),
    targets,
    effectiveOrder: asked.map((target) => policy.targets[target]!.id),
    isAllDown: allDown,
    answers: total,
    madeHereAnswers: total - targets.reduce((sum, target) => sum + target.answers, 0),
    lastChange: lastChangeOf(inspect, policy)
  }
}

function presentWouldChange(inspect: Inspectable, policy: string): WouldChangeJson {
  const stats = inspect.dataPlane.unenforced.stats.get(policy)
  const { same = 0, changed = 0, skipped = 0 } = stats ?? {}
  const examples = [...(stats?.examples.values() ?? [])].reverse().map(({ atEpochMs, ...example }) => ({
    at: new Date(atEpochMs).toISOString(),
    ...example
  }))
  return { same, changed, skipped, examples }
}

const hasChecked = ({ addresses, probe }: Target, { address, check }: { address: string; check: string }): boolean =>
  probe === check && addresses.includes(address)

/** What checks found of a target's fixed addresses, or of Services of ours that the policy is for; null: nothing bad. */
function whyOf(inspect: Inspectable, { dnsNames }: PolicyConfig, { kind, addresses, probe }: Target): string | null {
  if (kind === 'addresses' && probe !== null) {
    const { isDownEndpoint } = inspect.parts()
    const down = addresses.filter((address) => isDownEndpoint(address, probe))
    if (down.length === addresses.length) return `${probe}: down${down.length === 1 ? '' : `, all ${down.length}`}`
    return down.length === 0 ? null : `${probe}: ${down.length} of ${addresses.length} down: ${down.join(', ')}`
  }
  if (kind !== 'local') return null
  const { zone, clustersetZone } = inspect.config().cluster
  const ours = inspect.endpoints().servicesDown.filter((service) =>
    [zone, clustersetZone].some((apex) => {
      const name = `.${service}.svc.${nameToText(apex)}`
      return dnsNames.some((dnsName) => name.endsWith(`.${nameToText(dnsName)}`))
    })
  )
  if (ours.length === 0) return null
  const named = [...new Set(ours)].slice(0, namedServices).join(', ')
  return `${ours.length} ${ours.length === 1 ? 'address' : 'addresses'} of Services down: ${named}`
}

/** Services with an address that is down, which are named. */
const namedServices = 5

/** What last happened to the policy itself, to all policies, or to a peer or address that it has as a target. */
function lastChangeOf(inspect: Inspectable, { name, targets }: PolicyConfig): EventJson | null {
  const last = inspect.events.lastAbout(({ kind, peer, policy, endpoint }) => {
    if (policy !== null) return policy === name
    if (endpoint !== null) return targets.some((target) => hasChecked(target, endpoint))
    if (peer !== null) return targets.some((target) => target.peer === peer)
    return kind === 'disable' || kind === 'enable'
  })
  return last === null ? null : presentEvent(last)
}

/** Our own zones are up once the cluster has been read; fixed addresses are unless checks found all of them down. */
function healthOf(inspect: Inspectable, { kind, addresses, probe }: Target, peer: PeerStatus | undefined): Health {
  if (peer !== undefined) return peer.health
  if (kind === 'addresses' && probe !== null) {
    const { isDownEndpoint } = inspect.parts()
    return addresses.every((address) => isDownEndpoint(address, probe)) ? 'down' : 'up'
  }
  return kind === 'local' && !inspect.source().hasSynced ? 'unknown' : 'up'
}
