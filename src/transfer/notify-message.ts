/** NOTIFY: that a zone has another serial now. RFC 1996. */
import { maxUdpPayloadOctets } from '../base/limits.ts'
import type { EdnsOption } from '../wire/edns.ts'
import { headerOctets, isResponse, messageId, opcodeOf } from '../wire/header.ts'
import { CLASS, OPCODE, RCODE, RRTYPE } from '../wire/iana.ts'
import { encodeMessage } from '../wire/message.ts'
import { writeU16 } from '../wire/octets.ts'
import type { ZonePart } from './zone-part.ts'

/**
 * The request without id; the SOA in the answer section is a hint (RFC 1996 §3.7).
 * @param history of the zone, for a peerdns; null: plain DNS.
 */
export function notifyMessage(part: ZonePart, history: EdnsOption | null): Uint8Array {
  const { apex, soa } = part
  const { ttlSeconds, rdata } = soa
  return encodeMessage({
    id: 0,
    qr: false,
    opcode: OPCODE.NOTIFY,
    aa: true,
    tc: false,
    rd: false,
    ra: false,
    ad: false,
    cd: false,
    rcode: RCODE.NOERROR,
    questions: [{ name: apex, type: RRTYPE.SOA, class: CLASS.IN }],
    answer: [{ owner: apex, type: RRTYPE.SOA, class: CLASS.IN, ttlSeconds, rdata: rdata[0]! }],
    authority: [],
    additional: [],
    edns:
      history === null
        ? null
        : { version: 0, udpPayloadOctets: maxUdpPayloadOctets, dnssecOk: false, options: [history] }
  })
}

/** A copy with this id. */
export function withId(message: Uint8Array, id: number): Uint8Array {
  const octets = Uint8Array.from(message)
  writeU16(octets, 0, id)
  return octets
}

/** The id of a response to NOTIFY in the first `size` octets; null where it is none. */
export const notifyResponseId = (octets: Uint8Array, size: number): number | null =>
  size >= headerOctets && isResponse(octets) && opcodeOf(octets) === OPCODE.NOTIFY ? messageId(octets) : null
