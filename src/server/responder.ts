/**
 * What the listening sockets need from the rest: somebody who turns a query's octets into a response's octets.
 *
 * The listeners know addresses, sockets and frames, and nothing of DNS messages; the responder knows messages and
 * nothing of sockets.
 */

/** Who asks. */
export type Client = {
  /** Without zone id; a v4-mapped v6 address is written as v4. */
  address: string
  port: number
  transport: 'udp' | 'tcp'
}

/** `answer` says: no reply. */
export const DROP = 0
/** `answer` says: not from memory, ask `resolve`. */
export const MISS = -1
/** `answer` says, over TCP only: several messages, or more of them later; ask `stream`. */
export const STREAM = -2

/** One TCP connection, for who sends more down it than one answer. */
export interface MessageStream {
  /** The connection is gone: nothing that is sent arrives. */
  readonly isClosed: boolean
  /**
   * Sends a message, and resolves when there is room for the next one and others had their turn; false: the connection
   * is gone. The octets are the listener's from then on.
   */
  send(message: Uint8Array): Promise<boolean>
  /** Sends a message that nobody waits for; a client that is too far behind with reading is cut instead, and false. */
  push(message: Uint8Array): boolean
  /** Called once, when the connection is gone; at once where it is already. */
  onClose(callback: () => void): void
  /** Cuts the connection. */
  destroy(): void
}

export interface Responder {
  /**
   * Writes what can be answered from memory, at once, into `out` and returns its octets; DROP: no reply; MISS: ask
   * `resolve`. Never throws. `out` holds 65,535 octets and belongs to the responder only during the call; how much a
   * client of UDP may be sent is the responder's to keep. `client` may be another one's after the call.
   */
  answer(query: Uint8Array, size: number, client: Client, out: Uint8Array): number
  /**
   * Resolves to what had to wait; null: no reply. Never rejects. `query` is only valid during the call: it is copied by
   * the responder if kept; `client` stays as it is. The octets of the answer are the listener's from then on.
   */
  resolve(query: Uint8Array, client: Client): Promise<Uint8Array | null>
  /**
   * Sends any number of messages for one query of TCP and resolves when that is done; the stream may be kept for
   * longer. Never rejects. `query` is only valid during the call.
   */
  stream?(query: Uint8Array, client: Client, stream: MessageStream): Promise<void>
  /**
   * Returns what a query gets that would have to wait while too many others do (SERVFAIL); null, or no such method: no
   * reply. The octets are the listener's from then on.
   */
  overload?(query: Uint8Array, client: Client): Uint8Array | null
}
