/**
 * Kubernetes objects reduced to what DNS needs, from whatever a file or an API server holds.
 *
 * Reading is as tolerant as API servers and their clients are, and no more: an object that is malformed anywhere DNS
 * looks is left out whole, with one reason. `object-fields.ts` reads the fields, `service-objects.ts` and
 * `endpoint-objects.ts` know the single kinds.
 */
import { reduceEndpoints, reduceEndpointSlice } from './endpoint-objects.ts'
import type { Endpoints, EndpointSlice } from './endpoint-objects.ts'
import { reduceLease } from './lease-objects.ts'
import type { Lease } from './lease-objects.ts'
import { asFields, asText, field, fieldsAt, isLabel, listAt, ObjectError, textAt } from './object-fields.ts'
import type { Fields } from './object-fields.ts'
import { canonicalAddress } from './address.ts'
import { reduceService, reduceServiceImport } from './service-objects.ts'
import type { Service, ServiceImport } from './service-objects.ts'

export type Namespace = Readonly<{ kind: 'Namespace'; namespace: ''; name: string }>

/** `addresses` is empty for a Pod that has none yet, or that has finished: its address may be somebody else's. */
export type Pod = Readonly<{ kind: 'Pod'; namespace: string; name: string; addresses: readonly string[] }>

export type KubernetesObject = Service | EndpointSlice | Endpoints | Namespace | ServiceImport | Pod | Lease
export type ObjectKind = KubernetesObject['kind']

/**
 * The kinds DNS reads, with the API group that each belongs to; other groups have kinds of the same names. Leases are
 * only read where they are asked for: in a file nobody renews them.
 */
const apiGroups: ReadonlyMap<string, string> = new Map<ObjectKind, string>([
  ['Service', ''],
  ['Endpoints', ''],
  ['Namespace', ''],
  ['Pod', ''],
  ['EndpointSlice', 'discovery.k8s.io'],
  ['ServiceImport', 'multicluster.x-k8s.io']
])

const objectKinds: ReadonlySet<string> = new Set<string>([...apiGroups.keys(), 'Lease'])
export const isObjectKind = (kind: string): kind is ObjectKind => objectKinds.has(kind)

export type Identity = Readonly<{ kind: string; namespace: string; name: string }>

/** `warning` speaks of a value that was passed over while the object itself is served. */
export type Reduced =
  | Readonly<{ ok: KubernetesObject; warning: string | null }>
  | Readonly<{ ignored: string }>
  | Readonly<{ invalid: string; path: string; identity: Identity }>

/** The object's API group: '' for `v1`, null where apiVersion is missing. */
function groupOf(object: Fields): string | null {
  const version = field(object, 'apiVersion')
  if (version === undefined) return null
  const text = asText(version, 'apiVersion')
  return text.includes('/') ? text.slice(0, text.indexOf('/')) : ''
}

function reducePod(object: Fields, namespace: string, name: string): Pod {
  const status = fieldsAt(object, 'status', '')
  const phase = textAt(status, 'phase', 'status.')
  const hasFinished = phase === 'Succeeded' || phase === 'Failed' || phase === 'Unknown'
  const addresses = new Set<string>()
  const add = (text: string, path: string): void => {
    if (text === '') return
    const address = canonicalAddress(text)
    if (address === null) throw new ObjectError(path, `not an IP address: ${text.slice(0, 64)}`)
    addresses.add(address)
  }
  add(textAt(status, 'podIP', 'status.'), 'status.podIP')
  for (const [index, entry] of listAt(status, 'podIPs', 'status.').entries()) {
    const path = `status.podIPs[${index}]`
    add(textAt(asFields(entry, path), 'ip', path + '.'), path + '.ip')
  }
  return { kind: 'Pod', namespace, name, addresses: hasFinished ? [] : [...addresses] }
}

/** For people: `Service shop/api`, or what is missing: `Service without a name in shop`, `object without a kind`. */
export function identityToText({ kind, namespace, name }: Identity): string {
  const inNamespace = namespace === '' ? '' : ` in ${namespace}`
  if (name === '') return kind === '' ? 'object without a kind' : `${kind} without a name${inNamespace}`
  const whole = namespace === '' ? name : `${namespace}/${name}`
  return kind === '' ? `${whole} without a kind` : `${kind} ${whole}`
}

const shortText = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 253) : '')

/** Whom a malformed object says it is, as far as it says so at all. */
function identityOf(raw: unknown, kind: string | null): Identity {
  if (typeof raw !== 'object' || raw === null) return { kind: kind ?? '', namespace: '', name: '' }
  const ownKind = kind ?? shortText(field(raw as Fields, 'kind'))
  const metadata = field(raw as Fields, 'metadata')
  if (typeof metadata !== 'object' || metadata === null) return { kind: ownKind, namespace: '', name: '' }
  const namespace = ownKind === 'Namespace' ? '' : shortText(field(metadata as Fields, 'namespace')) || 'default'
  return { kind: ownKind, namespace, name: shortText(field(metadata as Fields, 'name')) }
}

/**
 * Reduces one object.
 * @param knownKind the kind of the list that the object comes from: items of an API server's typed lists carry none.
 */
export function reduceObject(raw: unknown, knownKind: ObjectKind | null = null): Reduced {
  try {
    const object = asFields(raw, '')
    const kind = knownKind ?? asText(field(object, 'kind'), 'kind')
    const group = apiGroups.get(kind)
    if (group === undefined && knownKind === null) return { ignored: `kind ${kind.slice(0, 64)}` }
    if (knownKind === null) {
      const ownGroup = groupOf(object)
      if (ownGroup === null) throw new ObjectError('apiVersion', 'missing')
      if (ownGroup !== group) return { ignored: `kind ${kind} of API group ${ownGroup.slice(0, 64)}` }
    }
    return reduceKnown(object, kind as ObjectKind)
  } catch (error) {
    if (!(error instanceof ObjectError)) throw error
    return { invalid: error.message, path: error.path, identity: identityOf(raw, knownKind) }
  }
}

function reduceKnown(object: Fields, kind: ObjectKind): Reduced {
  const metadata = fieldsAt(object, 'metadata', '')
  const name = textAt(metadata, 'name', 'metadata.')
  if (name === '') throw new ObjectError('metadata.name', 'missing')
  if (kind === 'Namespace') {
    mustBeLabel(name, 'metadata.name')
    return { ok: { kind, namespace: '', name }, warning: null }
  }
  const namespace = textAt(metadata, 'namespace', 'metadata.') || 'default'
  mustBeLabel(namespace, 'metadata.namespace')
  if (kind === 'EndpointSlice') return { ok: reduceEndpointSlice(object, namespace, name), warning: null }
  if (kind === 'Endpoints') return { ok: reduceEndpoints(object, namespace, name), warning: null }
  if (kind === 'Lease') return { ok: reduceLease(object, namespace, name), warning: null }
  if (kind === 'Pod') return { ok: reducePod(object, namespace, name), warning: null }
  mustBeLabel(name, 'metadata.name')
  return kind === 'Service' ? reduceService(object, namespace, name) : reduceServiceImport(object, namespace, name)
}

function mustBeLabel(text: string, path: string): void {
  if (!isLabel(text)) {
    throw new ObjectError(path, 'expected a DNS label: lower-case letters, digits and inner dashes, at most 63')
  }
}
