/**
 * One TCP connection to a server, with many questions on it at once and answers in any order. RFC 7766.
 */
import { connect, type Socket } from 'node:net'
import { WireError } from '../base/errors.ts'
import { strayTcpMessages, tcpQueriesPerPeerConnection } from '../base/limits.ts'
import { headerOctets, messageId } from '../wire/header.ts'
import { copyOf } from '../wire/octets.ts'
import { frameMessage, TcpFrameReader } from '../wire/tcp-frame.ts'
import { errorText } from './exchange.ts'
import { isResponseTo } from './peer-query.ts'
import type { PeerQuery } from './peer-query.ts'
import { randomId } from './random-id.ts'

/**
 * What became of one question on a connection that ended: `isReused` if the connection had carried another question
 * before it, `answeredOthers` if it answered one after it was sent (servers that take one question for each connection
 * do).
 */
export type CarriedEnd =
  | Readonly<{ kind: 'response'; octets: Uint8Array }>
  | Readonly<{ kind: 'nonsense'; detail: string }>
  | Readonly<{ kind: 'ended'; isReused: boolean; answeredOthers: boolean; detail: string }>

type Waiting = Readonly<{
  query: PeerQuery
  isReused: boolean
  sentAfterMessages: number
  sentAfterAnswers: number
  settle: (end: CarriedEnd) => void
}>

/** What a connection tells its pool. */
export type ConnectionOwner = Readonly<{
  /** No question waits on it any more. */
  onIdle(connection: TcpConnection): void
  /** It takes no more questions; may be called again. */
  onDrop(connection: TcpConnection): void
  /** Its socket is closed; called once. */
  onClose(connection: TcpConnection): void
  /** It brought a message that nobody waits for. */
  onStray(): void
}>

/** Of a message that is too short for a header. */
const noId = -1

export class TcpConnection {
  readonly #socket: Socket
  readonly #owner: ConnectionOwner
  readonly #frames = new TcpFrameReader()
  readonly #waiting = new Map<number, Waiting>()
  /** Ids of questions that were given up: their answers may still come, so the ids are not used again. */
  readonly #abandoned = new Set<number>()
  #carried = 0
  #messages = 0
  #answers = 0
  #strays = 0
  #isSuspect = false
  #whyEnded = 'closed'

  constructor(address: string, port: number, owner: ConnectionOwner) {
    this.#owner = owner
    this.#socket = connect({ host: address, port, noDelay: true })
    this.#socket.on('data', (chunk: Uint8Array) => this.#read(chunk))
    this.#socket.on('error', (error) => (this.#whyEnded = errorText(error)))
    this.#socket.on('end', () => this.destroy('closed by the server'))
    this.#socket.on('close', () => this.#end())
  }

  get waiting(): number {
    return this.#waiting.size
  }

  /** Whether it may be given another question. */
  get isUsable(): boolean {
    return !this.#socket.destroyed && !this.#isSuspect && this.#outstanding < tcpQueriesPerPeerConnection
  }

  /** Whether it has brought nothing yet, so that it cannot be one that went stale while it was idle. */
  get isFresh(): boolean {
    return this.#messages === 0
  }

  /** Whether it owes an answer for too long; its questions may still be answered, but it gets no new ones. */
  get isSuspect(): boolean {
    return this.#isSuspect
  }

  /** Answers that may still come. */
  get #outstanding(): number {
    return this.#waiting.size + this.#abandoned.size
  }

  /** Sends a question (at once, or when the connection is made); the id returned is for markSlow and cancel. */
  send(query: PeerQuery, withEdns: boolean, settle: (end: CarriedEnd) => void): number {
    let id = randomId()
    while (this.#waiting.has(id) || this.#abandoned.has(id)) id = randomId()
    this.#waiting.set(id, {
      query,
      isReused: this.#carried > 0,
      sentAfterMessages: this.#messages,
      sentAfterAnswers: this.#answers,
      settle
    })
    this.#carried++
    this.#socket.write(frameMessage(query.octets(id, withEdns)))
    return id
  }

  /**
   * Silence for this question lasts too long: if the connection has brought nothing since it was sent, it is suspect.
   */
  markSlow(id: number): void {
    const waiting = this.#waiting.get(id)
    if (waiting !== undefined && waiting.sentAfterMessages === this.#messages) this.#isSuspect = true
  }

  /** Gives a question up. A suspect connection is dropped with its last one. */
  cancel(id: number): void {
    if (!this.#waiting.delete(id)) return
    this.#abandoned.add(id)
    if (this.#waiting.size > 0) return
    if (this.#isSuspect || this.#outstanding >= tcpQueriesPerPeerConnection) this.destroy('gave no answer')
    else this.#owner.onIdle(this)
  }

  /** Closes it and leaves its questions in silence, since they have waited for too long already. */
  drop(): void {
    this.#waiting.clear()
    this.destroy('dropped')
  }

  /** Closes it; its questions hear that it ended. */
  destroy(why: string): void {
    if (this.#socket.destroyed) return
    this.#whyEnded = why
    this.#socket.destroy()
    this.#owner.onDrop(this)
  }

  #read(chunk: Uint8Array): void {
    try {
      this.#frames.push(chunk)
      for (let message = this.#frames.next(); message !== null; message = this.#frames.next()) {
        if (this.#socket.destroyed) return
        this.#take(message)
      }
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      this.#fail(error.message)
    }
  }

  #take(message: Uint8Array): void {
    this.#messages++
    this.#isSuspect = false
    const id = message.length < headerOctets ? noId : messageId(message)
    const waiting = this.#waiting.get(id)
    if (waiting === undefined) {
      if (this.#abandoned.delete(id)) return
      this.#owner.onStray()
      if (id === noId || ++this.#strays >= strayTcpMessages) this.#fail('messages that nobody asked for')
      return
    }
    this.#waiting.delete(id)
    if (isResponseTo(message, id, waiting.query.question)) {
      this.#answers++
      waiting.settle({ kind: 'response', octets: copyOf(message, 0, message.length) })
    } else {
      // Over TCP nobody else can have sent it, so there is nothing better to wait for.
      this.#owner.onStray()
      waiting.settle({ kind: 'nonsense', detail: 'an answer to another question' })
    }
    if (this.#waiting.size === 0 && !this.#socket.destroyed) this.#owner.onIdle(this)
  }

  /** The server does not speak DNS here: who waits hears so, and the connection goes. */
  #fail(detail: string): void {
    const all = [...this.#waiting.values()]
    this.#waiting.clear()
    this.destroy(detail)
    for (const { settle } of all) settle({ kind: 'nonsense', detail })
  }

  #end(): void {
    const all = [...this.#waiting.values()]
    this.#waiting.clear()
    this.#owner.onDrop(this)
    for (const { settle, isReused, sentAfterAnswers } of all) {
      const answeredOthers = this.#answers > sentAfterAnswers
      settle({ kind: 'ended', isReused, answeredOthers, detail: this.#whyEnded })
    }
    this.#owner.onClose(this)
  }
}
