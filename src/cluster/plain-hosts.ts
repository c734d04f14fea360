/**
 * The endpoints of a Service whose name is their IPv4 address alone, as nearly all are: their A and PTR records follow
 * from the address, so a number for each is all that has to be made and remembered of them.
 */
import { RRTYPE } from '../wire/iana.ts'
import { maxNameOctets, type DomainName } from '../wire/name.ts'
import { addressText, dashedName, reversedName, textAddress } from '../zone/address-names.ts'
import { PackedRRset } from '../zone/packed-rrset.ts'
import type { PublishedEndpoint } from './endpoints.ts'

/** Whose hosts they are, as their records tell it. */
export type HostsOf = Readonly<{ owner: DomainName; ttlSeconds: number }>

/** Addresses, each once, with a sign: to V8 these are small integers, which need no memory of their own. */
export type PlainHosts = readonly number[]

export const noHosts: PlainHosts = []

/** The length octet and label of 255-255-255-255. */
const maxLabelOctets = 16

/**
 * Whether a Service's hosts right below this name may be told by their addresses: one with a hostname could have the
 * name of another one's address.
 */
export const arePlain = (endpoints: readonly PublishedEndpoint[], owner: DomainName): boolean =>
  owner.length + maxLabelOctets <= maxNameOctets && endpoints.every(({ hostname }) => hostname === '')

/** The address of such an endpoint; null for IPv6. */
export const plainAddress = ({ octets }: PublishedEndpoint): number | null =>
  octets.length === 4 ? textAddress(octets) | 0 : null

export function hostRRset(address: number, { owner, ttlSeconds }: HostsOf): PackedRRset {
  return new PackedRRset(dashedName(address, owner), RRTYPE.A, ttlSeconds, addressText(address), true)
}

export function hostPointer(address: number, { owner, ttlSeconds }: HostsOf): PackedRRset {
  return new PackedRRset(reversedName(address), RRTYPE.PTR, ttlSeconds, dashedName(address, owner), true)
}

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
