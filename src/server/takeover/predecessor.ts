/** The process that serves our addresses until we are able to: its sockets are taken over. */
import type { ListenAddress } from '../listen-address.ts'
import type { Libc } from '../mmsg/libc.ts'
import { messageToText, parseMessage, protocol, takeoverName } from './messages.ts'
import { UnixChannel } from './unix-channel.ts'

export class Predecessor {
  /** Resolves when it is gone, or gives its sockets to nobody. */
  readonly gone: Promise<void>
  readonly #libc: Libc
  readonly #channel: UnixChannel
  readonly #sockets = new Map<string, number>()
  readonly #given = Promise.withResolvers<ReadonlyMap<string, number> | null>()
  readonly #lost = Promise.withResolvers<void>()
  #isDone = false

  /** Who serves one of these addresses, as our user and willing to hand it over; null: nobody does. */
  static find(libc: Libc, addresses: readonly ListenAddress[]): Predecessor | null {
    for (const where of addresses) {
      // Nobody can know the port of another process where any port will do.
      if (where.port === 0) continue
      const channel = UnixChannel.connect(libc, takeoverName(where))
      if (channel !== null) return new Predecessor(libc, channel)
    }
    return null
  }

  private constructor(libc: Libc, channel: UnixChannel) {
    this.#libc = libc
    this.#channel = channel
    this.gone = this.#lost.promise
    channel.start({
      onMessage: (text, fd) => this.#take(text, fd),
      onClose: () => this.#lose()
    })
    channel.send(messageToText({ kind: 'hello', protocol }))
  }

  /**
   * Resolves to its sockets, each of which is ours too from then on: the other one has stopped reading them, and goes
   * on should we end before it. Null: it went away before it had given all.
   */
  async take(): Promise<ReadonlyMap<string, number> | null> {
    if (!this.#channel.send(messageToText({ kind: 'take' }))) this.#lose()
    return this.#given.promise
  }

  /** Ends the connection: who served before, and still lives, takes it that we are gone. */
  close(): void {
    this.#channel.close()
    this.#lose()
  }

  #take(text: string, fd: number | null): void {
    const message = parseMessage(text)
    if (message?.kind === 'socket' && fd !== null && !this.#isDone && !this.#sockets.has(message.key)) {
      this.#sockets.set(message.key, fd)
      return
    }
    if (fd !== null) this.#libc.close(fd)
    if (message?.kind !== 'end' || this.#isDone) return
    this.#isDone = true
    this.#given.resolve(this.#sockets)
  }

  #lose(): void {
    this.#lost.resolve()
    if (this.#isDone) return
    this.#isDone = true
    for (const fd of this.#sockets.values()) this.#libc.close(fd)
    this.#given.resolve(null)
  }
}
