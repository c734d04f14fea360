/** The message's header, twelve octets: id, flags, four counts. RFC 1035 §4.1.1. */
import { readU16 } from './octets.ts'

export const headerOctets = 12

/** Where the counts lie. */
export const QDCOUNT_AT = 4
export const ANCOUNT_AT = 6
export const NSCOUNT_AT = 8
export const ARCOUNT_AT = 10

/** Bits of the 16-bit flags at octet 2. AD and CD: RFC 4035 §3. */
export const FLAG = { QR: 0x8000, AA: 0x0400, TC: 0x0200, RD: 0x0100, RA: 0x0080, AD: 0x0020, CD: 0x0010 } as const

export const messageId = (octets: Uint8Array): number => readU16(octets, 0)

export const flagsOf = (octets: Uint8Array): number => readU16(octets, 2)

/** Whether QR is set. Responses are never answered, or two servers might talk for ever. */
export const isResponse = (octets: Uint8Array): boolean => (octets[2]! & 0x80) !== 0

export const opcodeOf = (octets: Uint8Array): number => (octets[2]! >>> 3) & 0x0f

/** The lower four bits of the RCODE. */
export const headerRcode = (octets: Uint8Array): number => octets[3]! & 0x0f
