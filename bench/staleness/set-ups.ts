/** Which set-ups are measured side by side in each part, and how each is started. */
import type { LiveServer } from '../../test/e2e/support/live-server.ts'
import type { ObservedServer, SetUpId } from './observations.ts'
import { linkAddresses } from './link-addresses.ts'
import { Fleet, host } from './servers.ts'

export type SetUp = Readonly<{
  id: SetUpId
  /** As it stands in tables and in the plot. */
  title: string
  server: ObservedServer
  /** Where B's is a peerdns. */
  peerdns: LiveServer | null
  /** Where A tells B's peerdns of changes, its status API. */
  toldAdminUrl: string | null
}>

/** TTL in seconds of A's records where it is not what is compared. */
const usualTtlSeconds = 30

/** A gives its zones to every cluster here. */
const open = 'transfer: {allow: [127.0.0.0/8, 100.64.0.0/10]}\n'

/** Those that A tells of its changes. */
export async function toldSetUps(fleet: Fleet): Promise<SetUp[]> {
  const opened = await fleet.peerdnsOnA({ name: 'a-open', ttlSeconds: usualTtlSeconds, more: open })
  const peer = `${host}:${opened.port}`
  const evicting = await fleet.peerdnsOnB({ name: 'b-evict', peer, mirror: 'evict' })
  const mirror = await fleet.peerdnsOnB({ name: 'b-mirror', peer, mirror: true, more: open })
  const [stub, node] = await Promise.all([fleet.corednsOnB(mirror.port, 0), fleet.nodeOnB('b-node', mirror.port)])
  return [
    { ...peerdnsSetUp('evict', 'peerdns, evicting', evicting), toldAdminUrl: evicting.adminUrl },
    { ...peerdnsSetUp('mirror', 'peerdns, mirror', mirror, true), toldAdminUrl: mirror.adminUrl },
    corednsSetUp('mirror-stub', 'peerdns, mirror behind CoreDNS', stub),
    { ...peerdnsSetUp('node', 'peerdns on a node, mirror of a mirror', node), toldAdminUrl: node.adminUrl }
  ]
}

/** Those that learn of a change when a TTL ends. */
export async function cachedSetUps(fleet: Fleet): Promise<SetUp[]> {
  const [coredns30, coredns5, closed] = await Promise.all([
    fleet.corednsOnA(30),
    fleet.corednsOnA(5),
    fleet.peerdnsOnA({ name: 'a-closed', ttlSeconds: usualTtlSeconds })
  ])
  const [stub30, stub5, forward] = await Promise.all([
    fleet.corednsOnB(coredns30, 30),
    fleet.corednsOnB(coredns5, 5),
    fleet.peerdnsOnB({ name: 'b-forward', peer: `${host}:${closed.port}` })
  ])
  return [
    corednsSetUp('coredns-30', 'CoreDNS to CoreDNS, TTL 30 s', stub30, true),
    corednsSetUp('coredns-5', 'CoreDNS to CoreDNS, TTL 5 s', stub5),
    peerdnsSetUp('forward', 'peerdns, forwarding only, TTL 30 s', forward)
  ]
}

/** One way in milliseconds, and the share of packets that never arrive. */
const farAway = { delayMs: 50, lossShare: 0.01 }

/** B in a network namespace of its own, far from A; all it has of A comes over that way. */
export async function linkSetUps(fleet: Fleet): Promise<SetUp[]> {
  const far = await fleet.farAway(farAway.delayMs, farAway.lossShare)
  const { a } = linkAddresses
  const opened = await fleet.peerdnsOnA({ name: 'a-far', ttlSeconds: usualTtlSeconds, more: open, listen: [a] })
  const peer = `${a}:${opened.port}`
  const evicting = await fleet.peerdnsFarAway(far, { name: 'b-far-evict', peer, mirror: 'evict' })
  const mirror = await fleet.peerdnsFarAway(far, { name: 'b-far-mirror', peer, mirror: true })
  return [
    farSetUp('far-evict', 'peerdns, evicting, 50 ms away, 1 % lost', evicting),
    farSetUp('far-mirror', 'peerdns, mirror, 50 ms away, 1 % lost', mirror)
  ]
}

export const sweptTtlsSeconds = [0, 1, 5, 10, 30] as const

/** The same names with the TTL capped differently on B. */
export async function sweepSetUps(fleet: Fleet): Promise<SetUp[]> {
  const closed = await fleet.peerdnsOnA({ name: 'a-sweep', ttlSeconds: usualTtlSeconds })
  const peer = `${host}:${closed.port}`
  return Promise.all(
    sweptTtlsSeconds.map(async (ttlSeconds) => {
      const server = await fleet.peerdnsOnB({ name: `b-ttl-${ttlSeconds}`, peer, maxTtlSeconds: ttlSeconds })
      return peerdnsSetUp(`ttl-${ttlSeconds}`, `TTL ${ttlSeconds} s`, server)
    })
  )
}

const notLive = { peerdns: null, toldAdminUrl: null } as const

const corednsSetUp = (id: string, title: string, port: number, hasJavaClient = false): SetUp => ({
  id,
  title,
  server: { id, host, port, hasJavaClient },
  ...notLive
})

const peerdnsSetUp = (id: string, title: string, peerdns: LiveServer, hasJavaClient = false): SetUp => ({
  id,
  title,
  server: { id, host, port: peerdns.port, hasJavaClient },
  peerdns,
  toldAdminUrl: null
})

const farSetUp = (
  id: string,
  title: string,
  { port, adminUrl }: Readonly<{ port: number; adminUrl: string }>
): SetUp => ({
  id,
  title,
  server: { id, host: linkAddresses.server, port },
  peerdns: null,
  toldAdminUrl: adminUrl
})
