/** What we know of one Service name, for the status page and the command line. */
import type { DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import type { ServiceState } from '../zone/zone-change.ts'
import type { Endpoint, EndpointGroup } from './endpoint-objects.ts'
import type { ServiceZone } from './service-zone.ts'

/** What one zone says of a Service. */
export type ServiceInZone = Readonly<{
  owner: DomainName
  state: ServiceState
  /** All its endpoints, whatever their state; null where there is neither a slice nor an Endpoints object. */
  endpoints: readonly (Endpoint & Readonly<{ sourceCluster: string }>)[] | null
  records: readonly RRset[]
}>

/** null: nothing in that zone. */
export type ServiceDescription = Readonly<{ zone: ServiceInZone | null; clustersetZone: ServiceInZone | null }>

export function describeIn(
  zone: ServiceZone,
  key: string,
  groups: readonly EndpointGroup[] | null
): ServiceInZone | null {
  const held = zone.held(key)
  if (held === null) return null
  const endpoints = groups?.flatMap(({ endpoints, sourceCluster }) =>
    endpoints.map((endpoint) => ({ ...endpoint, sourceCluster }))
  )
  return { owner: held.owner, state: held.state, endpoints: endpoints ?? null, records: held.sets }
}
