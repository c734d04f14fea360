/** Metrics of what the server knows: its zones and their source, its peers, its configuration. */
import { sourceClustersInMetrics, zonesInMetrics } from '../base/limits.ts'
import { nameToText } from '../wire/name.ts'
import { byLabel, counter, gauge, type Metric, type Sample } from './exposition.ts'
import type { Inspectable, ResourceHealth, SourceClusterHealth, SourceClustersHealth } from './inspectable.ts'

const healths = ['up', 'down', 'unknown', 'doubtful'] as const

export function zoneMetrics(inspect: Inspectable): Metric[] {
  const all = inspect.zones()
  // The cluster's own zones come first, so reverse zones are what is left out.
  const own = all.slice(0, zonesInMetrics).map((zone) => ({ labels: { zone: nameToText(zone.apex) }, zone }))
  const copies = inspect
    .copies()
    .slice(0, zonesInMetrics)
    .map(({ peer, zone }) => ({ labels: { zone: nameToText(zone.apex), peer }, zone }))
  const zones = [...own, ...copies]
  const nowEpochMs = inspect.parts().clock.epochMs()
  const each = (valueOf: (zone: (typeof all)[number]) => number): Sample[] =>
    zones.map(({ labels, zone }) => ({ labels, value: valueOf(zone) }))
  return [
    gauge('peerdns_zones', 'Zones that are answered here.', all.length),
    gauge(
      'peerdns_zone_serial',
      'Serial of the zone.',
      each((zone) => zone.serial)
    ),
    gauge(
      'peerdns_zone_rrsets',
      'RRsets in the zone.',
      each((zone) => zone.sizes.rrsets)
    ),
    gauge(
      'peerdns_zone_names',
      'Names that exist in the zone.',
      each((zone) => zone.sizes.names)
    ),
    gauge(
      'peerdns_zone_journal_entries',
      'RRset changes kept for transfers.',
      each((zone) => zone.sizes.journalEntries)
    ),
    gauge(
      'peerdns_zone_last_change_age_seconds',
      'Time since the zone last changed.',
      each((zone) => Math.max(0, nowEpochMs - zone.lastChangeAtMs) / 1000)
    )
  ]
}

export function sourceMetrics(inspect: Inspectable): Metric[] {
  const source = inspect.source()
  const age = source.lastSignOfLifeAgeMs
  return [
    gauge('peerdns_source_synced', '1 once the cluster has been read completely.', source.hasSynced ? 1 : 0),
    gauge(
      'peerdns_source_objects',
      'Kubernetes objects held, by kind.',
      byLabel('kind', Object.entries(source.objects))
    ),
    counter('peerdns_source_problems_total', 'Objects or files left out since the start.', source.problemsTotal),
    gauge(
      'peerdns_source_problems',
      'Objects or files that are left out now, as far as they are listed.',
      source.problems.length
    ),
    gauge(
      'peerdns_source_last_sign_of_life_age_seconds',
      'Time since the source of our objects last gave a sign of life; no sample before the first.',
      age === null ? [] : age / 1000
    ),
    ...resourceMetrics(source.resources),
    ...sourceClusterMetrics(source.sourceClusters)
  ]
}

/** One series for each source cluster that has a Lease; none unless `cluster.leases` is set. */
function sourceClusterMetrics(health: SourceClustersHealth | null): Metric[] {
  // A cluster may have several Leases: the one renewed last speaks.
  const byCluster = new Map<string, SourceClusterHealth>()
  for (const lease of health?.clusters ?? []) {
    const other = byCluster.get(lease.cluster)
    if (other === undefined && byCluster.size >= sourceClustersInMetrics) continue
    if (other === undefined || lease.renewedAgoMs < other.renewedAgoMs) byCluster.set(lease.cluster, lease)
  }
  const each = (valueOf: (lease: SourceClusterHealth) => number): Sample[] =>
    [...byCluster.values()].map((lease) => ({ labels: { source_cluster: lease.cluster }, value: valueOf(lease) }))
  return [
    gauge(
      'peerdns_source_cluster_alive',
      '1 while a source cluster of ServiceImports renews its Lease, 0 while its endpoints are left out.',
      each(({ isLost }) => (isLost ? 0 : 1))
    ),
    gauge(
      'peerdns_source_cluster_lease_age_seconds',
      'Time since the Lease of a source cluster was seen to be renewed, or was first seen.',
      each(({ renewedAgoMs }) => renewedAgoMs / 1000)
    ),
    counter(
      'peerdns_source_cluster_changes_total',
      'Source clusters that left the answers, and that came back.',
      byLabel('change', [
        ['lost', health?.lossesTotal ?? 0],
        ['returned', health?.returnsTotal ?? 0]
      ])
    )
  ]
}

/** One series for each kind that is followed by list and watch; none for manifests. */
function resourceMetrics(resources: readonly ResourceHealth[]): Metric[] {
  const each = (valueOf: (resource: ResourceHealth) => number | null): Sample[] =>
    resources.flatMap((resource) => {
      const value = valueOf(resource)
      return value === null ? [] : [{ labels: { resource: resource.name }, value }]
    })
  return [
    gauge(
      'peerdns_watch_last_sign_of_life_age_seconds',
      'Time since the watch of a resource last gave a sign of life; no sample before the first.',
      each(({ lastSignOfLifeAgeMs }) => (lastSignOfLifeAgeMs === null ? null : lastSignOfLifeAgeMs / 1000))
    ),
    gauge(
      'peerdns_watch_synced',
      '1 once a resource has been listed whole.',
      each(({ hasSynced }) => (hasSynced ? 1 : 0))
    ),
    counter(
      'peerdns_watch_lists_total',
      'Lists of a resource.',
      each(({ lists }) => lists)
    ),
    counter(
      'peerdns_watch_watches_total',
      'Watches of a resource.',
      each(({ watches }) => watches)
    ),
    counter(
      'peerdns_watch_events_total',
      'Changes told by lists and watches of a resource.',
      each(({ events }) => events)
    ),
    counter(
      'peerdns_watch_errors_total',
      'Lists and watches that did not end as they should.',
      each(({ errors }) => errors)
    ),
    counter(
      'peerdns_watch_drift_total',
      'Objects that an audit found to differ from what the API server holds.',
      each(({ drift }) => drift)
    )
  ]
}

export function peerMetrics(inspect: Inspectable): Metric[] {
  const peers = inspect.peers()
  const perServer = (valueOf: (server: (typeof peers)[number]['servers'][number]) => number | null): Sample[] =>
    peers.flatMap((peer) =>
      peer.servers.flatMap((server) => {
        const value = valueOf(server)
        return value === null ? [] : [{ labels: { peer: peer.name, server: server.server }, value }]
      })
    )
  const perPeer = (
    label: string,
    counts: (stats: (typeof peers)[number]['stats']) => Record<string, number>
  ): Sample[] =>
    peers.flatMap((peer) =>
      Object.entries(counts(peer.stats)).map(([key, value]) => ({ labels: { peer: peer.name, [label]: key }, value }))
    )
  const onePerPeer = (valueOf: (peer: (typeof peers)[number]) => number): Sample[] =>
    peers.map((peer) => ({ labels: { peer: peer.name }, value: valueOf(peer) }))
  return [
    gauge(
      'peerdns_peer_health',
      '1 for the state that the peer is in: up, down, or unknown before the first probe.',
      peers.flatMap((peer) =>
        healths.map((health) => ({ labels: { peer: peer.name, health }, value: peer.health === health ? 1 : 0 }))
      )
    ),
    gauge(
      'peerdns_peer_server_health',
      '1 for the state that one server of the peer is in.',
      peers.flatMap((peer) =>
        peer.servers.flatMap((server) =>
          healths.map((health) => ({
            labels: { peer: peer.name, server: server.server, health },
            value: server.health === health ? 1 : 0
          }))
        )
      )
    ),
    gauge(
      'peerdns_peer_rtt_seconds',
      'Smoothed time to an answer of one server; no sample before its first answer.',
      perServer(({ rttMs }) => (rttMs === null ? null : rttMs / 1000))
    ),
    gauge(
      'peerdns_peer_in_flight',
      'Questions that one server has not answered yet.',
      perServer(({ inFlight }) => inFlight)
    ),
    counter(
      'peerdns_peer_questions_total',
      'Questions to the peer by result; joined ones shared the exchange of an equal question and count twice.',
      perPeer('result', ({ answered, failed, overloaded, joined }) => ({ answered, failed, overloaded, joined }))
    ),
    counter(
      'peerdns_peer_hedges_total',
      'Questions for which another server or target was asked because the answer took longer than usual.',
      onePerPeer(({ stats }) => stats.hedged)
    ),
    counter(
      'peerdns_peer_exchanges_total',
      'Exchanges with servers of the peer, by transport; probes are among them.',
      perPeer('transport', ({ udpExchanges, tcpExchanges }) => ({ udp: udpExchanges, tcp: tcpExchanges }))
    ),
    counter(
      'peerdns_peer_attempt_failures_total',
      'Exchanges without a usable answer, by what came instead.',
      perPeer('outcome', (stats) => ({
        timeout: stats.timeouts,
        network: stats.networkErrors,
        rcode: stats.rcodes,
        nonsense: stats.nonsense,
        truncated: stats.truncated
      }))
    ),
    counter(
      'peerdns_peer_strays_total',
      'Messages that belonged to no question: wrong id, question or sender.',
      onePerPeer(({ stats }) => stats.strays)
    ),
    counter(
      'peerdns_peer_tcp_connections_total',
      'TCP connections made to servers of the peer.',
      onePerPeer(({ stats }) => stats.tcpConnections)
    )
  ]
}

export function configMetrics(inspect: Inspectable): Metric[] {
  const { taken, refused } = inspect.reloads()
  return [
    gauge('peerdns_ready', '1 while /readyz says yes.', inspect.readiness().isReady ? 1 : 0),
    counter(
      'peerdns_config_reloads_total',
      'Changed configuration files that were taken into use, or refused for their mistakes.',
      byLabel('result', [
        ['taken', taken],
        ['refused', refused]
      ])
    ),
    gauge(
      'peerdns_config_outdated',
      '1 while the newest configuration file is wrong and an older one is in use.',
      inspect.configProblems().length > 0 ? 1 : 0
    ),
    gauge('peerdns_build_info', 'Always 1; the labels say what runs.', [
      { labels: { version: inspect.version, node: process.versions.node }, value: 1 }
    ])
  ]
}
