/**
 * The objects we know, by kind, and which Services, namespaces and Pods each change touches.
 *
 * Everything about one Service name hangs on its key, `<namespace>/<name>`: the Service, its slices, its Endpoints, the
 * ServiceImport of that name and its slices.
 */
import type { EndpointGroup, Endpoints, EndpointSlice } from './endpoint-objects.ts'
import { HeldSlice } from './held-slice.ts'
import type { Lease } from './lease-objects.ts'
import type { KubernetesObject, Namespace, ObjectKind, Pod } from './objects.ts'
import type { Service, ServiceImport } from './service-objects.ts'

export const serviceKey = (namespace: string, name: string): string => `${namespace}/${name}`

/** What a batch of changes touched. */
export type Touched = {
  services: Set<string>
  namespaces: Set<string>
  pods: Set<string>
  nameServer: boolean
}

const nothingTouched = (): Touched => ({
  services: new Set(),
  namespaces: new Set(),
  pods: new Set(),
  nameServer: false
})

/** Nearly all Services have one slice. */
type SlicesByService = Map<string, readonly EndpointSlice[]>

const dnsNamespace = 'kube-system'
const isDnsService = (service: Service): boolean =>
  service.namespace === dnsNamespace && (service.isClusterDns || ['kube-dns', 'peerdns'].includes(service.name))

/** Our own Service comes before others that may stand for the cluster's DNS. */
const dnsRank = (service: Service): number => (service.name === 'peerdns' ? 0 : service.isClusterDns ? 1 : 2)

export class ObjectTables {
  readonly services = new Map<string, Service>()
  readonly imports = new Map<string, ServiceImport>()
  readonly pods = new Map<string, Pod>()
  readonly #endpoints = new Map<string, Endpoints>()
  readonly #leases = new Map<string, Lease>()
  readonly #namespaces = new Map<string, Namespace>()
  readonly #slices = new Map<string, EndpointSlice>()
  readonly #slicesOfServices: SlicesByService = new Map()
  readonly #slicesOfImports: SlicesByService = new Map()
  /** Objects that make a namespace exist: its own object, Services, imports and Pods. */
  readonly #residents = new Map<string, number>()
  /** Services that may be the cluster's DNS. */
  readonly #dnsServices = new Map<string, Service>()
  #touched = nothingTouched()

  counts(): Readonly<Record<ObjectKind, number>> {
    return {
      Service: this.services.size,
      EndpointSlice: this.#slices.size,
      Endpoints: this.#endpoints.size,
      Namespace: this.#namespaces.size,
      ServiceImport: this.imports.size,
      Pod: this.pods.size,
      Lease: this.#leases.size
    }
  }

  /** All objects of one kind, for an audit against their source. */
  all(kind: ObjectKind): IterableIterator<KubernetesObject> {
    return this.#table(kind).values()
  }

  put(given: KubernetesObject): void {
    const object = given.kind === 'EndpointSlice' ? new HeldSlice(given) : given
    const key = serviceKey(object.namespace, object.name)
    const before = this.#table(object.kind).get(key) ?? null
    if (before !== null) this.#unlink(key, before)
    else this.#countResident(object, 1)
    this.#table(object.kind).set(key, object)
    this.#link(key, object)
  }

  /** Whether there was such an object. */
  remove(kind: ObjectKind, namespace: string, name: string): boolean {
    const key = serviceKey(namespace, name)
    const before = this.#table(kind).get(key)
    if (before === undefined) return false
    this.#table(kind).delete(key)
    this.#unlink(key, before)
    this.#countResident(before, -1)
    return true
  }

  /** What was touched since the last call. */
  takeTouched(): Touched {
    const touched = this.#touched
    this.#touched = nothingTouched()
    return touched
  }

  namespaceExists(namespace: string): boolean {
    return this.#residents.has(namespace)
  }

  /** Every namespace that exists. */
  namespaceNames(): IterableIterator<string> {
    return this.#residents.keys()
  }

  /** The endpoints of a Service: of its slices, or else of its Endpoints object; null where there is neither. */
  groupsOfService(key: string): readonly EndpointGroup[] | null {
    const slices = this.#slicesOfServices.get(key)
    return slices === undefined ? (this.#endpoints.get(key)?.groups ?? null) : slices
  }

  /** The endpoints of a ServiceImport; null where it has no slices. */
  groupsOfImport(key: string): readonly EndpointGroup[] | null {
    return this.#slicesOfImports.get(key) ?? null
  }

  /** Whether this is a Service whose records follow from endpoints, and none are known yet. */
  waitsForEndpoints(key: string): boolean {
    const service = this.services.get(key)
    return service !== undefined && service.externalName === null && this.groupsOfService(key) === null
  }

  /** The keys of the imports that have a slice of this source cluster. */
  importsOf(sourceCluster: string): string[] {
    return [...this.#slicesOfImports]
      .filter(([, slices]) => slices.some((slice) => slice.sourceCluster === sourceCluster))
      .map(([key]) => key)
  }

  /** The addresses of the cluster's DNS Service; none where we know of none. */
  dnsServiceAddresses(): readonly string[] {
    const [best] = [...this.#dnsServices.values()]
      .filter((service) => service.clusterIPs.length > 0)
      .sort((one, other) => dnsRank(one) - dnsRank(other) || (one.name < other.name ? -1 : 1))
    return best?.clusterIPs ?? []
  }

  // One table holds one kind only, which put and remove see to.
  #table(kind: ObjectKind): Map<string, KubernetesObject> {
    const tables: Record<ObjectKind, Map<string, never>> = {
      Service: this.services as Map<string, never>,
      EndpointSlice: this.#slices as Map<string, never>,
      Endpoints: this.#endpoints as Map<string, never>,
      Namespace: this.#namespaces as Map<string, never>,
      ServiceImport: this.imports as Map<string, never>,
      Pod: this.pods as Map<string, never>,
      Lease: this.#leases as Map<string, never>
    }
    return tables[kind]
  }

  #link(key: string, object: KubernetesObject): void {
    this.#touch(key, object)
    if (object.kind === 'Service' && isDnsService(object)) this.#dnsServices.set(key, object)
    if (object.kind !== 'EndpointSlice' || object.serviceName === '') return
    const byService = object.isImported ? this.#slicesOfImports : this.#slicesOfServices
    const owner = serviceKey(object.namespace, object.serviceName)
    byService.set(owner, (byService.get(owner) ?? []).concat(object))
  }

  #unlink(key: string, object: KubernetesObject): void {
    this.#touch(key, object)
    if (object.kind === 'Service') this.#dnsServices.delete(key)
    if (object.kind !== 'EndpointSlice' || object.serviceName === '') return
    const byService = object.isImported ? this.#slicesOfImports : this.#slicesOfServices
    const owner = serviceKey(object.namespace, object.serviceName)
    const others = byService.get(owner)?.filter((slice) => slice !== object) ?? []
    if (others.length === 0) byService.delete(owner)
    else byService.set(owner, others)
  }

  #touch(key: string, object: KubernetesObject): void {
    const touched = this.#touched
    switch (object.kind) {
      case 'Service':
        touched.services.add(key)
        if (isDnsService(object)) touched.nameServer = true
        break
      case 'Endpoints':
      case 'ServiceImport':
        touched.services.add(key)
        break
      case 'EndpointSlice':
        if (object.serviceName !== '') touched.services.add(serviceKey(object.namespace, object.serviceName))
        break
      case 'Pod':
        touched.pods.add(key)
        break
      case 'Namespace':
      case 'Lease':
        break
    }
  }

  #countResident(object: KubernetesObject, change: 1 | -1): void {
    if (object.kind === 'EndpointSlice' || object.kind === 'Endpoints' || object.kind === 'Lease') return
    const namespace = object.kind === 'Namespace' ? object.name : object.namespace
    const residents = (this.#residents.get(namespace) ?? 0) + change
    if (residents === 0) this.#residents.delete(namespace)
    else this.#residents.set(namespace, residents)
    if (residents === 0 || (residents === 1 && change === 1)) this.#touched.namespaces.add(namespace)
  }
}
