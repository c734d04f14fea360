/**
 * Kubernetes DNS-Based Multicluster Service Discovery, version 1.0.0, section by section.
 * https://github.com/kubernetes/enhancements/blob/master/keps/sig-multicluster/1645-multi-cluster-services-api/specification.md
 */
import { test } from 'tap'
import type { Test } from 'tap'
import type { ClusterOptions } from '../../src/cluster/cluster-zones.ts'
import { ask, reverseNameOf, stateOf, ttlOf, zonesForYaml } from '../cluster/fixture.ts'

type Row = [name: string, type: string, ...answer: string[]]

function check(t: Test, objects: string, rows: readonly Row[], options: Partial<ClusterOptions> = {}): void {
  const zones = zonesForYaml(objects, options)
  t.same(zones.leftOut(), [], 'no object is left out')
  for (const [name, type, ...want] of rows) t.same(ask(zones, name, type), want.sort(), `${name} ${type}`)
}

const clusterSetIp = `
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: ServiceImport
metadata: {name: api, namespace: test}
spec:
  type: ClusterSetIP
  ips: [10.42.42.42, "fd00:42::42"]
  ports: [{name: https, port: 443, protocol: TCP}, {port: 8080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: imported-api-1
  namespace: test
  labels: {multicluster.kubernetes.io/service-name: api, multicluster.kubernetes.io/source-cluster: cluster-a}
addressType: IPv4
ports: [{name: https, port: 8443}]
endpoints: [{addresses: [10.8.0.1], hostname: one}]
`

const slice = (cluster: string, family: string, endpoints: string, name = `${cluster}-${family}`): string => `
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata:
  name: ${name}
  namespace: test
  labels: {multicluster.kubernetes.io/service-name: pets${cluster === '' ? '' : `, multicluster.kubernetes.io/source-cluster: ${cluster}`}}
addressType: ${family}
ports: [{name: http, port: 8080}, {name: dns, port: 5353, protocol: UDP}]
endpoints: ${endpoints}
`

const headlessImport = `
apiVersion: multicluster.x-k8s.io/v1beta1
kind: ServiceImport
metadata: {name: pets, namespace: test}
spec: {type: Headless, ports: [{name: http, port: 80}]}
`

const pets =
  headlessImport +
  slice('cluster-a', 'IPv4', '[{addresses: [10.8.1.1], hostname: pet-1}, {addresses: [10.8.1.2]}]') +
  slice('cluster-a', 'IPv6', '[{addresses: ["fd00:8::1"], hostname: pet-1}]') +
  slice(
    'cluster-b',
    'IPv4',
    '[{addresses: [10.8.2.1], hostname: pet-1}, {addresses: [10.8.2.2], hostname: pet-2, conditions: {ready: false}}]'
  ) +
  slice('', 'IPv4', '[{addresses: [10.8.3.1], hostname: pet-9}]', 'unlabelled')

test('2.2 schema version', async (t) => {
  check(t, '', [
    ['dns-version.clusterset.local', 'TXT', '"1.0.0"'],
    ['clusterset.local', 'NS', 'ns.dns.clusterset.local.'],
    ['ns.dns.clusterset.local', 'A', '192.0.2.53'],
    ['svc.clusterset.local', 'A', 'NODATA'],
    ['pod.clusterset.local', 'A', 'NXDOMAIN']
  ])
})

test('2.3.1 A/AAAA of a ClusterSetIP', async (t) => {
  const rows: Row[] = [
    ['api.test.svc.clusterset.local', 'A', '10.42.42.42'],
    ['API.Test.svc.clusterset.local', 'AAAA', 'fd00:42::42'],
    ['api.test.svc.clusterset.local', 'TXT', 'NODATA'],
    ['test.svc.clusterset.local', 'A', 'NODATA'],
    ['nosuch.test.svc.clusterset.local', 'A', 'NXDOMAIN']
  ]
  check(t, clusterSetIp, rows)
  // The version that has the fields beside spec, should one be served.
  const flat = clusterSetIp
    .replace('v1alpha1', 'v1beta1')
    .replace('spec:', '')
    .replaceAll(/^ {2}(type|ips|ports)/gm, '$1')
  check(t, flat, rows)
  const withoutAddress = headlessImport.replace('Headless', 'ClusterSetIP')
  check(t, withoutAddress, [
    ['pets.test.svc.clusterset.local', 'A', 'NODATA'],
    ['pets.test.svc.clusterset.local', 'SRV', 'NODATA']
  ])
})

test('2.3.2 SRV of a ClusterSetIP', async (t) => {
  const target = 'api.test.svc.clusterset.local.'
  check(t, clusterSetIp, [
    ['_https._tcp.api.test.svc.clusterset.local', 'SRV', `0 100 443 ${target}`],
    ['_HTTPS._TCP.api.test.svc.clusterset.local', 'SRV', `0 100 443 ${target}`],
    ['_https._udp.api.test.svc.clusterset.local', 'SRV', 'NXDOMAIN'],
    ['api.test.svc.clusterset.local', 'SRV', `0 50 443 ${target}`, `0 50 8080 ${target}`]
  ])
})

test('2.3.3 PTR of a ClusterSetIP, where the address has no local one', async (t) => {
  check(t, clusterSetIp, [
    [reverseNameOf('10.42.42.42'), 'PTR', 'api.test.svc.clusterset.local.'],
    [reverseNameOf('fd00:42::42'), 'PTR', 'api.test.svc.clusterset.local.'],
    [reverseNameOf('10.8.0.1'), 'PTR', 'NXDOMAIN']
  ])
  const local =
    '\n---\napiVersion: v1\nkind: Service\nmetadata: {name: own, namespace: test}\nspec: {clusterIP: 10.42.42.42}\n'
  check(t, clusterSetIp + local, [[reverseNameOf('10.42.42.42'), 'PTR', 'own.test.svc.cluster.local.']])
})

test('2.3.4 no records of single clusters for a ClusterSetIP', async (t) => {
  check(t, clusterSetIp, [
    ['cluster-a.api.test.svc.clusterset.local', 'A', 'NXDOMAIN'],
    ['one.api.test.svc.clusterset.local', 'A', 'NXDOMAIN'],
    ['one.cluster-a.api.test.svc.clusterset.local', 'A', 'NXDOMAIN']
  ])
})

test('2.4.1 A/AAAA of a headless import', async (t) => {
  check(t, pets, [
    ['pets.test.svc.clusterset.local', 'A', '10.8.1.1', '10.8.1.2', '10.8.2.1', '10.8.3.1'],
    ['pets.test.svc.clusterset.local', 'AAAA', 'fd00:8::1'],
    ['pet-1.cluster-a.pets.test.svc.clusterset.local', 'A', '10.8.1.1'],
    ['pet-1.cluster-a.pets.test.svc.clusterset.local', 'AAAA', 'fd00:8::1'],
    ['pet-1.cluster-b.pets.test.svc.clusterset.local', 'A', '10.8.2.1'],
    ['10-8-1-2.Cluster-A.pets.test.svc.clusterset.local', 'A', '10.8.1.2'],
    ['pet-2.cluster-b.pets.test.svc.clusterset.local', 'A', 'NXDOMAIN'],
    ['pet-1.pets.test.svc.clusterset.local', 'A', 'NXDOMAIN'],
    // A slice that does not say whence it comes is our own cluster's.
    ['pet-9.north.pets.test.svc.clusterset.local', 'A', '10.8.3.1']
  ])
  for (const [slices, state] of [
    ['', 'unknown'],
    [slice('cluster-a', 'IPv4', 'null'), 'empty']
  ] as const) {
    const zones = zonesForYaml(headlessImport + slices)
    t.same(ask(zones, 'pets.test.svc.clusterset.local', 'A'), ['NXDOMAIN'], state)
    t.equal(stateOf(zones, 'pets.test.svc.clusterset.local'), state)
    t.same(ask(zones, 'test.svc.clusterset.local', 'A'), ['NODATA'])
  }
  const draining = slice(
    'cluster-a',
    'IPv4',
    '[{addresses: [10.8.1.1], conditions: {ready: false, serving: true, terminating: true}}]'
  )
  check(t, headlessImport + draining, [['pets.test.svc.clusterset.local', 'A', '10.8.1.1']])
})

test('2.4.2 SRV of a headless import', async (t) => {
  const hosts = ['pet-1.cluster-a', '10-8-1-2.cluster-a', 'pet-1.cluster-b', 'pet-9.north']
  const targets = hosts.map((host) => `${host}.pets.test.svc.clusterset.local.`)
  check(t, pets, [
    ['_http._tcp.pets.test.svc.clusterset.local', 'SRV', ...targets.map((target) => `0 25 8080 ${target}`)],
    ['_dns._udp.pets.test.svc.clusterset.local', 'SRV', ...targets.map((target) => `0 25 5353 ${target}`)],
    ['_http._udp.pets.test.svc.clusterset.local', 'SRV', 'NXDOMAIN'],
    [
      'pets.test.svc.clusterset.local',
      'SRV',
      ...targets.flatMap((target) => [`0 12 8080 ${target}`, `0 12 5353 ${target}`])
    ]
  ])
})

test('2.4.3 PTR of a headless import, where the address has no local one', async (t) => {
  check(t, pets, [
    [reverseNameOf('10.8.1.1'), 'PTR', 'pet-1.cluster-a.pets.test.svc.clusterset.local.'],
    [reverseNameOf('fd00:8::1'), 'PTR', 'pet-1.cluster-a.pets.test.svc.clusterset.local.']
  ])
})

test('2.4.4 no records of single clusters for a headless import', async (t) => {
  const rows = ['A', 'AAAA', 'SRV', 'CNAME'].map((type): Row => [
    'cluster-a.pets.test.svc.clusterset.local',
    type,
    'NODATA'
  ])
  check(t, pets, [...rows, ['cluster-c.pets.test.svc.clusterset.local', 'A', 'NXDOMAIN']])
})

test('names that would be too long are left out, the addresses stay', async (t) => {
  const [host, service, cluster, namespace] = ['h', 's', 'c', 'n'].map((letter) => letter.repeat(63))
  const objects = pets
    .replaceAll('namespace: test', `namespace: ${namespace}`)
    .replaceAll('name: pets', `name: ${service}`)
    .replaceAll('cluster-a', cluster!)
    .replaceAll('pet-1', host!)
  check(t, objects, [
    [`${service}.${namespace}.svc.clusterset.local`, 'A', '10.8.1.1', '10.8.1.2', '10.8.2.1', '10.8.3.1'],
    [`${host}.cluster-b.${service}.${namespace}.svc.clusterset.local`, 'A', '10.8.2.1'],
    [reverseNameOf('10.8.1.1'), 'PTR', 'NXDOMAIN']
  ])
})

test('slices with a multicluster label belong to imports, not to Services', async (t) => {
  const service =
    '\n---\napiVersion: v1\nkind: Service\nmetadata: {name: pets, namespace: test}\nspec: {clusterIP: None}\n'
  const both = (pets + service).replaceAll('labels: {', 'labels: {kubernetes.io/service-name: pets, ')
  const zones = zonesForYaml(both)
  t.same(ask(zones, 'pets.test.svc.cluster.local', 'A'), ['NXDOMAIN'])
  t.equal(stateOf(zones, 'pets.test.svc.cluster.local'), 'unknown')
  t.equal(ask(zones, 'pets.test.svc.clusterset.local', 'A').length, 4)
})

test('importsInZone answers an import in the cluster zone where no Service has its name', async (t) => {
  const local = 'api.test.svc.cluster.local.'
  check(t, clusterSetIp, [[local, 'A', 'NXDOMAIN']])
  check(
    t,
    clusterSetIp + '---' + pets,
    [
      [local, 'A', '10.42.42.42'],
      [local, 'AAAA', 'fd00:42::42'],
      [`_https._tcp.${local}`, 'SRV', `0 100 443 ${local}`],
      [reverseNameOf('10.42.42.42'), 'PTR', local],
      ['api.test.svc.clusterset.local', 'A', '10.42.42.42'],
      ['pets.test.svc.cluster.local', 'A', 'NXDOMAIN']
    ],
    { importsInZone: true }
  )
  const service =
    '\n---\napiVersion: v1\nkind: Service\nmetadata: {name: api, namespace: test}\nspec: {clusterIP: 10.3.3.3}\n'
  check(
    t,
    clusterSetIp + service,
    [
      [local, 'A', '10.3.3.3'],
      [local, 'SRV', 'NODATA']
    ],
    { importsInZone: true }
  )
  const withoutSlices = clusterSetIp.slice(0, clusterSetIp.indexOf('---'))
  const zones = zonesForYaml(withoutSlices, { importsInZone: true })
  t.equal(stateOf(zones, local), 'unknown')
})

test('TTL per ServiceImport', async (t) => {
  const annotated = pets.replace('namespace: test}', 'namespace: test, annotations: {peerdns.io/ttl: 20s}}')
  t.equal(ttlOf(zonesForYaml(annotated), 'pets.test.svc.clusterset.local', 'A'), 20)
})
