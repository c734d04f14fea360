/**
 * Virtual addresses without those that are down. Where all are down, all stay, and the Service counts as empty:
 * policies and peers that ask go to the next target, as for a Service without ready endpoints.
 */
import { endpointKey } from '../base/endpoint-check.ts'
import type { DomainName } from '../wire/name.ts'
import { buildClustersetRecords } from './clusterset-records.ts'
import type { EndpointGroup } from './endpoint-objects.ts'
import type { Service, ServiceImport } from './service-objects.ts'
import { buildImportInZone, buildServiceRecords } from './service-records.ts'
import type { ServiceRecords } from './service-records.ts'

/** `service`: `<svc>.<ns>`. */
export type CheckedAddress = Readonly<{ address: string; check: string; service: string }>
type Objects = Readonly<{ services: ReadonlyMap<string, Service>; imports: ReadonlyMap<string, ServiceImport> }>
type Healthy<Kind> = Readonly<{ object: Kind; isAllDown: boolean }>

/** The Service as it is where nothing of it is down, or everything. @param down by `endpointKey`. */
function healthyService(service: Service, down: ReadonlySet<string>): Healthy<Service> {
  const healthy = healthyOf(service.clusterIPs, service.check, down)
  const isAllDown = healthy?.length === 0
  return { object: healthy === null || isAllDown ? service : { ...service, clusterIPs: healthy }, isAllDown }
}

/** The same for an import. */
function healthyImport(serviceImport: ServiceImport, down: ReadonlySet<string>): Healthy<ServiceImport> {
  const healthy = healthyOf(serviceImport.ips, serviceImport.check, down)
  const isAllDown = healthy?.length === 0
  return { object: healthy === null || isAllDown ? serviceImport : { ...serviceImport, ips: healthy }, isAllDown }
}

/** null: none is down. */
function healthyOf(addresses: readonly string[], check: string | null, down: ReadonlySet<string>): string[] | null {
  if (check === null || down.size === 0 || addresses.length === 0) return null
  const healthy = addresses.filter((address) => !down.has(endpointKey(address, check)))
  return healthy.length === addresses.length ? null : healthy
}

const withState = (records: ServiceRecords | null, { isAllDown }: Healthy<unknown>): ServiceRecords | null =>
  records === null || !isAllDown ? records : { ...records, state: 'empty' }

type ServiceObjects = Readonly<{
  service: Service | null
  /** null where there is no slice and no Endpoints object of the Service. */
  groups: readonly EndpointGroup[] | null
  serviceImport: ServiceImport | null
  importGroups: readonly EndpointGroup[] | null
}>

type ZoneOptions = Readonly<{
  clusterName: string
  zone: DomainName
  clustersetZone: DomainName
  ttlSeconds: number
  importsInZone: boolean
}>

/** The records of one Service name in the cluster zone and in the clusterset zone, without what is down. */
export function recordsInBoth(
  { service, groups, serviceImport, importGroups }: ServiceObjects,
  { clusterName, zone, clustersetZone, ttlSeconds, importsInZone }: ZoneOptions,
  down: ReadonlySet<string>
): Readonly<{ own: ServiceRecords | null; imported: ServiceRecords | null }> {
  let own: ServiceRecords | null = null
  if (service !== null) {
    const its = healthyService(service, down)
    own = withState(buildServiceRecords(its.object, groups, zone, ttlSeconds), its)
  }
  if (serviceImport === null) return { own, imported: null }
  const its = healthyImport(serviceImport, down)
  if (service === null && importsInZone) {
    own = withState(buildImportInZone(its.object, importGroups, zone, ttlSeconds), its)
  }
  const imported = buildClustersetRecords(its.object, importGroups, clustersetZone, ttlSeconds, clusterName)
  return { own, imported: withState(imported, its) }
}

/** What Services and imports have checked. */
export function* checkedAddresses({ services, imports }: Objects): Generator<CheckedAddress> {
  for (const { check, clusterIPs, name, namespace } of services.values()) {
    if (check !== null) for (const address of clusterIPs) yield { address, check, service: `${name}.${namespace}` }
  }
  for (const { check, ips, name, namespace } of imports.values()) {
    if (check !== null) for (const address of ips) yield { address, check, service: `${name}.${namespace}` }
  }
}

/** The keys of those for which it makes a difference that other addresses are down. */
export function servicesBetween(
  { services, imports }: Objects,
  before: ReadonlySet<string>,
  after: ReadonlySet<string>
): string[] {
  const differs = (addresses: readonly string[], check: string | null): boolean =>
    check !== null &&
    addresses.some((address) => before.has(endpointKey(address, check)) !== after.has(endpointKey(address, check)))
  const keys = new Set<string>()
  for (const [key, { clusterIPs, check }] of services) if (differs(clusterIPs, check)) keys.add(key)
  for (const [key, { ips, check }] of imports) if (differs(ips, check)) keys.add(key)
  return [...keys]
}
