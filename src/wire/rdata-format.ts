/**
 * How the RDATA of each known type is laid out: one row for each type, made of a few kinds of field.
 *
 * Reading, checking, comparing and presentation format all follow these rows. To add a type, add its row; a new kind
 * of field also needs its place in rdata.ts and record-text.ts. A type without a row is opaque octets (RFC 3597).
 */
import { CLASS, RRTYPE } from './iana.ts'

/**
 * - `u8` `u16` `u32` `u48`: numbers
 * - `ipv4` `ipv6`: addresses
 * - `name`: a domain name
 * - `string`: one length octet and that many octets
 * - `strings`: one or more of them, to the end
 * - `sized`: two length octets and that many octets
 * - `rcode`: a number of 16 bits, shown as an RCODE
 * - `tag`: a `string` that is not empty (CAA)
 * - `value`: octets to the end, shown in quotes; may be missing
 * - `digest`: octets to the end, shown in hex; at least one
 * - `params`: SvcParams to the end
 * - `rest`: octets to the end that are not looked at
 */
export type RdataField =
  | 'u8'
  | 'u16'
  | 'u32'
  | 'u48'
  | 'ipv4'
  | 'ipv6'
  | 'name'
  | 'string'
  | 'strings'
  | 'sized'
  | 'rcode'
  | 'tag'
  | 'value'
  | 'digest'
  | 'params'
  | 'rest'

export type RdataFormat = Readonly<{
  fields: readonly RdataField[]
  /** How many of the fields are names. */
  names: number
  /** Whether there is a presentation format here; otherwise it is the one for unknown types. */
  hasText: boolean
}>

const format = (fields: readonly RdataField[], hasText: boolean): RdataFormat => ({
  fields,
  names: fields.filter((field) => field === 'name').length,
  hasText
})

const row = (...fields: RdataField[]): RdataFormat => format(fields, true)

/** A type that is here only because its names may come compressed (RFC 3597 §4) and so must be found. */
const namesOnly = (...fields: RdataField[]): RdataFormat => format(fields, false)

const formats = new Map<number, RdataFormat>([
  [RRTYPE.A, row('ipv4')],
  [RRTYPE.AAAA, row('ipv6')],
  [RRTYPE.NS, row('name')],
  [RRTYPE.CNAME, row('name')],
  [RRTYPE.PTR, row('name')],
  [RRTYPE.DNAME, row('name')],
  [RRTYPE.SOA, row('name', 'name', 'u32', 'u32', 'u32', 'u32', 'u32')],
  [RRTYPE.MX, row('u16', 'name')],
  [RRTYPE.TXT, row('strings')],
  [RRTYPE.SPF, row('strings')],
  [RRTYPE.HINFO, row('string', 'string')],
  [RRTYPE.RP, row('name', 'name')],
  [RRTYPE.AFSDB, row('u16', 'name')],
  [RRTYPE.SRV, row('u16', 'u16', 'u16', 'name')],
  [RRTYPE.NAPTR, row('u16', 'u16', 'string', 'string', 'string', 'name')],
  [RRTYPE.DS, row('u16', 'u8', 'u8', 'digest')],
  [RRTYPE.CDS, row('u16', 'u8', 'u8', 'digest')],
  [RRTYPE.SSHFP, row('u8', 'u8', 'digest')],
  [RRTYPE.TLSA, row('u8', 'u8', 'u8', 'digest')],
  [RRTYPE.CAA, row('u8', 'tag', 'value')],
  [RRTYPE.SVCB, row('u16', 'name', 'params')],
  [RRTYPE.HTTPS, row('u16', 'name', 'params')],
  [RRTYPE.TSIG, row('name', 'u48', 'u16', 'sized', 'u16', 'rcode', 'sized')],
  [RRTYPE.MD, namesOnly('name')],
  [RRTYPE.MF, namesOnly('name')],
  [RRTYPE.MB, namesOnly('name')],
  [RRTYPE.MG, namesOnly('name')],
  [RRTYPE.MR, namesOnly('name')],
  [RRTYPE.MINFO, namesOnly('name', 'name')],
  [RRTYPE.RT, namesOnly('u16', 'name')],
  [RRTYPE.PX, namesOnly('u16', 'name', 'name')],
  [RRTYPE.KX, namesOnly('u16', 'name')],
  [RRTYPE.SIG, namesOnly('u16', 'u8', 'u8', 'u32', 'u32', 'u32', 'u16', 'name', 'rest')],
  [RRTYPE.RRSIG, namesOnly('u16', 'u8', 'u8', 'u32', 'u32', 'u32', 'u16', 'name', 'rest')],
  [RRTYPE.NSEC, namesOnly('name', 'rest')]
])

/** The layout of a type; undefined where it is unknown. */
export function formatOf(type: number, rrclass: number = CLASS.IN): RdataFormat | undefined {
  // Class CH has other addresses. NONE and ANY are used with the types of class IN (RFC 2136, RFC 8945).
  const isAddress = type === RRTYPE.A || type === RRTYPE.AAAA
  if (isAddress && rrclass !== CLASS.IN && rrclass !== CLASS.NONE && rrclass !== CLASS.ANY) return undefined
  return formats.get(type)
}

/**
 * Where the names of RDATA lie that may be written compressed, which RFC 3597 §4 allows for these types of RFC 1035
 * only (and RFC 2782 forbids for SRV): `count` names from octet `start`, then other octets. Undefined for all other
 * types.
 */
export function compressibleNames(type: number): Readonly<{ start: number; count: number }> | undefined {
  switch (type) {
    case RRTYPE.NS:
    case RRTYPE.CNAME:
    case RRTYPE.PTR:
      return oneName
    case RRTYPE.MX:
      return nameAfterPreference
    case RRTYPE.SOA:
      return twoNames
    default:
      return undefined
  }
}

const oneName = { start: 0, count: 1 }
const nameAfterPreference = { start: 2, count: 1 }
const twoNames = { start: 0, count: 2 }
