/** What all TCP connections share, over every address. */
import type { Clock } from '../base/clock.ts'
import type { InFlightQueries } from './in-flight.ts'
import type { ListenerLimits } from './listener-limits.ts'
import type { Responder } from './responder.ts'
import type { TcpStats } from './tcp-stats.ts'

export type TcpShared = {
  readonly responder: Responder
  readonly inFlight: InFlightQueries
  readonly limits: ListenerLimits
  readonly clock: Clock
  readonly stats: TcpStats
  readonly onFault: (error: unknown) => void
  /** Where answers from memory are written, until they are copied to their frame. */
  readonly out: Buffer
  /** Octets of answers that wait to be sent. */
  waitingOctets: number
  /** Octets that came and are not yet a query, or not yet taken. */
  unreadOctets: number
}
