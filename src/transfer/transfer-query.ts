/** The questions of a secondary: SOA, AXFR, IXFR. Without id, which whoever sends them puts in. */
import { maxUdpPayloadOctets } from '../base/limits.ts'
import type { EdnsOption } from '../wire/edns.ts'
import { CLASS, OPCODE, RCODE, RRTYPE } from '../wire/iana.ts'
import { encodeMessage, type Message } from '../wire/message.ts'
import type { DomainName } from '../wire/name.ts'
import type { ResourceRecord, RRset } from '../wire/rr.ts'

export type QueryOptions = {
  /** EDNS options of each request. */
  readonly options: readonly EdnsOption[]
  /** The server does not understand EDNS. */
  isPlain: boolean
}

export const soaQuery = (apex: DomainName, options: QueryOptions): Uint8Array => encode(apex, RRTYPE.SOA, [], options)

/** IXFR from the version that `soa` is of (RFC 1995 §3), or AXFR where it is null. */
export function transferQuery(apex: DomainName, soa: RRset | null, options: QueryOptions): Uint8Array {
  if (soa === null) return encode(apex, RRTYPE.AXFR, [], options)
  const { owner, type, ttlSeconds } = soa
  return encode(apex, RRTYPE.IXFR, [{ owner, type, class: CLASS.IN, ttlSeconds, rdata: soa.rdata[0]! }], options)
}

function encode(
  name: DomainName,
  type: number,
  authority: readonly ResourceRecord[],
  { options, isPlain }: QueryOptions
): Uint8Array {
  const message: Message = {
    id: 0,
    qr: false,
    opcode: OPCODE.QUERY,
    aa: false,
    tc: false,
    rd: false,
    ra: false,
    ad: false,
    cd: false,
    rcode: RCODE.NOERROR,
    questions: [{ name, type, class: CLASS.IN }],
    answer: [],
    authority,
    additional: [],
    edns: isPlain ? null : { version: 0, udpPayloadOctets: maxUdpPayloadOctets, dnssecOk: false, options }
  }
  return encodeMessage(message)
}
