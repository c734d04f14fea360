/** What `node bench/nodes.ts` measured, as text. */
import type { HubReading } from './hub.ts'

export type NodesFigures = Readonly<{
  date: string
  commit: string
  nodes: number
  zones: number
  services: number
  rrsets: number
  /** All nodes at once take the zones whole. */
  start: Readonly<{ seconds: number; used: HubReading }>
  idle: Readonly<{ seconds: number; used: HubReading }>
  changes: Readonly<{
    count: number
    perSecond: number
    /** From the change until a node has it, in milliseconds, over all nodes and changes. */
    delayMs: Readonly<{ median: number; p99: number; max: number }>
    used: HubReading
  }>
  rssWithoutNodesOctets: number
}>

/** What was used between two readings; memory and the longest turn are the later one's. */
export function between(before: HubReading, after: HubReading): HubReading {
  return {
    ...after,
    cpuSeconds: after.cpuSeconds - before.cpuSeconds,
    sentOctets: after.sentOctets - before.sentOctets,
    wholeTransfers: after.wholeTransfers - before.wholeTransfers,
    deltaTransfers: after.deltaTransfers - before.deltaTransfers,
    currentTransfers: after.currentTransfers - before.currentTransfers,
    notifies: after.notifies - before.notifies
  }
}

const mib = (octets: number): string => `${(octets / 1024 / 1024).toFixed(1)} MiB`
const micro = (seconds: number): string => `${(seconds * 1e6).toFixed(1)} µs`

export function markdownOf(figures: NodesFigures): string {
  const { nodes, zones, services, rrsets, start, idle, changes, rssWithoutNodesOctets } = figures
  const { used } = changes
  const percent = (idle.used.cpuSeconds / idle.seconds) * 100
  const rows: [string, string][] = [
    ['nodes, zones of each', `${nodes}, ${zones}`],
    ['headless Services of 3 endpoints; RRsets of the cluster zone', `${services}; ${rrsets}`],
    ['all nodes start at once: until the last one has its zones', `${start.seconds.toFixed(1)} s`],
    ['  CPU of the hub for each node', `${((start.used.cpuSeconds / nodes) * 1000).toFixed(1)} ms`],
    ['  octets sent to each node', mib(start.used.sentOctets / nodes)],
    ['  longest turn of the event loop', `${start.used.longestTurnMs.toFixed(0)} ms`],
    ['memory of the hub (RSS): without nodes, with them', `${mib(rssWithoutNodesOctets)}, ${mib(used.rssOctets)}`],
    ['nothing changes: CPU of the hub, for all nodes', `${percent.toFixed(1)} % of a core`],
    ['  for each node and second', micro(idle.used.cpuSeconds / idle.seconds / nodes)],
    ['changes', `${changes.count}, ${changes.perSecond} a second`],
    ['  CPU of the hub for each change', `${((used.cpuSeconds / changes.count) * 1000).toFixed(1)} ms`],
    ['  for each change and node', micro(used.cpuSeconds / changes.count / nodes)],
    ['  octets sent for each change and node', (used.sentOctets / changes.count / nodes).toFixed(0)],
    [
      '  until a node has it: median, p99, max',
      [changes.delayMs.median, changes.delayMs.p99, changes.delayMs.max].map((ms) => `${ms.toFixed(0)} ms`).join(', ')
    ],
    ['  longest turn of the event loop', `${used.longestTurnMs.toFixed(0)} ms`],
    ['  transfers of differences; whole', `${used.deltaTransfers}; ${used.wholeTransfers}`]
  ]
  return `# Nodes on one hub

Resolvers on nodes (\`cluster.source.mirror\`) that follow the zones of one peerdns, on one machine: the hub is a process of its own, the
nodes are simulated by another one, which keeps nothing of what it takes. CPU of heartbeats is in the figures of changes.
\`node bench/nodes.ts\`, ${figures.date}, commit ${figures.commit}.

| | |
| --- | --- |
${rows.map(([name, value]) => `| ${name.replace(/^ {2}/, '&nbsp;&nbsp;')} | ${value} |`).join('\n')}
`
}
