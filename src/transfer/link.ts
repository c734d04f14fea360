/**
 * One TCP connection, held open, to one of the servers that give us zones: many requests on it at once, each answered
 * by one message or many, and NOTIFY messages that come back over it.
 *
 * A connection is pinned to its server: whoever is behind it has one history of serials. When it ends, everything on it
 * ends, and the next server is tried.
 */
import type { Cancel, Clock } from '../base/clock.ts'
import { WireError } from '../base/errors.ts'
import {
  mirrorQueryTimeoutMs,
  mirrorReconnectMaxMs,
  mirrorReconnectMinMs,
  strayTransferMessages,
  transferRequestsInFlight
} from '../base/transfer-limits.ts'
import { OPCODE } from '../wire/iana.ts'
import { decodeMessage, type Message } from '../wire/message.ts'
import { headerOctets, messageId } from '../wire/header.ts'
import { writeU16 } from '../wire/octets.ts'
import { TransferFault } from './transfer-reader.ts'

/** A stream of messages to one server. */
export type Channel = Readonly<{
  send(message: Uint8Array): void
  /** Ends it; `onEnd` is not called any more. */
  close(): void
}>

export type ChannelHandlers = Readonly<{
  /** The connection is made. */
  onOpen(): void
  /** A whole message, valid during the call. */
  onMessage(octets: Uint8Array): void
  /** It ended, or never began; called once. */
  onEnd(why: string): void
}>

/** Begins to connect to a server (`host:port`). */
export type OpenChannel = (server: string, handlers: ChannelHandlers) => Channel

/** Signs requests and checks what answers them (RFC 8945). */
export type Signer = Readonly<{
  /** The request with its TSIG, and who checks the messages that answer it, one after the other. */
  sign(request: Uint8Array): Readonly<{ octets: Uint8Array; verifier: Verifier }>
}>

export type Verifier = Readonly<{
  /**
   * Takes the next message of the answer, and gives those that are vouched for by now, in their order.
   * @throws TransferFault or WireError where it is not what the server signed.
   */
  take(octets: Uint8Array): readonly Uint8Array[]
}>

export type Request = Readonly<{
  /** Without id and TSIG, which the link puts in. */
  octets: Uint8Array
  /**
   * Nothing at all on the connection for this long, and the connection is given up. An answer may stand behind others
   * (a long transfer of another zone), so what comes for them counts too.
   */
  idleTimeoutMs: number
  /**
   * The next message of the answer; true: it was the last one. May throw TransferFault or WireError, which ends the
   * request by `onFail`.
   */
  onMessage(message: Message, sizeOctets: number): boolean
  onFail(fault: TransferFault): void
}>

export type LinkOptions = Readonly<{
  /** The servers that may be asked, best first, as `host:port`. */
  servers: () => readonly string[]
  open: OpenChannel
  clock: Clock
  /** Uniform in [0, 1). */
  random: () => number
  signer: Signer | null
  /** A connection is there. Each has another number. */
  onUp: (server: string, connection: number) => void
  onDown: (server: string, why: string) => void
  /** A NOTIFY that the server sent over the connection; the answer to it is returned. */
  onNotify: (message: Message) => Uint8Array | null
}>

/** `cancel` gives it up where it is in flight. */
type Waiting = { readonly request: Request; cancel: Cancel }

type InFlight = {
  readonly request: Request
  readonly verifier: Verifier | null
  readonly sentAtMs: number
  cancel: Cancel
}

export class Link {
  readonly stats = { connections: 0, failures: 0, strays: 0, notifies: 0 }
  readonly #options: LinkOptions
  readonly #inFlight = new Map<number, InFlight>()
  /** What is sent when others were answered, in this order: as many as there are zones, at most. */
  readonly #waiting = new Set<Waiting>()
  #channel: Channel | null = null
  #server: string | null = null
  #connection = 0
  #isUp = false
  #isRunning = false
  #strays = 0
  #lastMessageAtMs = 0
  #cancelTimer: Cancel = () => {}
  /** Servers that failed since the last one that answered. */
  readonly #failed = new Set<string>()
  #failedRounds = 0
  #nextId = 0
  #lastWhy = 'not connected yet'

  constructor(options: LinkOptions) {
    this.#options = options
  }

  /** The server that the connection leads to; null while there is none. */
  get server(): string | null {
    return this.#isUp ? this.#server : null
  }

  /** Why the last connection ended. */
  get lastWhy(): string {
    return this.#lastWhy
  }

  start(): void {
    if (this.#isRunning) return
    this.#isRunning = true
    this.#connect()
  }

  /** Ends the connection; nobody is told. */
  stop(): void {
    this.#isRunning = false
    this.#cancelTimer()
    for (const { cancel } of this.#inFlight.values()) cancel()
    this.#inFlight.clear()
    this.#waiting.clear()
    this.#channel?.close()
    this.#channel = null
    this.#isUp = false
  }

  /** Somebody got a usable answer: the server is not to be left. */
  markGood(): void {
    this.#failed.clear()
    this.#failedRounds = 0
  }

  /**
   * Sends a request, at once or when enough others were answered; what answers it comes to its handlers, never within
   * this call. Returns who gives it up without a word; the answer is then still awaited by nobody, so the connection
   * should be dropped if it is a long one.
   */
  request(request: Request): Cancel {
    if (!this.#isUp) {
      return this.#options.clock.after(0, () => request.onFail(new TransferFault('network', 'no connection')))
    }
    const waiting: Waiting = { request, cancel: () => {} }
    this.#waiting.add(waiting)
    this.#sendWaiting()
    return () => {
      if (!this.#waiting.delete(waiting)) waiting.cancel()
    }
  }

  /** Ends the connection and goes to the next server. */
  drop(why: string): void {
    if (this.#channel === null) return
    this.#channel.close()
    this.#end(why)
  }

  #sendWaiting(): void {
    for (const waiting of this.#waiting) {
      if (this.#inFlight.size >= transferRequestsInFlight) return
      this.#waiting.delete(waiting)
      waiting.cancel = this.#send(waiting.request)
    }
  }

  #send(request: Request): Cancel {
    const { clock, signer } = this.#options
    const id = this.#freshId()
    const octets = Uint8Array.from(request.octets)
    writeU16(octets, 0, id)
    const signed = signer === null ? { octets, verifier: null } : signer.sign(octets)
    const entry: InFlight = { request, verifier: signed.verifier, sentAtMs: clock.nowMs(), cancel: () => {} }
    this.#inFlight.set(id, entry)
    this.#await(id, entry, request.idleTimeoutMs)
    this.#channel!.send(signed.octets)
    return () => {
      if (this.#inFlight.get(id) === entry) this.#leave(id, entry)
    }
  }

  /** A request is in flight no more, and another one may be. */
  #leave(id: number, { cancel }: InFlight): void {
    cancel()
    this.#inFlight.delete(id)
    this.#sendWaiting()
  }

  #freshId(): number {
    do this.#nextId = (this.#nextId + 1 + Math.floor(this.#options.random() * 64)) & 0xffff
    while (this.#inFlight.has(this.#nextId))
    return this.#nextId
  }

  #await(id: number, entry: InFlight, waitMs: number): void {
    const { clock } = this.#options
    const { idleTimeoutMs } = entry.request
    entry.cancel = clock.after(waitMs, () => {
      if (this.#inFlight.get(id) !== entry) return
      const silentMs = clock.nowMs() - Math.max(entry.sentAtMs, this.#lastMessageAtMs)
      if (silentMs >= idleTimeoutMs) this.drop(`no answer within ${idleTimeoutMs} ms`)
      else this.#await(id, entry, idleTimeoutMs - silentMs)
    })
  }

  #connect(): void {
    if (!this.#isRunning) return
    const { clock } = this.#options
    const server = this.#nextServer()
    if (server === null) {
      this.#lastWhy = 'no server is known'
      this.#reconnectLater()
      return
    }
    this.#server = server
    this.#strays = 0
    this.stats.connections++
    this.#cancelTimer = clock.after(mirrorQueryTimeoutMs, () => this.drop('no connection within its time'))
    this.#channel = this.#options.open(server, {
      onOpen: () => this.#opened(),
      onMessage: (octets) => this.#take(octets),
      onEnd: (why) => this.#end(why)
    })
  }

  #nextServer(): string | null {
    const servers = this.#options.servers()
    return servers.find((server) => !this.#failed.has(server)) ?? servers[0] ?? null
  }

  #opened(): void {
    this.#cancelTimer()
    this.#isUp = true
    this.#connection++
    this.#options.onUp(this.#server!, this.#connection)
  }

  #end(why: string): void {
    const server = this.#server!
    this.#cancelTimer()
    this.#channel = null
    this.#isUp = false
    this.#lastWhy = why
    this.stats.failures++
    this.#failed.add(server)
    const all = [...this.#inFlight.values(), ...this.#waiting]
    this.#inFlight.clear()
    this.#waiting.clear()
    for (const { request, cancel } of all) {
      cancel()
      request.onFail(new TransferFault('network', why))
    }
    this.#options.onDown(server, why)
    this.#reconnectLater()
  }

  /** At once to a server that has not failed yet; else after a pause that grows. */
  #reconnectLater(): void {
    if (!this.#isRunning) return
    const { clock, random, servers } = this.#options
    const hasOther = servers().some((server) => !this.#failed.has(server))
    let pauseMs = 0
    if (!hasOther) {
      this.#failed.clear()
      const baseMs = Math.min(mirrorReconnectMaxMs, mirrorReconnectMinMs * 2 ** Math.min(this.#failedRounds, 10))
      this.#failedRounds++
      // Spread, so that many that lost one server do not come back together.
      pauseMs = baseMs * (0.5 + random())
    }
    this.#cancelTimer = clock.after(pauseMs, () => this.#connect())
  }

  #take(octets: Uint8Array): void {
    if (octets.length < headerOctets) {
      this.drop('a message shorter than a header')
      return
    }
    this.#lastMessageAtMs = this.#options.clock.nowMs()
    const id = messageId(octets)
    const isResponse = (octets[2]! & 0x80) !== 0
    if (!isResponse) {
      this.#takeRequest(octets)
      return
    }
    const entry = this.#inFlight.get(id)
    if (entry === undefined) {
      this.stats.strays++
      if (++this.#strays >= strayTransferMessages) this.drop('messages that nobody asked for')
      return
    }
    try {
      for (const message of entry.verifier?.take(octets) ?? [octets]) {
        const isLast = entry.request.onMessage(decodeMessage(message), message.length)
        if (this.#inFlight.get(id) !== entry) return
        if (!isLast) continue
        this.#leave(id, entry)
        return
      }
    } catch (error) {
      if (!(error instanceof TransferFault || error instanceof WireError)) throw error
      this.#leave(id, entry)
      const fault = error instanceof TransferFault ? error : new TransferFault('malformed', error.message)
      entry.request.onFail(fault)
    }
  }

  #takeRequest(octets: Uint8Array): void {
    try {
      const message = decodeMessage(octets)
      if (message.opcode !== OPCODE.NOTIFY) {
        this.drop('a request that is no NOTIFY')
        return
      }
      this.stats.notifies++
      const answer = this.#options.onNotify(message)
      if (answer !== null) this.#channel?.send(answer)
    } catch (error) {
      if (!(error instanceof WireError)) throw error
      this.drop(error.message)
    }
  }
}
