/** Kubernetes objects as short calls, for tests that start whole servers. */

type ServiceOptions = {
  /** null: no slice object at all; []: a slice without ready endpoints. */
  ready?: readonly string[] | null
  ports?: Readonly<Record<string, number>>
  ttl?: string
}

const tcpPorts = (ports: Readonly<Record<string, number>>): object[] =>
  Object.entries(ports).map(([name, port]) => ({ name, port, protocol: 'TCP' }))

/** `service('api.backend', '10.1.1.20', {ready: ['10.0.0.1']})`; the address `None` makes it headless. */
export function service(name: string, clusterIP: string, options: ServiceOptions = {}): object[] {
  const [label, namespace] = name.split('.')
  const ports = tcpPorts(options.ports ?? { http: 8080 })
  const annotations = options.ttl === undefined ? {} : { 'peerdns.io/ttl': options.ttl }
  const object = {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: label, namespace, annotations },
    spec: { type: 'ClusterIP', clusterIP, clusterIPs: [clusterIP], ports }
  }
  const ready = options.ready === undefined ? ['10.0.0.1'] : options.ready
  return ready === null ? [object] : [object, slice(name, ready.length > 0 ? ready : ['10.0.0.99'], ready.length > 0)]
}

export function slice(name: string, addresses: readonly string[], isReady = true): object {
  const [label, namespace] = name.split('.')
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name: `${label}-1`, namespace, labels: { 'kubernetes.io/service-name': label } },
    addressType: 'IPv4',
    ports: tcpPorts({ http: 8080 }),
    endpoints: addresses.map((address, at) => ({
      addresses: [address],
      hostname: `${label}-${at}`,
      conditions: { ready: isReady, serving: isReady }
    }))
  }
}

export function externalName(name: string, target: string): object {
  const [label, namespace] = name.split('.')
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: label, namespace },
    spec: { type: 'ExternalName', externalName: target }
  }
}

export const namespace = (name: string): object => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
