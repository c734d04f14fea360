/** The limits that listeners keep; base/limits.ts has the reason of each number. */
import * as limits from '../base/limits.ts'

export type ListenerLimits = Readonly<{
  inFlightQueries: number
  tcpConnections: number
  tcpIdleTimeoutMs: number
  tcpInFlightPerConnection: number
  tcpWriteBufferOctets: number
  tcpWriteBuffersOctets: number
  tcpReadBuffersOctets: number
  tcpReadShareOctets: number
  tcpPushBufferOctets: number
  tcpWriteStallMs: number
  tcpLingerMs: number
  tcpQueriesPerTurn: number
  udpReceiveBufferOctets: number
  udpSendQueueOctets: number
}>

export const defaultListenerLimits: ListenerLimits = {
  inFlightQueries: limits.inFlightQueries,
  tcpConnections: limits.tcpConnections,
  tcpIdleTimeoutMs: limits.tcpIdleTimeoutMs,
  tcpInFlightPerConnection: limits.tcpInFlightPerConnection,
  tcpWriteBufferOctets: limits.tcpWriteBufferOctets,
  tcpWriteBuffersOctets: limits.tcpWriteBuffersOctets,
  tcpReadBuffersOctets: limits.tcpReadBuffersOctets,
  tcpReadShareOctets: limits.tcpReadShareOctets,
  tcpPushBufferOctets: limits.tcpPushBufferOctets,
  tcpWriteStallMs: limits.tcpWriteStallMs,
  tcpLingerMs: limits.tcpLingerMs,
  tcpQueriesPerTurn: limits.tcpQueriesPerTurn,
  udpReceiveBufferOctets: limits.udpReceiveBufferOctets,
  udpSendQueueOctets: limits.udpSendQueueOctets
}
