/** What the primary gives away: this cluster's zones, as the section `transfer` wants it. */
import type { Config } from '../config/config.ts'
import type { PrimaryOptions } from '../transfer/primary.ts'
import type { ZoneSource } from '../transfer/zone-parts.ts'
import type { ClusterView } from './cluster-view.ts'

export function primaryOptions({ transfer, cluster }: Config, view: ClusterView): PrimaryOptions {
  return {
    allow: transfer.allow,
    export: transfer.export,
    schemaZones: [cluster.zone, cluster.clustersetZone],
    pods: (store) => ({
      mode: store.apex === cluster.zone ? view.zones.options.pods : 'disabled',
      ttlSeconds: view.zones.options.ttlSeconds
    })
  }
}

export function zoneSource(view: ClusterView): ZoneSource {
  const { zones } = view
  return {
    stores: zones.zones.all(),
    given: (store) => store,
    isReady: () => zones.hasSynced,
    ageMs: () => view.signOfLifeAgeMs()
  }
}
