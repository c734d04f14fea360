/** From 100.64.0.0/10, which is private and used by no cluster here. */
export const linkAddresses = {
  /** The ends of the slow way: cluster A's, and cluster B's in its own namespace. */
  a: '100.64.77.1',
  b: '100.64.77.2',
  /** The ends of a fast one, by which clients ask the servers of B. */
  client: '100.64.78.1',
  server: '100.64.78.2'
} as const
