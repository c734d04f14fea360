/**
 * The Services that all servers answer for: as Kubernetes manifests for peerdns, as records for everybody else.
 */
export const zone = 'cluster.local'

export type BenchService = Readonly<{
  namespace: string
  name: string
  /** Null: headless. */
  clusterIp: string | null
  /** Pods behind it. */
  endpoints: readonly string[]
  /** Of its records; the server's default where it is missing. */
  ttlSeconds?: number
}>

export type BenchRecord = Readonly<{ owner: string; type: 'A' | 'SRV'; data: string }>
export type BenchQuestion = Readonly<{ name: string; type: 'A' | 'SRV' }>

const httpPort = 80

/** `10.<second>.x.y`, from .1.1 on; every 16,384 of them take the next `second`. */
const addressAt = (second: number, index: number): string =>
  `10.${second + (index >> 14)}.${1 + ((index >> 7) & 127)}.${1 + (index & 127)}`

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
    name: `set-of-${endpoints}-${index}`,
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

function objectsOf(service: BenchService): unknown[] {
  const { namespace, name, clusterIp, endpoints, ttlSeconds } = service
  const ports = [{ name: 'http', port: httpPort, protocol: 'TCP' }]
  const annotations = ttlSeconds === undefined ? {} : { annotations: { 'peerdns.io/ttl': `${ttlSeconds}s` } }
  const object = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name, namespace, ...annotations },
    spec: { clusterIP: clusterIp ?? 'None', clusterIPs: [clusterIp ?? 'None'], type: 'ClusterIP', ports }
  }
  if (endpoints.length === 0) return [object]
  const sliceMetadata = { name: `${name}-x7k2p`, namespace, labels: { 'kubernetes.io/service-name': name } }
  const slice = {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: sliceMetadata,
    addressType: 'IPv4',
    endpoints: endpoints.map((address) => ({ addresses: [address], conditions: { ready: true } })),
    ports
  }
  return [object, slice]
}

/** One List as JSON, Namespaces first. */
export function manifestsOf(services: readonly BenchService[]): string {
  const namespaces = new Set(services.map(({ namespace }) => namespace))
  const items = [
    ...Array.from(namespaces, (name) => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })),
    ...services.flatMap(objectsOf)
  ]
  return JSON.stringify({ apiVersion: 'v1', kind: 'List', items })
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
