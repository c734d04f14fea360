/** Limits of checks of addresses (`cluster.probes`): limits.ts for what few others need. */

/** Each is checked so often, but no two sooner than the gap after each other: 50 in a second, however many there are. */
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
