/** Which source clusters are alive, by their Leases, on a clock that is moved by hand. */
import { test } from 'tap'
import { LeasePattern } from '../../src/cluster/lease-objects.ts'
import { reduceObject } from '../../src/cluster/objects.ts'
import { SourceClusters } from '../../src/cluster/source-clusters.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { ask, eventsFor, stateOf, zonesForYaml } from './fixture.ts'
import { recordingLog } from './kubernetes/fixture.ts'

function setUp(pattern = 'peerdns/{cluster}-alive') {
  const clock = new ManualClock(Date.parse('2026-03-01T12:00:00Z'))
  const changes: string[] = []
  const asked: string[] = []
  const { log, lines } = recordingLog()
  const clusters = new SourceClusters({
    pattern: new LeasePattern(pattern),
    clock,
    log,
    askAgain: (why) => asked.push(why),
    onChange: (cluster, isLost) => changes.push(`${cluster} ${isLost ? 'lost' : 'back'}`)
  })
  const put = (
    cluster: string,
    { durationSeconds = 15, atMs = clock.epochMs(), name = `${cluster}-alive`, namespace = 'peerdns' } = {}
  ) =>
    clusters.take([
      {
        type: 'put',
        object: { kind: 'Lease', namespace, name, renewTime: new Date(atMs).toISOString(), durationSeconds }
      }
    ])
  const remove = (cluster: string) =>
    clusters.take([{ type: 'delete', kind: 'Lease', namespace: 'peerdns', name: `${cluster}-alive` }])
  /** The API server answers the question that is open. */
  const answer = (tookMs = 5) => {
    const beganAtMs = clock.nowMs()
    clock.advance(tookMs)
    clusters.listed(beganAtMs)
  }
  return { clock, clusters, changes, asked, lines, put, remove, answer }
}

test('SourceClusters: one that no longer renews is lost when its time is over, and comes back', async (t) => {
  const { clock, clusters, changes, asked, lines, put, answer } = setUp()
  put('east')
  put('west')
  for (let second = 0; second < 60; second += 5) {
    clock.advance(5_000)
    put('east')
    if (second < 20) put('west')
    if (asked.length > 0) break
  }
  t.equal(clock.nowMs(), 35_000, 'west renewed at 20 s for the last time, for 15 s')
  t.same(changes, [], 'silence is no proof')
  answer()
  t.same(changes, ['west lost'])
  t.match(clusters.status(), [
    { cluster: 'east', lease: 'peerdns/east-alive', isLost: false, renewedAgoMs: 5, durationMs: 15_000 },
    { cluster: 'west', isLost: true, renewedAgoMs: 15_005 }
  ])
  t.match(lines, [{ level: 'warn', fields: { cluster: 'west', lease: 'peerdns/west-alive', durationSeconds: 15 } }])
  for (let second = 0; second < 60; second += 5) {
    clock.advance(5_000)
    put('east')
  }
  t.equal(asked.length, 1, 'asked once, not again and again')
  put('west')
  t.same(changes, ['west lost', 'west back'], 'at once')
  t.same(clusters.stats, { lossesTotal: 1, returnsTotal: 1 })
  clusters.close()
  t.equal(clock.pendingTimers, 0)
})

test('SourceClusters: a renewal that was only under way counts', async (t) => {
  const { clock, changes, asked, put, answer } = setUp()
  put('east')
  clock.advance(15_000)
  t.equal(asked.length, 1)
  put('east', { atMs: clock.epochMs() - 4_000 })
  answer()
  t.same(changes, [])
  clock.advance(14_900)
  t.equal(asked.length, 1)
  clock.advance(100)
  t.equal(asked.length, 2, 'its time counts from when we saw it')
})

test('SourceClusters: a list that was begun before the question does not answer it', async (t) => {
  const { clock, clusters, changes, asked, put, answer } = setUp()
  put('east')
  const beganAtMs = clock.nowMs() + 14_999
  clock.advance(15_000)
  clusters.listed(beganAtMs)
  t.same([changes, asked.length], [[], 2])
  answer()
  t.same(changes, ['east lost'])
})

test('SourceClusters: while the API server is away nobody is lost, and afterwards all have their time anew', async (t) => {
  for (const how of ['silent', 'failing'] as const) {
    const { clock, clusters, changes, asked, put, answer } = setUp()
    put('east')
    clock.advance(5_000)
    if (how === 'failing') clusters.interrupted()
    clock.advance(100_000)
    t.equal(asked.length, 1, how)
    answer()
    t.same(changes, [], 'it could not renew')
    clock.advance(14_000)
    t.equal(asked.length, 1)
    clock.advance(1_000)
    answer()
    t.same(changes, ['east lost'], 'and it did not when it could')
  }
})

test('SourceClusters: a break that is over at once gives nobody more time', async (t) => {
  const { clock, clusters, changes, asked, put, answer } = setUp()
  put('east')
  for (let second = 0; second < 15; second++) {
    clock.advance(900)
    clusters.interrupted()
    answer(100)
  }
  t.same([changes, asked.length], [[], 15])
  clock.advance(1)
  answer()
  t.same(changes, ['east lost'])
})

test('SourceClusters: clocks of others may be wrong, but not by hours', async (t) => {
  const rows: [name: string, offsetMs: number, isLost: boolean][] = [
    ['four minutes behind', -4 * 60_000, false],
    ['an hour ahead', 3_600_000, false],
    ['an hour ago', -3_600_000, true],
    ['never renewed', NaN, false]
  ]
  for (const [name, offsetMs, isLost] of rows) {
    const { clock, clusters, changes, put, answer } = setUp()
    if (Number.isNaN(offsetMs)) {
      const object = { kind: 'Lease', namespace: 'peerdns', name: 'east-alive', renewTime: '' } as const
      clusters.take([{ type: 'put', object: { ...object, durationSeconds: 15 } }])
    } else put('east', { atMs: clock.epochMs() + offsetMs })
    t.same(changes, isLost ? ['east lost'] : [], name)
    if (isLost) put('east', { atMs: clock.epochMs() + offsetMs + 5_000 })
    t.same(changes, isLost ? ['east lost', 'east back'] : [], 'whoever renews is alive, whatever the clocks say')
    clock.advance(15_000)
    answer()
    t.equal(changes.at(-1), 'east lost', 'and its time is our own')
  }
})

test('SourceClusters: without a Lease a cluster is kept, also when its Lease is deleted or says nothing', async (t) => {
  const { clock, clusters, changes, put, remove, answer } = setUp()
  put('east')
  clock.advance(15_000)
  answer()
  remove('east')
  t.same(changes, ['east lost', 'east back'])
  put('west')
  remove('west')
  clock.advance(1_000_000)
  t.same([changes.length, clusters.status()], [2, []])
  put('west')
  const identity = { kind: 'Lease', namespace: 'peerdns', name: 'west-alive' }
  clusters.take([{ type: 'reject', identity, path: 'spec.leaseDurationSeconds', reason: 'missing' }])
  t.same(clusters.status(), [])
})

test('SourceClusters: of several Leases of one cluster the last one counts', async (t) => {
  const { clock, changes, put, answer } = setUp('{cluster}-alive')
  put('east', { namespace: 'one' })
  clock.advance(10_000)
  put('east', { namespace: 'two' })
  clock.advance(5_000)
  answer(0)
  t.same(changes, [])
  clock.advance(10_000)
  answer()
  t.same(changes, ['east lost'])
  put('east', { namespace: 'one' })
  t.same(changes, ['east lost', 'east back'])
})

test('SourceClusters: durations change, and may be longer than a timer can hold', async (t) => {
  const { clock, changes, asked, put, answer } = setUp()
  const atMs = clock.epochMs()
  put('east', { atMs, durationSeconds: 0x7fff_ffff })
  clock.advance(10_000_000)
  t.equal(asked.length, 0)
  put('east', { atMs, durationSeconds: 10_030 })
  clock.advance(30_000)
  answer()
  t.same(changes, ['east lost'])
})

test('LeasePattern: whose Lease it is', async (t) => {
  const rows: [pattern: string, lease: string, cluster: string | null][] = [
    ['{cluster}', 'any/east', 'east'],
    ['{cluster}-alive', 'any/east-alive', 'east'],
    ['{cluster}-alive', 'any/-alive', null],
    ['{cluster}-alive', 'any/east-alive-2', null],
    ['peerdns/mcs-{cluster}-alive', 'peerdns/mcs-east.example-alive', 'east.example'],
    ['peerdns/mcs-{cluster}-alive', 'other/mcs-east-alive', null],
    ['peerdns/a{cluster}a', 'peerdns/a', null],
    ['{cluster}/managed-cluster-lease', 'east/managed-cluster-lease', 'east'],
    ['{cluster}/managed-cluster-lease', 'east/another', null]
  ]
  for (const [pattern, lease, cluster] of rows) {
    const [namespace = '', name = ''] = lease.split('/')
    t.equal(new LeasePattern(pattern).clusterOf({ namespace, name }), cluster, `${pattern} ${lease}`)
  }
})

test('reduceObject: a Lease, where it is asked for', async (t) => {
  const raw = (spec: object | null) => ({
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: { namespace: 'peerdns', name: 'east.example-alive' },
    spec
  })
  const whole = raw({ renewTime: '2026-03-01T12:00:00.000000Z', leaseDurationSeconds: 15, holderIdentity: 'x' })
  const identity = { kind: 'Lease', namespace: 'peerdns', name: 'east.example-alive' }
  const want = { ...identity, renewTime: '2026-03-01T12:00:00.000000Z', durationSeconds: 15 }
  t.same(reduceObject(whole, 'Lease'), { ok: want, warning: null })
  t.same(reduceObject(whole), { ignored: 'kind Lease' }, 'and not out of a file')
  for (const spec of [null, {}, { leaseDurationSeconds: 0 }, { leaseDurationSeconds: -1 }]) {
    t.match(reduceObject(raw(spec), 'Lease'), { path: 'spec.leaseDurationSeconds', identity })
  }
})

test('ClusterZones: the endpoints of a lost source cluster are left out, and come back', async (t) => {
  const slice = (service: string, cluster: string, address: string) => `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: ${service}-${cluster}
  namespace: shop
  labels: {multicluster.kubernetes.io/service-name: ${service}, multicluster.kubernetes.io/source-cluster: ${cluster}}
addressType: IPv4
endpoints: [{addresses: [${address}], hostname: web-0}]
ports: [{name: http, port: 80}]
---`
  const zones = zonesForYaml(
    `
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: web, namespace: shop}
spec: {type: Headless, ports: [{name: http, port: 80}]}
---
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: vip, namespace: shop}
spec: {type: ClusterSetIP, ips: [10.9.9.9], ports: [{name: http, port: 80}]}
---${slice('web', 'east', '10.1.0.1')}${slice('web', 'west', '10.2.0.1')}${slice('vip', 'east', '10.1.0.2')}`,
    { importsInZone: true }
  )
  const set = (cluster: string, isLost: boolean) => zones.rewrite(zones.setSourceCluster(cluster, isLost), 0)
  const web = 'web.shop.svc.clusterset.local'
  const vip = 'vip.shop.svc.clusterset.local'
  set('nowhere', true)
  t.same(ask(zones, web, 'A'), ['10.1.0.1', '10.2.0.1'])
  set('east', true)
  t.same(ask(zones, web, 'A'), ['10.2.0.1'])
  t.same(ask(zones, `web-0.east.${web}`, 'A'), ['NXDOMAIN'])
  t.same(ask(zones, '1.0.1.10.in-addr.arpa', 'PTR'), ['NXDOMAIN'])
  t.same(ask(zones, `_http._tcp.${web}`, 'SRV'), [`0 100 80 web-0.west.${web}.`])
  t.same(ask(zones, vip, 'A'), ['10.9.9.9'], 'an address of this cluster is kept')
  t.equal(stateOf(zones, 'vip.shop.svc.cluster.local'), 'empty', 'and policies know that nobody is behind it')
  zones.apply(eventsFor([{ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }]), 0)
  set('west', true)
  t.equal(zones.clustersetZone.serviceState(zones.describeService('shop', 'web').clustersetZone!.owner), 'empty')
  set('east', false)
  t.same(ask(zones, web, 'A'), ['10.1.0.1'])
  set('west', false)
  t.same(ask(zones, web, 'A'), ['10.1.0.1', '10.2.0.1'])
  t.same(ask(zones, '1.0.1.10.in-addr.arpa', 'PTR'), [`web-0.east.${web}.`])
})
