/**
 * The cluster's zones by transfer from the cluster's own peerdns: the source of a node's resolver, which needs no
 * access to the API server.
 *
 * The copies take the place of the empty zones that the view begins with, each in one step. Before its first transfer a
 * zone counts as not read yet; a zone that nobody gives is taken out, as if it were not ours.
 */
import type { ResourceHealth } from '../admin/inspectable.ts'
import type { HostPort } from '../base/host-port.ts'
import { openMessageStream } from '../peer/message-stream.ts'
import type { MirrorStatus } from '../transfer/mirror-types.ts'
import { MirroredZone } from '../transfer/mirrored-zone.ts'
import { PeerMirror } from '../transfer/peer-mirror.ts'
import { nameToText, type DomainName } from '../wire/name.ts'
import type { ClusterSource, SourceParts } from './cluster-source.ts'
import { computedPods } from './computed-pods.ts'
import { hubServers } from './hub-servers.ts'
import { signerOf } from './mirror-set.ts'

/** Within this time without a sign of life, the copies are as good as the zones themselves. */
const leaseMs = 5_000

export function mirrorSource(
  { servers, key }: Readonly<{ servers: readonly HostPort[]; key: DomainName | null }>,
  parts: SourceParts
): ClusterSource {
  const { zones, clock, log, random, instanceId } = parts
  const wanted = zones.zones.all().map(({ apex }) => apex)
  /** Zones that have come, or that nobody gives. */
  const settled = new Set<DomainName>()
  let tellWhole: (() => void) | null = null
  const settle = (apex: DomainName): void => {
    settled.add(apex)
    // Without the cluster zone itself there is nothing to serve, whatever else is refused.
    if ((mirror.get(zones.zone.apex)?.store ?? null) === null || wanted.some((name) => !settled.has(name))) return
    tellWhole?.()
    tellWhole = null
  }
  const mirror = new PeerMirror({
    names: wanted,
    mayAscend: false,
    servers: hubServers(servers, clock),
    open: openMessageStream,
    signer: signerOf(key, parts.keyOf, clock),
    instanceId,
    leaseMs,
    clock,
    random,
    synthesize: computedPods,
    onSwap: ({ apex }, store, before) => {
      zones.zones.add(store)
      const { serial, epoch, sizes } = store
      log[before === null ? 'info' : 'debug'](
        { zone: nameToText(apex), serial, epoch, rrsets: sizes.rrsets },
        'a zone was taken by transfer'
      )
      settle(apex)
    },
    onChange: () => {},
    onRefused: ({ apex, store }, why) => {
      if (store !== null || settled.has(apex)) return
      log.warn({ zone: nameToText(apex), why }, 'nobody gives this zone, so it is not served')
      if (apex !== zones.zone.apex) zones.zones.remove(apex)
      settle(apex)
    },
    onFault: ({ apex }, { kind, message }) =>
      log.debug({ zone: nameToText(apex), kind, message }, 'a transfer was of no use'),
    onTrouble: (name, why) => {
      // Of one that never came, `onRefused` tells.
      if ((mirror.get(name)?.store ?? null) === null) return
      log.warn({ zone: nameToText(name), why }, 'transfers: the hub gives no usable zone; it is served on as it is')
    },
    onBack: (name) => log.info({ zone: nameToText(name) }, 'transfers: the zone is followed again'),
    onLink: (server, isUp, why) =>
      isUp
        ? log.info({ server }, 'transfers: connected')
        : log.warn({ server, why }, 'transfers: the connection ended; the zones are served on as they are')
  })
  /** Asked with every answer. */
  const ageMs = (): number | null => {
    let oldestMs: number | null = null
    for (const zone of mirror.zones) {
      const zoneAgeMs = zone.ageMs()
      if (zoneAgeMs !== null && zoneAgeMs >= (oldestMs ?? 0)) oldestMs = zoneAgeMs
    }
    return oldestMs
  }
  return {
    kind: 'mirror',
    start: (onWhole) => {
      tellWhole = onWhole
      mirror.start()
      return Promise.resolve()
    },
    close: () => {
      mirror.stop()
      return Promise.resolve()
    },
    signOfLifeAgeMs: ageMs,
    silentForMs: () => {
      let silentForMs: number | null = null
      for (const zone of mirror.zones) {
        if (!(zone instanceof MirroredZone) || zone.store === null || zone.isLive()) continue
        silentForMs = Math.max(silentForMs ?? 0, zone.unconfirmedMs() ?? 0)
      }
      return silentForMs
    },
    resources: () => mirror.status().map(resourceOf),
    sourceClusters: () => null,
    unreadManifests: [],
    problems: [],
    problemsTotal: 0,
    hasRead: ({ apex }) => (mirror.get(apex)?.store ?? null) !== null
  }
}

/** A zone as what is followed by list and watch: whole transfers are its lists, connections its watches. */
const resourceOf = ({ apex, state, serial, ageMs, lastFault, stats }: MirrorStatus): ResourceHealth => ({
  name: nameToText(apex),
  state,
  hasSynced: serial !== null,
  objects: 0,
  lastSignOfLifeAgeMs: ageMs,
  lists: stats.wholeTransfers,
  watches: stats.checks,
  events: stats.deltaTransfers,
  errors: Object.values(stats.faults).reduce((sum, count) => sum + count, 0),
  drift: 0,
  lastError: lastFault === null ? null : { text: lastFault, ageMs: 0 }
})
