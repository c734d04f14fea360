/**
 * The limits of listening sockets that are kept by more than one process, or that more comes to than can be answered.
 */

// More than can be answered.
/**
 * A queue that was never emptied for this long is an overload, where datagrams are read in batches. A burst, a pause,
 * and the first moments of a process whose code is not compiled yet are over before.
 */
export const udpBacklogMs = 1_000
/** The receive buffer in an overload: some tens of milliseconds of what is answered, beside a turn's 256 datagrams. */
export const udpBackloggedBufferOctets = 512 * 1024
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
