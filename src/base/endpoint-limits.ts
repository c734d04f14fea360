/** Limits of checks of addresses (`cluster.probes`): limits.ts for what few others need. */

/**
 * Each is checked so often, but no two sooner than the gap after each other: 50 in a second, however many there are.
 */
export const endpointCheckEveryMs = 5_000
export const endpointCheckGapMinMs = 20
export const endpointCheckTimeoutMs = 1_000
export const endpointChecksInFlight = 64
/** Failures in a row until down, successes in a row until up. */
export const endpointCheckFall = 2
export const endpointCheckRise = 2
/** Addresses that are checked; those above it count as well. */
export const checkedEndpoints = 2_000
/** So much of a web server's reply is read for its status. */
export const endpointReplyOctets = 1_024

// One replica checks for all of them.
/** The one that checks says so this often, and others take its place after the silence; by the clock of who waits. */
export const checkHolderRenewEveryMs = 2_000
export const checkHolderSilenceMs = 6_000
/** Silence after which a replica checks by itself, where it could not take the place either. */
export const checkAloneAfterMs = 15_000
/** How often it is looked whether something is to be done; results go out no more often. */
export const checkHolderTurnMs = 500
/** A replica that ends waits so long for its place to be given up. */
export const checkHolderReleaseMs = 1_000
/** Octets of the list of addresses that are down; what does not fit counts as healthy with the other replicas. */
export const sharedDownOctets = 131_072
/** Addresses that went down or up by another replica's word, each with a line of its own; more are told as a number. */
export const toldSharedChanges = 20
