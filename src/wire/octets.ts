/**
 * Numbers and text in octets, in network byte order.
 *
 * Nothing here checks bounds: the callers have done that once for the whole record, and a typed array never gives or
 * takes an octet outside of itself.
 */

export const readU16 = (octets: Uint8Array, at: number): number => (octets[at]! << 8) | octets[at + 1]!

export const readU32 = (octets: Uint8Array, at: number): number =>
  ((octets[at]! << 24) | (octets[at + 1]! << 16) | (octets[at + 2]! << 8) | octets[at + 3]!) >>> 0

/** 48 bits, as in the time of a TSIG. */
export const readU48 = (octets: Uint8Array, at: number): number =>
  readU16(octets, at) * 0x1_0000_0000 + readU32(octets, at + 2)

export function writeU16(out: Uint8Array, at: number, value: number): void {
  out[at] = value >>> 8
  out[at + 1] = value
}

export function writeU32(out: Uint8Array, at: number, value: number): void {
  out[at] = value >>> 24
  out[at + 1] = value >>> 16
  out[at + 2] = value >>> 8
  out[at + 3] = value
}

export function writeU48(out: Uint8Array, at: number, value: number): void {
  writeU16(out, at, Math.floor(value / 0x1_0000_0000))
  writeU32(out, at + 2, value % 0x1_0000_0000)
}

export function u16Octets(value: number): Uint8Array {
  const octets = new Uint8Array(2)
  writeU16(octets, 0, value)
  return octets
}

export function u32Octets(value: number): Uint8Array {
  const octets = new Uint8Array(4)
  writeU32(octets, 0, value)
  return octets
}

export function u48Octets(value: number): Uint8Array {
  const octets = new Uint8Array(6)
  writeU48(octets, 0, value)
  return octets
}

// What `toString('latin1')` calls, without the cost of its argument checks; it takes any Uint8Array. Node has had it
// since 0.x, but its types do not tell.
type Latin1Slice = { latin1Slice: { call(octets: Uint8Array, start: number, end: number): string } }
const latin1Slice = (Buffer.prototype as unknown as Latin1Slice).latin1Slice

/** The octets as a string with one character for each. */
export const latin1Of = (octets: Uint8Array, start: number, end: number): string => latin1Slice.call(octets, start, end)

/** The octets in memory of their own: never a view of a packet, never a piece of Node's shared Buffer pool. */
export function copyOf(octets: Uint8Array, start: number, end: number): Uint8Array {
  const copy = new Uint8Array(end - start)
  if (copy.length > 32) copy.set(octets.subarray(start, end))
  else for (let i = 0; i < copy.length; i++) copy[i] = octets[start + i]!
  return copy
}

/** One octet for each character of a Latin-1 string, in memory of its own. */
export function octetsOf(latin1: string): Uint8Array {
  const octets = new Uint8Array(latin1.length)
  for (let i = 0; i < octets.length; i++) octets[i] = latin1.charCodeAt(i)
  return octets
}

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}

export function equalOctets(a: Uint8Array, b: Uint8Array): boolean {
  if (a.length !== b.length) return false
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false
  return true
}
