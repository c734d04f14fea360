/**
 * Lets another process take over our listening sockets: the very sockets, with all that waits in them.
 *
 * The other one says hello when it starts, and takes when it is able to serve. We give it the sockets and stop reading,
 * but keep them: should it end before us, we go on reading as if nothing had been. So at each moment somebody reads,
 * and nothing that the kernel has taken in is lost.
 */
import type { ListenAddress } from '../listen-address.ts'
import type { Libc } from '../mmsg/libc.ts'
import { messageToText, parseMessage, takeoverName } from './messages.ts'
import { UnixListener, type UnixChannel } from './unix-channel.ts'

export type SuccessorEvents = Readonly<{
  /** Another process will take over when it can. */
  onHello(): void
  /** It reads from now on, so we must not. */
  onTaken(): void
  /** It is gone: we read again. */
  onReturned(): void
  /** Another one may have a name that we need; the process serves all the same. */
  onProblem(error: unknown): void
}>

export class Successors {
  readonly #libc: Libc
  readonly #addresses: readonly ListenAddress[]
  readonly #sockets: () => ReadonlyMap<string, number>
  readonly #events: SuccessorEvents
  readonly #waiting = new Set<UnixChannel>()
  #listeners: UnixListener[] = []
  /** Who has taken over. */
  #successor: UnixChannel | null = null
  #whenDecided: (() => void)[] = []
  #isClosed = false

  /** @param sockets what is given, by `socketKey` */
  constructor(
    libc: Libc,
    addresses: readonly ListenAddress[],
    sockets: () => ReadonlyMap<string, number>,
    events: SuccessorEvents
  ) {
    this.#libc = libc
    this.#addresses = addresses
    this.#sockets = sockets
    this.#events = events
    this.#listen()
  }

  /** Somebody else serves. */
  get isTaken(): boolean {
    return this.#successor !== null
  }

  /** Resolves when nobody waits for our sockets any more: they have been taken, or who waited is gone. */
  async decided(): Promise<void> {
    if (this.#waiting.size === 0 || this.#successor !== null) return
    await new Promise<void>((resolve) => {
      this.#whenDecided.push(resolve)
    })
  }

  /** Nobody can take over any more. Who has taken over keeps what it has. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const listener of this.#listeners) listener.close()
    for (const channel of this.#waiting) channel.close()
    this.#waiting.clear()
    this.#successor?.close()
    this.#decide()
  }

  #listen(): void {
    for (const where of this.#addresses) {
      try {
        this.#listeners.push(new UnixListener(this.#libc, takeoverName(where), (channel) => this.#meet(channel)))
      } catch (error) {
        this.#events.onProblem(error)
      }
    }
  }

  #meet(channel: UnixChannel): void {
    channel.start({
      onMessage: (text, fd) => {
        if (fd !== null) this.#libc.close(fd)
        this.#hear(channel, text)
      },
      onClose: () => this.#lose(channel)
    })
  }

  #hear(channel: UnixChannel, text: string): void {
    const message = parseMessage(text)
    if (message?.kind === 'hello' && this.#successor === null) {
      this.#waiting.add(channel)
      this.#events.onHello()
    } else if (message?.kind === 'take' && this.#waiting.has(channel)) {
      this.#give(channel)
    } else {
      // Another protocol, or too late: it finds another way.
      this.#waiting.delete(channel)
      channel.close()
      this.#decideIfNobodyWaits()
    }
  }

  #give(channel: UnixChannel): void {
    // The names are the other one's before it knows that it serves.
    for (const listener of this.#listeners) listener.close()
    this.#listeners = []
    const isGiven =
      [...this.#sockets()].every(([key, fd]) => channel.send(messageToText({ kind: 'socket', key }), fd)) &&
      channel.send(messageToText({ kind: 'end' }))
    this.#waiting.delete(channel)
    if (!isGiven) {
      channel.close()
      this.#listen()
      this.#decideIfNobodyWaits()
      return
    }
    this.#successor = channel
    this.#events.onTaken()
    // They ask the new one.
    for (const other of this.#waiting) other.close()
    this.#waiting.clear()
    this.#decide()
  }

  #lose(channel: UnixChannel): void {
    if (channel === this.#successor) {
      this.#successor = null
      this.#events.onReturned()
      this.#listen()
    }
    this.#waiting.delete(channel)
    this.#decideIfNobodyWaits()
  }

  #decideIfNobodyWaits(): void {
    if (this.#waiting.size === 0) this.#decide()
  }

  #decide(): void {
    const decided = this.#whenDecided
    this.#whenDecided = []
    for (const done of decided) done()
  }
}
