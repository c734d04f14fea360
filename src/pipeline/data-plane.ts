/**
 * The responder behind the listening sockets: octets in, octets out.
 *
 * `answer` is synchronous and serves what memory holds; `resolve` serves what has to wait. Each has exactly one catch:
 * a bug costs its own query a SERVFAIL, is counted and logged, and never reaches another query.
 */
import { maxMessageOctets } from '../base/limits.ts'
import { WireError } from '../base/errors.ts'
import { DROP, MISS, STREAM, type Client, type MessageStream, type Responder } from '../server/responder.ts'
import { EDE, RCODE } from '../wire/iana.ts'
import { nameToText } from '../wire/name.ts'
import { typeToText, rcodeToText } from '../wire/iana.ts'
import { copyOf } from '../wire/octets.ts'
import { parseQuery, type ParsedQuery } from '../wire/query.ts'
import { encodeBareError } from '../wire/response.ts'
import { accept, headerError, isDropped } from './accept.ts'
import { errorAnswer, type Answer } from './answer.ts'
import { finish } from './finish.ts'
import type { Parts } from './parts.ts'
import { PipelineStats } from './pipeline-stats.ts'
import { queryFromMessage, type Query } from './query.ts'
import { respond, respondFromMemory } from './respond.ts'
import { ReadyAnswers } from './ready/ready-answers.ts'
import type { SharedReady } from './ready/shared-ready.ts'
import { Unenforced } from './unenforced.ts'
import { answerNotify, isNotify } from './notify-question.ts'
import { answerZoneQuestion, isStream, streamZone } from './zone-question.ts'

/** Bugs that are logged in one second; more are only counted. */
const loggedBugsPerSecond = 10

/** Where answers that had to wait are written: each is copied out before anybody else writes. */
const scratch = new Uint8Array(maxMessageOctets)

type Missed = Readonly<{ octets: Uint8Array; size: number; message: ParsedQuery; query: Query }>

const isSameMemory = ({ octets: { buffer, byteOffset }, size }: Missed, octets: Uint8Array): boolean =>
  octets.buffer === buffer && octets.byteOffset === byteOffset && octets.length === size

export class DataPlane implements Responder {
  readonly stats = new PipelineStats()
  readonly unenforced = new Unenforced()
  /** Null: every query goes the whole way. */
  readonly ready: ReadyAnswers | null
  #parts: Parts
  #queriesUntilLogged = 0
  /** Answers of workers that the countdown to the next line has in it. */
  #notedOfWorkers = 0
  #bugsLogged = 0
  #bugWindowMs = 0
  /** What `answer` has just left to `resolve`, which is called next with the same octets: they need no second reading. */
  #missed: Missed | null = null

  /**
   * @param options `hasReadyAnswers` false: every query goes the whole way. `shared`: the memory that workers answer from,
   * where there are any.
   */
  constructor(parts: Parts, options: Readonly<{ hasReadyAnswers?: boolean; shared?: SharedReady | null }> = {}) {
    this.#parts = parts
    this.ready = options.hasReadyAnswers === false ? null : new ReadyAnswers(parts, this.stats, options.shared ?? null)
  }

  get parts(): Parts {
    return this.#parts
  }

  /** Exchanges everything at once; queries in flight finish with what they began with. */
  use(parts: Parts): void {
    this.#parts.staleRefresh.clear()
    this.#parts = parts
    this.ready?.use(parts)
  }

  /** The standings have changed: what workers give must not rest on the old ones. */
  standingsChanged(): void {
    this.ready?.shared?.tell()
  }

  answer(octets: Uint8Array, size: number, client: Client, out: Uint8Array): number {
    const { stats } = this
    this.#missed = null
    if (client.transport === 'udp') stats.queriesUdp++
    else stats.queriesTcp++
    if (isDropped(octets, size)) {
      const isExpected = client.transport === 'tcp' && this.#parts.primary.takeResponse(client, octets, size)
      if (!isExpected) stats.dropped++
      return DROP
    }
    try {
      const ready = this.#readyOrNull()
      if (ready !== null) {
        const written = ready.answer(octets, size, client, out)
        if (written > 0) {
          if (this.#parts.logQueriesEvery !== null) this.#queriesUntilLogged--
          return written
        }
      }
      const rcode = headerError(octets, this.#parts.notified !== null)
      if (rcode !== null) return this.#bareError(out, octets, size, rcode)
      const message = this.#parse(octets, size)
      if (message === null) return this.#bareError(out, octets, size, RCODE.FORMERR)
      const query = this.#query(octets, message, client)
      if (isNotify(octets)) return this.#finish(out, octets, query, message, answerNotify(this.#parts, query))
      const refusal = accept(query, this.#parts)
      const answer = refusal ?? answerZoneQuestion(this.#parts, query) ?? respondFromMemory(this.#parts, query)
      if (answer === null) {
        // Options and signatures may be views of the octets, which are the listener's.
        const isPlain = message.tsig === null && (message.edns === null || message.edns.options.length === 0)
        if (isPlain) this.#missed = { octets, size, message, query }
        return MISS
      }
      if (isStream(answer)) return STREAM
      if (refusal === null) this.unenforced.observe(this.#parts, query, answer)
      this.#parts.freshness.gave(query, answer, query.receivedAtMs)
      const written = this.#finish(out, octets, query, message, answer)
      if (ready !== null && refusal === null) {
        ready.offer(octets, query, message, answer, this.#isRecursionAvailable(client))
      }
      return written
    } catch (error) {
      return this.#bug(error, out, octets, size)
    }
  }

  async stream(octets: Uint8Array, client: Client, stream: MessageStream): Promise<void> {
    const parts = this.#parts
    const copy = copyOf(octets, 0, octets.length)
    const send = async (size: number): Promise<unknown> => stream.send(scratch.slice(0, size))
    try {
      const message = parseQuery(copy, copy.length)
      const query = this.#query(copy, message, client)
      let answer: Answer | null
      const found = answerZoneQuestion(parts, query)
      if (found !== null && isStream(found)) {
        answer = await streamZone(parts, { query, message, octets: copy }, found.streamOf, stream)
      } else {
        // Another configuration came in between.
        answer = found ?? errorAnswer(RCODE.REFUSED)
      }
      if (answer !== null) await send(this.#finish(scratch, copy, query, message, answer))
    } catch (error) {
      await send(this.#bug(error, scratch, copy, copy.length))
    }
  }

  /** Null where somebody wants to see how this very query is answered: the log, or a policy that only counts. */
  #readyOrNull(): ReadyAnswers | null {
    const { withUnenforced, logQueriesEvery } = this.#parts
    if (withUnenforced !== null) return null
    if (logQueriesEvery !== null) this.#noteWorkers()
    return logQueriesEvery === null || this.#queriesUntilLogged > 0 ? this.ready : null
  }

  /** What workers have answered brings the next line of the log nearer, too. */
  #noteWorkers(): void {
    const { ready } = this
    if (ready === null || ready.shared === null) return
    ready.count()
    this.#queriesUntilLogged -= ready.servedByWorkers - this.#notedOfWorkers
    this.#notedOfWorkers = ready.servedByWorkers
  }

  #isRecursionAvailable(client: Client): boolean {
    return this.#parts.forward !== null || this.#parts.policies.hasPolicyFor(client.address)
  }

  async resolve(octets: Uint8Array, client: Client): Promise<Uint8Array | null> {
    const { stats } = this
    const parts = this.#parts
    const copy = copyOf(octets, 0, octets.length)
    const startedAtMs = parts.clock.nowMs()
    const missed = this.#missed
    this.#missed = null
    stats.misses++
    stats.inFlight++
    try {
      const isRead = missed !== null && isSameMemory(missed, octets)
      const message = isRead ? missed.message : parseQuery(copy, copy.length)
      const query = isRead ? { ...missed.query, client } : this.#query(copy, message, client)
      const answer = await respond(parts, query)
      this.unenforced.observe(parts, query, answer)
      parts.freshness.gave(query, answer, parts.clock.nowMs())
      return scratch.slice(0, this.#finish(scratch, copy, query, message, answer))
    } catch (error) {
      return scratch.slice(0, this.#bug(error, scratch, copy, copy.length))
    } finally {
      stats.inFlight--
      stats.missDurationSeconds.observe((parts.clock.nowMs() - startedAtMs) / 1000)
    }
  }

  /** SERVFAIL at once for a query that would have to wait while too many do already. */
  overload(octets: Uint8Array, client: Client): Uint8Array | null {
    this.stats.overloaded++
    this.#missed = null
    const message = this.#parse(octets, octets.length)
    if (message === null) return null
    const query = this.#query(octets, message, client)
    const answer = errorAnswer(RCODE.SERVFAIL, { code: EDE.OTHER, text: 'too many queries in flight' })
    return scratch.slice(0, this.#finish(scratch, octets, query, message, answer))
  }

  #query(octets: Uint8Array, message: ParsedQuery, client: Client): Query {
    const { clock, primary } = this.#parts
    const signature = message.tsig === null ? null : primary.checkSignature(octets, message.tsig)
    return queryFromMessage(message, client, clock.nowMs(), signature)
  }

  #parse(octets: Uint8Array, size: number): ParsedQuery | null {
    try {
      return parseQuery(octets, size)
    } catch (error) {
      if (error instanceof WireError) return null
      throw error
    }
  }

  #finish(out: Uint8Array, octets: Uint8Array, query: Query, message: ParsedQuery, answer: Answer): number {
    const parts = this.#parts
    const recursionAvailable = this.#isRecursionAvailable(query.client)
    const size = finish(out, octets, query, message, answer, { recursionAvailable, random: parts.random })
    this.stats.countAnswer(answer)
    if ((out[2]! & 0x02) !== 0) this.stats.truncated++
    if (parts.logQueriesEvery !== null) this.#logSampled(query, answer)
    return size
  }

  #bareError(out: Uint8Array, octets: Uint8Array, size: number, rcode: number): number {
    this.stats.countRcode(rcode)
    if (rcode === RCODE.FORMERR) this.stats.malformed++
    return encodeBareError(out, octets, size, rcode)
  }

  #bug(error: unknown, out: Uint8Array, octets: Uint8Array, size: number): number {
    this.stats.bugs++
    const { clock, log } = this.#parts
    if (clock.nowMs() - this.#bugWindowMs > 1000) {
      this.#bugWindowMs = clock.nowMs()
      this.#bugsLogged = 0
    }
    if (this.#bugsLogged++ < loggedBugsPerSecond) log.error({ err: error }, 'a query met a bug and got SERVFAIL')
    this.stats.countRcode(RCODE.SERVFAIL)
    return encodeBareError(out, octets, size, RCODE.SERVFAIL)
  }

  #logSampled(query: Query, answer: Answer): void {
    if (this.#queriesUntilLogged-- > 0) return
    this.#queriesUntilLogged += this.#parts.logQueriesEvery!
    this.#parts.log.info(
      {
        qname: nameToText(query.qname),
        qtype: typeToText(query.qtype),
        client: query.client.address,
        transport: query.client.transport,
        rcode: rcodeToText(answer.sections.rcode),
        origin: answer.origin,
        policy: answer.policy
      },
      'query'
    )
  }
}
