/**
 * Every limit of the server in one place: what a client, a peer or a file may make us hold or do.
 *
 * Sizes are in octets, times in milliseconds unless the name says otherwise.
 */

// Messages.
/**
 * Largest UDP response, whatever the client offers: what crosses an Ethernet path without fragments (DNS flag day
 * 2020).
 */
export const maxUdpPayloadOctets = 1232
/** Largest UDP response to a query without EDNS. RFC 1035 §2.3.4. */
export const plainUdpPayloadOctets = 512
/** Largest DNS message over TCP. RFC 1035 §4.2.2. */
export const maxMessageOctets = 65_535
/** Jumps that one compressed name may take; a legal name has at most 127 labels. */
export const maxCompressionPointers = 126
/** Labels of one message that a writer remembers for name compression; later names are written in full. */
export const compressionLabels = 256

/** Largest TTL of a record in seconds; what is above counts as 0. RFC 2181 §8. */
export const maxRecordTtlSeconds = 0x7fff_ffff

// TCP clients.
export const tcpConnections = 1_000
/** Time a TCP connection may stay without a complete query. RFC 7766 §6.2.3 asks for a few seconds. */
export const tcpIdleTimeoutMs = 10_000
/** Queries that one TCP connection may have in flight; reading pauses above it. */
export const tcpInFlightPerConnection = 128
/** Answers that may wait in one connection's write buffer before its reading pauses. */
export const tcpWriteBufferOctets = 512 * 1024
/** Answers that may wait in the write buffers of all connections together; above it they pause at 64 KiB each. */
export const tcpWriteBuffersOctets = 32 * 1024 * 1024
/** A client with so much unread gets no more messages that it did not ask for one by one (NOTIFY): it is cut. */
export const tcpPushBufferOctets = 256 * 1024
/**
 * What all connections together may have sent that is no query yet, or not yet taken; above it the greedy ones are cut.
 */
export const tcpReadBuffersOctets = 16 * 1024 * 1024
/** What one connection may hold of that even then. */
export const tcpReadShareOctets = 4_096
/** A client that does not read its answers for this long is cut. */
export const tcpWriteStallMs = 10_000
/**
 * Time between our last answer and the client's own close, before we cut: a close with unread octets would lose
 * answers.
 */
export const tcpLingerMs = 1_000
/** Queries of one connection that are answered before everybody else gets a turn. */
export const tcpQueriesPerTurn = 128

// UDP sockets.
/** Receive buffer asked of the kernel, which may give less (net.core.rmem_max): bursts wait there while we are busy. */
export const udpReceiveBufferOctets = 4 * 1024 * 1024
/** Answers of one socket that may wait because the kernel takes no more; above it they are dropped. */
export const udpSendQueueOctets = 4 * 1024 * 1024
/** Datagrams that one system call takes or sends, where they are read in batches. */
export const udpBatchDatagrams = 64
/** Full batches of one socket before everybody else gets a turn. */
export const udpBatchesPerTurn = 4
/**
 * Batches, each so soon behind the one before, after which a turn waits for more in the kernel; and how long that turn
 * lasts.
 */
export const udpDenseBatches = 16
export const udpDenseGapMs = 0.2
export const udpLingerMs = 1
/** Addresses of clients whose text is kept; a power of two. */
export const rememberedClientAddresses = 4_096
/** How long the self-test of reading in batches may wait for its own datagram. */
export const udpSelfTestTimeoutMs = 500
/** Tries to find one port that is free for UDP and for TCP, where port 0 is asked for. */
export const freePortAttempts = 16

// Queries that wait for somebody else.
export const inFlightQueries = 10_000
/** Total time for one query, all attempts included. */
export const queryBudgetMs = 2_000
/** Total time for one query where probes say that every target is down. */
export const allDownBudgetMs = 500
/** Aliases that are followed for one query; SERVFAIL beyond. */
export const maxAliases = 16

// Peers and upstreams.
/** Queries in flight at one peer or upstream; SERVFAIL at once above it. */
export const inFlightPerPeer = 1_000
/** Longest wait for one server before it, or the next one, is asked again. */
export const attemptTimeoutMs = 400
/** First wait for a server whose round-trip time is not known yet: a datagram that was lost is sent again after it. */
export const firstAttemptTimeoutMs = 150
/** Shortest first wait for a server whose round-trip time is known, unless it is asked twice within the share below. */
export const attemptTimeoutMinMs = 100
/** A question that takes longer than nineteen of twenty do is asked a second time, for at most this share of all. */
export const hedgeShare = 0.05
/** So many in a row, and never sooner than after this time. */
export const hedgeBurst = 5
export const hedgeAfterMinMs = 20
/** UDP ports to one server that take questions, for so long and so many. RFC 5452 §9.2. */
export const udpPortsPerServer = 16
export const udpPortLifeMs = 500
export const udpPortQuestions = 256
/** Idle pooled TCP connections kept for one server. */
export const pooledTcpConnections = 4
/** Queries that one pooled TCP connection to a server carries at once. */
export const tcpQueriesPerPeerConnection = 100
export const pooledTcpIdleMs = 8_000
/** Exchanges that are begun for one question, retransmissions included. */
export const attemptsPerQuestion = 6
/** Shortest wait for one server before the next one is asked, however little time is left. */
export const attemptFloorMs = 50
/** How long a server that answered FORMERR or NOTIMP to EDNS is asked without it. RFC 6891 §6.2.2. */
export const plainDnsMemoryMs = 300_000
/** After a failure a server is not asked first for this long; doubled with each further failure. */
export const serverBackoffMinMs = 1_000
export const serverBackoffMaxMs = 10_000
/** Messages nobody waits for that one connection to a server may bring before it is dropped. */
export const strayTcpMessages = 200
/** Servers that one host name, or one resolv.conf, may stand for. */
export const serversPerName = 16
/** A hosts file and a resolv.conf are looked at again after this time. */
export const serverFileRereadMs = 5_000
export const serverFileOctets = 1024 * 1024
/** A server's host name is resolved again after its TTL, held between these, in seconds. */
export const hostTtlMinSeconds = 1
export const hostTtlMaxSeconds = 300
/** A look-up of a server's host name that takes longer has failed. */
export const hostLookupTimeoutMs = 5_000
/** Time between probes of a server that is down grows up to this. */
export const probeBackoffMaxMs = 10_000
/** Longest time between probes of a server that was down and answers again, so that it is back in use soon. */
export const probeRisingEveryMs = 1_000
/** Shortest time between two probes that timeouts of real traffic ask for. */
export const probeExtraMinMs = 200
/**
 * Names that fail in a row until a server that passes its probes is doubtful, and how it is asked for names it answered
 * before.
 */
export const doubt = { names: 5, windowMs: 10_000, answeredNames: 3, timeoutMs: 300, trialMs: 400 } as const
/** A server that falls again within this time has to answer for so long before it is up; doubled with each fall. */
export const flapWindowMs = 120_000
export const holdDownMinMs = 2_000
export const holdDownMaxMs = 8_000
/** A peer that was down takes its whole share again after this time, in so many equal steps. */
export const returnMs = 5_000
export const returnSteps = 10
/** Changes of one server's health that are remembered. */
export const healthHistoryEntries = 20

// The zone.
/** Different lists of ports that objects share; beyond, the sharing begins anew. */
export const sharedPortLists = 1_000
/** RRsets of our zones whose octets are kept at hand, as those that were read last, and the records in all of them. */
export const unpackedRRsets = 4_096
export const unpackedRecords = 16_384
/** Change journal of one zone: entries (RRset changes) kept for IXFR and eviction. */
export const journalRRsets = 20_000
/** Records in all RRsets of one zone's journal: a Service with 1,000 endpoints enters whole with each change. */
export const journalRecords = 200_000
/** Longest epoch, the name of a history of serials, in octets. */
export const maxEpochOctets = 32
/** Longest TTL in seconds that the annotation of a Service may ask for. */
export const maxObjectTtlSeconds = 86_400
/** Kubernetes objects left out, with the reason: how many are listed. All are counted. */
export const listedLeftOutObjects = 1_000
/** Zones that the networks of `cluster.reverse` may need: a /9 needs 128 of them. */
export const maxReverseZones = 4_096
/** Largest manifest file that is read. */
export const manifestFileOctets = 64 * 1024 * 1024
/** Depth of folders below a manifest folder. */
export const manifestFolderDepth = 16
/** Files that are read below all manifest folders together. */
export const manifestFiles = 100_000
/** Largest piece of a manifest that is parsed in one go, which others wait for: a document, or an item of a List. */
export const manifestPieceCharacters = 4 * 1024 * 1024
/** Depth of Lists inside Lists. */
export const manifestListDepth = 4
/** Problems that are listed for one manifest file, and for all together. */
export const manifestProblemsPerFile = 100
export const manifestProblems = 1_000
/** Events that a source of objects gives in one go; a change of more objects is several. */
export const objectEventsPerBatch = 500

// The API server.
/** A request whose reply has not begun after this time has failed: connecting, TLS and credentials included. */
export const apiHeadersTimeoutMs = 10_000
/** A list that sends nothing for this long has failed. */
export const apiListIdleMs = 10_000
/** Objects asked for in one page of a list. */
export const apiListPageObjects = 2_000
/** Largest single object in a list or a watch; etcd takes 1.5 MiB, and JSON is longer than what it stores. */
export const apiObjectOctets = 8 * 1024 * 1024
/** Largest part of a list that is not its items, and largest document that is read whole. */
export const apiDocumentOctets = 1024 * 1024
/** So much of an error's body is read, and for so long. */
export const apiErrorBodyOctets = 16 * 1024
export const apiErrorBodyMs = 1_000
/**
 * How long a watch is asked for, in seconds. A quiet API server sends bookmarks too rarely to tell whether it lives.
 */
export const watchMinSeconds = 20
export const watchMaxSeconds = 25
/** A watch that has not ended so long after its time is dead. */
export const watchGraceMs = 3_000
/**
 * Changes of one resource come densely once there have been so many more than so many a second would be. What a watch
 * tells is then left unread for this long after each read, so that several changes are worked on together; not after a
 * read that gave several.
 */
export const watchEventsPerSecond = 250
export const watchDenseEvents = 50
export const watchGatherMs = 5
export const watchGatherEvents = 8
/** A watch that has held for this long is good: waits begin at their shortest again, and a loss is over. */
export const watchProvenMs = 5_000
/** Between attempts at the API server; doubled with each failure. */
export const apiBackoffMinMs = 200
export const apiBackoffMaxMs = 5_000
/** The same for what it refuses or does not know, which takes somebody to change it. */
export const apiRefusedBackoffMaxMs = 30_000
/** A `Retry-After` is kept up to this. */
export const apiRetryAfterMaxMs = 60_000
/** Token, certificates and CA are read again after this time. */
export const apiCredentialsMs = 60_000
/** Largest token, CA or kubeconfig file. */
export const apiCredentialsOctets = 1024 * 1024
/** An API group that may come is looked for again after a time between these. */
export const apiDiscoveryMinMs = 20_000
export const apiDiscoveryMaxMs = 25_000
/**
 * Each resource is compared with the API server so often, and what the watch has still to tell gets so long to arrive.
 */
export const auditEveryMs = 600_000
export const auditCatchUpMs = 5_000
/** The same after a watch broke: behind it may be an API server with other storage. No oftener than this. */
export const auditSoonMs = 30_000
/**
 * A Lease that ran out is asked for once more. If that takes longer, the API server was away, and it gets its time
 * anew.
 */
export const leaseAnswerMaxMs = 3_000
/** A Lease that is seen for the first time and ran out longer ago is not given its time once more. */
export const leaseClockSkewMs = 300_000
/** Leases are looked at no less often than this; a timer cannot hold the longest duration that they may have. */
export const leaseTimerMaxMs = 60_000
/** Work on lists and watches in one turn of the event loop, with what listens to them; everybody else waits for it. */
export const apiTurnMs = 4
export const apiObjectsPerTurn = 500
/** What is handed on together is expected to take no longer than this: it cannot be broken off. */
export const apiBatchMs = 1

// The answer cache, and answers that lie ready as octets.
/** How long a failure of a server may be kept, in seconds. RFC 2308 §7 allows five minutes. */
export const failureTtlMaxSeconds = 5
/** Memory for answers that are ready as octets; the oldest ones make room. It is taken as it is needed. */
export const readyAnswerOctets = 32 * 1024 * 1024
/** Answers that the index has room for; a power of two. */
export const readyAnswerSlots = 262_144
/** Clients whose group (by `allow` and the `clients` of policies) is remembered. */
export const rememberedAudienceClients = 4_096
/** Clients whose group is remembered for threads, a power of two; and zones whose denials they answer. */
export const sharedClientGroups = 16_384
export const maxSharedZones = 8_192
/** Time that queries in flight get to finish after SIGTERM (after lameDuck). */
export const drainTimeoutMs = 5_000

// Policies.
/** Services that are remembered as having been given by some target. */
export const knownServiceNames = 20_000
export const knownNamespaces = 5_000
/**
 * A target that is silent for so long has failed this query: the next one's answer is used. It is listened to further
 * on.
 */
export const targetSilenceMs = 200
/** The same for a target whose answers usually take longer: its 95th percentile and half of that, up to this. */
export const targetSilenceMaxMs = 400
/** The same for a doubtful target, and where every target is down and there is a stale answer to give. */
export const downSilenceMs = 50
/** So long after a query came, an answer of a silent target is still waited for where there is nothing but denials. */
export const lateAnswerMs = 400
/** ... or for so many round trips of it, if that is longer; all the time there is, if none is known. */
export const lateRoundTrips = 4

// The operator's hand.
/** Names that one simulation answers both ways, and names and clients that its shares are taken from. */
export const simulatedNames = 50
export const simulatedDraws = 2_000
/**
 * Answers compared with those of policies that are not enforced: in one second, at a time, and examples kept for a
 * policy.
 */
export const unenforcedPerSecond = 200
export const unenforcedInFlight = 50
export const unenforcedExamples = 20
/** Events that are remembered, those of health apart from all others, and how long the text of one may be. */
export const eventRingEntries = 500
export const healthEventRingEntries = 500
export const eventTextCharacters = 300
/** Drained peers and disabled policies, those of configurations that are gone among them. */
export const overrideEntries = 1_000
/** Largest state file, and largest content of a ConfigMap that is read; the API server takes 1 MiB. */
export const overrideOctets = 512 * 1024
/** What an operator may write about one: the reason, and who it was. */
export const overrideTextCharacters = 200
/** Longest time that an override may be asked for. */
export const overrideMaxMs = 366 * 86_400_000
/** The end of an override is looked for at least so often: wall time may be set. */
export const overrideTimerMaxMs = 60_000
/** A start waits for overrides no longer than this: an API server that is away must not keep names waiting. */
export const overrideStartWaitMs = 2_000
/** Tries to write an object that others change at the same time. */
export const overrideWriteAttempts = 5

// How stale answers were.
/** Answers from peers' data that are remembered, to tell which of them were stale once a change is learned. */
export const givenAnswersKept = 32_768
/**
 * RRsets of a zone's last copy and of the new one that came whole that are compared in one go, for what has changed.
 */
export const wholeDifferenceRRsets = 50_000
/** Names whose last changes are remembered, and changes of each. */
export const changedNamesKept = 4_096
export const changesOfNameKept = 8
/** A first answer after a change tells how fast the change got to clients if somebody asked this soon. */
export const firstAnswerWithinMs = 10_000

// Configuration.
/** A new source of objects has this long to give a whole cluster before the old one is kept. */
export const viewTakeoverMs = 60_000
/** Largest configuration file that is read. */
export const configFileOctets = 1024 * 1024
/** Aliases (`*name`) that a configuration file may use; they multiply what has to be read. */
export const configAliases = 100
/** Names in manifests that hard-code another cluster: so many are told by `check`. */
export const hardCodedNames = 1_000
/** Mistakes of YAML that are told at once: behind the first ones they are mostly its consequences. */
export const configYamlMistakes = 20
/** Mistakes in options that are told at once. */
export const configMistakes = 200

// The admin HTTP side; each of its two listeners has these to itself.
export const httpConnections = 256
/** Largest body of a request in octets. */
export const httpBodyOctets = 64 * 1024
/** Largest request line and headers together, in octets. */
export const httpHeaderOctets = 8 * 1024
/** A request's headers must be there after this time, counted from the connection or the last answer. */
export const httpHeadersTimeoutMs = 5_000
/** A request with its body must be there after this time. */
export const httpRequestTimeoutMs = 10_000
/** A connection without a request is closed after this time. */
export const httpKeepAliveMs = 5_000
/** A client that neither sends nor takes octets for this long is cut. */
export const httpSocketIdleMs = 30_000
/** Answers under way get this long when the server stops; then their connections are cut. */
export const httpDrainTimeoutMs = 1_000
/** Traces that run at the same time; each may wait as long as a query. */
export const tracesInFlight = 16
/** Records or cached answers in one page of the status API, unless it asks for fewer or more. */
export const apiPageEntries = 1_000
export const apiMaxPageEntries = 10_000
/** Zones that have series of their own: reverse networks may make thousands of them. */
export const zonesInMetrics = 64
/** The same for source clusters that renew a Lease. */
export const sourceClustersInMetrics = 256
/** How often the event loop's lag is measured. */
export const loopLagEveryMs = 500
/** Dead entries that one sweep drops at the most, and how often it runs. */
export const cacheSweepEntries = 500
export const cacheSweepEveryMs = 100
/** How often memory that the C library has kept for what was freed is given back, which takes about a millisecond. */
export const memoryTrimEveryMs = 15_000
/** The first time is soon behind the start, which frees most. */
export const memoryTrimFirstMs = 2_000
