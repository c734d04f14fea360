/**
 * The objects of a large cluster: every second Service is headless, each has two ports and one EndpointSlice of ours,
 * so neither controllers nor pods are needed.
 */
import type { KubeObject } from '../../test/e2e/support/kinds.ts'
import { parseName, type DomainName } from '../../src/wire/name.ts'

export const namespaces = 100
export const zone = 'cluster.local'

const namespaceOf = (number: number): string => `namespace-${number % namespaces}`
const serviceName = (number: number): string => `service-${number}`
export const isHeadless = (number: number): boolean => number % 2 === 0
export const sliceKey = (number: number): { namespace: string; name: string } => ({
  namespace: namespaceOf(number),
  name: `${serviceName(number)}-abcde`
})

/** 10.0.0.0 and up; ClusterIPs come from 10.128.0.0/12. */
export const addressOf = (number: number): string => `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`

export const ownerOf = (number: number): DomainName =>
  parseName(`${serviceName(number)}.${namespaceOf(number)}.svc.${zone}`)

export const namespaceObject = (number: number): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: namespaceOf(number) }
})

/** @param clusterIP null: the API server gives one. */
export function serviceObject(number: number, clusterIP: string | null = null): KubeObject & { spec: object } {
  const ip = isHeadless(number) ? 'None' : clusterIP
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: serviceName(number), namespace: namespaceOf(number) },
    spec: {
      type: 'ClusterIP',
      ...(ip === null ? {} : { clusterIP: ip }),
      ports: ['http', 'grpc'].map((name, at) => ({ name, port: 80 + at, protocol: 'TCP', targetPort: 8080 + at }))
    }
  }
}

/** As the EndpointSlice controller writes them. */
export const endpointObjects = (number: number, addresses: readonly string[]): object[] =>
  addresses.map((address, at) => ({
    addresses: [address],
    conditions: { ready: true, serving: true, terminating: false },
    nodeName: `node-${at}`,
    targetRef: {
      kind: 'Pod',
      namespace: namespaceOf(number),
      name: `${serviceName(number)}-${at}`,
      uid: `5b0e2a5c-0000-4000-8000-${String(number * 100 + at).padStart(12, '0')}`
    }
  }))

export function sliceObject(number: number, addresses: readonly string[]): KubeObject & { endpoints: object[] } {
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      ...sliceKey(number),
      labels: {
        'endpointslice.kubernetes.io/managed-by': 'bench.peerdns',
        'kubernetes.io/service-name': serviceName(number)
      }
    },
    addressType: 'IPv4',
    ports: ['http', 'grpc'].map((name, at) => ({ name, port: 8080 + at, protocol: 'TCP' })),
    endpoints: endpointObjects(number, addresses)
  }
}

/** The addresses that a Service's endpoints begin with. */
export const firstAddresses = (number: number, endpoints: number): string[] =>
  Array.from({ length: endpoints }, (_, at) => addressOf(number * endpoints + at))
