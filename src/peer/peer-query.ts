/** The octets of a question to a peer, and whether octets that came back answer it. */
import { WireError } from '../base/errors.ts'
import { maxUdpPayloadOctets } from '../base/limits.ts'
import {
  FLAG,
  flagsOf,
  headerOctets,
  headerRcode,
  isResponse,
  messageId,
  opcodeOf,
  QDCOUNT_AT
} from '../wire/header.ts'
import { CLASS, OPCODE, RCODE } from '../wire/iana.ts'
import { encodeMessage } from '../wire/message.ts'
import { lowerCaseOf, readName, type DomainName } from '../wire/name.ts'
import { latin1Of, readU16, writeU16 } from '../wire/octets.ts'
import type { EdnsOption } from '../wire/edns.ts'
import type { PeerQuestion } from './peer-types.ts'

/** One question, encoded once for all exchanges; each exchange sends a copy with its own id. */
export class PeerQuery {
  readonly question: PeerQuestion
  readonly #recursion: boolean
  #withEdns: Uint8Array | null = null
  #plain: Uint8Array | null = null
  /** That of the two which went out itself, in the first exchange, and is not to be altered any more. */
  #sent: Uint8Array | null = null

  constructor(question: PeerQuestion, recursion: boolean) {
    this.question = question
    this.#recursion = recursion
  }

  /** The message with this id, with or without an OPT record. */
  octets(id: number, withEdns: boolean): Uint8Array {
    const template = withEdns ? (this.#withEdns ??= this.#encode(true)) : (this.#plain ??= this.#encode(false))
    if (this.#sent === template && messageId(template) === id) return template
    const octets = this.#sent === null ? template : template.slice()
    this.#sent ??= template
    writeU16(octets, 0, id)
    return octets
  }

  #encode(withEdns: boolean): Uint8Array {
    const { name, type, dnssecOk, checkingDisabled, options } = this.question
    return encodeMessage({
      id: 0,
      qr: false,
      opcode: OPCODE.QUERY,
      aa: false,
      tc: false,
      rd: this.#recursion,
      ra: false,
      ad: false,
      cd: checkingDisabled,
      rcode: RCODE.NOERROR,
      questions: [{ name, type, class: CLASS.IN }],
      answer: [],
      authority: [],
      additional: [],
      edns: withEdns ? { version: 0, udpPayloadOctets: maxUdpPayloadOctets, dnssecOk, options } : null
    })
  }
}

/** Questions that may share one exchange have equal keys. */
export function questionKey({
  name,
  type,
  dnssecOk,
  checkingDisabled,
  options,
  zone,
  soaMayBeAbove
}: PeerQuestion): string {
  const flags = `${dnssecOk ? 1 : 0}${checkingDisabled ? 1 : 0}${soaMayBeAbove === true ? 1 : 0}`
  return `${type} ${flags} ${name}${zone ?? ''}${optionsKey(options)}`
}

// Most questions have the very same options.
let lastOptions: readonly EdnsOption[] = []
let lastOptionsKey = ''

function optionsKey(options: readonly EdnsOption[]): string {
  if (options === lastOptions) return lastOptionsKey
  let key = ''
  for (const { code, data } of options) key += ` ${code}:${latin1Of(data, 0, data.length)}`
  lastOptions = options
  lastOptionsKey = key
  return key
}

/** Whether TC is set; `octets` must hold a header. */
export const isTruncated = (octets: Uint8Array): boolean => (flagsOf(octets) & FLAG.TC) !== 0

/**
 * Whether these octets are the response to the question: id, QR, opcode, one question, its name (without case), type
 * and class. RFC 5452 §9.1.
 *
 * Deviation: a header alone is taken too if it says FORMERR, NOTIMP, SERVFAIL or REFUSED. Servers that could not read
 * the question (or do not know EDNS) send just that, and all it can do is to send us to the next server.
 */
export function isResponseTo(octets: Uint8Array, id: number, question: PeerQuestion): boolean {
  if (octets.length < headerOctets || messageId(octets) !== id) return false
  if (!isResponse(octets) || opcodeOf(octets) !== OPCODE.QUERY) return false
  const questions = readU16(octets, QDCOUNT_AT)
  if (questions === 0 && octets.length === headerOctets) return bareRcodes.has(headerRcode(octets))
  if (questions !== 1) return false
  const plainEnd = endOfName(octets, question.name)
  if (plainEnd > 0) return isTypeAt(octets, plainEnd, question.type)
  try {
    const { name, end } = readName(octets, headerOctets)
    return name === question.name && isTypeAt(octets, end, question.type)
  } catch (error) {
    if (error instanceof WireError) return false
    throw error
  }
}

const isTypeAt = (octets: Uint8Array, at: number, type: number): boolean =>
  octets.length >= at + 4 && readU16(octets, at) === type && readU16(octets, at + 2) === CLASS.IN

/** Where the name behind the header ends, if it is this one in whatever case, and written as it is; else 0. */
function endOfName(octets: Uint8Array, name: DomainName): number {
  const end = headerOctets + name.length
  if (octets.length < end) return 0
  for (let at = 0; at < name.length; at++) {
    if (lowerCaseOf[octets[headerOctets + at]!] !== name.charCodeAt(at)) return 0
  }
  return end
}

const bareRcodes: ReadonlySet<number> = new Set([RCODE.FORMERR, RCODE.NOTIMP, RCODE.SERVFAIL, RCODE.REFUSED])
