/** One question as the pipeline sees it, from the first look at its octets to the last line of its answer. */
import type { ParsedQuery } from '../wire/query.ts'
import { findPeerdnsOption, type PeerdnsOption } from '../wire/peerdns-option.ts'
import type { DomainName } from '../wire/name.ts'
import type { Client } from '../server/responder.ts'
import type { TsigCheck } from '../transfer/tsig-signer.ts'
import type { Trace } from './trace.ts'

export type Query = Readonly<{
  /** The message as parsed; null for questions that this server asks itself (aliases, traces). */
  message: ParsedQuery | null
  qname: DomainName
  qtype: number
  recursionDesired: boolean
  dnssecOk: boolean
  checkingDisabled: boolean
  client: Client
  /** What a peerdns that asks us told about itself; null for everybody else. */
  peerdns: PeerdnsOption | null
  /** What came of looking at its signature; null where it has none. */
  signature: TsigCheck | null
  /** Monotonic milliseconds. */
  receivedAtMs: number
  /** Collects the steps of this query where somebody asked for them. */
  trace: Trace | null
}>

export function queryFromMessage(
  message: ParsedQuery,
  client: Client,
  receivedAtMs: number,
  signature: TsigCheck | null = null
): Query {
  return {
    message,
    qname: message.qname,
    qtype: message.qtype,
    recursionDesired: message.recursionDesired,
    dnssecOk: message.edns?.dnssecOk ?? false,
    checkingDisabled: message.checkingDisabled,
    client,
    peerdns:
      message.edns === null || message.edns.options.length === 0 ? null : findPeerdnsOption(message.edns.options),
    signature,
    receivedAtMs,
    trace: null
  }
}

/** The same client's question for another name or type, as needed for aliases and for a Service's own name. */
export const queryFor = (query: Query, qname: DomainName, qtype: number): Query => ({ ...query, qname, qtype })
