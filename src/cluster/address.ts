/**
 * IP addresses as Kubernetes objects spell them: read tolerantly, kept in one spelling, turned into RDATA and labels.
 *
 * Go reads what the API server lets in, so this reads as Go does: leading zeros are decimal, and an IPv4-mapped IPv6
 * address is the IPv4 address.
 */
import type { Rdata } from '../wire/rr.ts'

/** The four octets of an IPv4 address, or null. `lenient` lets leading zeros pass (they are decimal, never octal). */
function parseIPv4(text: string, lenient: boolean): Uint8Array | null {
  const octets = new Uint8Array(4)
  let part = 0
  let value = 0
  let digits = 0
  for (let at = 0; at <= text.length; at++) {
    const code = at < text.length ? text.charCodeAt(at) : 0x2e
    if (code === 0x2e) {
      if (digits === 0 || part > 3) return null
      octets[part++] = value
      value = 0
      digits = 0
    } else if (code >= 0x30 && code <= 0x39) {
      if (digits > 0 && value === 0 && !lenient) return null
      value = value * 10 + code - 0x30
      if (++digits > 3 || value > 255) return null
    } else return null
  }
  return part === 4 ? octets : null
}

/** The groups of one side of `::` written into `octets` from `start`; the number of octets, or -1. */
function parseGroups(text: string, octets: Uint8Array, start: number, mayEndInIPv4: boolean): number {
  if (text === '') return 0
  const groups = text.split(':')
  let at = start
  for (const [index, group] of groups.entries()) {
    if (mayEndInIPv4 && index === groups.length - 1 && group.includes('.')) {
      const tail = parseIPv4(group, false)
      if (tail === null || at > 12) return -1
      octets.set(tail, at)
      at += 4
    } else {
      if (!/^[0-9a-fA-F]{1,4}$/.test(group) || at > 14) return -1
      const value = Number.parseInt(group, 16)
      octets[at] = value >> 8
      octets[at + 1] = value & 0xff
      at += 2
    }
  }
  return at - start
}

function parseIPv6(text: string): Uint8Array | null {
  if (text.length > 45) return null
  const octets = new Uint8Array(16)
  const gap = text.indexOf('::')
  if (gap < 0) return parseGroups(text, octets, 0, true) === 16 ? octets : null
  const left = parseGroups(text.slice(0, gap), octets, 0, false)
  const tail = new Uint8Array(16)
  const right = parseGroups(text.slice(gap + 2), tail, 0, true)
  if (left < 0 || right < 0 || left + right > 14) return null
  octets.set(tail.subarray(0, right), 16 - right)
  return octets
}

/**
 * The address's four or sixteen octets, which are the RDATA of its A or AAAA record; null where it is no address.
 * Strict: no leading zeros, no zone id; an IPv4-mapped address stays an IPv6 one.
 */
export function parseAddress(text: string): Uint8Array | null {
  return text.includes(':') ? parseIPv6(text) : parseIPv4(text, false)
}

/** The usual spelling: dotted decimal, or RFC 5952 for IPv6. */
export function addressToText(octets: Uint8Array): string {
  if (octets.length === 4) return `${octets[0]}.${octets[1]}.${octets[2]}.${octets[3]}`
  const groups: number[] = []
  for (let at = 0; at < 16; at += 2) groups.push((octets[at]! << 8) | octets[at + 1]!)
  let gapStart = -1
  let gapLength = 1
  for (let at = 0; at < 8; at++) {
    let end = at
    while (end < 8 && groups[end] === 0) end++
    if (end - at > gapLength) {
      gapStart = at
      gapLength = end - at
    }
    if (end > at) at = end
  }
  const hex = (from: number, to: number): string =>
    groups
      .slice(from, to)
      .map((group) => group.toString(16))
      .join(':')
  return gapStart < 0 ? hex(0, 8) : `${hex(0, gapStart)}::${hex(gapStart + gapLength, 8)}`
}

const isMappedIPv4 = (octets: Uint8Array): boolean =>
  octets.length === 16 &&
  octets[10] === 0xff &&
  octets[11] === 0xff &&
  octets.subarray(0, 10).every((octet) => octet === 0)

/** The one spelling of an address out of a Kubernetes object, or null where it is no address. */
export function canonicalAddress(text: string): string | null {
  const octets = text.includes(':') ? parseIPv6(text) : parseIPv4(text, true)
  if (octets === null) return null
  return addressToText(isMappedIPv4(octets) ? octets.subarray(12) : octets)
}

export const isIPv6 = (address: string): boolean => address.includes(':')

/** The RDATA of the A or AAAA record of an address that `canonicalAddress` gave. */
export function addressRdata(address: string): Rdata {
  const octets = parseAddress(address)
  if (octets === null) throw new TypeError(`not a canonical address: ${address}`)
  return octets
}

/**
 * The address as one label: dots and colons become dashes. A label must not end in a dash, so `fd00::` becomes
 * `fd00--0`, which reads as the same address.
 */
export function addressToLabel(address: string): string {
  const label = address.replaceAll('.', '-').replaceAll(':', '-')
  return label.endsWith('-') ? label + '0' : label
}

/** The address that a label of a pod's name stands for, or null: three dashes that part decimals are IPv4, else IPv6. */
export function addressFromLabel(label: string): Uint8Array | null {
  if (!/^[0-9a-f]*-[0-9a-f-]*$/.test(label)) return null
  return parseIPv4(label.replaceAll('-', '.'), false) ?? parseIPv6(label.replaceAll('-', ':'))
}
