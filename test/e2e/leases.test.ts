/**
 * Source clusters of a ServiceImport, on a real API server: one that no longer renews its Lease leaves the answers
 * within its duration, one without a Lease stays, and while the API server is away nobody leaves.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { startCluster } from './support/cluster.ts'
import { eventually } from './support/eventually.ts'
import type { KubeObject } from './support/kinds.ts'
import { tell } from './support/live-figures.ts'
import { LiveServer } from './support/live-server.ts'
import { clusterSuite } from './support/suite.ts'

const leaseMs = 5_000
const renewEveryMs = 800
/** What a busy machine may add to what is asserted. */
const slackMs = 20_000
const addresses = { east: '10.9.1.1', west: '10.9.2.1', north: '10.9.3.1' } as const
type SourceCluster = keyof typeof addresses
const all = Object.values(addresses)

const lease = (cluster: string): KubeObject => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: `mcs-${cluster}`, namespace: 'peerdns' },
  // The clocks of the clusters are two minutes apart, and it does not matter.
  spec: {
    holderIdentity: cluster,
    leaseDurationSeconds: leaseMs / 1000,
    renewTime: new Date(Date.now() + (cluster === 'east' ? 60_000 : -60_000)).toISOString().replace('Z', '000Z')
  }
})

clusterSuite('Leases of source clusters', async (t) => {
  const cluster = await startCluster({ name: 'leases', isBare: true, serviceImports: ['v1beta1'] })
  const { api } = cluster
  const renewing = new Set<SourceCluster>(['east', 'west'])
  /** When each was renewed last, by the API server's answer. */
  const renewedAtMs = new Map<SourceCluster, number>()
  const over = new AbortController()
  const renewals = (async () => {
    while (!over.signal.aborted) {
      await Promise.all(
        [...renewing].map(async (name) => {
          await api.apply(lease(name))
          renewedAtMs.set(name, performance.now())
        })
      ).catch(() => {})
      await sleep(renewEveryMs)
    }
  })()
  t.teardown(async () => {
    over.abort()
    await renewals
    await cluster.stop()
  })

  for (const name of ['peerdns', 'shop']) await api.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
  const ports = [{ name: 'http', port: 80, protocol: 'TCP' }]
  await api.create({
    apiVersion: 'multicluster.x-k8s.io/v1beta1',
    kind: 'ServiceImport',
    metadata: { name: 'web', namespace: 'shop' },
    spec: { type: 'Headless', ports }
  })
  for (const [source, address] of Object.entries(addresses)) {
    await api.create({
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: `web-${source}`,
        namespace: 'shop',
        labels: {
          'multicluster.kubernetes.io/service-name': 'web',
          'multicluster.kubernetes.io/source-cluster': source
        }
      },
      addressType: 'IPv4',
      endpoints: [{ addresses: [address], hostname: 'web-0', conditions: { ready: true } }],
      ports
    })
  }
  const server = await LiveServer.start(cluster, { clusterKeys: 'leases: "peerdns/mcs-{cluster}"' })

  const name = 'web.shop.svc.clusterset.local'
  const given = async (): Promise<string[]> =>
    (await server.client.ask({ name, type: 'A' })).answer.map((line) => line.split(' ').at(-1)!).sort()
  const untilGiven = async (wanted: readonly string[], timeoutMs: number): Promise<void> =>
    eventually(
      async () => {
        const found = await given()
        if (found.join() !== [...wanted].sort().join()) throw new Error(`given: ${found.join()}`)
      },
      { timeoutMs }
    )
  const isAlive = async (cluster: SourceCluster) =>
    server.metric('peerdns_source_cluster_alive', `source_cluster="${cluster}"`)

  await t.test('all three are given out: two renew, one has no Lease', async (t) => {
    await untilGiven(all, slackMs)
    // Longer than a Lease holds.
    const untilMs = performance.now() + leaseMs * 1.5
    while (performance.now() < untilMs) {
      t.same(await given(), [...all].sort())
      await sleep(250)
    }
    t.same([await isAlive('east'), await isAlive('west'), await isAlive('north')], [1, 1, null])
  })

  await t.test('one stops: it leaves when its Lease is over, and not before', async (t) => {
    renewing.delete('west')
    await untilGiven([addresses.east, addresses.north], leaseMs + renewEveryMs + slackMs)
    const tookMs = performance.now() - renewedAtMs.get('west')!
    tell(`a source cluster is left out ${Math.round(tookMs)} ms after its last renewal, of ${leaseMs} ms`)
    t.ok(tookMs > leaseMs * 0.9, `${tookMs} ms`)
    t.equal((await server.client.ask({ name: `web-0.west.${name}`, type: 'A' })).rcode, 'NXDOMAIN')
    t.equal(await isAlive('west'), 0)
    t.ok(((await server.metric('peerdns_source_cluster_lease_age_seconds', 'west')) ?? 0) >= leaseMs / 1000)
    t.equal(await server.metric('peerdns_source_cluster_changes_total', 'lost'), 1)
    const { status, text } = await server.readiness()
    t.equal(status, 200, 'and it is ready all the same')
    t.match(text, /no longer renew their Lease: west \(Lease peerdns\/mcs-west, [\d.]+ s ago\)/)
    t.match(
      server.log().filter(({ msg }) => msg?.includes('no longer renews its Lease')),
      [{ cluster: 'west', lease: 'peerdns/mcs-west' }]
    )
  })

  await t.test('a restarted server does not know when the Lease was renewed, and finds out', async (t) => {
    await server.part.kill()
    await server.part.start()
    await untilGiven([addresses.east, addresses.north], leaseMs + slackMs)
    t.pass()
  })

  await t.test('it renews again: it is back at once', async (t) => {
    renewing.add('west')
    await untilGiven(all, renewEveryMs + slackMs)
    t.equal(await isAlive('west'), 1)
    t.equal(await server.metric('peerdns_source_cluster_changes_total', 'returned'), 1)
  })

  await t.test('the API server stands still, and is restarted: nobody leaves', async (t) => {
    let wrong = 0
    const watchAnswers = async (untilMs: number) => {
      while (performance.now() < untilMs) {
        if ((await given()).length !== all.length) wrong++
        await sleep(100)
      }
    }
    cluster.apiServer.freeze()
    await watchAnswers(performance.now() + leaseMs * 3)
    cluster.apiServer.thaw()
    await watchAnswers(performance.now() + leaseMs)
    await cluster.apiServer.kill()
    await watchAnswers(performance.now() + leaseMs * 2)
    await cluster.apiServer.start()
    await watchAnswers(performance.now() + leaseMs * 2)
    t.equal(wrong, 0)
    t.same([await isAlive('east'), await isAlive('west')], [1, 1])
    renewing.delete('east')
    await untilGiven([addresses.west, addresses.north], 2 * leaseMs + renewEveryMs + slackMs)
  })

  await t.test('a Lease is deleted: it says nothing any more, and the cluster is kept', async (t) => {
    await api.delete('Lease', { namespace: 'peerdns', name: 'mcs-east' })
    await untilGiven(all, slackMs)
    t.equal(await isAlive('east'), null)
  })
})
