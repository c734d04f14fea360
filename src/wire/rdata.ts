/**
 * RDATA: taken from a message, checked against its type, built and read.
 *
 * Inside the server RDATA is wire form with every name uncompressed, so it stands alone. Presentation format is
 * in record-text.ts, the layout of each type in rdata-format.ts.
 */
import { WireError } from '../base/errors.ts'
import { maxMessageOctets } from '../base/limits.ts'
import { parseIpv4, parseIpv6 } from './address.ts'
import { CLASS } from './iana.ts'
import { type DomainName, expandName, lowerCaseOf, maxNameOctets, nameFromOctets, nameLengthAt } from './name.ts'
import { concat, copyOf, latin1Of, octetsOf, readU16, readU32, writeU16, writeU32 } from './octets.ts'
import { formatOf, type RdataField, type RdataFormat } from './rdata-format.ts'
import type { Rdata } from './rr.ts'

/** Octets that a name takes at the most beyond what is written, because a pointer of two octets becomes a name. */
const expansionOctets = maxNameOctets - 2

/**
 * Takes RDATA out of a message into octets of its own, its names uncompressed with their case kept.
 *
 * Names are decompressed wherever a pointer turns up, also where the type's RFC forbids pointers (RFC 3597 §4).
 * @param end the first octet behind the RDATA; it must be within the message.
 * @throws WireError BAD_RDATA where it does not fit its type; BAD_LABEL, BAD_POINTER, ... for a bad name in it.
 */
export function readRdata(octets: Uint8Array, start: number, end: number, type: number, rrclass: number): Rdata {
  const format = formatOf(type, rrclass)
  if (format === undefined) return copyOf(octets, start, end)
  // Conditions and deletions of dynamic update name a type without RDATA. RFC 2136 §2.4, §2.5.
  if (start === end && (rrclass === CLASS.ANY || rrclass === CLASS.NONE)) return new Uint8Array(0)
  return format.names > 0 ? readWithNames(octets, start, end, format) : readWithoutNames(octets, start, end, format)
}

/**
 * Checks that RDATA which did not come from a message fits its type, and has no pointers in its names.
 * @throws WireError BAD_RDATA and as `readRdata`.
 */
export function checkRdata(rdata: Uint8Array, type: number): void {
  const checked = readRdata(rdata, 0, rdata.length, type, CLASS.IN)
  if (checked.length !== rdata.length) throw new WireError('BAD_RDATA', 0, 'a compressed name')
}

function readWithoutNames(octets: Uint8Array, start: number, end: number, format: RdataFormat): Rdata {
  let at = start
  // The cast holds because this format has no names.
  for (const field of format.fields) at = fieldEnd(octets, at, end, field as PlainField)
  if (at !== end) throw new WireError('BAD_RDATA', at, 'octets behind the last field')
  return copyOf(octets, start, end)
}

function readWithNames(octets: Uint8Array, start: number, end: number, format: RdataFormat): Rdata {
  const whole = new Uint8Array(end - start + format.names * expansionOctets)
  let at = start
  let written = 0
  for (const field of format.fields) {
    if (field === 'name') {
      at = expandName(octets, at, end, whole, written, 'BAD_RDATA')
      written += nameLengthAt(whole, written)
    } else {
      for (const next = fieldEnd(octets, at, end, field); at < next; at++) whole[written++] = octets[at]!
    }
  }
  if (at !== end) throw new WireError('BAD_RDATA', at, 'octets behind the last field')
  if (written > maxMessageOctets) throw new WireError('BAD_RDATA', start, 'too long without its pointer')
  return copyOf(whole, 0, written)
}

/** Any kind of field but a name, whose end `expandName` finds. */
export type PlainField = Exclude<RdataField, 'name'>

/**
 * Where a field ends.
 * @throws WireError BAD_RDATA where that would be behind `end`.
 */
export function fieldEnd(octets: Uint8Array, at: number, end: number, field: PlainField): number {
  const next = at + fieldOctets(octets, at, end, field)
  if (next > end) throw new WireError('BAD_RDATA', at, `too short for its type (${field})`)
  return next
}

function fieldOctets(octets: Uint8Array, at: number, end: number, field: PlainField): number {
  switch (field) {
    case 'u8':
      return 1
    case 'u16':
    case 'rcode':
      return 2
    case 'u32':
    case 'ipv4':
      return 4
    case 'u48':
      return 6
    case 'ipv6':
      return 16
    case 'string':
      return at < end ? 1 + octets[at]! : 1
    case 'tag':
      if (at < end && octets[at] === 0) throw new WireError('BAD_RDATA', at, 'an empty tag')
      return at < end ? 1 + octets[at]! : 1
    case 'sized':
      return at + 2 <= end ? 2 + readU16(octets, at) : 2
    case 'strings':
      return stringsOctets(octets, at, end)
    case 'digest':
      return Math.max(1, end - at)
    case 'params':
      return paramsOctets(octets, at, end)
    default: // 'value' and 'rest'
      return end - at
  }
}

function stringsOctets(octets: Uint8Array, start: number, end: number): number {
  let at = start
  do at = fieldEnd(octets, at, end, 'string')
  while (at < end)
  return at - start
}

/** SvcParams: key, length, value, in strictly ascending order of the keys. RFC 9460 §2.2. */
function paramsOctets(octets: Uint8Array, start: number, end: number): number {
  let lastKey = -1
  let at = start
  while (at < end) {
    const next = at + 4 <= end ? at + 4 + readU16(octets, at + 2) : end + 1
    if (next > end) throw new WireError('BAD_RDATA', at, 'half a SvcParam')
    const key = readU16(octets, at)
    if (key <= lastKey) throw new WireError('BAD_RDATA', at, 'SvcParams out of order')
    lastKey = key
    at = next
  }
  return end - start
}

/** What tells whether two RDATA of one type are the same: octets, but for the case of names (RFC 4343). */
export function rdataKey(type: number, rdata: Rdata): string {
  const format = formatOf(type)
  if (format === undefined || format.names === 0) return latin1Of(rdata, 0, rdata.length)
  const folded = copyOf(rdata, 0, rdata.length)
  let at = 0
  for (const field of format.fields) {
    const next = field === 'name' ? at + nameLengthAt(rdata, at) : fieldEnd(rdata, at, rdata.length, field)
    if (field === 'name') for (let i = at; i < next; i++) folded[i] = lowerCaseOf[folded[i]!]!
    at = next
  }
  return latin1Of(folded, 0, folded.length)
}

/** @throws WireError BAD_TEXT */
export function aRdata(address: string): Rdata {
  const octets = parseIpv4(address)
  if (octets === null) throw new WireError('BAD_TEXT', 0, `'${address}' is no IPv4 address`)
  return octets
}

/** @throws WireError BAD_TEXT */
export function aaaaRdata(address: string): Rdata {
  const octets = parseIpv6(address)
  if (octets === null) throw new WireError('BAD_TEXT', 0, `'${address}' is no IPv6 address`)
  return octets
}

/** RDATA of NS, CNAME, PTR and DNAME. */
export function nameRdata(name: DomainName): Rdata {
  return octetsOf(name)
}

export function readNameRdata(rdata: Rdata): DomainName {
  return nameFromOctets(rdata, 0)
}

export type Srv = Readonly<{ priority: number; weight: number; port: number; target: DomainName }>

export function srvRdata({ priority, weight, port, target }: Srv): Rdata {
  const rdata = new Uint8Array(6 + target.length)
  writeU16(rdata, 0, priority)
  writeU16(rdata, 2, weight)
  writeU16(rdata, 4, port)
  rdata.set(octetsOf(target), 6)
  return rdata
}

export function readSrv(rdata: Rdata): Srv {
  return {
    priority: readU16(rdata, 0),
    weight: readU16(rdata, 2),
    port: readU16(rdata, 4),
    target: nameFromOctets(rdata, 6)
  }
}

/**
 * RDATA of TXT: the strings in UTF-8.
 * @throws WireError BAD_TEXT for none at all, or one over 255 octets.
 */
export function txtRdata(strings: readonly string[]): Rdata {
  if (strings.length === 0) throw new WireError('BAD_TEXT', 0, 'TXT needs at least one string')
  const encoder = new TextEncoder()
  return concat(strings.map((text) => characterString(encoder.encode(text))))
}

/** @throws WireError BAD_TEXT over 255 octets. */
export function characterString(octets: Uint8Array): Uint8Array {
  if (octets.length > 255) throw new WireError('BAD_TEXT', 0, 'a string over 255 octets')
  return concat([Uint8Array.of(octets.length), octets])
}

/** Times in seconds. RFC 1035 §3.3.13; `minimumSeconds` is the TTL of denials (RFC 2308 §4). */
export type Soa = Readonly<{
  mname: DomainName
  rname: DomainName
  serial: number
  refreshSeconds: number
  retrySeconds: number
  expireSeconds: number
  minimumSeconds: number
}>

export function soaRdata(soa: Soa): Rdata {
  const names = octetsOf(soa.mname + soa.rname)
  const rdata = new Uint8Array(names.length + 20)
  rdata.set(names)
  writeU32(rdata, names.length, soa.serial)
  writeU32(rdata, names.length + 4, soa.refreshSeconds)
  writeU32(rdata, names.length + 8, soa.retrySeconds)
  writeU32(rdata, names.length + 12, soa.expireSeconds)
  writeU32(rdata, names.length + 16, soa.minimumSeconds)
  return rdata
}

export function readSoa(rdata: Rdata): Soa {
  const rnameAt = nameLengthAt(rdata, 0)
  const at = rnameAt + nameLengthAt(rdata, rnameAt)
  return {
    mname: nameFromOctets(rdata, 0),
    rname: nameFromOctets(rdata, rnameAt),
    serial: readU32(rdata, at),
    refreshSeconds: readU32(rdata, at + 4),
    retrySeconds: readU32(rdata, at + 8),
    expireSeconds: readU32(rdata, at + 12),
    minimumSeconds: readU32(rdata, at + 16)
  }
}

/** RDATA of the record that answers QTYPE ANY. RFC 8482 §4.2. */
export function hinfoRdata(cpu: string, os: string): Rdata {
  return txtRdata([cpu, os])
}
