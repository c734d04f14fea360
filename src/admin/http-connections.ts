/**
 * The open connections of one HTTP listener, and the limit on their number.
 *
 * At the limit the new connection is let in, and the one goes that has been without a complete request for longest:
 * whoever only holds connections loses them, and a probe is always answered. Only where each of them has a request that
 * is being worked on is the new one closed at once.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Clock } from '../base/clock.ts'

type Held = {
  /** When it was opened, or its last answer was complete; monotonic milliseconds. */
  idleSinceMs: number
  /** Requests that are not answered yet, each complete or not. */
  readonly requests: Set<IncomingMessage>
}

export class HttpConnections {
  readonly #limit: number
  readonly #clock: Clock
  readonly #open = new Map<Socket, Held>()

  constructor(limit: number, clock: Clock) {
    this.#limit = limit
    this.#clock = clock
  }

  accept(socket: Socket): void {
    if (this.#open.size >= this.#limit && !this.#cutLongestIdle()) {
      socket.destroy()
      return
    }
    this.#open.set(socket, { idleSinceMs: this.#clock.nowMs(), requests: new Set() })
    socket.once('close', () => this.#open.delete(socket))
  }

  /** Takes note of a request whose headers are there. */
  noteRequest(request: IncomingMessage, response: ServerResponse): void {
    const held = this.#open.get(request.socket)
    if (held === undefined) return
    held.requests.add(request)
    // Not when the client has taken it, which it may put off for ever.
    response.once('prefinish', () => {
      if (request.complete) held.idleSinceMs = this.#clock.nowMs()
      held.requests.delete(request)
    })
  }

  /**
   * False when each has a complete request to be answered. Looks at all of them, which costs little beside accepting
   * one.
   */
  #cutLongestIdle(): boolean {
    let longest: [Socket, Held] | null = null
    for (const entry of this.#open) {
      const [, { idleSinceMs, requests }] = entry
      const isAnswering = [...requests].some(({ complete }) => complete)
      if (!isAnswering && (longest === null || idleSinceMs < longest[1].idleSinceMs)) longest = entry
    }
    if (longest === null) return false
    const [socket] = longest
    this.#open.delete(socket)
    socket.destroy()
    return true
  }
}
