/**
 * The first look at a query: what is dropped, and what is refused before anybody looks for an answer.
 *
 * The order follows RFC 8906 and RFC 9619: size and QR, opcode, question count, the whole message, EDNS version, class,
 * client, query type.
 */
import { CLASS, EDE, OPCODE, RCODE, RRTYPE } from '../wire/iana.ts'
import type { ClientSet } from '../policy/policy.ts'
import { isTransferType } from '../transfer/primary.ts'
import type { TsigCheck } from '../transfer/tsig-signer.ts'
import { errorAnswer, type Answer } from './answer.ts'
import type { Query } from './query.ts'
import { maxInstances } from '../wire/peerdns-option.ts'

export const headerOctets = 12

/** Drop: too short for a header, or itself a response (two servers could go on for ever). RFC 1035 §4.1.1, RFC 5358. */
export const isDropped = (octets: Uint8Array, size: number): boolean => size < headerOctets || (octets[2]! & 0x80) !== 0

export const opcodeOf = (octets: Uint8Array): number => (octets[2]! >> 3) & 0x0f

/**
 * The RCODE that the header alone earns, or null where the message is to be parsed.
 * A question count other than one is FORMERR (RFC 9619 §4); records that a query cannot have are too.
 */
export function headerError(octets: Uint8Array, takesNotify = false): number | null {
  const opcode = opcodeOf(octets)
  if (opcode !== OPCODE.QUERY && !(takesNotify && opcode === OPCODE.NOTIFY)) return RCODE.NOTIMP
  const questions = (octets[4]! << 8) | octets[5]!
  const answers = (octets[6]! << 8) | octets[7]!
  // A NOTIFY may bring the new SOA along. RFC 1996 §3.7.
  return questions !== 1 || (answers !== 0 && opcode === OPCODE.QUERY) ? RCODE.FORMERR : null
}

export type AcceptOptions = Readonly<{
  instanceId: string
  allow: ClientSet
  /** Knows who may take zones; those may ask for zones and their SOA wherever they are. */
  primary: Readonly<{ permits(address: string, signature: TsigCheck | null): boolean }>
}>

/** An answer for what is refused or answered without looking further; null: go on. */
export function accept(query: Query, options: AcceptOptions): Answer | null {
  const message = query.message
  if (message !== null) {
    if (message.edns !== null && message.edns.version > 0) return errorAnswer(RCODE.BADVERS)
    // What is wrong with it stands in the answer's TSIG record. RFC 8945 §5.2.
    if (query.signature !== null && query.signature.error !== 0) return errorAnswer(RCODE.NOTAUTH)
    if (message.qclass !== CLASS.IN) return errorAnswer(RCODE.REFUSED)
  }
  const asksForZone = isTransferType(query.qtype) || query.qtype === RRTYPE.SOA
  const isAllowed =
    options.allow.contains(query.client.address) ||
    (asksForZone && options.primary.permits(query.client.address, query.signature))
  if (!isAllowed) {
    return errorAnswer(RCODE.REFUSED, { code: EDE.PROHIBITED, text: 'this client is not in allow' })
  }
  if (query.qtype === RRTYPE.OPT || query.qtype === RRTYPE.TSIG) return errorAnswer(RCODE.FORMERR)
  // Questions that this server asks itself cannot be answered by a transfer.
  if (isTransferType(query.qtype) && message === null) {
    return errorAnswer(RCODE.REFUSED, { code: EDE.PROHIBITED, text: 'a transfer is no answer to look at' })
  }
  const { peerdns } = query
  if (peerdns !== null) {
    const isLoop = peerdns.instances.includes(options.instanceId) || peerdns.instances.length >= maxInstances
    if (isLoop) return errorAnswer(RCODE.SERVFAIL, { code: EDE.OTHER, text: 'loop: this query was here before' })
  }
  return null
}
