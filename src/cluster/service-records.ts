/**
 * The records of one Service in the cluster zone. Kubernetes DNS specification 1.1.0, sections 2.3 to 2.5.
 *
 * Pure: objects in, records out. Beyond the specification, as CoreDNS: SRV at the plain name for all ports, and names
 * (with PTR) of the endpoints of ClusterIP Services.
 */
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import type { ServiceState } from '../zone/zone-change.ts'
import { addressOctets } from './address.ts'
import { hostLabel, publishEndpoints } from './endpoints.ts'
import type { PublishedEndpoint } from './endpoints.ts'
import type { EndpointGroup } from './endpoint-objects.ts'
import { arePlain, noHosts, plainAddress, type PlainHosts } from './plain-hosts.ts'
import { nameBelow, portOctets, RecordSets } from './record-sets.ts'
import type { DraftSet } from './record-sets.ts'
import type { Port, Service, ServiceImport } from './service-objects.ts'

/** An address and the name that its PTR record gives. */
export type Pointer = Readonly<{ address: string; target: DomainName }>

export type ServiceRecords = Readonly<{
  /** The Service's name in the zone. */
  owner: DomainName
  state: ServiceState
  /** All RRsets but those of the hosts. */
  sets: readonly DraftSet[]
  /** Endpoints that have a name of their own, with an A record, and a PTR record that points there. */
  hosts: PlainHosts
  /** Names that exist without records. */
  names: readonly DomainName[]
  /** All PTR records but those of the hosts. */
  pointers: readonly Pointer[]
  ttlSeconds: number
}>

/** The SRV records that one port makes, whatever their targets: where they stand, and what stands before the target. */
export type PortRecords = Readonly<{ octets: string; sets: readonly string[][] }>

/** SRV at `_port._proto.<owner>` and at the owner itself, as far as the ports have a number and a name. */
export function openPorts(sets: RecordSets, owner: DomainName, ports: readonly Port[]): PortRecords[] {
  const opened: PortRecords[] = []
  for (const { port, name, protocol } of ports) {
    if (port === 0) continue
    const portOwner = name === '' ? null : nameBelow([`_${name}`, `_${protocol}`], owner)
    const all = portOwner === null ? [owner] : [owner, portOwner]
    opened.push({ octets: portOctets(port), sets: all.map((at) => sets.open(at, RRTYPE.SRV)) })
  }
  return opened
}

/** Writes the SRV records of ports with this target. */
export function addTarget(ports: readonly PortRecords[], target: DomainName): void {
  for (const { octets, sets } of ports) {
    const rdata = octets + target
    for (const set of sets) set.push(rdata)
  }
}

/** An endpoint's own name; null where that would be too long. */
const hostName = (endpoint: PublishedEndpoint, owner: DomainName): DomainName | null =>
  nameBelow([hostLabel(endpoint)], owner)

/** Writes an endpoint's address at its own name, where its PTR record points. */
function addHostName(
  sets: RecordSets,
  host: DomainName | null,
  endpoint: PublishedEndpoint,
  pointers: Pointer[]
): void {
  if (host === null) return
  sets.addAddress(host, endpoint.octets)
  pointers.push({ address: endpoint.address, target: host })
}

/**
 * @param zone the cluster zone's apex.
 * @param groups null where there is no slice and no Endpoints object of the Service.
 * @param zoneTtlSeconds the TTL unless the Service has its own.
 */
export function buildServiceRecords(
  service: Service,
  groups: readonly EndpointGroup[] | null,
  zone: DomainName,
  zoneTtlSeconds: number
): ServiceRecords | null {
  const owner = nameBelow([service.name, service.namespace, 'svc'], zone)
  if (owner === null) return null
  const ttlSeconds = service.ttlSeconds ?? zoneTtlSeconds
  const sets = new RecordSets(ttlSeconds)
  const pointers: Pointer[] = []
  const { endpoints, state } = publishEndpoints(groups, service.publishesNotReady)
  const names: DomainName[] = []
  const hosts = new Set<number>()
  const hasPlainHosts = arePlain(endpoints, owner)
  /** Gives the endpoint a name of its own. */
  const addHost = (endpoint: PublishedEndpoint): void => {
    const address = hasPlainHosts ? plainAddress(endpoint) : null
    if (address === null) addHostName(sets, hostName(endpoint, owner), endpoint, pointers)
    else hosts.add(address)
  }

  if (service.externalName !== null) {
    sets.add(owner, RRTYPE.CNAME, service.externalName)
  } else if (service.serviceType === 'headless') {
    let ports: readonly Port[] | null = null
    let opened: readonly PortRecords[] = []
    const addresses = [sets.open(owner, RRTYPE.A), sets.open(owner, RRTYPE.AAAA)] as const
    for (const endpoint of endpoints) {
      const { octets } = endpoint
      addresses[octets.length === 4 ? 0 : 1].push(octets)
      addHost(endpoint)
      const host = hostName(endpoint, owner)
      if (host === null) continue
      // Endpoints of one slice share the very same list.
      if (endpoint.ports !== ports) opened = openPorts(sets, owner, (ports = endpoint.ports))
      addTarget(opened, host)
    }
  } else if (service.clusterIPs.length === 0) {
    // An address was never allocated, which only files can hold: the name exists, and no record is made up.
    names.push(owner)
  } else {
    addVirtualAddresses(sets, owner, service.clusterIPs, service.ports, pointers)
    for (const endpoint of endpoints) addHost(endpoint)
  }
  return {
    owner,
    state,
    sets: sets.finish(),
    hosts: hosts.size === 0 ? noHosts : [...hosts],
    names,
    pointers,
    ttlSeconds
  }
}

/** The records of a name with virtual addresses: a ClusterIP Service, or an import with its ClusterSetIP. */
export function addVirtualAddresses(
  sets: RecordSets,
  owner: DomainName,
  addresses: readonly string[],
  ports: readonly Port[],
  pointers: Pointer[]
): void {
  for (const address of addresses) {
    sets.addAddress(owner, addressOctets(address))
    pointers.push({ address, target: owner })
  }
  addTarget(openPorts(sets, owner, ports), owner)
}

/** A ServiceImport answered in the cluster zone as if it were a Service with its ClusterSetIP (`importsInZone`). */
export function buildImportInZone(
  serviceImport: ServiceImport,
  groups: readonly EndpointGroup[] | null,
  zone: DomainName,
  zoneTtlSeconds: number
): ServiceRecords | null {
  const owner = nameBelow([serviceImport.name, serviceImport.namespace, 'svc'], zone)
  if (owner === null || serviceImport.ips.length === 0) return null
  const ttlSeconds = serviceImport.ttlSeconds ?? zoneTtlSeconds
  const sets = new RecordSets(ttlSeconds)
  const pointers: Pointer[] = []
  addVirtualAddresses(sets, owner, serviceImport.ips, serviceImport.ports, pointers)
  return {
    owner,
    state: publishEndpoints(groups, false).state,
    sets: sets.finish(),
    hosts: noHosts,
    names: [],
    pointers,
    ttlSeconds
  }
}
