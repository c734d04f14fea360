/** What goes into a Peer and what comes out of it. */
import type { EdnsOption } from '../wire/edns.ts'
import type { DomainName } from '../wire/name.ts'
import type { Sections } from '../wire/rr.ts'

/** A server as configured: an IP address (IPv6 without brackets, zone id allowed) or a host name. */
export type ServerAddress = Readonly<{ host: string; port: number }>

export type Transport = 'udp' | 'tcp'

export type PeerOptions = Readonly<{
  id: string
  servers: readonly ServerAddress[]
  /** RD of what is asked. */
  recursion: boolean
  /** `auto`: UDP, and TCP where an answer is truncated. */
  transport: 'auto' | Transport
  /** Addresses of other families are left out. */
  families: readonly (4 | 6)[]
  /** Questions in flight; above it `failed`/`overload` at once. */
  maxInFlight: number
  /** What the target calls its zone; the root for upstreams. Records outside of it are dropped. */
  zone: DomainName
}>

export type PeerQuestion = Readonly<{
  name: DomainName
  type: number
  dnssecOk: boolean
  checkingDisabled: boolean
  /** Ours for this hop; equal questions with other options are other questions. */
  options: readonly EdnsOption[]
  /** What the target calls its zone, where it is not the peer's: records outside of it are dropped. */
  zone?: DomainName
  /** That zone may begin above the name given as `zone`: then a SOA from above it proves a denial too. */
  soaMayBeAbove?: boolean
}>

/**
 * How one exchange with one server ended.
 *
 * `answer` NOERROR or NXDOMAIN; `timeout` silence; `network` refused, reset, unreachable or closed; `rcode` any other
 * RCODE; `nonsense` octets or records that do not answer the question; `truncated` TC over UDP, asked again over TCP;
 * `overload` no room on the connections to that server; `abandoned` another server was quicker.
 */
export type AttemptOutcome =
  'answer' | 'timeout' | 'network' | 'rcode' | 'nonsense' | 'truncated' | 'overload' | 'abandoned'

export type Attempt = Readonly<{
  /** `host:port` of an address, IPv6 in brackets. */
  server: string
  transport: Transport
  outcome: AttemptOutcome
  tookMs: number
  rcode: number | null
}>

export type FailureReason = 'timeout' | 'network' | 'rcode' | 'nonsense' | 'overload' | 'no-server'

export type PeerReply =
  | Readonly<{
      kind: 'answer'
      sections: Sections
      /** Whether the authority section proves a denial: a SOA at or above the name (RFC 2308 §2). */
      hasSoa: boolean
      authoritative: boolean
      /** EDNS options of the answer, for this hop. */
      options: readonly EdnsOption[]
      server: string
      transport: Transport
      tookMs: number
      attempts: readonly Attempt[]
    }>
  | Readonly<{
      kind: 'failed'
      reason: FailureReason
      /** The RCODE that a server gave, where `reason` is `rcode`. */
      rcode: number | null
      detail: string
      attempts: readonly Attempt[]
      tookMs: number
    }>

/** Plain counters of one peer, read by metrics. */
export type PeerStats = {
  asked: number
  /** Questions that joined an equal one in flight. */
  joined: number
  answered: number
  failed: number
  overloaded: number
  udpExchanges: number
  /** Questions asked once more because the answer took longer than usual. */
  hedged: number
  /** Datagrams sent once more for want of an answer. */
  udpResent: number
  tcpExchanges: number
  tcpConnections: number
  /** Queries sent once more because a connection that had been in use ended. */
  tcpResent: number
  truncated: number
  timeouts: number
  networkErrors: number
  rcodes: number
  nonsense: number
  /** Datagrams and messages that belonged to no question: wrong id, question or sender. */
  strays: number
  /** Servers found not to understand EDNS. */
  withoutEdns: number
}

export const newPeerStats = (): PeerStats => ({
  asked: 0,
  joined: 0,
  answered: 0,
  failed: 0,
  overloaded: 0,
  udpExchanges: 0,
  hedged: 0,
  udpResent: 0,
  tcpExchanges: 0,
  tcpConnections: 0,
  tcpResent: 0,
  truncated: 0,
  timeouts: 0,
  networkErrors: 0,
  rcodes: 0,
  nonsense: 0,
  strays: 0,
  withoutEdns: 0
})
