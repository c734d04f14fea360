/** The last step: an answer becomes octets that fit what the client can take. */
import { maxMessageOctets, maxUdpPayloadOctets, plainUdpPayloadOctets } from '../base/limits.ts'
import { bareOptOctets, encodeEde, type Edns, type EdnsOption } from '../wire/edns.ts'
import { encodePeerdnsOption } from '../wire/peerdns-option.ts'
import { RCODE } from '../wire/iana.ts'
import type { ParsedQuery } from '../wire/query.ts'
import { encodeResponse } from '../wire/response.ts'
import type { Answer } from './answer.ts'
import type { Query } from './query.ts'

/** Longest text of one Extended DNS Error in characters: it shares a datagram with the answer. */
const maxEdeTextLength = 160

const noOptions: readonly EdnsOption[] = []
const plainEdns: Edns = { version: 0, udpPayloadOctets: maxUdpPayloadOctets, dnssecOk: false, options: noOptions }
const dnssecEdns: Edns = { ...plainEdns, dnssecOk: true }

/** Octets that the client takes over its transport. RFC 1035 §4.2.1, RFC 6891 §6.2.5. */
export function responseLimitOctets(message: ParsedQuery, transport: 'udp' | 'tcp'): number {
  if (transport === 'tcp') return maxMessageOctets
  if (message.edns === null) return plainUdpPayloadOctets
  return Math.min(Math.max(message.edns.udpPayloadOctets, plainUdpPayloadOctets), maxUdpPayloadOctets)
}

/** EDNS is per hop: the answer's OPT says only what this server has to say, and only to those who asked with OPT. */
function ednsOf(query: Query, message: ParsedQuery, answer: Answer): Edns | null {
  if (message.edns === null) return null
  if (answer.ede.length === 0 && query.peerdns === null) return ednsWith(query.dnssecOk, noOptions)
  const options = answer.ede.map((ede) => encodeEde(ede.code, ede.text.slice(0, maxEdeTextLength)))
  if (query.peerdns !== null) {
    const ageMs = answer.history === null ? dataAgeMs(answer) : null
    const state = answer.isEmpty ? 'empty' : null
    if (ageMs !== null || state !== null) options.push(encodePeerdnsOption({ state, ageMs }))
  }
  if (answer.history !== null) options.push(answer.history)
  return ednsWith(query.dnssecOk, options)
}

/** How long ago the answer's data were proven right, for peers that probe us; null where that is not ours to say. */
const dataAgeMs = ({ origin }: Answer): number | null =>
  origin.from === 'zone' || origin.from === 'mirror' ? origin.ageMs : null

/** The OPT of a response. */
export function ednsWith(dnssecOk: boolean, options: readonly EdnsOption[]): Edns {
  const plain = dnssecOk ? dnssecEdns : plainEdns
  return options.length === 0 ? plain : { ...plain, options }
}

export type FinishOptions = Readonly<{ recursionAvailable: boolean; random: () => number }>

/** Writes the response to `query` (whose octets are `octets`) into `out` and returns its size in octets. */
export function finish(
  out: Uint8Array,
  octets: Uint8Array,
  query: Query,
  message: ParsedQuery,
  answer: Answer,
  options: FinishOptions
): number {
  const isRefusal = answer.sections.rcode === RCODE.REFUSED
  const wholeLimitOctets = Math.min(responseLimitOctets(message, query.client.transport), out.length)
  const roomOctets = query.signature?.roomOctets ?? 0
  // Names of keys and algorithms may be longer than all that a client takes over UDP; such a one gets no TSIG.
  const signature = message.questionEnd + bareOptOctets + roomOctets <= wholeLimitOctets ? query.signature : null
  const limitOctets = signature === null ? wholeLimitOctets : wholeLimitOctets - roomOctets
  const size = encodeResponse(
    out,
    {
      id: message.id,
      opcode: message.opcode,
      aa: answer.authoritative,
      rd: message.recursionDesired,
      ra: options.recursionAvailable && !isRefusal,
      cd: message.checkingDisabled,
      question: octets.subarray(12, message.questionEnd),
      sections: answer.sections,
      edns: ednsOf(query, message, answer),
      ageSeconds: answer.ageSeconds,
      maxTtlSeconds: answer.maxTtlSeconds
    },
    limitOctets,
    options.random
  )
  return signature === null ? size : signature.sign(out, size)
}
