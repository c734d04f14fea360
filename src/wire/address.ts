/** IP addresses between text and octets. No zone ids (`%eth0`): they mean nothing in a record. */
import { readU16, writeU16 } from './octets.ts'

/** The four octets of a dotted quad without leading zeros; null where it is none. */
export function parseIpv4(text: string): Uint8Array | null {
  const parts = text.split('.')
  if (parts.length !== 4) return null
  const octets = new Uint8Array(4)
  for (let i = 0; i < 4; i++) {
    if (!/^(0|[1-9]\d{0,2})$/.test(parts[i]!) || Number(parts[i]) > 255) return null
    octets[i] = Number(parts[i])
  }
  return octets
}

export function ipv4ToText(octets: Uint8Array, at = 0): string {
  return `${octets[at]!}.${octets[at + 1]!}.${octets[at + 2]!}.${octets[at + 3]!}`
}

/** The sixteen octets of an IPv6 address in any form of RFC 4291 §2.2; null where it is none. */
export function parseIpv6(text: string): Uint8Array | null {
  const halves = text.split('::')
  if (halves.length > 2) return null
  const head = parseGroups(halves[0]!, halves.length === 1)
  const tail = halves.length === 2 ? parseGroups(halves[1]!, true) : []
  if (head === null || tail === null) return null
  const given = head.length + tail.length
  if (halves.length === 1 ? given !== 8 : given > 7) return null
  const octets = new Uint8Array(16)
  head.forEach((group, i) => writeU16(octets, i * 2, group))
  tail.forEach((group, i) => writeU16(octets, 16 - (tail.length - i) * 2, group))
  return octets
}

/** The 16-bit groups between colons; a dotted quad may stand for the last two at the end of the address. */
function parseGroups(text: string, isEnd: boolean): number[] | null {
  if (text === '') return []
  const groups: number[] = []
  const parts = text.split(':')
  for (const [i, part] of parts.entries()) {
    if (/^[0-9a-fA-F]{1,4}$/.test(part)) {
      groups.push(Number.parseInt(part, 16))
      continue
    }
    const quad = isEnd && i === parts.length - 1 ? parseIpv4(part) : null
    if (quad === null) return null
    groups.push(readU16(quad, 0), readU16(quad, 2))
  }
  return groups
}

const hex = (groups: number[]): string => groups.map((group) => group.toString(16)).join(':')

/** The form of RFC 5952: lower case, the longest run of zero groups (the first of equal ones) as `::`. */
export function ipv6ToText(octets: Uint8Array, at = 0): string {
  const groups = Array.from({ length: 8 }, (_, i) => readU16(octets, at + i * 2))
  // RFC 5952 §5: mapped addresses are recognised by their prefix and keep the dotted quad.
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return `::ffff:${ipv4ToText(octets, at + 12)}`
  }
  let runStart = -1
  let runLength = 1
  for (let start = 0; start < 8; start++) {
    let length = 0
    while (start + length < 8 && groups[start + length] === 0) length++
    if (length > runLength) {
      runStart = start
      runLength = length
    }
  }
  if (runStart < 0) return hex(groups)
  return `${hex(groups.slice(0, runStart))}::${hex(groups.slice(runStart + runLength))}`
}
