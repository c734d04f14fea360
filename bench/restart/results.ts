/** What restart.ts leaves for other reports, as restart.json. */
export type RestartResults = Readonly<{
  /** ISO date, UTC. */
  date: string
  /** Of peerdns. */
  commit: string
  restarts: number
  queriesPerSecond: number
  /** Over UDP, with `takeover: on`. */
  sent: number
  lost: number
  longestMs: number
}>
