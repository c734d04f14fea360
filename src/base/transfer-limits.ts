/**
 * The limits of zone transfers and of what peers tell of their changes, as `limits.ts` has all others.
 *
 * Sizes are in octets, times in milliseconds unless the name says otherwise.
 */

// Zones that come in by transfer.
/** Records and octets of one transfer, at most; above them it is ended, and the last good version stays. */
export const incomingTransferRecords = 1_000_000
export const incomingTransferOctets = 128 * 1024 * 1024
/**
 * Octets of the heap's limit for each record and each octet of a transfer: a zone that comes whole stands beside its
 * last version, each with some 270 octets for a record with a name of its own, and everything else has to fit, too.
 */
const heapOctetsPerRecord = 800
const heapOctetsPerOctet = 4

/** What one transfer may bring in a process whose heap ends at `heapOctets`; more would end the process. */
export const incomingTransferLimits = (heapOctets: number): Readonly<{ records: number; octets: number }> => ({
  records: Math.min(incomingTransferRecords, Math.floor(heapOctets / heapOctetsPerRecord)),
  octets: Math.min(incomingTransferOctets, Math.floor(heapOctets / heapOctetsPerOctet))
})
/** Records of one RRset: no more fit a message of 64 KiB, so nobody could be answered with them. */
export const incomingRRsetRecords = 4_096
/** Records of the deltas of one incremental transfer, which are applied in one go; above it the whole zone is taken. */
export const incomingDeltaRecords = 200_000
/** Changes that one incremental transfer may be made of. */
export const incomingDeltas = 20_000
/** A transfer that brings nothing for this long has failed, and one that takes so long in all. */
export const incomingTransferIdleMs = 5_000
export const incomingTransferMs = 300_000
/** A server of a mirrored zone that does not answer for its SOA within this time is given up for the next one. */
export const mirrorQueryTimeoutMs = 1_500
/**
 * The SOA is asked for this often over a connection held open; where the server tells of changes by itself, less often.
 */
export const mirrorPollMs = 200
export const mirrorHeartbeatMs = 1_000
/**
 * Serials that count seconds (CoreDNS) stay the same while the zone changes again within one: what was taken sooner
 * after such a serial was first seen is taken once more. Our clock and the server's may differ by so many seconds.
 */
export const serialSecondMs = 1_100
export const serialSecondsApart = 600
/** Between attempts to connect, once each server was tried; doubled with each round that failed. */
export const mirrorReconnectMinMs = 250
export const mirrorReconnectMaxMs = 5_000
/** Between transfers of one zone that fail; doubled with each failure. Whoever tells of a change is asked at once. */
export const mirrorRetryMinMs = 250
export const mirrorRetryMaxMs = 60_000
/** A zone that nobody gives is asked for again after this time: whoever refused may have been told otherwise. */
export const mirrorRefusedMs = 5_000
/** NOTIFY over UDP that one peer may make us look after in a second; more come together to one look. */
export const notifiesPerSecond = 20
/**
 * All that a suffix holds in the cache is dropped for NOTIFY at most this often: each time costs a look at each name.
 */
export const suffixEvictionEveryMs = 1_000
/**
 * Names whose eviction from the cache is remembered, and for how long answers about them are kept for a second only.
 */
export const evictedNames = 10_000
export const evictionSettleMs = 2_000
/** Questions, and names that changed, that are remembered of a peer that tells of no changes by itself. */
export const adaptiveTtlNames = 10_000
/** The TTL of what changed lately, as a share of the time since then, and its lowest value. */
export const adaptiveTtlShare = 0.1
export const adaptiveTtlMinSeconds = 1
/** A peer that told of a change by NOTIFY within this time is expected to tell of the next one. */
export const notifyTrustMs = 3_600_000
/** How long a copy is still answered from while a newer version is being transferred. */
export const mirrorTransferGraceMs = 60_000
/** Requests in flight on one connection for transfers; more wait for their turn. */
export const transferRequestsInFlight = 256
/** Messages without TSIG between two signed ones of a transfer. RFC 8945 §5.3.1. */
export const unsignedTransferMessages = 99
/** What may wait to be sent on such a connection: requests are small, so a server that lets them wait does not read. */
export const transferSendBufferOctets = 256 * 1024
/** Messages that nobody asked for, on one connection for transfers, before it is dropped. */
export const strayTransferMessages = 200

// Zones that others take from us.
/** Largest message of a transfer unless one record needs more: name compression reaches 16 KiB. RFC 1035 §4.1.4. */
export const transferMessageOctets = 16 * 1024
/**
 * Differences of so many records are sent even where the zone itself has fewer: they tell when each change happened.
 */
export const alwaysDifferences = 500
/** Whole zones that are sent at the same time; others wait their turn. */
export const transfersOut = 10
/** Transfers that are kept as octets for the next ones who ask for the same, and their octets together. */
export const encodedTransfers = 64
export const encodedTransfersOctets = 16 * 1024 * 1024
/** Larger zones are not kept as octets, but read anew for each transfer. */
export const encodedZoneRRsets = 50_000
/** A large zone is gone through for a transfer in turns of this many milliseconds. */
export const snapshotTurnMs = 3
/** Transfers of whole zones that wait for their turn; more get SERVFAIL. */
export const transfersWaiting = 1_000
/** A transfer that takes longer, waiting included, is cut. */
export const transferTimeoutMs = 120_000
/** Suffixes given away as zones that are known at the same time; the one asked for longest ago goes first. */
export const transferParts = 256
/** Largest file with a TSIG secret, and the shortest secret that is not warned of. */
export const keyFileOctets = 4_096
export const keySecretMinOctets = 16
/** Zones that all connections together may be told of by NOTIFY: 500 nodes and 100 zones, some 300 octets for each. */
export const notifySubscriptions = 50_000
/** Zones that one connection may be told of: a network that ends within an octet or nibble has up to 128 reverse ones. */
export const notifySubscriptionsPerConnection = 1_024
/** NOTIFY requests of one subscription without a response; further batches wait for one. */
export const notifyUnanswered = 16
/** A subscriber that leaves NOTIFY without a response for so long is cut. */
export const notifyAnswerTimeoutMs = 10_000
/** NOTIFY over UDP to one server about one zone comes at most so often; RFC 1996 §3.6 leaves it to us. */
export const notifyEveryMs = 200
/** First wait for the response to a NOTIFY over UDP, doubled each time, and how often one is sent. RFC 1996 §3.6. */
export const notifyFirstWaitMs = 1_000
export const notifyTries = 5
/** Servers that are told over UDP because they took or asked for a zone; the one that asked longest ago goes first. */
export const notifyPeers = 200
/** Zones that one server is told of because it asked for them. */
export const notifyZonesPerServer = 64
/** How long such a server is remembered: three times the SOA's refresh. */
export const notifyPeerMemoryMs = 21_600_000
