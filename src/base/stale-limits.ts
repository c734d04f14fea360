/** Limits of serving stale; the window itself is the option `cache.serveStale`. Times in milliseconds. */

/**
 * Asking again for what is given out stale: for so many names, so many at once and in each turn; after the first wait,
 * which is doubled up to the longest (RFC 8767 §5 names 30 s), as long as somebody was given it within `wantedMs`.
 */
export const staleRefresh = {
  names: 1_000,
  inFlight: 10,
  turnMs: 250,
  perTurn: 5,
  firstMs: 1_000,
  maxMs: 30_000,
  wantedMs: 60_000
} as const
