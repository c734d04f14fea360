/**
 * Hosts that are named by their IPv4 addresses: their A and PTR records follow from the address and the name that they
 * are below, so a number for each is all that has to be told or remembered of them.
 */
import { RRTYPE } from '../wire/iana.ts'
import { isAtOrBelow, labelCount, maxNameOctets, parseName, type DomainName } from '../wire/name.ts'
import { addressText, dashedName, reversedName } from './address-names.ts'
import { PackedRRset } from './packed-rrset.ts'

/** Whose hosts they are, as their records tell it. */
export type HostsOf = Readonly<{ owner: DomainName; ttlSeconds: number }>

/** Hosts right below `owner`; their addresses come with or without a sign. */
export type AddressHosts = HostsOf & Readonly<{ addresses: readonly number[] }>

/** The length octet and label of 255-255-255-255. */
const maxLabelOctets = 16
/** Labels of the name right above the PTR records of 256 neighbours. */
const networkLabels = 5
const in4 = parseName('in-addr.arpa')

/** Whether no host's name below this one is too long. */
export const hasRoomForHosts = (owner: DomainName): boolean => owner.length + maxLabelOctets <= maxNameOctets

/** Whether a zone is one of IPv4 networks that have 256 addresses or more. */
export const isOfNetworks = (apex: DomainName): boolean => isAtOrBelow(apex, in4) && labelCount(apex) <= networkLabels

export function hostRRset(address: number, { owner, ttlSeconds }: HostsOf): PackedRRset {
  return new PackedRRset(dashedName(address, owner), RRTYPE.A, ttlSeconds, addressText(address), true)
}

export function hostPointer(address: number, { owner, ttlSeconds }: HostsOf): PackedRRset {
  return new PackedRRset(reversedName(address), RRTYPE.PTR, ttlSeconds, dashedName(address, owner), true)
}
