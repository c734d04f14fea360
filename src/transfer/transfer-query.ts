/**
 * The questions of a secondary: SOA, AXFR, IXFR, without id, which whoever sends them puts in; and what a denial tells.
 */
import { maxUdpPayloadOctets } from '../base/limits.ts'
import { CLASS, OPCODE, RCODE, RRTYPE } from '../wire/iana.ts'
import { encodeMessage, type Message } from '../wire/message.ts'
import { isAtOrBelow, type DomainName } from '../wire/name.ts'
import { encodePeerdnsOption, findPeerdnsOption, type PeerdnsOption } from '../wire/peerdns-option.ts'
import type { ResourceRecord, RRset } from '../wire/rr.ts'
import { isEpoch } from './private-records.ts'

export type QueryOptions = Readonly<{
  /** Names this process in our EDNS option; hex. */
  instanceId: string
  /** The history that our copy belongs to; null: there is none. */
  epoch: string | null
  /** The server does not understand EDNS. */
  isPlain: boolean
  /** Whose zone is meant, where the server passes on copies; null: its own. */
  copyOf: string | null
}>

/** What a peerdns tells of itself in a message; null: it is none. */
export const peerdnsOf = ({ edns }: Message): PeerdnsOption | null =>
  edns === null ? null : findPeerdnsOption(edns.options)

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
  { instanceId, epoch, isPlain, copyOf }: QueryOptions
): Uint8Array {
  // Those that are made up here, for servers that have none, have a space in them.
  const options = [
    encodePeerdnsOption({
      instances: [instanceId],
      subscribe: true,
      copyOf,
      epoch: epoch !== null && isEpoch(epoch) ? epoch : null
    })
  ]
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

/** The zone that the asked name lies in, as the SOA of a denial tells it. */
export function zoneAbove({ authority }: Message, apex: DomainName): DomainName | null {
  const soa = authority.find(({ owner, type }: ResourceRecord) => type === RRTYPE.SOA && isAtOrBelow(apex, owner))
  return soa === undefined || soa.owner === apex ? null : soa.owner
}
