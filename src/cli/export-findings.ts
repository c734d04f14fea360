/**
 * What `check` has to say of the section `transfer`: settings that give others less, or something else, than it seems.
 */
import type { ClusterZones } from '../cluster/cluster-zones.ts'
import type { EndpointSlice } from '../cluster/endpoint-objects.ts'
import type { Port, Service } from '../cluster/service-objects.ts'
import type { Config } from '../config/config.ts'

/** Warnings, one line each. */
export function exportTexts(config: Config, zones: ClusterZones): string[] {
  const { file, transfer, positions } = config
  const { line, column } = positions.get('transfer') ?? { line: 1, column: 1 }
  const warn = (path: string, text: string): string => `${file}:${line}:${column}: warning: ${path}: ${text}`
  const warnings: string[] = []
  const { address, namespaces, services } = transfer.export
  const isClosed = transfer.allow.networks.length === 0
  const takers = new Set([...config.peers, config.cluster.source].map((one) => ('key' in one ? one.key : null)))
  const keysForOthers = transfer.keys.filter(({ name }) => !takers.has(name))
  const hasMore = keysForOthers.length + transfer.notify.length + namespaces.length + services.length > 0
  if (isClosed && hasMore) warnings.push(warn('transfer', 'nobody may take zones as long as `transfer.allow` is empty'))
  for (const service of services) {
    const namespace = service.slice(0, service.indexOf('/'))
    if (namespaces.length === 0 || namespaces.includes(namespace)) continue
    warnings.push(
      warn('transfer.export.services', `${service} is not exported: its namespace is not in \`namespaces\``)
    )
  }
  if (address === 'endpoints') {
    for (const text of portTexts(zones)) warnings.push(warn('transfer.export.address', text))
  }
  return warnings
}

/** Services with a ClusterIP whose endpoints listen on other ports: who has their addresses needs those ports. */
function portTexts(zones: ClusterZones): string[] {
  const services = new Map<string, Service>()
  for (const object of zones.objects('Service')) {
    if (object.kind === 'Service' && object.serviceType === 'clusterIP') {
      services.set(`${object.namespace}/${object.name}`, object)
    }
  }
  const texts = new Set<string>()
  for (const object of zones.objects('EndpointSlice')) {
    // A slice is what its kind says; the type of the iterator knows all kinds.
    const slice = object as EndpointSlice
    const service = slice.isImported ? undefined : services.get(`${slice.namespace}/${slice.serviceName}`)
    if (service === undefined) continue
    for (const port of service.ports) {
      const target = slice.ports.find((other) => isSamePort(port, other))
      if (target === undefined || target.port === 0 || target.port === port.port) continue
      const named = port.name === '' ? '' : ` (${port.name})`
      texts.add(
        `${service.namespace}/${service.name}: port ${port.port}${named} is ${target.port} at its endpoints; clients that do not ask for SRV miss it`
      )
    }
  }
  return [...texts].sort()
}

const isSamePort = (one: Port, other: Port): boolean => one.name === other.name && one.protocol === other.protocol
