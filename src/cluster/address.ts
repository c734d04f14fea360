/**
 * IP addresses as Kubernetes objects spell them: read tolerantly, kept in one spelling, turned into RDATA and labels.
 *
 * Go reads what the API server lets in, so this reads as Go does: leading zeros are decimal, and an IPv4-mapped IPv6
 * address is the IPv4 address.
 */
import { ipv4ToText, ipv6ToText, parseIpv4, parseIpv6 } from '../wire/address.ts'
import type { Rdata } from '../wire/rr.ts'
import { octetsToText } from './record-sets.ts'

/** Longest text of an IPv6 address, its last part in dotted decimal. */
const maxAddressCharacters = 45

/** What nearly all addresses look like, and are in canonical spelling then. */
const plainIPv4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?=\d)|$)){4}$/

const dot = 0x2e
const zero = 0x30

const mappedPrefix = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff]

/** The one spelling of an address out of a Kubernetes object, or null where it is no address. */
export function canonicalAddress(text: string): string | null {
  if (plainIPv4.test(text)) return text
  if (text.length > maxAddressCharacters) return null
  if (!text.includes(':')) {
    const octets = parseIpv4(text.replaceAll(/(^|\.)0+(?=\d)/g, '$1'))
    return octets === null ? null : ipv4ToText(octets)
  }
  const octets = parseIpv6(text)
  if (octets === null) return null
  return mappedPrefix.every((octet, at) => octets[at] === octet) ? ipv4ToText(octets, 12) : ipv6ToText(octets)
}

export const isIPv6 = (address: string): boolean => address.includes(':')

/** The four or sixteen octets of an address that `canonicalAddress` gave, one character each: RDATA of A or AAAA. */
export function addressOctets(address: string): string {
  if (!isIPv6(address)) return ipv4Octets(address)
  const octets = parseIpv6(address)
  if (octets === null) throw new TypeError(`not a canonical address: ${address}`)
  return octetsToText(octets)
}

/** Of an IPv4 address in canonical spelling, read digit by digit: each endpoint has one. */
function ipv4Octets(address: string): string {
  let bits = 0
  let octet = 0
  let dots = 0
  for (let at = 0; at < address.length; at++) {
    const code = address.charCodeAt(at)
    if (code === dot) {
      bits = (bits << 8) | octet
      octet = 0
      dots++
    } else {
      octet = octet * 10 + code - zero
      if (!(code >= zero && octet <= 255)) dots = 4
    }
  }
  if (dots !== 3) throw new TypeError(`not a canonical address: ${address}`)
  return String.fromCharCode(bits >>> 16, (bits >> 8) & 255, bits & 255, octet)
}

/**
 * The address as one label: dots and colons become dashes. A host name must not end in a dash, so `fd00::` becomes
 * `fd00--0`, which reads as the same address.
 */
export function addressToLabel(address: string): string {
  if (!isIPv6(address)) return address.replaceAll('.', '-')
  const label = address.replaceAll(':', '-')
  return label.endsWith('-') ? label + '0' : label
}

/**
 * The address that a label of a pod's name stands for, or null: decimals parted by three dashes are IPv4, else IPv6.
 */
export function addressFromLabel(label: string): Rdata | null {
  if (!/^[0-9a-f]*-[0-9a-f-]*$/.test(label) || label.length > maxAddressCharacters) return null
  return parseIpv4(label.replaceAll('-', '.')) ?? parseIpv6(label.replaceAll('-', ':'))
}
