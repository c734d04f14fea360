/** Which set-ups are measured side by side in each part, and how each is started. */
import type { LiveServer } from '../../test/e2e/support/live-server.ts'
import type { ObservedServer, SetUpId } from './observations.ts'
import { Fleet, host } from './servers.ts'

export type SetUp = Readonly<{
  id: SetUpId
  /** As it stands in tables and in the plot. */
  title: string
  server: ObservedServer
  /** Where B's is a peerdns. */
  peerdns: LiveServer | null
}>

/** TTL in seconds of A's records where it is not what is compared. */
const usualTtlSeconds = 30

export async function mainSetUps(fleet: Fleet): Promise<SetUp[]> {
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

const corednsSetUp = (id: string, title: string, port: number, hasJavaClient = false): SetUp => ({
  id,
  title,
  server: { id, host, port, hasJavaClient },
  peerdns: null
})

const peerdnsSetUp = (id: string, title: string, peerdns: LiveServer, hasJavaClient = false): SetUp => ({
  id,
  title,
  server: { id, host, port: peerdns.port, hasJavaClient },
  peerdns
})
