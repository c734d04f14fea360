/**
 * The recorded clusters of test/data as something that a real API server takes: Namespaces, Services and ServiceImports
 * as they were, and the Deployments and StatefulSets that had made their pods. EndpointSlices are left to the real
 * controller; `slicesByService` says what it has to come to.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { V1EndpointSlice, V1Pod, V1Service } from '@kubernetes/client-node'
import { parse } from 'yaml'
import type { KubeObject } from './kinds.ts'

const dataFolder = join(import.meta.dirname, '..', '..', 'data')
/** Every API server makes these by itself. */
const builtInNamespaces = new Set(['default', 'kube-node-lease', 'kube-public', 'kube-system'])
/** What the recording cluster added to objects. */
const addedMetadata = new Set(['creationTimestamp', 'generation', 'resourceVersion', 'uid', 'ownerReferences'])

export type RecordedCluster = Readonly<{
  namespaces: readonly KubeObject[]
  services: readonly KubeObject[]
  serviceImports: readonly KubeObject[]
  /** Deployments and StatefulSets. */
  workloads: readonly KubeObject[]
  /** Everything above in an order in which it can be applied. */
  all: readonly KubeObject[]
  /** As they were recorded. */
  slices: readonly V1EndpointSlice[]
}>

/** @param name `a` or `b`, of `cluster-a.yaml` and `cluster-b.yaml`. */
export function recordedCluster(name: 'a' | 'b'): RecordedCluster {
  const text = readFileSync(join(dataFolder, `cluster-${name}.yaml`), 'utf8')
  const { items } = parse(text) as { items: KubeObject[] }
  const ofKind = (kind: string) => items.filter((item) => item.kind === kind)
  const namespaces = ofKind('Namespace').filter((it) => !builtInNamespaces.has(it.metadata.name))
  // The API server's own Service names its port, which differs.
  const services = ofKind('Service').filter(({ metadata }) => metadata.name !== 'kubernetes')
  const imports = ofKind('ServiceImport')
  const made = {
    namespaces: namespaces.map(asWritten),
    services: services.map(asWritten),
    serviceImports: imports.map(asWritten),
    workloads: workloadsOf(ofKind('Pod') as unknown as V1Pod[])
  }
  return {
    ...made,
    all: [...made.namespaces, ...made.serviceImports, ...made.services, ...made.workloads],
    slices: ofKind('EndpointSlice') as unknown as V1EndpointSlice[]
  }
}

/** The object without what an API server adds. */
function asWritten({ metadata, status: _status, ...rest }: KubeObject): KubeObject {
  const kept = Object.entries(metadata).filter(([key]) => !addedMetadata.has(key))
  return { ...rest, metadata: Object.fromEntries(kept) as KubeObject['metadata'] }
}

/** One Deployment or StatefulSet for all pods of one owner. */
function workloadsOf(pods: readonly V1Pod[]): KubeObject[] {
  const byOwner = Map.groupBy(pods, ({ metadata }) => `${metadata?.namespace}/${metadata?.ownerReferences?.[0]?.name}`)
  return [...byOwner.values()].map((ofOwner) => {
    const { metadata = {}, spec } = ofOwner[0]!
    const owner = metadata.ownerReferences?.[0]
    const isStateful = owner?.kind === 'StatefulSet'
    const name = isStateful ? owner.name : (owner?.name ?? '').replace(/-[^-]+$/, '')
    const labels = { app: metadata.labels?.app ?? name }
    return {
      apiVersion: 'apps/v1',
      kind: isStateful ? 'StatefulSet' : 'Deployment',
      metadata: { name, namespace: metadata.namespace ?? 'default' },
      spec: {
        replicas: ofOwner.length,
        selector: { matchLabels: labels },
        ...(isStateful && { serviceName: spec?.subdomain ?? name }),
        template: {
          metadata: { labels, ...(metadata.annotations && { annotations: metadata.annotations }) },
          spec: {
            // There is no scheduler.
            nodeName: spec?.nodeName,
            terminationGracePeriodSeconds: 1,
            containers: (spec?.containers ?? []).map(({ name, ports }) => ({ name, ports, image: 'none.invalid/none' }))
          }
        }
      }
    }
  })
}

/** What DNS reads of all slices of one Service, but for the addresses, which differ from run to run. */
export type ServiceSlices = Readonly<{
  ports: readonly string[]
  /** `hostname node ready|serving|gone`, sorted. */
  endpoints: readonly string[]
}>

/** By `namespace/service`; slices of the same Service are one. */
export function slicesByService(slices: readonly V1EndpointSlice[]): Record<string, ServiceSlices> {
  const byService = Map.groupBy(slices, (slice) => {
    return `${slice.metadata?.namespace}/${slice.metadata?.labels?.['kubernetes.io/service-name']}`
  })
  const entries = [...byService].map(([service, ofService]): [string, ServiceSlices] => {
    const ports = ofService.flatMap((slice) => (slice.ports ?? []).map((it) => `${it.name} ${it.port}/${it.protocol}`))
    const endpoints = ofService.flatMap((slice) =>
      // The type says it is never null, but the API server says null for none.
      ((slice.endpoints as typeof slice.endpoints | null) ?? []).map(({ hostname, nodeName, conditions }) => {
        const state = conditions?.ready === true ? 'ready' : conditions?.serving === true ? 'serving' : 'gone'
        return `${hostname ?? '-'} ${nodeName} ${state}`
      })
    )
    return [service, { ports: [...new Set(ports)].sort(), endpoints: endpoints.sort() }]
  })
  return Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)))
}

/** The addresses of a Service's slices, sorted; those that are ready unless told. */
export function addressesOf(slices: readonly V1EndpointSlice[], options: { onlyReady?: boolean } = {}): string[] {
  const { onlyReady = true } = options
  return slices
    .flatMap((slice) => (slice.endpoints as typeof slice.endpoints | null) ?? [])
    .filter(({ conditions }) => !onlyReady || conditions?.ready === true)
    .flatMap(({ addresses }) => addresses)
    .sort()
}

/** The ClusterIPs of a Service, none of a headless one. */
export const clusterIpsOf = (service: V1Service): string[] =>
  (service.spec?.clusterIPs ?? []).filter((address) => address !== 'None')
