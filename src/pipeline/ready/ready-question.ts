/**
 * The first look at a query for a ready-made answer: its question's octets, hashed, and all else that an answer to
 * it may depend on. Allocates nothing; whatever is not plain is left to the whole parser.
 */
import { fnvOffset, fnvPrime } from '../../base/fnv1a.ts'
import { maxMessageOctets, maxUdpPayloadOctets, plainUdpPayloadOctets } from '../../base/limits.ts'
import { bareOptOctets } from '../../wire/edns.ts'
import { headerOctets } from '../../wire/header.ts'
import { RRTYPE } from '../../wire/iana.ts'
import { lowerCaseOf, maxNameOctets } from '../../wire/name.ts'
import { peerdnsOptionCode } from '../../wire/peerdns-option.ts'

/** Bits of `flags`; who asks stands above them. */
const flag = { recursionDesired: 1, checkingDisabled: 2, edns: 4, dnssecOk: 8 } as const
export const audienceShift = 4

/** Whether these EDNS options hold together, and none of them is looked at by anybody. */
function areIgnored(octets: Uint8Array, start: number, end: number): boolean {
  let at = start
  while (at + 4 <= end) {
    if (((octets[at]! << 8) | octets[at + 1]!) === peerdnsOptionCode) return false
    at += 4 + ((octets[at + 2]! << 8) | octets[at + 3]!)
  }
  return at === end
}

export class ReadyQuestion {
  /** Of the question in lower case. */
  hash = 0
  /** What of the query an answer depends on, besides its question and its size. */
  flags = 0
  /** Where the question ends; it begins behind the header. */
  end = 0
  /** Octets that the client takes. */
  limitOctets = 0

  /**
   * Reads a query; false where it is not a plain one: opcode QUERY, one question without compression, no records but
   * an OPT of version 0, nothing behind it. Of its options only peerdns' own changes an answer; others (cookies mostly)
   * are passed over.
   */
  read(octets: Uint8Array, size: number, isUdp: boolean): boolean {
    // QR and opcode; the counts. Other bits of the flags have no meaning in a query (AD is never passed on).
    if (size < headerOctets + 5 || (octets[2]! & 0xf8) !== 0) return false
    if (octets[5] !== 1 || octets[11]! > 1) return false
    if ((octets[4]! | octets[6]! | octets[7]! | octets[8]! | octets[9]! | octets[10]!) !== 0) return false
    let hash = fnvOffset
    let at = headerOctets
    for (let length = octets[at]!; length !== 0; length = octets[at]!) {
      const end = at + 1 + length
      if (length > 63 || end + 5 > size) return false
      hash = Math.imul(hash ^ length, fnvPrime)
      for (at++; at < end; at++) hash = Math.imul(hash ^ lowerCaseOf[octets[at]!]!, fnvPrime)
    }
    at++
    if (at - headerOctets > maxNameOctets || at + 4 > size) return false
    hash = Math.imul(hash ^ ((octets[at]! << 8) | octets[at + 1]!), fnvPrime)
    hash = Math.imul(hash ^ ((octets[at + 2]! << 8) | octets[at + 3]!), fnvPrime)
    const end = at + 4
    let flags = (octets[2]! & 1) | (octets[3]! & 0x10 ? flag.checkingDisabled : 0)
    let limitOctets = plainUdpPayloadOctets
    if (octets[11] === 0) {
      if (end !== size) return false
    } else {
      // Root, type, payload, extended RCODE, version, flags, length.
      if (end + bareOptOctets > size || octets[end] !== 0) return false
      const options = end + bareOptOctets
      if (options + ((octets[end + 9]! << 8) | octets[end + 10]!) !== size) return false
      if (options !== size && !areIgnored(octets, options, size)) return false
      if (((octets[end + 1]! << 8) | octets[end + 2]!) !== RRTYPE.OPT) return false
      if (octets[end + 6] !== 0) return false
      flags |= flag.edns | ((octets[end + 7]! & 0x80) !== 0 ? flag.dnssecOk : 0)
      const payload = (octets[end + 3]! << 8) | octets[end + 4]!
      limitOctets = payload < plainUdpPayloadOctets ? plainUdpPayloadOctets : payload
      if (limitOctets > maxUdpPayloadOctets) limitOctets = maxUdpPayloadOctets
    }
    this.hash = hash ^ (hash >>> 15)
    this.flags = flags
    this.end = end
    this.limitOctets = isUdp ? limitOctets : maxMessageOctets
    return true
  }

  /** Whether the question that was read is written in lower case. */
  isLowerCase(octets: Uint8Array): boolean {
    for (let at = headerOctets; at < this.end - 4; at++) if (lowerCaseOf[octets[at]!] !== octets[at]) return false
    return true
  }
}
