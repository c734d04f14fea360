/**
 * The peers of the configuration and the upstreams of `forward`: built, probed, and kept over a reload where nothing
 * about them changed.
 */
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { PeerStatus } from '../admin/inspectable.ts'
import { StaleRefresh } from '../cache/stale-refresh.ts'
import type { Config, ForwardConfig, PeerConfig } from '../config/config.ts'
import { GradualReturn } from '../health/gradual-return.ts'
import type { Health } from '../health/health-state.ts'
import { ProbeSchedule, type ProbeAsk } from '../health/probe.ts'
import { TrafficDoubt } from '../health/traffic-doubt.ts'
import type { EventRing } from '../operator/event-ring.ts'
import { InFlightLimit } from '../peer/in-flight-limit.ts'
import { Peer } from '../peer/peer.ts'
import type { ServerHealth } from '../peer/server-table.ts'
import type { PeerOptions, ServerAddress } from '../peer/peer-types.ts'
import { ResolvConf } from '../peer/resolv-conf.ts'
import { ServerResolver } from '../peer/resolve-server.ts'
import { openDgramSocket, type OpenUdpSocket } from '../peer/udp-socket.ts'
import type { PeerCopies } from '../pipeline/from-copy.ts'
import type { PeerTarget } from '../pipeline/parts.ts'
import type { TargetStanding } from '../policy/standing.ts'
import { connectedSockets } from '../server/mmsg/connected-sockets.ts'
import type { Libc } from '../server/mmsg/libc.ts'
import { ownAddress } from '../config/own-address.ts'
import { encodePeerdnsOption, findPeerdnsOption } from '../wire/peerdns-option.ts'
import { hostPortToText } from '../base/host-port.ts'
import { inFlightPerPeer } from '../base/limits.ts'
import { rootName, type DomainName } from '../wire/name.ts'
import { mappedZoneOf, toTheirs } from '../policy/zone-mapping.ts'
import { loadOptions } from './load-options.ts'
import { resolveBySystem } from './resolve-by-system.ts'
import { ShownHealth } from './shown-health.ts'

type Dependencies = Readonly<{
  clock: Clock
  log: Logger
  random: () => number
  instanceId: string
  events: EventRing
}>

/** One peer with its probes. */
class ProbedPeer {
  readonly peer: Peer
  readonly region: string
  /** What it was built from: equal text means that nothing changed. */
  readonly blueprint: string
  readonly target: PeerTarget
  readonly gradualReturn: GradualReturn
  readonly #probes: ProbeSchedule | null
  readonly #doubt: TrafficDoubt | null
  readonly #shown: ShownHealth
  readonly #parts: PeerParts
  readonly #unsubscribe: () => void

  constructor(options: PeerOptions, config: PeerConfig | null, probeName: DomainName | null, parts: PeerParts) {
    this.blueprint = blueprintOf(options, config, probeName)
    this.region = config?.region ?? ''
    this.#parts = parts
    this.#shown = new ShownHealth(parts.clock)
    this.peer = new Peer(options, {
      clock: parts.clock,
      random: parts.random,
      health: (server) => this.#healthOf(server),
      onOutcome: (server, outcome, tookMs, question) => {
        this.#probes?.observe(server, outcome, tookMs)
        this.#doubt?.observe(server, outcome, question)
      },
      exchanges: parts.exchanges,
      hosts: parts.hosts,
      openSocket: parts.openSocket
    })
    const isProbed = config !== null && probeName !== null
    this.#probes = isProbed ? this.#probe(config, probeName, parts) : null
    this.#doubt = isProbed ? this.#doubtOf(probeName, parts) : null
    this.gradualReturn = new GradualReturn(parts.clock, parts.onStandingChange)
    this.#unsubscribe =
      this.#probes?.subscribe(({ server, reason }) => {
        this.#tell(server, reason)
        this.gradualReturn.update(this.health)
        parts.onStandingChange()
      }) ?? ((): void => {})
    this.target = { peer: this.peer, copies: null, passedOver: (question) => this.#doubt?.passedOver(question) }
    this.#probes?.start()
  }

  /** What probes say of all its servers together: down only if every one is. */
  get health(): Health {
    return this.#probes?.summary ?? 'unknown'
  }

  #probe({ probe, maxAgeMs }: PeerConfig, name: DomainName, parts: PeerParts): ProbeSchedule {
    return new ProbeSchedule(
      {
        everyMs: probe.everyMs,
        timeoutMs: probe.timeoutMs,
        fall: probe.fall,
        rise: probe.rise,
        name,
        type: probe.type,
        maxAgeMs
      },
      {
        clock: parts.clock,
        random: parts.random,
        servers: () => this.peer.servers(),
        ask: this.#askAlone(parts, false)
      }
    )
  }

  #doubtOf(probeName: DomainName, parts: PeerParts): TrafficDoubt {
    return new TrafficDoubt({
      clock: parts.clock,
      probeName,
      servers: () => this.peer.servers(),
      isDown: (server) => this.#probes?.health(server) === 'down',
      ask: this.#askAlone(parts, true),
      onChange: ({ server, reason }) => {
        this.#tell(server, reason)
        parts.onStandingChange()
      }
    })
  }

  /** Tells of a change of what is shown: a doubt that begins or ends while the server is down is none. */
  #tell(server: string, reason: string): void {
    const to = this.#healthOf(server)
    const from = this.#shown.take(server, to, this.peer.servers())
    if (from === null) return
    const { events, log } = this.#parts
    const peer = this.peer.id
    const why = from === 'down' && to === 'doubtful' ? `${reason}, but it fails questions of clients` : reason
    events.add({ kind: 'health', peer, text: `${server} ${from} -> ${to}: ${why}` })
    const level = to === 'down' || to === 'doubtful' ? 'warn' : 'info'
    log[level]({ peer, server, from, to, reason: why }, 'the health of a server changed')
  }

  /** Asks one server and no other; unless `isBounded`, outside of the limits for questions of clients. */
  #askAlone({ instanceId }: PeerParts, isBounded: boolean): ProbeAsk {
    const options = [encodePeerdnsOption({ instances: [instanceId] })]
    return async (server, question, timeoutMs) => {
      const asked = { ...question, zone: rootName, dnssecOk: false, checkingDisabled: false, options }
      const reply = await this.peer.askServer(server, asked, timeoutMs, isBounded)
      return reply.kind === 'failed' ? reply : { ...reply, dataAgeMs: findPeerdnsOption(reply.options)?.ageMs ?? null }
    }
  }

  #healthOf(server: string): ServerHealth {
    const health = this.#probes?.health(server) ?? 'unknown'
    return health !== 'down' && this.#doubt?.isDoubtful(server) === true ? 'doubtful' : health
  }

  /** Whether every server that is not down is in doubt. */
  get isDoubtful(): boolean {
    if (this.#doubt?.isAny !== true) return false
    const healths = this.peer.servers().map((server) => this.#healthOf(server))
    return healths.includes('doubtful') && healths.every((health) => health === 'doubtful' || health === 'down')
  }

  status(nowEpochMs: number): PeerStatus {
    const status = this.peer.status()
    const healths = new Map(this.#probes?.status().map((health) => [health.server, health]) ?? [])
    return {
      name: status.id,
      region: this.region,
      health: this.isDoubtful ? 'doubtful' : this.health,
      servers: status.servers.map(({ server, health, rttMs, inFlight }) => {
        const probed = healths.get(server)
        return {
          server,
          health,
          reason: health === 'doubtful' ? 'fails questions of clients' : (probed?.lastReason ?? ''),
          changedAgoMs:
            this.#shown.heldForMs(server) ?? (probed === undefined ? null : nowEpochMs - probed.sinceEpochMs),
          rttMs,
          inFlight
        }
      }),
      stats: this.peer.stats
    }
  }

  async close(): Promise<void> {
    this.#probes?.stop()
    this.#doubt?.stop()
    this.gradualReturn.stop()
    this.#unsubscribe()
    await this.peer.close()
  }
}

type PeerParts = Dependencies &
  Readonly<{
    exchanges: InFlightLimit
    hosts: ServerResolver
    openSocket: () => OpenUdpSocket
    onStandingChange: () => void
  }>

const blueprintOf = (options: PeerOptions, config: PeerConfig | null, probeName: DomainName | null): string =>
  JSON.stringify([options, config === null ? null : { ...config, position: null }, probeName])

export class PeerSet {
  /** Asks them again for what is given out stale. */
  readonly staleRefresh: StaleRefresh
  /** Called within each change of a peer's standing or share. */
  onStandingChange: () => void = () => {}
  readonly #parts: PeerParts
  #openSocket: OpenUdpSocket = openDgramSocket
  #peers = new Map<string, ProbedPeer>()
  #forward: ProbedPeer | null = null
  #resolvConfs: ResolvConf[] = []
  #listen: Config['listen'] = []
  #revision = 0

  constructor(parts: Dependencies, maxInFlight: number) {
    this.staleRefresh = new StaleRefresh(parts.clock)
    this.#parts = {
      ...parts,
      exchanges: new InFlightLimit(maxInFlight),
      hosts: new ServerResolver({ hostsPath: '/etc/hosts', resolveHost: resolveBySystem }, parts.clock),
      openSocket: () => this.#openSocket,
      onStandingChange: () => {
        this.#revision++
        this.onStandingChange()
      }
    }
  }

  /** Opens UDP sockets by the C library from now on. */
  useLibc(libc: Libc): void {
    this.#openSocket = connectedSockets(libc, openDgramSocket)
  }

  /**
   * Builds what is new, keeps what is the same, and closes what is gone. Returns the names of peers that are not what
   * they were: what they answered is somebody else's word now.
   */
  update(config: Config): readonly string[] {
    const before = this.#peers
    this.#peers = new Map()
    for (const peer of config.peers) {
      const options = peerOptions(peer)
      const probeName = peer.probe.name ?? firstDnsName(config, peer.name)
      const known = before.get(peer.name)
      if (known !== undefined && known.blueprint === blueprintOf(options, peer, probeName)) {
        before.delete(peer.name)
        this.#peers.set(peer.name, known)
      } else {
        this.#peers.set(peer.name, new ProbedPeer(options, peer, probeName, this.#parts))
      }
    }
    for (const gone of before.values()) void gone.close()
    const changed = [...before.keys()]
    this.#listen = config.listen
    this.#updateForward(config.forward)
    return changed
  }

  /** @param copiesOf the zones of a peer that are kept here. */
  targets(copiesOf: (peer: string) => PeerCopies | null): ReadonlyMap<string, PeerTarget> {
    return new Map([...this.#peers].map(([name, { target }]) => [name, { ...target, copies: copiesOf(name) }]))
  }

  /** The servers of one peer, those that probes call down last; empty where no address is known, or no such peer. */
  serversOf(name: string): readonly string[] {
    const servers = this.#peers.get(name)?.peer.status().servers ?? []
    return servers
      .toSorted((one, other) => Number(one.health === 'down') - Number(other.health === 'down'))
      .map(({ server }) => server)
  }

  /** What stands for or against a peer now; `down` where there is none of this name. */
  standing(name: string): TargetStanding {
    const peer = this.#peers.get(name)
    if (peer === undefined) return 'down'
    if (peer.isDoubtful) return 'doubtful'
    return peer.gradualReturn.isReturning ? 'returning' : peer.health
  }

  /** The share of names and clients that a peer takes, less than 1 while it is `returning`. */
  returnedShare(name: string): number {
    return this.#peers.get(name)?.gradualReturn.share ?? 0
  }

  /** Another number after each change of a peer's standing or share. */
  get revision(): number {
    return this.#revision
  }

  get forward(): Peer | null {
    return this.#forward?.peer ?? null
  }

  status(): readonly PeerStatus[] {
    const all = [...this.#peers.values(), ...(this.#forward === null ? [] : [this.#forward])]
    return all.map((peer) => peer.status(this.#parts.clock.epochMs()))
  }

  async close(): Promise<void> {
    this.staleRefresh.stop()
    for (const resolvConf of this.#resolvConfs) resolvConf.close()
    const all = [...this.#peers.values(), ...(this.#forward === null ? [] : [this.#forward])]
    await Promise.all(all.map(async (peer) => peer.close()))
  }

  #updateForward(forward: readonly ForwardConfig[]): void {
    for (const resolvConf of this.#resolvConfs) resolvConf.close()
    const refresh = (): void => this.#forward?.peer.setServers(this.#forwardServers(forward))
    this.#resolvConfs = forward
      .filter((entry) => entry.kind === 'resolv-conf')
      .map(({ path }) => new ResolvConf(path, this.#parts.clock, refresh))
    if (forward.length === 0) {
      void this.#forward?.close()
      this.#forward = null
      return
    }
    const servers = this.#forwardServers(forward)
    if (this.#forward !== null) {
      this.#forward.peer.setServers(servers)
      return
    }
    const options: PeerOptions = {
      id: 'forward',
      servers,
      recursion: true,
      transport: 'auto',
      families: [4, 6],
      maxInFlight: inFlightPerPeer,
      zone: rootName
    }
    this.#forward = new ProbedPeer(options, null, null, this.#parts)
  }

  #forwardServers(forward: readonly ForwardConfig[]): ServerAddress[] {
    let next = 0
    const servers = forward.flatMap((entry) =>
      entry.kind === 'server' ? [entry.server] : (this.#resolvConfs[next++]?.servers ?? [])
    )
    const { localAddresses = [] } = loadOptions()
    const seen = new Set<string>()
    return servers.filter((server) => {
      const text = hostPortToText(server.host, server.port)
      if (seen.has(text)) return false
      seen.add(text)
      // A resolv.conf may name this very server (a node whose resolver we are): that would be a loop.
      const own = ownAddress(this.#listen, server, localAddresses)
      if (own !== null) this.#parts.log.warn({ server: text }, 'forward names this server itself, which is left out')
      return own === null
    })
  }
}

const peerOptions = (peer: PeerConfig): PeerOptions => ({
  id: peer.name,
  servers: peer.servers,
  recursion: peer.recursion,
  transport: peer.transport,
  families: peer.families,
  maxInFlight: peer.maxInFlight,
  // Each question names the zone that its target answers for.
  zone: rootName
})

/** What is asked to see whether a peer is well: the first suffix that is peered to it, as it calls it. */
function firstDnsName(config: Config, peer: string): DomainName | null {
  for (const policy of config.policies) {
    const target = policy.targets.find((candidate) => candidate.peer === peer)
    if (target === undefined) continue
    const dnsName = policy.dnsNames[0]!
    const zone = mappedZoneOf(dnsName, [config.cluster.zone, config.cluster.clustersetZone])
    return toTheirs(dnsName, target.zone === null ? null : { ours: zone, theirs: target.zone }) ?? dnsName
  }
  return null
}
