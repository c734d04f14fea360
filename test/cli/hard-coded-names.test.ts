/** Names in manifests that hold another cluster's name or zone: which are found, where, and what to use instead. */
import { test } from 'tap'
import { findHardCodedNames } from '../../src/cli/hard-coded-names.ts'
import { parseConfig } from '../../src/config/load.ts'
import { cpuMsOf } from '../support/cpu-time.ts'

const config = parseConfig(
  {
    text: `
cluster: {name: cluster-b, source: {manifests: ["."]}}
peers:
  cluster-a: {servers: ["dns.cluster-a.example.net:53"]}
  west: {servers: ["192.0.2.1:53"]}
  unused: {servers: ["192.0.2.2:53"]}
policies:
  - {name: backend, dnsName: backend.svc.cluster.local, targets: [cluster-a, local]}
  - {name: shop, dnsName: shop.svc.cluster.local, targets: [{peer: west, zone: k8s.west.internal}]}
  - {name: cart, dnsName: cart.data.svc.cluster.local, targets: [{peer: cluster-a, zone: k8s.a.internal}]}
  - {name: deep, dnsName: deep.backend.svc.cluster.local, targets: [{peer: west, zone: k8s.west.internal}]}
  - {name: whole, dnsName: cluster-d.example, targets: [west]}`,
    hash: ''
  },
  'config.yaml',
  { home: '/' }
)

test('findHardCodedNames: another cluster is named', async (t) => {
  const rows: [line: string, want: string][] = [
    ['  URL: "http://api.backend.svc.cluster-a.local:8080/x"', '16 api.backend.svc.cluster-a.local hard-codes cluster-a.local, the zone of another cluster; use api.backend.svc.cluster.local, which policy backend decides'],
    ['  URL: cart.shop.svc.k8s.west.internal.', '8 cart.shop.svc.k8s.west.internal. hard-codes k8s.west.internal, the zone of west; use cart.shop.svc.cluster.local, which policy shop decides'],
    ['  URL: a.data.svc.k8s.west.internal', '8 a.data.svc.k8s.west.internal hard-codes k8s.west.internal, the zone of west; use a.data.svc.cluster.local, with a policy that peers it to west'],
    ['  URL: deep.backend.svc.k8s.west.internal', '8 deep.backend.svc.k8s.west.internal hard-codes k8s.west.internal, the zone of west; use deep.backend.svc.cluster.local, which policy deep decides'],
    ['  URL: api.backend.svc.k8s.west.internal', '8 api.backend.svc.k8s.west.internal hard-codes k8s.west.internal, the zone of west; use api.backend.svc.cluster.local, with a policy that peers it to west: none does yet, policy backend decides it without west'],
    ['  URL: deep.backend.svc.cluster-a.local', '8 deep.backend.svc.cluster-a.local hard-codes cluster-a.local, the zone of another cluster; use deep.backend.svc.cluster.local, with a policy that peers it to cluster-a: none does yet, policy deep decides it without cluster-a'],
    ['  URL: x.cart.data.svc.k8s.a.internal', '8 x.cart.data.svc.k8s.a.internal hard-codes k8s.a.internal, the zone of cluster-a; use x.cart.data.svc.cluster.local, which policy cart decides'],
    ['  k8s.west.internal:53 { forward . 192.0.2.1 }', '3 k8s.west.internal hard-codes k8s.west.internal, the zone of west; names of cluster.local are peered to it'],
    ['- --target=_http._tcp.a.data.svc.other.example', '12 _http._tcp.a.data.svc.other.example hard-codes other.example, the zone of another cluster; use _http._tcp.a.data.svc.cluster.local, with a policy that peers it'],
    ['host: API.cluster-a.example.com', '7 API.cluster-a.example.com hard-codes the name of cluster cluster-a; use a name below backend.svc.cluster.local, as api.backend.svc.cluster.local, which policy backend peers to it'],
    ['host: cluster-a.example.com', '7 cluster-a.example.com hard-codes the name of cluster cluster-a; use a name below backend.svc.cluster.local, which policy backend peers to it'],
    ['host: api.unused.example.com', '7 api.unused.example.com hard-codes the name of cluster unused, to which no policy peers a name yet'],
    ['x: cluster-a.api.backend.svc.clusterset.local', '4 cluster-a.api.backend.svc.clusterset.local names cluster cluster-a in the clusterset; use api.backend.svc.clusterset.local'],
    ['x: pod-0.west.db.data.svc.clusterset.local', '4 pod-0.west.db.data.svc.clusterset.local names cluster west in the clusterset; use db.data.svc.clusterset.local']
  ] // prettier-ignore
  for (const [line, want] of rows) {
    const found = findHardCodedNames(`kind: ConfigMap\n${line}\n`, config, 10)
    t.same(found.map(({ line: at, column, written, reason }) => `${at} ${column} ${written} ${reason}`), [`2 ${want}`], line) // prettier-ignore
  }
})

test('findHardCodedNames: what names no other cluster is left alone', async (t) => {
  const lines = [
    'x: api.backend.svc.cluster.local',
    'x: api.backend.svc',
    'x: api.backend.svc.cluster',
    'x: api.backend.svc.clusterset.local',
    'x: _http._tcp.api.backend.svc.clusterset.local',
    'x: pod-0.api.backend.svc.clusterset.local',
    'x: www.example.org',
    'x: db.prod.svc.cluster-d.example',
    'x: dns.cluster-a.example.net:53',
    'x: api.backend.svc.k8s.west.internal.example.com',
    'x: svc.k8s.west.internal.cluster-a.example.com',
    'x: api.backend.svc.cluster.local.cluster-a.example.com',
    'image: registry.cluster-a.example/app:1.0.0',
    '# see api.cluster-a.example.com',
    'cluster: cluster-a',
    'iam: my-project.svc.id.goog',
    'mail: someone@cluster-a.example.com',
    'x: 10.0.0.1',
    `x: ${'a.'.repeat(200)}cluster-a`,
    'multicluster.kubernetes.io/source-cluster: cluster-a'
  ]
  for (const line of lines) t.same(findHardCodedNames(line, config, 10), [], line)
})

test('findHardCodedNames is bounded, and long lines are no burden', async (t) => {
  t.equal(findHardCodedNames('host: api.cluster-a.example.com\n'.repeat(50), config, 7).length, 7)
  const line = `x: .${'a'.repeat(2_000_000)} ${'a-'.repeat(500_000)} ${'a.'.repeat(500_000)}`
  t.ok(cpuMsOf(() => t.same(findHardCodedNames(line, config, 7), [])) < 6_000)
})
