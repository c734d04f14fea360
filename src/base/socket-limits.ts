/**
 * The limits of listening sockets that are kept by more than one process, or that more comes to than can be answered.
 */

// More than can be answered.
/**
 * A queue that was never emptied for this long is an overload. A burst, a pause, and the first moments of a process
 * whose code is not compiled yet are over before.
 */
export const udpBacklogMs = 1_000
/** The receive buffer in an overload: some tens of milliseconds of what is answered, beside a turn's 256 datagrams. */
export const udpBackloggedBufferOctets = 512 * 1024
/** What libuv reads from one socket at most before others get a turn: with fewer, the queue was emptied. */
export const dgramDatagramsPerTurn = 32
/** How long after the last turn that left something the buffer becomes roomy again. */
export const udpBacklogRestMs = 3_000

// Sockets that are handed over.
/** One message between two processes of which one takes over the other's sockets. */
export const takeoverMessageOctets = 4_096
/** How long a process that was told to stop waits for another one that has said it would take over. */
export const takeoverWaitMs = 60_000
/** Where an address is taken and nobody gives it up: how often that is tried again, and after how long. */
export const takeoverAttempts = 10
export const takeoverRetryMs = 200

// Sockets that questions to other servers leave by.
/** Answers that one system call takes from one of them, and how often it is made before others get a turn. */
export const connectedBatchDatagrams = 8
export const connectedBatchesPerTurn = 4

// Workers, that is threads which answer UDP from memory (`threads`).
/**
 * Queries that a worker has handed over and nobody has taken yet, in octets; what has no room is lost. Some two thousand:
 * more would wait longer than who asks does, where the main thread cannot keep up.
 */
export const forwardedQueryOctets = 256 * 1024
/**
 * Where the main thread has not emptied them for so long, more comes than it can answer; queries that have waited for
 * longer than this are lost then. At 2,000 a second, which a third of a core answers of other clusters' names, so many
 * octets would be more than a second.
 */
export const forwardedBacklogMs = 250
export const forwardedWaitMs = 100
/** Batches of one worker's queries in one turn of the event loop, and how long it may take until no other is begun. */
export const forwardedBatchesPerTurn = 4
export const forwardedTurnMs = 5
/** How long sockets are not taken over because workers are not ready to read them. */
export const workerPrepareMs = 5_000
/** How long a worker waits for a datagram before it looks whether it is to stop. */
export const workerWaitMs = 50
/** How long a worker waits for a kernel that takes no more answers. */
export const workerSendWaitMs = 20
/** A worker tells so often how busy it is, and workers are counted, steered to and looked after so often. */
export const workerReportMs = 20
export const workerTickMs = 50
/** How busy workers are is measured over at least this time. */
export const workerLookMs = 200
/** So many errors in a row end a worker. */
export const workerReadErrors = 1_000
/** Share of a core that one worker may be busy until one more is used; and below which the same load fits in one less. */
export const workerBusyShare = 0.7
export const workerIdleShare = 0.45
/** Turns in a row that do not empty a socket's queue, after which a worker asks for one more at once. */
export const workerHelpTurns = 4
/** Time below that share until one less is used. */
export const workerIdleMs = 2_000
/** A worker that ended is started again after this time, doubled with each end up to the longest. */
export const workerRestartMinMs = 500
export const workerRestartMaxMs = 30_000
