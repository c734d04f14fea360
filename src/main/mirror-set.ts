/** The copies of peers' zones: for each peer with `mirror`, the names that policies send there, kept by transfer. */
import type { Clock } from '../base/clock.ts'
import type { Logger } from '../base/log.ts'
import type { Config, PeerConfig } from '../config/config.ts'
import type { Freshness } from '../pipeline/freshness.ts'
import type { PeerCopies } from '../pipeline/from-copy.ts'
import { openMessageStream } from '../peer/message-stream.ts'
import { mappedZoneOf, toTheirs } from '../policy/zone-mapping.ts'
import { PeerMirror } from '../transfer/peer-mirror.ts'
import type { MirrorStatus } from '../transfer/mirror-types.ts'
import type { MirroredZone } from '../transfer/mirrored-zone.ts'
import { nameToText, type DomainName } from '../wire/name.ts'
import { computedPods } from './computed-pods.ts'
import { learnedChanges, mappingsOf } from './learned-change.ts'

type Dependencies = Readonly<{
  clock: Clock
  log: Logger
  random: () => number
  instanceId: string
  freshness: Freshness
  /** The addresses that a peer's servers have now, best first, as `host:port`. */
  serversOf: (peer: string) => readonly string[]
}>

type Kept = Readonly<{ mirror: PeerMirror; blueprint: string }>

export type PeerMirrorStatus = Readonly<{
  peer: string
  zones: readonly MirrorStatus[]
  link: PeerMirror['link']['stats']
}>

export class MirrorSet {
  readonly #parts: Dependencies
  #mirrors = new Map<string, Kept>()
  #config: Config | null = null

  constructor(parts: Dependencies) {
    this.#parts = parts
  }

  /** Begins with what is new, goes on with what is the same, and ends what is gone. */
  update(config: Config): void {
    const before = this.#mirrors
    this.#mirrors = new Map()
    this.#config = config
    for (const peer of config.peers) {
      const names = namesOf(config, peer.name)
      if (!peer.mirror || names.length === 0) continue
      const blueprint = blueprintOf(peer)
      const known = before.get(peer.name)
      if (known?.blueprint === blueprint) {
        before.delete(peer.name)
        known.mirror.setNames(names)
        this.#mirrors.set(peer.name, known)
      } else {
        this.#mirrors.set(peer.name, { mirror: this.#start(peer, names), blueprint })
      }
    }
    for (const { mirror } of before.values()) mirror.stop()
    this.#parts.freshness.follow(this.#mirrors.size > 0)
  }

  copiesOf(peer: string): PeerCopies | null {
    return this.#mirrors.get(peer)?.mirror ?? null
  }

  /** Somebody with the right to it says that a zone of this peer has changed. False: no such zone is kept. */
  notified(peer: string, apex: DomainName): boolean {
    return this.#mirrors.get(peer)?.mirror.notified(apex) ?? false
  }

  status(): readonly PeerMirrorStatus[] {
    return Array.from(this.#mirrors, ([peer, { mirror }]) => ({
      peer,
      zones: mirror.status(),
      link: mirror.link.stats
    }))
  }

  stop(): void {
    for (const { mirror } of this.#mirrors.values()) mirror.stop()
    this.#mirrors.clear()
  }

  #start(peer: PeerConfig, names: readonly DomainName[]): PeerMirror {
    const { clock, random, instanceId, log, serversOf, freshness } = this.#parts
    const told = { peer: peer.name }
    const zoneOf = (zone: MirroredZone): { peer: string; zone: string } => ({ ...told, zone: nameToText(zone.apex) })
    const mirror = new PeerMirror({
      names,
      mayAscend: true,
      servers: () => serversOf(peer.name),
      open: openMessageStream,
      signer: null,
      instanceId,
      leaseMs: peer.leaseMs,
      clock,
      random,
      synthesize: computedPods,
      onSwap: (zone, { serial, sizes }, before) =>
        log[before === null ? 'info' : 'debug'](
          { ...zoneOf(zone), serial, rrsets: sizes.rrsets },
          'a zone was taken by transfer'
        ),
      onChange: ({ clockOffsetMs }, change, steps) => {
        const from = { peer: peer.name, mappings: mappingsOf(this.#config!, peer.name), clockOffsetMs }
        for (const learned of learnedChanges(from, change, steps)) freshness.learned(learned)
      },
      onFault: (zone, { kind, message }) => log.debug({ ...zoneOf(zone), kind, message }, 'a transfer was of no use'),
      onLink: (server, isUp, why) =>
        log[isUp ? 'info' : 'warn'](
          { ...told, server, why },
          isUp ? 'transfers: connected' : 'transfers: the connection ended'
        )
    })
    mirror.start()
    return mirror
  }
}

/** What a mirror is built from, but for the names: equal text means that nothing changed. */
const blueprintOf = ({ servers, families, leaseMs }: PeerConfig): string => JSON.stringify([servers, families, leaseMs])

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
