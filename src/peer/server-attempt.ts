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
import type { Exchange } from './exchange.ts'
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
  #exchange: Exchange | null = null
  #exchangeStartedAtMs: number
  #transport: Transport
  #withEdns: boolean
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

  /** Runs to the end; pending for ever once cancelled. */
  async run(): Promise<AttemptEnd> {
    this.server.inFlight++
    let triedPlain = false
    for (;;) {
      this.#exchangeStartedAtMs = this.#parts.clock.nowMs()
      this.lastSentAtMs = this.#exchangeStartedAtMs
      this.#exchange =
        this.#transport === 'udp'
          ? this.#parts.portsOf(this.server).exchange(this.#query, this.#withEdns)
          : this.#parts.poolOf(this.server).exchange(this.#query, this.#withEdns)
      const end = await this.#exchange.done
      if (this.#isOver) return new Promise(() => {})
      if (end.kind === 'failed') return this.#fail(end.outcome, null, end.detail)
      if (isTruncated(end.octets)) {
        if (this.#transport === 'tcp' || this.#parts.transport === 'udp') {
          return this.#fail('nonsense', null, `a truncated answer over ${this.#transport.toUpperCase()}`)
        }
        this.#parts.stats.truncated++
        this.#goOn('truncated', headerRcode(end.octets))
        this.#transport = 'tcp'
        continue
      }
      const message = decode(end.octets)
      if (message === null) return this.#fail('nonsense', null, 'an answer that does not decode')
      const { rcode } = message
      const dislikesEdns = rcode === RCODE.FORMERR || rcode === RCODE.NOTIMP
      if (dislikesEdns && this.#withEdns) {
        this.#goOn('rcode', rcode)
        this.#withEdns = false
        triedPlain = true
        continue
      }
      if (triedPlain && !dislikesEdns) {
        this.server.plainUntilMs = this.#parts.clock.nowMs() + plainDnsMemoryMs
        this.#parts.stats.withoutEdns++
      }
      if (rcode !== RCODE.NOERROR && rcode !== RCODE.NXDOMAIN) return this.#fail('rcode', rcode, rcodeToText(rcode))
      const { question } = this.#query
      const sections = cleanReply(message, question, question.zone ?? this.#parts.zone)
      if (sections === null)
        return this.#fail('nonsense', rcode, 'an answer whose records do not belong to the question')
      const tookMs = this.#note('answer', rcode)
      this.#finish()
      return { kind: 'answer', sections, message, transport: this.#transport, tookMs }
    }
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

  #goOn(outcome: AttemptOutcome, rcode: number): void {
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
