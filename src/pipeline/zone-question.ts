/**
 * Questions about a zone as a whole, from those who may take it: AXFR, IXFR, and the SOA and NS that tell of what they
 * would get. Everything else goes on as any question.
 */
import { WireError } from '../base/errors.ts'
import type { MessageStream } from '../server/responder.ts'
import { isTransferType, type Primary } from '../transfer/primary.ts'
import type { ZonePart } from '../transfer/zone-part.ts'
import { questionOf } from '../transfer/message-packer.ts'
import type { Edns } from '../wire/edns.ts'
import { EDE, RCODE, RRTYPE } from '../wire/iana.ts'
import { decodeMessage } from '../wire/message.ts'
import type { ParsedQuery } from '../wire/query.ts'
import { readSoa } from '../wire/rdata.ts'
import type { RRset } from '../wire/rr.ts'
import { answerOf, errorAnswer, type Answer } from './answer.ts'
import { ednsWith } from './finish.ts'
import { notSyncedAnswer } from './from-zone.ts'
import type { Parts } from './parts.ts'
import type { Query } from './query.ts'

/** The answer is more than one message, or a connection that is told of changes. */
export type ZoneStream = Readonly<{ streamOf: ZonePart }>

export const isStream = (found: Answer | ZoneStream): found is ZoneStream => 'streamOf' in found

/** null: no such question. */
export function answerZoneQuestion(parts: Parts, query: Query): Answer | ZoneStream | null {
  const { qtype, client, peerdns } = query
  const isTransfer = isTransferType(qtype)
  if (!isTransfer && qtype !== RRTYPE.SOA && qtype !== RRTYPE.NS) return null
  const { primary } = parts
  if (query.message === null) return null
  if (peerdns !== null && peerdns.copyOf !== null) return answerCopyQuestion(parts, query, peerdns.copyOf)
  if (!primary.permits(client.address, query.signature)) {
    return isTransfer ? refused(primary, primary.whyNot(client.address)) : null
  }
  const part = primary.find(query.qname, peerdns !== null)
  if (part === 'not-authoritative') return isTransfer ? notAuthoritative(primary) : null
  if (part === 'hidden') return isTransfer ? refused(primary, 'the export policy does not show this name') : null
  if (!primary.isReady) return isTransfer ? notSyncedAnswer() : null
  const isSuffix = part.apex !== part.store.apex
  // What is asked recursively is asked by a client, who sees the zone that the suffix lies in.
  if (!isTransfer && isSuffix && query.recursionDesired) return null
  if (qtype === RRTYPE.NS) return isSuffix ? answerOfPart(parts, query, part, part.ns) : null
  // Secondaries ask without RD. A peerdns is told down its connection, and its probes are no wish to be told.
  if (peerdns === null && (isTransfer || !query.recursionDesired)) {
    primary.noteInterest(client.address, part, query.signature)
  }
  return streamOrSoa(parts, query, part)
}

/**
 * A node of ours asks its hub for another cluster's zone. Whatever comes of it, our own zone of that name is not meant.
 */
function answerCopyQuestion(parts: Parts, query: Query, copyOf: string): Answer | ZoneStream {
  const { primary } = parts
  const { client, signature } = query
  if (!primary.permits(client.address, signature)) return refused(primary, primary.whyNot(client.address))
  if (!primary.permitsCopies(signature)) {
    return refused(primary, "copies of other clusters' zones are for nodes of this one")
  }
  const part = primary.findCopy(copyOf, query.qname)
  if (part === 'not-authoritative') return notAuthoritative(primary)
  if (part === 'not-here-yet') return errorAnswer(RCODE.SERVFAIL, { code: EDE.NOT_READY, text: 'no copy has come yet' })
  return query.qtype === RRTYPE.NS ? answerOfPart(parts, query, part, part.ns) : streamOrSoa(parts, query, part)
}

function streamOrSoa(parts: Parts, query: Query, part: ZonePart): Answer | ZoneStream {
  const { primary } = parts
  const { qtype, client, peerdns } = query
  if (client.transport === 'tcp') {
    const begins = peerdns?.subscribe === true && !primary.isSubscribed(client, part)
    if (isTransferType(qtype) || begins) return { streamOf: part }
  } else if (qtype === RRTYPE.AXFR) {
    return refused(primary, 'AXFR is for TCP')
  }
  // Over UDP the SOA alone says to an IXFR: come by TCP. RFC 1995 §2.
  return answerOfPart(parts, query, part, part.soa)
}

/** Sends all messages of the answer to a question that `answerZoneQuestion` said is a stream. */
export async function streamZone(
  parts: Parts,
  asked: Readonly<{ query: Query; message: ParsedQuery; octets: Uint8Array }>,
  part: ZonePart,
  stream: MessageStream
): Promise<Answer | null> {
  const { query, message, octets } = asked
  const { primary } = parts
  // First of all, so that no change falls between the answer and the first NOTIFY.
  if (query.peerdns?.subscribe === true) primary.subscribe(query.client, stream, part)
  if (query.qtype === RRTYPE.SOA) return answerOfPart(parts, query, part, part.soa)
  let serial: number | null = null
  if (query.qtype === RRTYPE.IXFR) {
    serial = serialOfCopy(octets, query)
    if (serial === null) return errorAnswer(RCODE.FORMERR)
  }
  const isDone = await primary.transfer(
    {
      part,
      id: message.id,
      question: questionOf(octets, message.questionEnd),
      serial,
      peerdns: query.peerdns,
      edns: transferEdns(primary, query, message, part),
      signer: query.signature
    },
    stream
  )
  return isDone ? null : errorAnswer(RCODE.SERVFAIL, { code: EDE.OTHER, text: 'too many transfers' })
}

function transferEdns(primary: Primary, query: Query, message: ParsedQuery, part: ZonePart): Edns | null {
  if (message.edns === null) return null
  return ednsWith(query.dnssecOk, query.peerdns === null ? [] : [primary.history(part)])
}

/** The SOA in the authority section says which version the asker has. RFC 1995 §3. */
function serialOfCopy(octets: Uint8Array, query: Query): number | null {
  try {
    const { authority } = decodeMessage(octets)
    const soa = authority.find(({ owner, type }) => type === RRTYPE.SOA && owner === query.qname)
    return soa === undefined ? null : readSoa(soa.rdata).serial
  } catch (error) {
    if (error instanceof WireError) return null
    throw error
  }
}

function answerOfPart(parts: Parts, query: Query, part: ZonePart, rrset: RRset): Answer {
  const { store } = part
  const sections = { rcode: RCODE.NOERROR, answer: [rrset], authority: [], additional: [] }
  return answerOf(sections, {
    authoritative: true,
    origin: {
      from: 'zone',
      zone: store.apex,
      ageMs: parts.primary.ageMs(part) ?? 0,
      changedAgoMs: Math.max(0, parts.clock.epochMs() - store.lastChangeAtMs)
    },
    history: query.peerdns === null ? null : parts.primary.history(part)
  })
}

function refused(primary: Primary, text: string): Answer {
  primary.stats.refusedTotal += 1
  return errorAnswer(RCODE.REFUSED, { code: EDE.PROHIBITED, text })
}

function notAuthoritative(primary: Primary): Answer {
  primary.stats.notAuthoritativeTotal += 1
  return errorAnswer(RCODE.NOTAUTH, { code: EDE.NOT_AUTHORITATIVE, text: 'no zone of this server' })
}
