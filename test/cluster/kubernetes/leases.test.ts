/** Leases of source clusters by list and watch: what is asked for, and what follows where the API server fails. */
import { test } from 'tap'
import { LeasePattern } from '../../../src/cluster/lease-objects.ts'
import { service, setUp } from './fixture.ts'

const path = '/apis/coordination.k8s.io/v1/namespaces/peerdns/leases'

const lease = (cluster: string, renewals: number) => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: `${cluster}-alive`, namespace: 'peerdns' },
  spec: { renewTime: `2023-11-14T22:13:20.${String(renewals).padStart(6, '0')}Z`, leaseDurationSeconds: 10 }
})

test('leases: only where the pattern says, and what follows', async (t) => {
  const changes: string[] = []
  const rewritten: string[] = []
  const { server, clock, source, until, model } = await setUp(t, {
    leases: {
      pattern: new LeasePattern('peerdns/{cluster}-alive'),
      onChange: (cluster, isLost) => {
        changes.push(`${cluster} ${isLost ? 'lost' : 'back'}`)
        return Array.from({ length: 50 }, (_, at) => `shop/${at}`)
      },
      rewrite: (services) => rewritten.push(...services)
    },
    prepare: (server) => {
      server.put(path, lease('east', 0))
      server.put(path, lease('west', 0))
    }
  })
  t.equal(source.status().sourceClusters.length, 2)
  t.ok(model.objects.has('Lease/peerdns/east-alive'))
  let renewals = 0
  const renew = async (seconds: number, clusters: readonly string[]) => {
    for (let second = 0; second < seconds; second++) {
      renewals++
      for (const cluster of clusters) server.put(path, lease(cluster, renewals))
      const known = server.version
      await until(
        () => Number(source.status().resources.at(-1)!.resourceVersion) >= known || clusters.length === 0,
        'seen'
      )
      clock.advance(1_000)
    }
  }
  await renew(20, ['east', 'west'])
  t.same(changes, [])

  const { lists } = source.status().resources.at(-1)!
  await renew(11, ['east'])
  await until(() => changes.length > 0, 'lost')
  await until(() => rewritten.length === 50, 'every Service is computed again')
  t.same(changes, ['west lost'])
  t.equal(source.status().resources.at(-1)!.lists, lists + 1, 'after one more list')
  await until(() => source.status().resources.at(-1)!.state === 'watching', 'the watch goes on')
  await renew(1, ['east', 'west'])
  t.same(changes, ['west lost', 'west back'])

  // The API server is away for a minute, and nobody can renew.
  await server.stop()
  await until(() => clock.nowMs() > 90_000, 'a minute', 500)
  t.same(changes.length, 2)
  await server.listen()
  await until(() => source.status().resources.at(-1)!.state === 'watching', 'back', 500)
  t.same(changes.length, 2, 'and all have their time anew')
  await renew(5, ['east', 'west'])

  // It freezes, and thaws.
  server.freeze()
  for (let second = 0; second < 40; second++) await until(() => true, 'a second', 1_000)
  t.same(changes.length, 2)
  server.thaw()
  await until(() => source.status().resources.at(-1)!.state === 'watching', 'thawed', 100)
  t.same(changes.length, 2)
  await renew(3, ['east', 'west'])
  server.delete(path, 'peerdns', 'west-alive')
  await until(() => source.status().sourceClusters.length === 1, 'deleted')
})

test('leases: where they are looked for', async (t) => {
  const rows: [pattern: string, path: string, fieldSelector: string | null][] = [
    ['peerdns/{cluster}-alive', path, null],
    ['{cluster}-alive', '/apis/coordination.k8s.io/v1/leases', 'metadata.namespace!=kube-node-lease'],
    ['{cluster}/managed-cluster-lease', '/apis/coordination.k8s.io/v1/leases', 'metadata.name=managed-cluster-lease']
  ]
  for (const [pattern, wanted, fieldSelector] of rows) {
    const { server } = await setUp(t, {
      leases: { pattern: new LeasePattern(pattern), onChange: () => [], rewrite: () => {} }
    })
    const requests = server.requests.filter((request) => request.path.endsWith('/leases'))
    t.same(requests.map(({ kind }) => kind), ['list', 'watch']) // prettier-ignore
    for (const request of requests) {
      t.equal(request.path, wanted)
      t.equal(request.query.get('fieldSelector'), fieldSelector)
    }
  }
  const { server, model } = await setUp(t, {
    prepare: (server) => server.put('/api/v1/services', service('web'))
  })
  t.notOk(
    server.requests.some((request) => request.path.endsWith('/leases')),
    'nowhere, unless set'
  )
  t.equal(model.objects.size, 1)
})
