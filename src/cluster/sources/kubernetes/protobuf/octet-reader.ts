/** Reads the wire format of protobuf: tags, varints and what has its length before it, never beyond an end. */
import { latin1Of } from '../../../../wire/octets.ts'
import { ApiError } from '../api-error.ts'

export const wireType = { varint: 0, fixed64: 1, delimited: 2, fixed32: 5 } as const

/** Longest varint: 64 bits. */
const maxVarintOctets = 10
/** Texts up to this length are looked at octet by octet. */
const maxShortTextOctets = 64

export const malformed = (what: string): ApiError => new ApiError('format', `protobuf: ${what}`)

export class OctetReader {
  readonly octets: Buffer
  at: number
  readonly end: number

  constructor(octets: Buffer, at = 0, end = octets.length) {
    this.octets = octets
    this.at = at
    this.end = end
  }

  get isAtEnd(): boolean {
    return this.at >= this.end
  }

  /** The low 32 bits, without a sign. @throws ApiError `format` where it does not end, or is longer than 64 bits. */
  varint(): number {
    let value = 0
    for (let shift = 0; shift < maxVarintOctets * 7; shift += 7) {
      if (this.at >= this.end) throw malformed('a number that breaks off')
      const octet = this.octets[this.at++]!
      if (shift < 32) value |= (octet & 0x7f) << shift
      if (octet < 0x80) return value >>> 0
    }
    throw malformed('a number of more than 64 bits')
  }

  /**
   * Where what begins here, with its length before it, ends; it is read from `at` on then. @throws ApiError `format`
   */
  delimitedEnd(): number {
    const length = this.varint()
    if (length > this.end - this.at) throw malformed('a field that is longer than its message')
    return this.at + length
  }

  /** Passes over a field's value. @throws ApiError `format` */
  skip(type: number): void {
    switch (type) {
      case wireType.varint:
        this.varint()
        return
      case wireType.delimited:
        this.at = this.delimitedEnd()
        return
      case wireType.fixed64:
      case wireType.fixed32: {
        const octets = type === wireType.fixed64 ? 8 : 4
        if (octets > this.end - this.at) throw malformed('a field that breaks off')
        this.at += octets
        return
      }
      default:
        throw malformed(`wire type ${type}`)
    }
  }

  /** What has its length before it, as text: a copy, so that the octets can go. @throws ApiError `format` */
  text(): string {
    const end = this.delimitedEnd()
    const { octets, at } = this
    this.at = end
    if (end === at) return ''
    return isShortAscii(octets, at, end) ? latin1Of(octets, at, end) : octets.toString('utf8', at, end)
  }
}

/** Such a text is read much faster as what it also is, Latin-1. */
function isShortAscii(octets: Buffer, from: number, end: number): boolean {
  if (end - from > maxShortTextOctets) return false
  for (let at = from; at < end; at++) if (octets[at]! >= 0x80) return false
  return true
}
