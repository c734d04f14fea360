/** What is listed and watched, and where it is: fixed for what every cluster has, to be looked for otherwise. */
import type { ObjectKind } from '../../object-event.ts'
import type { LeasePattern } from '../../lease-objects.ts'
import { ApiError } from './api-error.ts'
import type { ApiConnection } from './api-requests.ts'
import { endpointSliceMessage, metadataMessage, podMessage, serviceMessage } from './protobuf/kubernetes-messages.ts'
import type { MessageType } from './protobuf/message.ts'

export type Resource = Readonly<{
  /** As in paths and in RBAC. */
  name: string
  kind: ObjectKind
  fieldSelector: string | null
  /** As it can be read in protobuf, which is a quarter of the octets; null: only in JSON, as custom resources are. */
  message: MessageType | null
  /** The path of the list; null: this cluster has no such resource. */
  locate: (connection: ApiConnection) => Promise<string | null>
  /** Whether it may be missing and come later. */
  isOptional: boolean
}>

const fixed = (
  name: string,
  kind: ObjectKind,
  prefix: string,
  message: MessageType | null,
  fieldSelector: string | null = null
): Resource => ({
  name,
  kind,
  fieldSelector,
  message,
  locate: async () => `${prefix}/${name}`,
  isOptional: false
})

const group = 'multicluster.x-k8s.io'
/** The first that is served is taken: v1beta1 is what the CRD stores and has all fields of v1alpha1. KEP-1645. */
const versions = ['v1beta1', 'v1alpha1']

export const services = fixed('services', 'Service', '/api/v1', serviceMessage)
export const namespaces = fixed('namespaces', 'Namespace', '/api/v1', metadataMessage)
export const endpointSlices = fixed(
  'endpointslices',
  'EndpointSlice',
  '/apis/discovery.k8s.io/v1',
  endpointSliceMessage
)
/** Pods that have finished keep their address in their status while others already use it. */
export const pods = fixed('pods', 'Pod', '/api/v1', podMessage, 'status.phase!=Succeeded,status.phase!=Failed')

/** Every node renews one every few seconds, in a namespace that holds nothing else. */
const nodeLeases = 'kube-node-lease'

/** The Leases of source clusters, as narrow as the pattern allows. */
export function leasesOf({ namespace, name }: LeasePattern): Resource {
  const group = '/apis/coordination.k8s.io/v1'
  if (name !== null) return fixed('leases', 'Lease', group, null, `metadata.name=${name}`)
  if (namespace !== null) return fixed('leases', 'Lease', `${group}/namespaces/${namespace}`, null)
  return fixed('leases', 'Lease', group, null, `metadata.namespace!=${nodeLeases}`)
}

export const serviceImports: Resource = {
  name: 'serviceimports',
  kind: 'ServiceImport',
  fieldSelector: null,
  message: null,
  locate: locateServiceImports,
  isOptional: true
}

async function locateServiceImports(connection: ApiConnection): Promise<string | null> {
  const served = namesIn(await orNull(connection.document(`/apis/${group}`)), 'versions', 'version')
  for (const version of versions.filter((it) => served.has(it))) {
    // The group may be there without this resource: ServiceExport is a CRD of its own.
    const resources = namesIn(await orNull(connection.document(`/apis/${group}/${version}`)), 'resources', 'name')
    if (resources.has('serviceimports')) return `/apis/${group}/${version}/serviceimports`
  }
  return null
}

async function orNull(document: Promise<unknown>): Promise<unknown> {
  try {
    return await document
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return null
    throw error
  }
}

/** The texts under `key` in a document's list; a document that does not have them has none. */
function namesIn(document: unknown, list: string, key: string): Set<unknown> {
  const entries = (document as Record<string, unknown> | null)?.[list]
  if (!Array.isArray(entries)) return new Set()
  return new Set(entries.map((entry) => (entry as Record<string, unknown> | null)?.[key]))
}
