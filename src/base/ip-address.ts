/**
 * IP addresses as 32-bit words: one for IPv4, four for IPv6. Reading one allocates nothing, since the packet path does
 * it for every query. An IPv4-mapped IPv6 address (::ffff:10.0.0.1) is its IPv4 address throughout.
 */
import { isIP } from 'node:net'

/** Where readAddress leaves what it read: one array for all, so it is good until the next call. */
export const addressWords = new Uint32Array(4)
/** The third word of every IPv4-mapped address; the first two are 0. */
export const mappedPrefix = 0xffff

/**
 * Reads an address into `addressWords` without allocating: one word for IPv4, four for IPv6.
 *
 * Trusts that net.isIP or the kernel has vetted the text: other text may give 0 or nonsense, but never throws.
 * @returns 4, 6, or 0 where the text is no address.
 */
export function readAddress(text: string): 0 | 4 | 6 {
  if (text.includes(':')) return readAddress6(text)
  const word = readAddress4(text, 0)
  if (word < 0) return 0
  addressWords[0] = word
  return 4
}

/** The address as an unsigned number, or -1. */
function readAddress4(text: string, start: number): number {
  let word = 0
  let octet = 0
  let dots = 0
  let digits = 0
  for (let at = start; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x2e) {
      if (digits === 0 || ++dots > 3) return -1
      word = (word << 8) | octet
      octet = 0
      digits = 0
    } else if (code >= 0x30 && code <= 0x39) {
      octet = octet * 10 + code - 0x30
      if (++digits > 3 || octet > 255) return -1
    } else {
      return -1
    }
  }
  return dots === 3 && digits > 0 ? ((word << 8) | octet) >>> 0 : -1
}

function readAddress6(text: string): 0 | 4 | 6 {
  addressWords.fill(0)
  let group = 0 // groups of 16 bits read so far
  let gapAt = -1 // the group before which `::` stands
  let value = 0
  let digits = 0
  let groupStart = 0
  for (let at = 0; at <= text.length; at++) {
    const code = at < text.length ? text.charCodeAt(at) : 0x25
    if (code === 0x2e) {
      // The last 32 bits are written as IPv4.
      const tail = readAddress4(text, groupStart)
      if (group > 6 || tail < 0) return 0
      putGroup(group++, tail >>> 16)
      putGroup(group++, tail & 0xffff)
      break
    }
    if (code !== 0x3a && code !== 0x25) {
      const digit = hexDigit(code)
      if (digit < 0 || ++digits > 4) return 0
      value = (value << 4) | digit
      continue
    }
    if (digits > 0) {
      if (group > 7) return 0
      putGroup(group++, value)
    }
    // A zone id (%eth0) says nothing about the network.
    if (code === 0x25) break
    if (digits === 0 && at > 0 && text.charCodeAt(at - 1) === 0x3a) {
      if (gapAt >= 0) return 0
      gapAt = group
    }
    value = 0
    digits = 0
    groupStart = at + 1
  }
  if (gapAt >= 0) spreadGap(gapAt, group)
  else if (group !== 8) return 0
  if (addressWords[0] === 0 && addressWords[1] === 0 && addressWords[2] === mappedPrefix) {
    addressWords[0] = addressWords[3]!
    return 4
  }
  return 6
}

const hexDigit = (code: number): number => {
  if (code >= 0x30 && code <= 0x39) return code - 0x30
  const lower = code | 0x20
  return lower >= 0x61 && lower <= 0x66 ? lower - 0x57 : -1
}

function putGroup(group: number, value: number): void {
  const word = group >> 1
  addressWords[word] =
    (group & 1) === 0 ? (value << 16) | (addressWords[word]! & 0xffff) : (addressWords[word]! & 0xffff_0000) | value
}

const groupAt = (group: number): number => (addressWords[group >> 1]! >>> ((group & 1) === 0 ? 16 : 0)) & 0xffff

/** Moves the groups behind `::` to the end and clears those in between. */
function spreadGap(gapAt: number, groups: number): void {
  for (let moved = 0; moved < groups - gapAt; moved++) putGroup(7 - moved, groupAt(groups - 1 - moved))
  for (let group = gapAt; group < 8 - (groups - gapAt); group++) putGroup(group, 0)
}

/** RFC 5952 for IPv6. */
export function addressWordsToText(family: 4 | 6, words: readonly number[]): string {
  if (family === 4) return [24, 16, 8, 0].map((shift) => (words[0]! >>> shift) & 0xff).join('.')
  const groups = words.flatMap((word) => [word >>> 16, word & 0xffff])
  // RFC 5952 §4.2: the longest run of zeros, the first of several, never a single one.
  let [runAt, runLength] = [-1, 1]
  for (let at = 0; at < 8; at++) {
    let end = at
    while (end < 8 && groups[end] === 0) end++
    if (end - at > runLength) [runAt, runLength] = [at, end - at]
    at = Math.max(at, end - 1)
  }
  const hex = groups.map((group) => group.toString(16))
  if (runAt < 0) return hex.join(':')
  return `${hex.slice(0, runAt).join(':')}::${hex.slice(runAt + runLength).join(':')}`
}

/**
 * The one way to write an address: RFC 5952 for IPv6, an IPv4-mapped address as IPv4, no zone id. Null where the text
 * is no address (also for forms that inet_aton accepts: `10.1`, `010.0.0.1`).
 */
export function canonicalAddress(text: string): string | null {
  if (isIP(text) === 0) return null
  const family = readAddress(text)
  return family === 0 ? null : addressWordsToText(family, family === 4 ? [addressWords[0]!] : [...addressWords])
}
