/** NOTIFY from somebody else: a zone of theirs has changed. RFC 1996. */
import { CLASS, OPCODE, RCODE, RRTYPE } from '../wire/iana.ts'
import { opcodeOf } from './accept.ts'
import { errorAnswer, type Answer } from './answer.ts'
import type { Parts } from './parts.ts'
import type { Query } from './query.ts'

export const isNotify = (octets: Uint8Array): boolean => opcodeOf(octets) === OPCODE.NOTIFY

/**
 * What answers it: NOERROR where it is of use, REFUSED for who has no say in it, NOTIMP for a zone that we do not
 * follow.
 */
export function answerNotify({ notified }: Parts, { qname, qtype, client, message, signature }: Query): Answer {
  const isSound = message?.qclass === CLASS.IN && qtype === RRTYPE.SOA
  const rcode = isSound
    ? (notified?.(client.address, qname, signature?.key?.name ?? null) ?? RCODE.NOTIMP)
    : RCODE.FORMERR
  return { ...errorAnswer(rcode), authoritative: rcode === RCODE.NOERROR }
}
