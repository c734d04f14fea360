/** The copies of peers' zones: for each peer with `mirror`, the names that policies send there, kept by transfer. */
import type { CopyOfPeer, MirrorOfPeer } from '../admin/inspectable.ts'
import type { Clock } from '../base/clock.ts'
import { parseHostPort } from '../base/host-port.ts'
import type { Logger } from '../base/log.ts'
import { AdaptiveTtl } from '../cache/adaptive-ttl.ts'
import type { AnswerCache } from '../cache/answer-cache.ts'
import type { Config, PeerConfig } from '../config/config.ts'
import type { Freshness } from '../pipeline/freshness.ts'
import type { PeerCopies } from '../pipeline/from-copy.ts'
import type { Parts } from '../pipeline/parts.ts'
import { openMessageStream } from '../peer/message-stream.ts'
import { mappedZoneOf, toTheirs } from '../policy/zone-mapping.ts'
import type { Signer } from '../transfer/link.ts'
import type { TsigKey } from '../transfer/tsig-signer.ts'
import { tsigSigner } from '../transfer/tsig-verifier.ts'
import { PeerMirror, type PeerMirrorOptions } from '../transfer/peer-mirror.ts'
import type { MirrorStatus } from '../transfer/mirror-types.ts'
import type { SecondaryZone } from '../transfer/secondary-zone.ts'
import { RCODE } from '../wire/iana.ts'
import { isAtOrBelow, nameToText, type DomainName } from '../wire/name.ts'
import { CacheEviction, type EvictionStats } from './cache-eviction.ts'
import { computedPods } from './computed-pods.ts'
import { copyOfPeer, CopiesOut } from './copies-out.ts'
import { hubServers } from './hub-servers.ts'
import { learnedBySwap, learnedChanges, learnedNames, mappingsOf, type LearnedFrom } from './learned-change.ts'

/** Signs with the key as it is at each moment; null: no key is wanted. */
export const signerOf = (
  name: DomainName | null,
  keyOf: (name: DomainName) => TsigKey | null,
  clock: Clock
): Signer | null =>
  name === null
    ? null
    : tsigSigner(
        () => keyOf(name),
        () => Math.floor(clock.epochMs() / 1000)
      )

export type TransferParts = Readonly<{
  clock: Clock
  log: Logger
  random: () => number
  /** Names this process to other peerdns; hex. */
  instanceId: string
  /** The TSIG key of a name; null where it cannot be read. */
  keyOf: (name: DomainName) => TsigKey | null
}>

type Dependencies = TransferParts &
  Readonly<{
    freshness: Freshness
    cache: () => AnswerCache
    /** The addresses that a peer's servers have now, best first, as `host:port`. */
    serversOf: (peer: string) => readonly string[]
    /** A copy that our own nodes may take has changed; `copyOf` as `CopiesOut` calls it. */
    onCopyChanged: (copyOf: string, apex: DomainName) => void
  }>

type Kept = Readonly<{ mirror: PeerMirror; blueprint: string; copies: PeerCopies }>

/** A peer whose names are answered by asking, and what makes them leave the cache. */
type Peered = Readonly<{
  names: readonly DomainName[]
  eviction: CacheEviction
  adaptive: AdaptiveTtl
  copies: PeerCopies
}>

export type PeerMirrorStatus = Readonly<{
  peer: string
  zones: readonly MirrorStatus[]
  link: PeerMirror['link']['stats']
}>

export class MirrorSet {
  /** What of the copies is given on to our own nodes. */
  readonly out: CopiesOut
  readonly #parts: Dependencies
  #mirrors = new Map<string, Kept>()
  /** All peers that policies name. */
  #peered = new Map<string, Peered>()
  #config: Config | null = null

  constructor(parts: Dependencies) {
    this.#parts = parts
    this.out = new CopiesOut({
      config: () => this.#config,
      mirrorOf: (peer) => this.#mirrors.get(peer)?.mirror ?? null,
      instanceId: parts.instanceId
    })
  }

  /** Begins with what is new, goes on with what is the same, and ends what is gone. */
  update(config: Config): void {
    const before = this.#mirrors
    this.#mirrors = new Map()
    this.#config = config
    const peeredBefore = this.#peered
    this.#peered = new Map()
    for (const peer of config.peers) {
      const names = namesOf(config, peer.name)
      const { clock, cache } = this.#parts
      const known = peeredBefore.get(peer.name)
      const eviction = known?.eviction ?? new CacheEviction(clock, `peer:${peer.name}`, cache)
      const adaptive = known?.adaptive ?? new AdaptiveTtl()
      peeredBefore.delete(peer.name)
      const doubt: PeerCopies['doubt'] = (name, askedAtMs) => eviction.doubt(name, askedAtMs)
      const adaptiveTtl: PeerCopies['adaptiveTtl'] = (name) => (this.#tells(peer.name, name) ? null : adaptive)
      const copies = { areKept: false, find: () => null, doubt, adaptiveTtl }
      this.#peered.set(peer.name, { names, eviction, adaptive, copies })
      if (peer.mirror === false || names.length === 0) continue
      const blueprint = blueprintOf(peer, config)
      const kept = before.get(peer.name)
      if (kept?.blueprint === blueprint) {
        before.delete(peer.name)
        kept.mirror.setNames(names)
        this.#mirrors.set(peer.name, kept)
      } else {
        const mirror = this.#start(peer, names, eviction)
        this.#mirrors.set(peer.name, {
          mirror,
          blueprint,
          copies: { areKept: peer.mirror === true, find: (name) => mirror.find(name), doubt, adaptiveTtl }
        })
      }
    }
    for (const { eviction } of peeredBefore.values()) eviction.close()
    for (const { mirror } of before.values()) mirror.stop()
    this.#parts.freshness.follow(this.#mirrors.size > 0)
  }

  copiesOf(peer: string): PeerCopies | null {
    const kept = this.#mirrors.get(peer)
    if (kept !== undefined) return kept.copies
    const peered = this.#peered.get(peer)
    return peered === undefined ? null : peered.copies
  }

  /**
   * Hears of NOTIFY, and gives the RCODE that answers it: it counts for a peer with a key if that signs it, else from
   * the peer's servers, and from whoever signs it with a key that is no other peer's. null: no policy names a peer.
   */
  get notified(): Parts['notified'] {
    const hasPeers = [...this.#peered.values()].some(({ names }) => names.length > 0)
    return hasPeers ? (address, apex, key) => this.#notified(address, apex, key) : null
  }

  #notified(address: string, apex: DomainName, key: DomainName | null): number {
    // For a zone that nobody here wants to hear of, NOTIFY is not configured.
    let rcode: number = RCODE.NOTIMP
    for (const [peer, { names, eviction }] of this.#peered) {
      const mirror = this.#mirrors.get(peer)?.mirror
      const touched = names.flatMap((name) =>
        isAtOrBelow(name, apex) ? [name] : isAtOrBelow(apex, name) ? [apex] : []
      )
      if (touched.length === 0 && mirror?.follows(apex) !== true) continue
      if (!this.#maySpeakFor(peer, address, key)) {
        if (rcode === RCODE.NOTIMP) rcode = RCODE.REFUSED
        continue
      }
      rcode = RCODE.NOERROR
      mirror?.notified(apex)
      // Who keeps or follows the zone learns just what has changed.
      for (const suffix of touched) if (mirror?.follows(suffix) !== true) eviction.evictSuffix(suffix)
    }
    return rcode
  }

  #maySpeakFor(peer: string, address: string, key: DomainName | null): boolean {
    const peers = this.#config!.peers
    const own = peers.find(({ name }) => name === peer)?.key ?? null
    if (own !== null) return key === own
    if (key !== null) return peers.every((other) => other.key !== key)
    return this.#parts.serversOf(peer).some((server) => parseHostPort(server, 0).host === address)
  }

  /** Whether a peer tells of changes of a name: by transfer, or lately by NOTIFY. */
  #tells(peer: string, name: DomainName): boolean {
    return (
      this.#mirrors.get(peer)?.mirror.follows(name) === true || this.#peered.get(peer)?.eviction.wasTold(name) === true
    )
  }

  /** What changes of a peer have taken out of the cache; null where there is no such peer. */
  evictions(peer: string): Readonly<EvictionStats> | null {
    return this.#peered.get(peer)?.eviction.stats ?? null
  }

  /** All peers that policies name, also those whose zones nobody follows. */
  inspect(): readonly MirrorOfPeer[] {
    return Array.from(this.#peered, ([peer, { eviction, adaptive }]) => ({
      peer,
      zones: this.#mirrors.get(peer)?.mirror.status() ?? [],
      evictions: eviction.stats,
      adaptiveTtl: { names: adaptive.names, ...adaptive.stats }
    }))
  }

  /** The zones of peers that are kept here, as far as they have come. */
  copies(): readonly CopyOfPeer[] {
    return Array.from(this.#mirrors).flatMap(([peer, { mirror }]) =>
      [...mirror.zones].flatMap(({ store }) => (store === null ? [] : [{ peer, zone: store }]))
    )
  }

  status(): readonly PeerMirrorStatus[] {
    return Array.from(this.#mirrors, ([peer, { mirror }]) => ({
      peer,
      zones: mirror.status(),
      link: mirror.link.stats
    }))
  }

  stop(): void {
    for (const { eviction } of this.#peered.values()) eviction.close()
    for (const { mirror } of this.#mirrors.values()) mirror.stop()
    this.#mirrors.clear()
  }

  #start(peer: PeerConfig, names: readonly DomainName[], eviction: CacheEviction): PeerMirror {
    const { clock, random, instanceId, log, freshness, onCopyChanged } = this.#parts
    const told = { peer: peer.name }
    const zoneOf = (zone: Readonly<{ apex: DomainName }>): { peer: string; zone: string } => ({
      ...told,
      zone: nameToText(zone.apex)
    })
    const mirror = new PeerMirror({
      names,
      mayAscend: true,
      ...this.#primaryOf(peer),
      open: openMessageStream,
      instanceId,
      leaseMs: peer.leaseMs,
      clock,
      random,
      synthesize: computedPods,
      onSwap: (zone, store, before, times) => {
        log[before === null ? 'info' : 'debug'](
          { ...zoneOf(zone), serial: store.serial, rrsets: store.sizes.rrsets },
          'a zone was taken by transfer'
        )
        onCopyChanged(copyOfPeer(this.#config!, peer.name), zone.apex)
        if (before === null) return
        const from = this.#learnedFrom(peer, zone)
        for (const learned of learnedBySwap(from, before, store, times)) freshness.learned(learned)
      },
      onChange: (zone, change, steps) => {
        onCopyChanged(copyOfPeer(this.#config!, peer.name), zone.apex)
        for (const learned of learnedChanges(this.#learnedFrom(peer, zone), change, steps)) freshness.learned(learned)
      },
      ...(peer.mirror === 'evict' ? { onTold: this.#evicting(peer, eviction) } : {}),
      onCoarse: (zone, why) =>
        log.warn(
          { ...zoneOf(zone), why },
          'transfers: the peer gives no differences; each change empties the zone in the cache'
        ),
      onFault: (zone, { kind, message }) => log.debug({ ...zoneOf(zone), kind, message }, 'a transfer was of no use'),
      onTrouble: (name, why) =>
        log.warn(
          { ...told, zone: nameToText(name), why },
          'transfers: the peer gives no usable zone; its names are asked for'
        ),
      onBack: (name, { apex }) =>
        log.info({ ...told, zone: nameToText(name), from: nameToText(apex) }, 'transfers: the zone is followed again'),
      onLink: (server, isUp, why) =>
        isUp
          ? log.info({ ...told, server }, 'transfers: connected')
          : log.warn({ ...told, server, why }, 'transfers: the connection ended')
    })
    mirror.start()
    return mirror
  }

  /** Whom a peer's zones are taken from: itself, or a node's hub, so that nodes send nothing to other clusters. */
  #primaryOf(peer: PeerConfig): Pick<PeerMirrorOptions, 'servers' | 'signer' | 'copyOf'> {
    const { clock, keyOf, serversOf } = this.#parts
    const config = this.#config!
    const { source } = config.cluster
    return source.kind === 'mirror'
      ? {
          servers: hubServers(source.servers, clock),
          signer: signerOf(source.key, keyOf, clock),
          copyOf: copyOfPeer(config, peer.name)
        }
      : { servers: () => serversOf(peer.name), signer: signerOf(peer.key, keyOf, clock), copyOf: null }
  }

  #evicting(peer: PeerConfig, eviction: CacheEviction): PeerMirrorOptions['onTold'] & {} {
    return (zone, steps) => {
      const { apex } = zone
      if (steps === 'anything') {
        eviction.evictSuffix(apex)
        return
      }
      eviction.evict(
        steps.flatMap(({ owners }) => owners),
        apex
      )
      for (const learned of learnedNames(this.#learnedFrom(peer, zone), apex, steps)) {
        this.#parts.freshness.learned(learned)
      }
    }
  }

  #learnedFrom({ name }: PeerConfig, zone: SecondaryZone): LearnedFrom {
    return {
      peer: name,
      mappings: mappingsOf(this.#config!, name),
      clockOffsetMs: zone.clockOffsetMs,
      holds: (owner) => this.#mirrors.get(name)?.mirror.holds(zone, owner) ?? true
    }
  }
}

/** What a mirror is built from, but for the names: equal text means that nothing changed. */
const blueprintOf = ({ servers, families, leaseMs, mirror, key }: PeerConfig, { cluster }: Config): string =>
  JSON.stringify([
    servers,
    families,
    leaseMs,
    mirror,
    key,
    cluster.source.kind === 'mirror' ? [cluster.name, cluster.source] : null
  ])

/** The dnsNames of all policies with this peer as a target, as the peer calls them. */
function namesOf(config: Config, peer: string): DomainName[] {
  const ownZones = [config.cluster.zone, config.cluster.clustersetZone]
  const names = new Set<DomainName>()
  for (const { targets, dnsNames } of config.policies) {
    for (const target of targets.filter((candidate) => candidate.peer === peer)) {
      for (const dnsName of dnsNames) {
        const ours = mappedZoneOf(dnsName, ownZones)
        const mapping = target.zone === null ? null : { ours, theirs: target.zone }
        names.add(toTheirs(dnsName, mapping) ?? dnsName)
      }
    }
  }
  return [...names]
}
