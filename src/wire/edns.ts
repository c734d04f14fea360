/**
 * EDNS(0): the OPT record (RFC 6891). Options stay opaque but for Extended DNS Errors (RFC 8914).
 *
 * EDNS is per hop: nothing read here is passed on.
 */
import { WireError } from '../base/errors.ts'
import { OPTION, RRTYPE } from './iana.ts'
import { copyOf, readU16, writeU16 } from './octets.ts'

export type EdnsOption = Readonly<{ code: number; data: Uint8Array }>

export type Edns = Readonly<{
  /** 0 is the only one there is; a higher one is answered BADVERS, and its options are not looked at. */
  version: number
  /** What the sender can take over UDP, in octets, as written: it may be under 512. */
  udpPayloadOctets: number
  dnssecOk: boolean
  options: readonly EdnsOption[]
}>

export const ednsVersion = 0

/** An OPT record without options: root owner, type, class, TTL, RDLENGTH. */
export const bareOptOctets = 11

const noOptions: readonly EdnsOption[] = []

const dnssecOkBit = 0x8000

/**
 * Reads an OPT record whose owner was the root; `fixedAt` is where its class lies, and the RDATA is within the octets.
 * @throws WireError BAD_EDNS for half an option.
 */
export function readEdns(octets: Uint8Array, fixedAt: number): Edns {
  const version = octets[fixedAt + 3]!
  const rdataAt = fixedAt + 8
  const rdataOctets = readU16(octets, fixedAt + 6)
  return {
    version,
    udpPayloadOctets: readU16(octets, fixedAt),
    dnssecOk: (octets[fixedAt + 4]! & 0x80) !== 0,
    options:
      rdataOctets === 0 || version !== ednsVersion ? noOptions : readOptions(octets, rdataAt, rdataAt + rdataOctets)
  }
}

function readOptions(octets: Uint8Array, start: number, end: number): EdnsOption[] {
  const options: EdnsOption[] = []
  let at = start
  while (at < end) {
    if (at + 4 > end) throw new WireError('BAD_EDNS', at, 'half the head of an option')
    const next = at + 4 + readU16(octets, at + 2)
    if (next > end) throw new WireError('BAD_EDNS', at, 'an option longer than the OPT record')
    options.push({ code: readU16(octets, at), data: copyOf(octets, at + 4, next) })
    at = next
  }
  return options
}

/** Octets of the OPT record. */
export function ednsOctets(edns: Edns): number {
  let size = bareOptOctets
  for (const option of edns.options) size += 4 + option.data.length
  return size
}

/**
 * Writes the OPT record and returns where it ends; there must be room for it.
 * @param rcode all 12 bits: the upper 8 go in here.
 */
export function writeEdns(out: Uint8Array, start: number, edns: Edns, rcode: number): number {
  out[start] = 0
  writeU16(out, start + 1, RRTYPE.OPT)
  writeU16(out, start + 3, edns.udpPayloadOctets)
  out[start + 5] = rcode >>> 4
  out[start + 6] = edns.version
  writeU16(out, start + 7, edns.dnssecOk ? dnssecOkBit : 0)
  let at = start + bareOptOctets
  for (const option of edns.options) {
    writeU16(out, at, option.code)
    writeU16(out, at + 2, option.data.length)
    out.set(option.data, at + 4)
    at += 4 + option.data.length
  }
  writeU16(out, start + 9, at - start - bareOptOctets)
  return at
}

/** The same OPT record without its options: for where they do not fit. */
export function withoutOptions(edns: Edns): Edns {
  return { ...edns, options: noOptions }
}

export function findOption(edns: Edns, code: number): EdnsOption | null {
  return edns.options.find((option) => option.code === code) ?? null
}

/** An Extended DNS Error. RFC 8914 §2; the text is for people, in UTF-8. */
export function encodeEde(code: number, text: string): EdnsOption {
  const utf8 = new TextEncoder().encode(text)
  const data = new Uint8Array(2 + utf8.length)
  writeU16(data, 0, code)
  data.set(utf8, 2)
  return { code: OPTION.EDE, data }
}

/**
 * Null where the option is none, or too short to be one. Octets that are no UTF-8 show as U+FFFD; a last NUL is
 * dropped.
 */
export function decodeEde(option: EdnsOption): { code: number; text: string } | null {
  if (option.code !== OPTION.EDE || option.data.length < 2) return null
  const { data } = option
  const end = data.at(-1) === 0 ? Math.max(2, data.length - 1) : data.length
  return { code: readU16(data, 0), text: new TextDecoder('utf-8', { ignoreBOM: true }).decode(data.subarray(2, end)) }
}
