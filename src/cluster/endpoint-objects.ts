/** EndpointSlice and the older Endpoints, reduced to what DNS needs. */
import { isIPv6 } from './address.ts'
import { asFields, asLabel, field, fieldsAt, flagAt, isLabel, listAt, ObjectError, textAt } from './object-fields.ts'
import type { Fields } from './object-fields.ts'
import { asAddress, portsAt } from './service-objects.ts'
import type { Port } from './service-objects.ts'

/**
 * `serving`: not ready, since it is terminating, yet it still serves.
 * An endpoint of unknown readiness is ready, as the API defines it.
 */
export type EndpointState = 'ready' | 'serving' | 'notReady'

/** One address; `hostname` is '' where the endpoint has none. */
export type Endpoint = Readonly<{ address: string; hostname: string; state: EndpointState }>

/** Endpoints that share their ports. */
export type EndpointGroup = Readonly<{
  ports: readonly Port[]
  endpoints: readonly Endpoint[]
  /** The cluster that an imported slice came from; '' where its label does not say, and for our own. */
  sourceCluster: string
}>

export type EndpointSlice = EndpointGroup &
  Readonly<{
    kind: 'EndpointSlice'
    namespace: string
    name: string
    /** The Service, or the ServiceImport, that the slice belongs to; '' for neither. */
    serviceName: string
    /** Whether the slice belongs to a ServiceImport. */
    isImported: boolean
  }>

export type Endpoints = Readonly<{
  kind: 'Endpoints'
  namespace: string
  name: string
  groups: readonly EndpointGroup[]
}>

export const serviceLabel = 'kubernetes.io/service-name'
export const importLabel = 'multicluster.kubernetes.io/service-name'
export const sourceClusterLabel = 'multicluster.kubernetes.io/source-cluster'

function hostnameAt(endpoint: Fields, path: string): string {
  const hostname = textAt(endpoint, 'hostname', path)
  return hostname === '' ? '' : asLabel(hostname, path + 'hostname')
}

function stateOf(endpoint: Fields, path: string): EndpointState {
  const conditions = fieldsAt(endpoint, 'conditions', path)
  const conditionsPath = path + 'conditions.'
  const isReady = flagAt(conditions, 'ready', conditionsPath) ?? true
  const isServing = flagAt(conditions, 'serving', conditionsPath) ?? isReady
  return isReady ? 'ready' : isServing ? 'serving' : 'notReady'
}

/** The cluster id in lower case; it becomes one or several labels of a name. */
function asClusterId(text: string): string {
  const id = text.toLowerCase()
  if (id !== '' && !id.split('.').every(isLabel)) {
    throw new ObjectError(`metadata.labels["${sourceClusterLabel}"]`, 'expected a cluster id made of DNS labels')
  }
  return id
}

export function reduceEndpointSlice(object: Fields, namespace: string, name: string): EndpointSlice {
  const labels = fieldsAt(fieldsAt(object, 'metadata', ''), 'labels', 'metadata.')
  const addressType = textAt(object, 'addressType', '')
  if (!['', 'IP', 'IPv4', 'IPv6', 'FQDN'].includes(addressType)) {
    throw new ObjectError('addressType', `unknown: ${addressType.slice(0, 64)}`)
  }
  const endpoints: Endpoint[] = []
  for (const [index, entry] of listAt(object, 'endpoints', '').entries()) {
    const path = `endpoints[${index}]`
    const endpoint = asFields(entry, path)
    const hostname = hostnameAt(endpoint, path + '.')
    const state = stateOf(endpoint, path + '.')
    const addresses = listAt(endpoint, 'addresses', path + '.')
    // Names as addresses have no place in the DNS specification.
    if (addressType === 'FQDN') continue
    for (const [at, value] of addresses.entries()) {
      const address = asAddress(value, `${path}.addresses[${at}]`)
      if ((addressType === 'IPv4' && isIPv6(address)) || (addressType === 'IPv6' && !isIPv6(address))) {
        throw new ObjectError(`${path}.addresses[${at}]`, `${address} is not of addressType ${addressType}`)
      }
      endpoints.push({ address, hostname, state })
    }
  }
  const importName = field(labels, importLabel)
  const isImported = importName !== undefined
  return {
    kind: 'EndpointSlice',
    namespace,
    name,
    serviceName: textAt(labels, isImported ? importLabel : serviceLabel, 'metadata.labels.'),
    isImported,
    sourceCluster: isImported ? asClusterId(textAt(labels, sourceClusterLabel, 'metadata.labels.')) : '',
    ports: portsAt(object, ''),
    endpoints
  }
}

export function reduceEndpoints(object: Fields, namespace: string, name: string): Endpoints {
  const groups = listAt(object, 'subsets', '').map((entry, index): EndpointGroup => {
    const path = `subsets[${index}]`
    const subset = asFields(entry, path)
    const endpoints: Endpoint[] = []
    for (const [key, state] of [
      ['addresses', 'ready'],
      ['notReadyAddresses', 'notReady']
    ] as const) {
      for (const [at, value] of listAt(subset, key, path + '.').entries()) {
        const addressPath = `${path}.${key}[${at}]`
        const address = asFields(value, addressPath)
        endpoints.push({
          address: asAddress(field(address, 'ip'), addressPath + '.ip'),
          hostname: hostnameAt(address, addressPath + '.'),
          state
        })
      }
    }
    return { ports: portsAt(subset, path + '.'), endpoints, sourceCluster: '' }
  })
  return { kind: 'Endpoints', namespace, name, groups }
}
