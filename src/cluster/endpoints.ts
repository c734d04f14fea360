/** Which endpoints of a Service are given out, and what that says of the Service's state. */
import type { ServiceState } from '../zone/zone-change.ts'
import { addressOctets, addressToLabel } from './address.ts'
import type { EndpointGroup, EndpointState } from './endpoint-objects.ts'
import type { Port } from './service-objects.ts'

export type PublishedEndpoint = Readonly<{
  address: string
  /** The address as RDATA, one character an octet. */
  octets: string
  /** '' where it has none. */
  hostname: string
  ports: readonly Port[]
  /** The cluster id of an imported endpoint; '' for one of our own. */
  sourceCluster: string
}>

export type Publication = Readonly<{ endpoints: readonly PublishedEndpoint[]; state: ServiceState }>

const noEndpoints: Publication = { endpoints: [], state: 'unknown' }

/**
 * The ready endpoints; all of them where the Service publishes those that are not ready; and where none is ready, those
 * that are terminating but still serve, to which kube-proxy would send as well.
 * @param groups null where the Service has no slice and no Endpoints object at all.
 */
export function publishEndpoints(groups: readonly EndpointGroup[] | null, publishesNotReady: boolean): Publication {
  if (groups === null) return noEndpoints
  let endpoints = select(groups, (state) => publishesNotReady || state === 'ready')
  if (endpoints.length === 0) endpoints = select(groups, (state) => state === 'serving')
  return { endpoints, state: endpoints.length === 0 ? 'empty' : 'present' }
}

/** The first label of an endpoint's own name: its hostname, or else its address with dashes. */
export const hostLabel = ({ hostname, address }: PublishedEndpoint): string =>
  hostname === '' ? addressToLabel(address) : hostname

function select(groups: readonly EndpointGroup[], isWanted: (state: EndpointState) => boolean): PublishedEndpoint[] {
  const published: PublishedEndpoint[] = []
  for (const { endpoints, ports, sourceCluster } of groups) {
    for (const { address, hostname, state } of endpoints) {
      if (!isWanted(state)) continue
      published.push({ address, octets: addressOctets(address), hostname, ports, sourceCluster })
    }
  }
  return published
}
