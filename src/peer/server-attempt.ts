/**
 * Asks one server one question, with all that this may take: UDP, once more without EDNS, TCP after a truncated
 * answer. Knows no deadline and no other servers; flight.ts does.
 */
import { WireError } from '../base/errors.ts'
import type { Clock } from '../base/clock.ts'
import { plainDnsMemoryMs } from '../base/limits.ts'
import { headerRcode } from '../wire/header.ts'
import { RCODE, rcodeToText } from '../wire/iana.ts'
import { decodeMessage, type Message } from '../wire/message.ts'
import type { DomainName } from '../wire/name.ts'
import type { Sections } from '../wire/rr.ts'
import { cleanReply } from './clean-reply.ts'
import type { HedgeBudget } from './latency.ts'
import type { Exchange, ExchangeEnd } from './exchange.ts'
import { isTruncated, type PeerQuery } from './peer-query.ts'
import type { Attempt, AttemptOutcome, PeerOptions, PeerStats, Transport } from './peer-types.ts'
import type { Server } from './server-table.ts'
import type { TcpPool } from './tcp-pool.ts'
import type { UdpPorts } from './udp-ports.ts'

/** What the attempts of one peer share. */
export type AttemptParts = Readonly<{
  clock: Clock
  stats: PeerStats
  transport: PeerOptions['transport']
  zone: DomainName
  /** For questions that take longer than usual. */
  hedges: Pick<HedgeBudget, 'trySpend'>
  portsOf: (server: Server) => UdpPorts
  poolOf: (server: Server) => TcpPool
}>

export type AttemptEnd =
  | Readonly<{ kind: 'answer'; sections: Sections; message: Message; transport: Transport; tookMs: number }>
  | Readonly<{
      kind: 'failed'
      outcome: 'network' | 'rcode' | 'nonsense' | 'overload'
      rcode: number | null
      detail: string
    }>

export class ServerAttempt {
  readonly server: Server
  readonly startedAtMs: number
  /** The exchanges so far; the one that is under way is added when it ends. */
  readonly exchanges: Attempt[] = []
  /** When the exchange under way was begun, or its datagram last sent again. */
  lastSentAtMs: number
  readonly #parts: AttemptParts
  readonly #query: PeerQuery
  readonly #onProgress: () => void
  #onEnd: (end: AttemptEnd) => void = () => {}
  #exchange: Exchange | null = null
  #exchangeStartedAtMs: number
  #transport: Transport
  #withEdns: boolean
  #triedPlain = false
  #isOver = false
  #isSlow = false

  /** @param onProgress is called when the server has answered, but another exchange with it is needed. */
  constructor(server: Server, query: PeerQuery, parts: AttemptParts, onProgress: () => void) {
    this.server = server
    this.#query = query
    this.#parts = parts
    this.#onProgress = onProgress
    this.startedAtMs = parts.clock.nowMs()
    this.#exchangeStartedAtMs = this.startedAtMs
    this.lastSentAtMs = this.startedAtMs
    this.#transport = parts.transport === 'tcp' ? 'tcp' : 'udp'
    this.#withEdns = server.plainUntilMs <= this.startedAtMs
  }

  get isSlow(): boolean {
    return this.#isSlow
  }

  /** Asks; `onEnd` hears once what came of it, later than this call, and nothing once it is cancelled. */
  run(onEnd: (end: AttemptEnd) => void): void {
    this.#onEnd = onEnd
    this.server.inFlight++
    this.#ask()
  }

  #ask(): void {
    this.#exchangeStartedAtMs = this.#parts.clock.nowMs()
    this.lastSentAtMs = this.#exchangeStartedAtMs
    const hear = (end: ExchangeEnd): void => this.#hear(end)
    this.#exchange =
      this.#transport === 'udp'
        ? this.#parts.portsOf(this.server).exchange(this.#query, this.#withEdns, hear)
        : this.#parts.poolOf(this.server).exchange(this.#query, this.#withEdns, hear)
  }

  #hear(exchangeEnd: ExchangeEnd): void {
    if (this.#isOver) return
    let end: AttemptEnd | null
    try {
      end = this.#judge(exchangeEnd)
    } catch (error) {
      // A bug: the question fails with what it says, and everything else goes on.
      this.cancel()
      end = { kind: 'failed', outcome: 'nonsense', rcode: null, detail: String(error) }
    }
    if (end !== null) this.#onEnd(end)
  }

  /** What an exchange's end means for the attempt; null: another exchange was begun. */
  #judge(end: ExchangeEnd): AttemptEnd | null {
    if (end.kind === 'failed') return this.#fail(end.outcome, null, end.detail)
    const mayUseTcp = this.#transport === 'udp' && this.#parts.transport !== 'udp'
    if (isTruncated(end.octets)) {
      if (!mayUseTcp) {
        return this.#fail('nonsense', null, `a truncated answer over ${this.#transport.toUpperCase()}`)
      }
      this.#parts.stats.truncated++
      return this.#askByTcp('truncated', headerRcode(end.octets))
    }
    const message = decode(end.octets)
    if (message === null) {
      if (!mayUseTcp) return this.#fail('nonsense', null, 'an answer that does not decode')
      // It was damaged on its way, or somebody guessed well: over TCP neither is likely.
      this.#parts.stats.nonsense++
      return this.#askByTcp('nonsense', null)
    }
    const { rcode } = message
    const dislikesEdns = rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP
    if (dislikesEdns && this.#withEdns) {
      this.#goOn('rcode', rcode)
      this.#withEdns = false
      this.#triedPlain = true
      this.#ask()
      return null
    }
    if (this.#triedPlain && !dislikesEdns) {
      this.server.plainUntilMs = this.#parts.clock.nowMs() + plainDnsMemoryMs
      this.#parts.stats.withoutEdns++
    }
    if (rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN) return this.#fail('rcode', rcode, rcodeToText(rcode))
    const { question } = this.#query
    const sections = cleanReply(message, question, question.zone ?? this.#parts.zone)
    if (sections === null) return this.#fail('nonsense', rcode, 'an answer whose records do not belong to the question')
    const tookMs = this.#note('answer', rcode)
    this.#finish()
    return { kind: 'answer', sections, message, transport: this.#transport, tookMs }
  }

  #askByTcp(why: 'truncated' | 'nonsense', rcode: number | null): null {
    this.#goOn(why, rcode)
    this.#transport = 'tcp'
    this.#ask()
    return null
  }

  /** Sends again what is not answered; false where only another attempt can do that. */
  resend(): boolean {
    if (this.#exchange?.resend() !== true) return false
    this.lastSentAtMs = this.#parts.clock.nowMs()
    return true
  }

  /** The server is silent for too long: others are asked now, but its answer is still welcome. */
  markSlow(): void {
    this.#isSlow = true
    this.#exchange?.markSlow()
  }

  /** Stops waiting and notes why. */
  cancel(): void {
    if (this.#isOver) return
    this.#exchange?.cancel()
    this.#note(this.#isSlow ? 'timeout' : 'abandoned', null)
    this.#finish()
  }

  #goOn(outcome: AttemptOutcome, rcode: number | null): void {
    this.#note(outcome, rcode)
    this.#isSlow = false
    this.#onProgress()
  }

  #fail(outcome: 'network' | 'rcode' | 'nonsense' | 'overload', rcode: number | null, detail: string): AttemptEnd {
    this.#note(outcome, rcode)
    this.#finish()
    return { kind: 'failed', outcome, rcode, detail }
  }

  #finish(): void {
    this.#isOver = true
    this.server.inFlight--
  }

  /** Notes how the exchange under way ended; gives the milliseconds that it took. */
  #note(outcome: AttemptOutcome, rcode: number | null): number {
    const tookMs = this.#parts.clock.nowMs() - this.#exchangeStartedAtMs
    this.exchanges.push({ server: this.server.text, transport: this.#transport, outcome, tookMs, rcode })
    return tookMs
  }
}

function decode(octets: Uint8Array): Message | null {
  try {
    return decodeMessage(octets)
  } catch (error) {
    if (error instanceof WireError) return null
    throw error
  }
}
