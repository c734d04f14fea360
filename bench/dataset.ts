/**
 * The Services that all servers answer for: as Kubernetes manifests for peerdns, as records for everybody else.
 */
import { stringify } from 'yaml'

export const zone = 'cluster.local'

export type BenchService = Readonly<{
  namespace: string
  name: string
  /** Null: headless. */
  clusterIp: string | null
  /** Pods behind it. */
  endpoints: readonly string[]
}>

export type BenchRecord = Readonly<{ owner: string; type: 'A' | 'SRV'; data: string }>
export type BenchQuestion = Readonly<{ name: string; type: 'A' | 'SRV' }>

const httpPort = 80

/** `10.<second>.x.y`, from .1.1 on. */
const addressAt = (second: number, index: number): string => `10.${second}.${1 + (index >> 7)}.${1 + (index & 127)}`

export const hostNameOf = ({ name, namespace }: Pick<BenchService, 'name' | 'namespace'>): string =>
  `${name}.${namespace}.svc.${zone}`

export function clusterIpServices(namespace: string, count: number, second: number): BenchService[] {
  return Array.from({ length: count }, (_, index) => ({
    namespace,
    name: `service-${index}`,
    clusterIp: addressAt(second, index),
    endpoints: []
  }))
}

export function headlessServices(namespace: string, count: number, endpoints: number, second: number): BenchService[] {
  return Array.from({ length: count }, (_, index) => ({
    namespace,
    name: `set-${index}`,
    clusterIp: null,
    endpoints: Array.from({ length: endpoints }, (_, endpoint) => addressAt(second, index * endpoints + endpoint))
  }))
}

/** What the Kubernetes DNS specification makes of these Services. */
export function recordsOf(services: readonly BenchService[]): BenchRecord[] {
  return services.flatMap((service): BenchRecord[] => {
    const host = hostNameOf(service)
    const srvOwner = `_http._tcp.${host}`
    if (service.clusterIp !== null) {
      return [
        { owner: host, type: 'A', data: service.clusterIp },
        { owner: srvOwner, type: 'SRV', data: `0 100 ${httpPort} ${host}.` }
      ]
    }
    const weight = Math.max(1, Math.floor(100 / service.endpoints.length))
    return service.endpoints.flatMap((address): BenchRecord[] => {
      const endpointHost = `${address.replaceAll('.', '-')}.${host}`
      return [
        { owner: host, type: 'A', data: address },
        { owner: endpointHost, type: 'A', data: address },
        { owner: srvOwner, type: 'SRV', data: `0 ${weight} ${httpPort} ${endpointHost}.` }
      ]
    })
  })
}

const apiObject = (apiVersion: string, kind: string, namespace: string, name: string): Record<string, unknown> => ({
  apiVersion,
  kind,
  metadata: namespace === '' ? { name } : { name, namespace }
})

function objectsOf(service: BenchService): unknown[] {
  const { namespace, name, clusterIp, endpoints } = service
  const ports = [{ name: 'http', port: httpPort, protocol: 'TCP' }]
  const object = {
    ...apiObject('v1', 'Service', namespace, name),
    spec: { clusterIP: clusterIp ?? 'None', clusterIPs: [clusterIp ?? 'None'], type: 'ClusterIP', ports }
  }
  if (endpoints.length === 0) return [object]
  const metadata = { name: `${name}-x7k2p`, namespace, labels: { 'kubernetes.io/service-name': name } }
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata,
    addressType: 'IPv4',
    endpoints: endpoints.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports
  }
  return [object, slice]
}

/** One multi-document YAML file, Namespaces first. */
export function manifestsOf(services: readonly BenchService[]): string {
  const namespaces = new Set(services.map(({ namespace }) => namespace))
  const objects = [
    ...Array.from(namespaces, (namespace) => apiObject('v1', 'Namespace', '', namespace)),
    ...services.flatMap(objectsOf)
  ]
  return objects.map((object) => stringify(object)).join('---\n')
}

const soaData = `ns.dns.${zone}. hostmaster.${zone}. 1 7200 1800 86400 5`

/** An RFC 1035 zone file with these records, in the form `<owner> <TTL> IN <type> <data>`. */
export function zoneFileOf(
  records: readonly { owner: string; type: string; data: string }[],
  ttlSeconds: number
): string {
  return [
    `${zone}. ${ttlSeconds} IN SOA ${soaData}`,
    `${zone}. ${ttlSeconds} IN NS ns.dns.${zone}.`,
    `ns.dns.${zone}. ${ttlSeconds} IN A 127.0.0.1`,
    ...records.map(({ owner, type, data }) => `${owner}. ${ttlSeconds} IN ${type} ${data}`),
    ''
  ].join('\n')
}

/** dnsperf's input. */
export const queryFileOf = (questions: readonly BenchQuestion[]): string =>
  questions.map(({ name, type }) => `${name} ${type}\n`).join('')
