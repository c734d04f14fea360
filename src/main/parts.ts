/** What answers a query, joined from the parts of a running server. */
import type { RunningServer } from '../main.ts'
import type { Parts } from '../pipeline/parts.ts'
import { ClientRegions } from '../policy/client-regions.ts'
import { policyTables } from './policies.ts'
import { standingsOf } from './standings.ts'

/**
 * Made anew whenever anything in it is another one: the configuration, the view of the cluster, what an operator set.
 */
export function partsOf(server: RunningServer, more: Pick<Parts, 'instanceId' | 'random' | 'knownServices'>): Parts {
  const { config, view } = server
  return {
    ...more,
    clock: server.clock,
    log: server.log,
    own: {
      zones: view.zones.zones,
      hasSynced: (zone) => view.hasSynced(zone),
      signOfLifeAgeMs: () => view.signOfLifeAgeMs(),
      silentForMs: () => view.silentForMs()
    },
    primary: server.zonesOut.primary,
    clusterZone: config.cluster.zone,
    clustersetZone: config.cluster.clustersetZone,
    ...policyTables(config, (name) => server.operator.isDisabled(name)),
    peers: server.peers.targets((peer) => server.mirrors.copiesOf(peer)),
    standings: standingsOf(server.peers, server.operator),
    notified: server.mirrors.notified,
    isDownEndpoint: (address, check) => server.endpoints.isDown(address, check),
    forward: server.peers.forward,
    clientRegions: new ClientRegions(config.regions, config.cluster.region),
    cache: server.cache,
    staleRefresh: server.peers.staleRefresh,
    cacheLimits: config.cache,
    freshness: server.freshness,
    allow: config.allow,
    logQueriesEvery: config.log.querySample
  }
}
