/** What UDP sockets count, and what they are given, whichever way they read and send. */
import type { Clock } from '../base/clock.ts'
import type { InFlightQueries } from './in-flight.ts'
import type { Responder } from './responder.ts'
import type { ListeningSockets } from './takeover/listening-sockets.ts'

/** Counters over all UDP sockets since the start. */
export type UdpStats = {
  receivedTotal: number
  /** Answered from memory. */
  answeredTotal: number
  /** Answered after they had to wait. */
  resolvedTotal: number
  /** No reply, by the responder's choice, or because nobody can be sent anything (source port 0). */
  droppedTotal: number
  /** Would have had to wait while too many others did. */
  overloadedTotal: number
  sendErrorsTotal: number
  /** Answers dropped because too many octets waited for the kernel already. */
  sendQueueFullTotal: number
  /** Answers from memory that had to be copied, since the kernel took no more at the moment. */
  copiedTotal: number
  receiveErrorsTotal: number
  /** Times that the receive buffer was made small, because more came than could be answered. */
  backlogsTotal: number
  /** The responder threw or rejected, which it must not. */
  faultsTotal: number
}

export const makeUdpStats = (): UdpStats => ({
  receivedTotal: 0,
  answeredTotal: 0,
  resolvedTotal: 0,
  droppedTotal: 0,
  overloadedTotal: 0,
  sendErrorsTotal: 0,
  sendQueueFullTotal: 0,
  copiedTotal: 0,
  receiveErrorsTotal: 0,
  backlogsTotal: 0,
  faultsTotal: 0
})

export type UdpListenerOptions = Readonly<{
  responder: Responder
  inFlight: InFlightQueries
  clock: Clock
  stats: UdpStats
  receiveBufferOctets: number
  sendQueueOctets: number
  /** Sockets that another process has handed over; null: there are none. */
  sockets: ListeningSockets | null
  /** More sockets will be bound to the same address. */
  isShared: boolean
  /** Told of what the responder threw, which it must not. */
  onFault: (error: unknown) => void
  /** Grows with every query that comes another way through the same event loop. */
  othersAnswered: () => number
}>
