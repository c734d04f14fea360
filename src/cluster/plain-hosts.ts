/** The endpoints of a Service whose name is their IPv4 address alone, as nearly all are: see zone/address-hosts.ts. */
import type { DomainName } from '../wire/name.ts'
import { hasRoomForHosts } from '../zone/address-hosts.ts'
import { textAddress } from '../zone/address-names.ts'
import type { PublishedEndpoint } from './endpoints.ts'

/** Addresses, each once, with a sign: to V8 these are small integers, which need no memory of their own. */
export type PlainHosts = readonly number[]

export const noHosts: PlainHosts = []

/**
 * Whether a Service's hosts right below this name may be told by their addresses: one with a hostname could have the
 * name of another one's address.
 */
export const arePlain = (endpoints: readonly PublishedEndpoint[], owner: DomainName): boolean =>
  hasRoomForHosts(owner) && endpoints.every(({ hostname }) => hostname === '')

/** The address of such an endpoint; null for IPv6. */
export const plainAddress = ({ octets }: PublishedEndpoint): number | null =>
  octets.length === 4 ? textAddress(octets) | 0 : null

/** The addresses that came and that went. */
export function hostChanges(before: PlainHosts, after: PlainHosts): Readonly<{ come: PlainHosts; gone: PlainHosts }> {
  if (before.length === 0) return { come: after, gone: noHosts }
  if (after.length === 0) return { come: noHosts, gone: before }
  // Mostly one address stands in the place of another one, and the others where they stood.
  const others = before.filter((address, at) => after[at] !== address)
  const more = after.filter((address, at) => before[at] !== address)
  if (others.length === 0 || more.length === 0) return { come: more, gone: others }
  const [was, is] = [new Set(others), new Set(more)]
  return { come: more.filter((address) => !was.has(address)), gone: others.filter((address) => !is.has(address)) }
}
