/** Responses for tests, and what they are written as. */
import { OPCODE } from '../../src/wire/iana.ts'
import { decodeMessage, type Message } from '../../src/wire/message.ts'
import { encodeResponse, type Response } from '../../src/wire/response.ts'
import type { Sections } from '../../src/wire/rr.ts'
import { sections } from '../support/records.ts'
import { hex } from './message-text.ts'

export const noEdns = { version: 0, udpPayloadOctets: 1232, dnssecOk: false, options: [] }
/** `Api.backend.svc. IN A`, as a client wrote it. */
export const asked = hex('03 417069 07 6261636b656e64 03 737663 00 0001 0001')
export const name = 'api.backend.svc'

/** A small generator with a seed (mulberry32), so that statistics are the same in each run. */
export function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

/** A response without records to the question `asked`, with what is given put in. */
export const response = (parts: Partial<Sections>, rest: Partial<Response> = {}): Response => ({
  id: 0x1234,
  opcode: OPCODE.QUERY,
  aa: true,
  rd: true,
  ra: false,
  cd: false,
  question: asked,
  sections: sections(parts),
  edns: noEdns,
  ageSeconds: 0,
  maxTtlSeconds: 3600,
  ...rest
})

const out = new Uint8Array(70_000)

/** What is written; throws where anything is written behind the limit. */
export function encode(given: Response, limitOctets = 1232, random = randomFrom(1)): Uint8Array {
  out.fill(0xee, limitOctets, limitOctets + 300)
  const size = encodeResponse(out, given, limitOctets, random)
  if (out.subarray(limitOctets, limitOctets + 300).some((octet) => octet !== 0xee)) {
    throw new Error('written behind the limit')
  }
  return out.slice(0, size)
}

export const decode = (given: Response, limitOctets?: number, random?: () => number): Message =>
  decodeMessage(encode(given, limitOctets, random))

/** `count` different IPv4 addresses. */
export const addresses = (count: number): string[] =>
  Array.from({ length: count }, (_, i) => `10.0.${i >> 8}.${i & 0xff}`)
