/**
 * TSIG (RFC 8945): what a signed message says about its key.
 *
 * Computing and checking MACs is left to those who have keys.
 */
import { WireError } from '../base/errors.ts'
import { ARCOUNT_AT } from './header.ts'
import { CLASS, RRTYPE } from './iana.ts'
import { type DomainName, readName } from './name.ts'
import { copyOf, octetsOf, readU16, readU32, readU48, writeU16, writeU32, writeU48 } from './octets.ts'

/** A TSIG record. RFC 8945 §4.2. */
export type Tsig = Readonly<{
  keyName: DomainName
  algorithm: DomainName
  /** Seconds since 1970, 48 bits. */
  timeSignedSeconds: number
  fudgeSeconds: number
  mac: Uint8Array
  originalId: number
  /** An RCODE; see `RCODE.BADKEY` and its neighbours. */
  error: number
  other: Uint8Array
  /** Where the record starts in the message: the octets before it are what was signed. */
  start: number
}>

/**
 * Reads the TSIG record at `start`; `fixedAt` is the first octet behind its owner, and the record is within `end`.
 * @throws WireError BAD_TSIG for a class other than ANY or a TTL other than 0, BAD_RDATA and others as `readName`.
 */
export function readTsig(octets: Uint8Array, start: number, fixedAt: number, end: number, keyName: DomainName): Tsig {
  if (readU16(octets, fixedAt + 2) !== CLASS.ANY || readU32(octets, fixedAt + 4) !== 0) {
    throw new WireError('BAD_TSIG', fixedAt, 'TSIG has class ANY and TTL 0')
  }
  const rdataAt = fixedAt + 10
  const algorithm = readName(octets, rdataAt, end)
  const timeAt = algorithm.end
  const macAt = timeAt + 10
  const macOctets = macAt <= end ? readU16(octets, timeAt + 8) : end
  const idAt = macAt + macOctets
  const otherAt = idAt + 6
  if (otherAt > end || otherAt + readU16(octets, idAt + 4) !== end) {
    throw new WireError('BAD_RDATA', timeAt, 'the fields of TSIG do not fill its RDATA')
  }
  return {
    keyName,
    algorithm: algorithm.name,
    timeSignedSeconds: readU48(octets, timeAt),
    fudgeSeconds: readU16(octets, timeAt + 6),
    mac: copyOf(octets, macAt, idAt),
    originalId: readU16(octets, idAt),
    error: readU16(octets, idAt + 2),
    other: copyOf(octets, otherAt, end),
    start
  }
}

/** RDATA of TSIG; the names are never compressed (RFC 8945 §4.2). */
export function tsigRdata(tsig: Omit<Tsig, 'keyName' | 'start'>): Uint8Array {
  const { algorithm, mac, other } = tsig
  const rdata = new Uint8Array(algorithm.length + 16 + mac.length + other.length)
  rdata.set(octetsOf(algorithm))
  let at = algorithm.length
  writeU48(rdata, at, tsig.timeSignedSeconds)
  writeU16(rdata, at + 6, tsig.fudgeSeconds)
  writeU16(rdata, at + 8, mac.length)
  rdata.set(mac, at + 10)
  at += 10 + mac.length
  writeU16(rdata, at, tsig.originalId)
  writeU16(rdata, at + 2, tsig.error)
  writeU16(rdata, at + 4, other.length)
  rdata.set(other, at + 6)
  return rdata
}

/**
 * Puts a TSIG record at the end of a message, counts it in the header, and returns the new size; there must be room.
 */
export function appendTsig(out: Uint8Array, size: number, keyName: DomainName, rdata: Uint8Array): number {
  out.set(octetsOf(keyName), size)
  const at = size + keyName.length
  writeU16(out, at, RRTYPE.TSIG)
  writeU16(out, at + 2, CLASS.ANY)
  writeU32(out, at + 4, 0)
  writeU16(out, at + 8, rdata.length)
  out.set(rdata, at + 10)
  writeU16(out, ARCOUNT_AT, readU16(out, ARCOUNT_AT) + 1)
  return at + 10 + rdata.length
}
