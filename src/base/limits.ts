/**
 * Every limit of the server in one place: what a client, a peer or a file may make us hold or do.
 *
 * Sizes are in octets, times in milliseconds unless the name says otherwise.
 */

// Messages.
/** Largest UDP response, whatever the client offers: what crosses an Ethernet path without fragments (DNS flag day 2020). */
export const maxUdpPayloadOctets = 1232
/** Largest UDP response to a query without EDNS. RFC 1035 §2.3.4. */
export const plainUdpPayloadOctets = 512
/** Largest DNS message over TCP. RFC 1035 §4.2.2. */
export const maxMessageOctets = 65_535
/** Jumps that one compressed name may take; a legal name has at most 127 labels. */
export const maxCompressionPointers = 126

// TCP clients.
export const tcpConnections = 1_000
/** Time a TCP connection may stay without a complete query. RFC 7766 §6.2.3 asks for a few seconds. */
export const tcpIdleTimeoutMs = 10_000
/** Queries that one TCP connection may have in flight; reading pauses above it. */
export const tcpInFlightPerConnection = 128
/** Answers that may wait in one connection's write buffer before its reading pauses. */
export const tcpWriteBufferOctets = 512 * 1024
/** A client that does not read its answers for this long is cut. */
export const tcpWriteStallMs = 10_000

// Queries that wait for somebody else.
export const inFlightQueries = 10_000
/** Total time for one query, all attempts included. */
export const queryBudgetMs = 2_000
/** Total time for one query where probes say that every target is down. */
export const allDownBudgetMs = 500
/** Aliases that are followed for one query. */
export const maxAliases = 8

// Peers and upstreams.
/** Queries in flight at one peer or upstream; SERVFAIL at once above it. */
export const inFlightPerPeer = 1_000
/** First wait for one server before the next one is asked. */
export const attemptTimeoutMs = 400
/** Idle pooled TCP connections kept for one server. */
export const pooledTcpConnections = 4
/** Queries that one pooled TCP connection to a server carries at once. */
export const tcpQueriesPerPeerConnection = 100
export const pooledTcpIdleMs = 8_000

// The zone.
/** Change journal of one zone: entries (RRset changes) kept for IXFR and eviction. */
export const journalRRsets = 50_000
/** A batch of changes closes at the latest after this time. */
export const changeBatchMs = 20
/** Largest manifest file that is read. */
export const manifestFileOctets = 64 * 1024 * 1024
/** Depth of folders below a manifest folder. */
export const manifestFolderDepth = 16

// Draining.
/** Time that queries in flight get to finish after SIGTERM (after lameDuck). */
export const drainTimeoutMs = 5_000
