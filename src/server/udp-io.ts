/**
 * A way to read and send datagrams. There are two: `dgram` takes one at a time and runs everywhere; `mmsg` takes them
 * in batches, where the machine can (mmsg/batched-io.ts).
 */
import type { ListenAddress } from './listen-address.ts'
import type { ForwardRing } from './mmsg/forward-ring.ts'
import type { ClientWords } from './mmsg/message-batch.ts'
import type { UdpListenerOptions } from './udp-stats.ts'

/** One bound socket that answers what comes. */
export interface UdpSocket {
  readonly port: number
  /** The descriptor that another process can go on with; null: there is none. */
  readonly fd: number | null
  /** Resolves when the kernel has taken every answer handed over so far. */
  flushed(): Promise<void>
  /** Reads no more until `resume`; answers that wait are still sent. */
  pause(): void
  resume(): void
  /**
   * Answers some queries that a worker has read from this socket, as if they had been read here. `meet` is told of who
   * asks, each time: its object is another one's after the call. Those that were handed over before `sinceMs` are lost;
   * null: none is. Only where the socket is read in batches.
   */
  takeIn?(ring: ForwardRing, meet: (client: ClientWords, text: string) => void, sinceMs: number | null): void
  /** Stops reading and closes; what still waits to be sent or answered is lost. */
  close(): Promise<void>
}

export interface UdpIo {
  readonly name: 'dgram' | 'mmsg'
  /**
   * Listens; throws a ListenError where that fails.
   * @param number above 0: one more socket on an address of which the others are bound already
   */
  bind(where: ListenAddress, options: UdpListenerOptions, number?: number): Promise<UdpSocket>
}
