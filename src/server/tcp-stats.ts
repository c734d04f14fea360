/** Counters over all TCP listeners and their connections since the start. */
export type TcpStats = {
  connectionsTotal: number
  /** Connections that are open now. */
  connectionsOpen: number
  /** Idle connections closed because a new one came and the limit was reached. */
  evictedTotal: number
  /** New connections closed at once because the limit was reached and no other was idle. */
  refusedTotal: number
  /** Connections that failed before they were ours (too many open files, for instance). */
  acceptErrorsTotal: number
  idleTimeoutsTotal: number
  /** Clients cut because they did not read their answers. */
  stalledTotal: number
  /** Clients cut because they sent much that is no query yet, while all connections together held too much of that. */
  crowdingTotal: number
  /** Connections that broke: reset by the client, mostly. */
  errorsTotal: number
  receivedTotal: number
  /** Answered from memory. */
  answeredTotal: number
  /** Answered after they had to wait. */
  resolvedTotal: number
  /** Answered by several messages. */
  streamedTotal: number
  /** Clients cut because they did not read what they had subscribed to. */
  laggingTotal: number
  /** No reply, by the responder's choice. */
  droppedTotal: number
  /** Would have had to wait while too many others did. */
  overloadedTotal: number
  /** The responder threw or rejected, which it must not. */
  faultsTotal: number
}

export const makeTcpStats = (): TcpStats => ({
  connectionsTotal: 0,
  connectionsOpen: 0,
  evictedTotal: 0,
  refusedTotal: 0,
  acceptErrorsTotal: 0,
  idleTimeoutsTotal: 0,
  stalledTotal: 0,
  crowdingTotal: 0,
  errorsTotal: 0,
  receivedTotal: 0,
  answeredTotal: 0,
  resolvedTotal: 0,
  streamedTotal: 0,
  laggingTotal: 0,
  droppedTotal: 0,
  overloadedTotal: 0,
  faultsTotal: 0
})
