/** Objects that a recorded shop does not have: every shape of Service, slice and import that DNS tells apart. */
import type { KubeObject } from './kinds.ts'

type PortText = `${string} ${number}/${'TCP' | 'UDP' | 'SCTP'}`
type EndpointText = Readonly<{
  addresses: readonly string[]
  hostname?: string
  state?: 'ready' | 'serving' | 'gone'
}>

const namespace = 'odd'

/** `http 80/TCP`; without a name `80/TCP` after a space. */
const portOf = (text: PortText) => {
  const [name = '', rest = ''] = text.split(' ')
  const [port, protocol] = rest.split('/')
  return { ...(name !== '' && { name }), port: Number(port), protocol }
}

const service = (name: string, spec: object, annotations: object = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace, annotations },
  spec
})

const headless = (name: string, ports: readonly PortText[], more: object = {}, annotations: object = {}): KubeObject =>
  service(name, { clusterIP: 'None', ports: ports.map(portOf), ...more }, annotations)

const virtual = (name: string, ports: readonly PortText[], more: object = {}): KubeObject =>
  service(name, { ports: ports.map(portOf), ...more })

const alias = (name: string, externalName: string): KubeObject => service(name, { type: 'ExternalName', externalName })

const stateOf = {
  ready: { ready: true, serving: true, terminating: false },
  serving: { ready: false, serving: true, terminating: true },
  gone: { ready: false, serving: false, terminating: false }
}

function slice(
  name: string,
  labels: object,
  ports: readonly PortText[],
  endpoints: readonly EndpointText[],
  addressType = 'IPv4'
): KubeObject {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: { name, namespace, labels },
    addressType,
    ports: ports.map(portOf),
    endpoints: endpoints.map(({ state = 'ready', ...endpoint }) => ({ ...endpoint, conditions: stateOf[state] }))
  }
}

const ofService = (name: string) => ({ 'kubernetes.io/service-name': name })
const ofImport = (name: string, cluster: string) => ({
  'multicluster.kubernetes.io/service-name': name,
  'multicluster.kubernetes.io/source-cluster': cluster
})

const serviceImport = (name: string, spec: object): KubeObject => ({
  apiVersion: 'multicluster.x-k8s.io/v1beta1',
  kind: 'ServiceImport',
  metadata: { name, namespace },
  spec
})

const tolerant = { 'service.alpha.kubernetes.io/tolerate-unready-endpoints': 'true' }
const importPorts = [{ name: 'http', port: 80, protocol: 'TCP' }]

/** In an order in which they can be made. */
export const oddObjects: readonly KubeObject[] = [
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } },
  { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'nothing-in-it' } },

  virtual('dual', ['http 80/TCP', 'dns 53/UDP', 'dns-tcp 53/TCP', 'assoc 9/SCTP'], { ipFamilyPolicy: 'RequireDualStack' }),
  virtual('unnamed', [' 80/TCP']),
  virtual('node-port', ['http 80/TCP'], { type: 'NodePort' }),
  virtual('balanced', ['https 443/TCP'], { type: 'LoadBalancer', allocateLoadBalancerNodePorts: false }),
  virtual('svc', ['pod 80/TCP']),
  virtual('pod', ['svc 80/TCP']),
  slice('dual-4', ofService('dual'), ['http 8080/TCP'], [{ addresses: ['10.0.50.1'], hostname: 'one' }, { addresses: ['10.0.50.2'] }]),
  slice('dual-6', ofService('dual'), ['http 8080/TCP'], [{ addresses: ['fd00:a::50:1'], hostname: 'one' }, { addresses: ['fd00:a::50:2'] }], 'IPv6'),

  headless('peers', ['http 80/TCP', 'gossip 7946/UDP']),
  slice('peers-1', ofService('peers'), ['http 8080/TCP', 'gossip 7946/UDP'], [{ addresses: ['10.0.51.1'], hostname: 'peers-0' }, { addresses: ['10.0.51.2'], hostname: 'peers-1' }]),
  slice('peers-2', ofService('peers'), ['http 8081/TCP'], [{ addresses: ['10.0.51.3'] }, { addresses: ['10.0.51.4'], state: 'gone' }]),
  slice('peers-6', ofService('peers'), ['http 8080/TCP'], [{ addresses: ['fd00:a::51:1'], hostname: 'peers-0' }, { addresses: ['fd00:a::'] }], 'IPv6'),
  headless('shared-name', ['http 80/TCP']),
  slice('shared-name', ofService('shared-name'), ['http 80/TCP'], [{ addresses: ['10.0.52.1'], hostname: 'twin' }, { addresses: ['10.0.52.2'], hostname: 'twin' }]),
  headless('shared-address', ['http 80/TCP']),
  slice('shared-address', ofService('shared-address'), ['http 80/TCP'], [{ addresses: ['10.0.51.1'], hostname: 'other' }]),
  headless('no-slice', ['http 80/TCP']),
  headless('nobody', ['http 80/TCP']),
  slice('nobody', ofService('nobody'), ['http 80/TCP'], []),
  headless('not-ready', ['http 80/TCP']),
  slice('not-ready', ofService('not-ready'), ['http 80/TCP'], [{ addresses: ['10.0.53.1'], state: 'gone' }]),
  headless('leaving', ['http 80/TCP']),
  slice('leaving', ofService('leaving'), ['http 80/TCP'], [{ addresses: ['10.0.54.1'], state: 'serving', hostname: 'last' }, { addresses: ['10.0.54.2'], state: 'gone' }]),
  virtual('leaving-vip', ['http 80/TCP']),
  slice('leaving-vip', ofService('leaving-vip'), ['http 80/TCP'], [{ addresses: ['10.0.54.9'], state: 'serving' }]),
  headless('early', ['http 80/TCP'], { publishNotReadyAddresses: true }),
  slice('early', ofService('early'), ['http 80/TCP'], [{ addresses: ['10.0.55.1'], state: 'gone', hostname: 'early-0' }, { addresses: ['10.0.55.2'] }]),
  headless('tolerant', ['http 80/TCP'], {}, tolerant),
  slice('tolerant', ofService('tolerant'), ['http 80/TCP'], [{ addresses: ['10.0.56.1'], state: 'gone' }]),
  headless('portless', []),
  slice('portless', ofService('portless'), [], [{ addresses: ['10.0.57.1'], hostname: 'only' }]),
  virtual('named', ['http 80/TCP']),
  slice('named', ofService('named'), [' 80/TCP'], [{ addresses: ['backend.example'] }], 'FQDN'),
  headless('many', ['http 80/TCP']),
  slice('many', ofService('many'), ['http 80/TCP'], Array.from({ length: 30 }, (_, at) => ({ addresses: [`10.0.58.${at}`] }))),

  alias('outside', 'www.example.com'),
  alias('inside', 'dual.odd.svc.cluster.local'),
  alias('inside-headless', 'peers.odd.svc.cluster.local'),
  alias('missing', 'no-such.odd.svc.cluster.local'),
  alias('address', '192.0.2.7'),
  alias('loop', 'pool.odd.svc.cluster.local'),
  alias('pool', 'loop.odd.svc.cluster.local'),
  alias('chain', 'inside.odd.svc.cluster.local'),

  serviceImport('virtual', { type: 'ClusterSetIP', ips: ['10.42.1.1'], ports: importPorts }),
  serviceImport('dual', { type: 'ClusterSetIP', ips: ['10.42.1.2', 'fd00:b::2'], ports: importPorts }),
  serviceImport('no-ip', { type: 'ClusterSetIP', ports: importPorts }),
  serviceImport('far', { type: 'Headless', ports: importPorts }),
  ...['east', 'west', 'north'].map((cluster, at) =>
    slice(`far-${cluster}`, ofImport('far', cluster), ['http 80/TCP'], [
      { addresses: [`10.43.${at}.1`], hostname: 'far-0' },
      { addresses: [`10.43.${at}.2`] },
      { addresses: [`10.43.${at}.3`], state: 'gone' }
    ])
  ),
  serviceImport('far-empty', { type: 'Headless', ports: importPorts })
] // prettier-ignore
