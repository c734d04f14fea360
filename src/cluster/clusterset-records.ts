/**
 * The records of one ServiceImport in the clusterset zone. KEP-1645, "Kubernetes DNS-Based Multicluster Service
 * Discovery" 1.0.0, sections 2.3 and 2.4.
 *
 * Pure: objects in, records out. `<clusterid>.<svc>` never gets a record (2.3.4, 2.4.4); it exists as an empty
 * non-terminal above the hosts of that cluster.
 */
import type { DomainName } from '../wire/name.ts'
import { hostLabel, publishEndpoints } from './endpoints.ts'
import { noHosts } from './plain-hosts.ts'
import type { EndpointGroup } from './endpoint-objects.ts'
import { nameBelow, RecordSets } from './record-sets.ts'
import type { ServiceImport } from './service-objects.ts'
import { addTarget, addVirtualAddresses, openPorts } from './service-records.ts'
import type { Pointer, ServiceRecords } from './service-records.ts'

/**
 * @param groups the imported slices; null where there is none.
 * @param ownCluster our cluster's id, for slices that do not say whence they come.
 */
export function buildClustersetRecords(
  serviceImport: ServiceImport,
  groups: readonly EndpointGroup[] | null,
  zone: DomainName,
  zoneTtlSeconds: number,
  ownCluster: string
): ServiceRecords | null {
  const owner = nameBelow([serviceImport.name, serviceImport.namespace, 'svc'], zone)
  if (owner === null) return null
  const ttlSeconds = serviceImport.ttlSeconds ?? zoneTtlSeconds
  const sets = new RecordSets(ttlSeconds)
  const pointers: Pointer[] = []
  const names: DomainName[] = []
  const { endpoints, state } = publishEndpoints(groups, false)

  if (serviceImport.importType === 'clusterSetIP') {
    // Without an address there is nothing that a port could be at.
    if (serviceImport.ips.length === 0) names.push(owner)
    else addVirtualAddresses(sets, owner, serviceImport.ips, serviceImport.ports, pointers)
    return { owner, state, sets: sets.finish(), hosts: noHosts, names, pointers, ttlSeconds }
  }
  for (const endpoint of endpoints) {
    const { address, octets, ports, sourceCluster } = endpoint
    sets.addAddress(owner, octets)
    const clusterLabels = (sourceCluster === '' ? ownCluster : sourceCluster).split('.')
    const host = nameBelow([hostLabel(endpoint), ...clusterLabels], owner)
    if (host === null) continue
    sets.addAddress(host, octets)
    pointers.push({ address, target: host })
    addTarget(openPorts(sets, owner, ports), host)
  }
  return { owner, state, sets: sets.finish(), hosts: noHosts, names, pointers, ttlSeconds }
}
