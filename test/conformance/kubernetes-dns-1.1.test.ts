/**
 * Kubernetes DNS-Based Service Discovery, version 1.1.0, section by section.
 * https://github.com/kubernetes/dns/blob/master/docs/specification.md
 */
import { test } from 'tap'
import type { Test } from 'tap'
import type { ClusterOptions } from '../../src/cluster/cluster-zones.ts'
import { ask, reverseNameOf, stateOf, ttlOf, zonesForYaml } from '../cluster/fixture.ts'

/** A question and the sorted answer; NODATA and NXDOMAIN are answers too. */
type Row = [name: string, type: string, ...answer: string[]]

function check(t: Test, objects: string, rows: readonly Row[], options: Partial<ClusterOptions> = {}): void {
  const zones = zonesForYaml(objects, options)
  t.same(zones.leftOut(), [], 'no object is left out')
  for (const [name, type, ...want] of rows) {
    t.same(ask(zones, name, type), want.sort(), `${name} ${type}`)
  }
}

const clusterIp = `
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  clusterIP: 10.3.0.1
  clusterIPs: [10.3.0.1, "fd00:3::1"]
  ports:
  - {name: https, port: 443, targetPort: 8443}
  - {name: dns, port: 53, protocol: UDP}
  - {name: dns-tcp, port: 53, protocol: TCP}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{name: https, port: 8443}]
endpoints:
- {addresses: [10.4.0.1], hostname: first}
- {addresses: [10.4.0.2]}
---
apiVersion: v1
kind: Service
metadata: {name: single, namespace: shop}
spec: {clusterIP: 10.3.0.2, ports: [{port: 8080}]}
`

const headless = `
apiVersion: v1
kind: Service
metadata: {name: pets, namespace: zoo}
spec:
  clusterIP: None
  ports: [{name: http, port: 80}, {name: admin, port: 81}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: pets-4, namespace: zoo, labels: {kubernetes.io/service-name: pets}}
addressType: IPv4
ports: [{name: http, port: 8080}, {name: admin, port: 8081}]
endpoints:
- {addresses: [10.4.1.1], hostname: cat, conditions: {ready: true}}
- {addresses: [10.4.1.2], conditions: {}}
- {addresses: [10.4.1.3], hostname: dog, conditions: {ready: false}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: pets-6, namespace: zoo, labels: {kubernetes.io/service-name: pets}}
addressType: IPv6
ports: [{name: http, port: 8080}, {name: admin, port: 8081}]
endpoints:
- {addresses: ["FD00:4:0::1:1"], hostname: cat, conditions: {ready: true}}
- {addresses: ["2001:db8::"]}
`

test('2.2 schema version', async (t) => {
  check(t, '', [
    ['dns-version.cluster.local', 'TXT', '"1.1.0"'],
    ['dns-version.cluster.local', 'A', 'NODATA'],
    ['x.dns-version.cluster.local', 'TXT', 'NXDOMAIN']
  ])
})

test('2.3.1 A/AAAA of a Service with ClusterIP', async (t) => {
  check(t, clusterIp, [
    ['web.shop.svc.cluster.local', 'A', '10.3.0.1'],
    ['WEB.Shop.svc.cluster.local', 'AAAA', 'fd00:3::1'],
    ['single.shop.svc.cluster.local', 'A', '10.3.0.2'],
    ['single.shop.svc.cluster.local', 'AAAA', 'NODATA'],
    ['web.shop.svc.cluster.local', 'MX', 'NODATA'],
    ['nosuch.shop.svc.cluster.local', 'A', 'NXDOMAIN'],
    ['web.nosuch.svc.cluster.local', 'A', 'NXDOMAIN'],
    ['web.shop.cluster.local', 'A', 'NXDOMAIN'],
    ['shop.svc.cluster.local', 'A', 'NODATA'],
    ['svc.cluster.local', 'A', 'NODATA'],
    ['pod.cluster.local', 'A', 'NODATA'],
    ['cluster.local', 'A', 'NODATA'],
    ['*.shop.svc.cluster.local', 'A', 'NXDOMAIN'],
    ['constructor.shop.svc.cluster.local', 'A', 'NXDOMAIN'],
    ['web.__proto__.svc.cluster.local', 'A', 'NXDOMAIN']
  ])
  check(
    t,
    `
apiVersion: v1
kind: Service
metadata: {name: unallocated, namespace: shop}
spec: {ports: [{name: web, port: 80}]}
---
apiVersion: v1
kind: Service
metadata: {name: balanced, namespace: shop}
spec: {type: LoadBalancer, clusterIP: 10.3.0.4, externalIPs: [192.0.2.1], ports: [{name: web, port: 80, nodePort: 30080}]}
status: {loadBalancer: {ingress: [{ip: 192.0.2.2}]}}
---
apiVersion: v1
kind: Service
metadata: {name: svc, namespace: shop}
spec: {clusterIP: 10.3.0.5}
`,
    [
      ['unallocated.shop.svc.cluster.local', 'A', 'NODATA'],
      ['unallocated.shop.svc.cluster.local', 'SRV', 'NODATA'],
      ['_web._tcp.unallocated.shop.svc.cluster.local', 'SRV', 'NXDOMAIN'],
      ['balanced.shop.svc.cluster.local', 'A', '10.3.0.4'],
      ['svc.shop.svc.cluster.local', 'A', '10.3.0.5'],
      ['svc.shop.svc.cluster.local', 'SRV', 'NODATA']
    ]
  )
})

test('2.3.2 SRV of a Service with ClusterIP', async (t) => {
  const target = 'web.shop.svc.cluster.local.'
  check(t, clusterIp, [
    ['_https._tcp.web.shop.svc.cluster.local', 'SRV', `0 100 443 ${target}`],
    ['_HTTPS._TCP.web.shop.svc.cluster.local', 'SRV', `0 100 443 ${target}`],
    ['_dns._udp.web.shop.svc.cluster.local', 'SRV', `0 100 53 ${target}`],
    ['_dns._tcp.web.shop.svc.cluster.local', 'SRV', 'NXDOMAIN'],
    ['_sctp.web.shop.svc.cluster.local', 'SRV', 'NXDOMAIN'],
    ['_tcp.web.shop.svc.cluster.local', 'SRV', 'NODATA'],
    ['_https._tcp.web.shop.svc.cluster.local', 'A', 'NODATA'],
    // Extension: the ports at the plain name, which old peer finders ask for; equal port numbers are one record.
    ['web.shop.svc.cluster.local', 'SRV', `0 50 443 ${target}`, `0 50 53 ${target}`],
    ['single.shop.svc.cluster.local', 'SRV', '0 100 8080 single.shop.svc.cluster.local.'],
    ['_tcp.single.shop.svc.cluster.local', 'SRV', 'NXDOMAIN']
  ])
  check(
    t,
    `
apiVersion: v1
kind: Service
metadata: {name: edges, namespace: shop}
spec:
  clusterIP: 10.3.0.6
  ports:
  - {name: none}
  - {name: zero, port: 0}
  - {name: ${'p'.repeat(62)}, port: 62, protocol: SCTP}
  - {name: ${'q'.repeat(63)}, port: 63}
`,
    [
      // A port name of 63 characters leaves no room for the underscore in a label: only the plain name has it.
      [
        'edges.shop.svc.cluster.local',
        'SRV',
        '0 50 62 edges.shop.svc.cluster.local.',
        '0 50 63 edges.shop.svc.cluster.local.'
      ],
      [`_${'p'.repeat(62)}._sctp.edges.shop.svc.cluster.local`, 'SRV', '0 100 62 edges.shop.svc.cluster.local.'],
      ['_tcp.edges.shop.svc.cluster.local', 'SRV', 'NXDOMAIN']
    ]
  )
})

test('2.3.3 PTR of a Service with ClusterIP', async (t) => {
  check(t, clusterIp, [
    ['1.0.3.10.in-addr.arpa', 'PTR', 'web.shop.svc.cluster.local.'],
    [reverseNameOf('fd00:3::1').toUpperCase(), 'PTR', 'web.shop.svc.cluster.local.'],
    ['3.10.in-addr.arpa', 'PTR', 'NODATA'],
    ['9.9.3.10.in-addr.arpa', 'PTR', 'NXDOMAIN'],
    ['1.0.3.10.in-addr.arpa', 'A', 'NODATA'],
    // Extension: endpoints of ClusterIP Services have names, and so PTR records.
    ['first.web.shop.svc.cluster.local', 'A', '10.4.0.1'],
    ['10-4-0-2.web.shop.svc.cluster.local', 'A', '10.4.0.2'],
    ['10-4-0-1.web.shop.svc.cluster.local', 'A', 'NXDOMAIN'],
    ['1.0.4.10.in-addr.arpa', 'PTR', 'first.web.shop.svc.cluster.local.'],
    ['2.0.4.10.in-addr.arpa', 'PTR', '10-4-0-2.web.shop.svc.cluster.local.']
  ])
})

test('2.4.1 A/AAAA of a headless Service', async (t) => {
  check(t, headless, [
    ['pets.zoo.svc.cluster.local', 'A', '10.4.1.1', '10.4.1.2'],
    ['pets.zoo.svc.cluster.local', 'AAAA', '2001:db8::', 'fd00:4::1:1'],
    ['cat.pets.zoo.svc.cluster.local', 'A', '10.4.1.1'],
    ['cat.pets.zoo.svc.cluster.local', 'AAAA', 'fd00:4::1:1'],
    ['cat.pets.zoo.svc.cluster.local', 'SRV', 'NODATA'],
    ['10-4-1-2.pets.zoo.svc.cluster.local', 'A', '10.4.1.2'],
    ['10-4-1-1.pets.zoo.svc.cluster.local', 'A', 'NXDOMAIN'],
    ['2001-db8--0.pets.zoo.svc.cluster.local', 'AAAA', '2001:db8::'],
    ['dog.pets.zoo.svc.cluster.local', 'A', 'NXDOMAIN']
  ])
})

/** A headless Service with the endpoints given, as one slice unless `slices` says otherwise. */
const petsWith = (spec: string, endpoints: string): string => `
apiVersion: v1
kind: Service
metadata: {name: pets, namespace: zoo${spec.startsWith('annotations') ? `, ${spec}` : ''}}
spec: {clusterIP: None${spec === '' || spec.startsWith('annotations') ? '' : `, ${spec}`}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: pets-1, namespace: zoo, labels: {kubernetes.io/service-name: pets}}
addressType: IPv4
ports: [{name: http, port: 8080}]
endpoints: ${endpoints}
`

test('2.1 ready endpoints', async (t) => {
  const notReady = '[{addresses: [10.4.1.1], hostname: cat, conditions: {ready: false}}]'
  const draining =
    '[{addresses: [10.4.1.1], conditions: {ready: false, serving: true, terminating: true}}, {addresses: [10.4.1.2], conditions: {ready: false, serving: false}}]'
  // prettier-ignore
  const rows: { name: string; objects: string; answer: string[]; state: string }[] = [
    { name: 'not ready', objects: petsWith('', notReady), answer: ['NXDOMAIN'], state: 'empty' },
    { name: 'no endpoints', objects: petsWith('', 'null'), answer: ['NXDOMAIN'], state: 'empty' },
    { name: 'publishNotReadyAddresses', objects: petsWith('publishNotReadyAddresses: true', notReady), answer: ['10.4.1.1'], state: 'present' },
    { name: 'the old annotation', objects: petsWith('annotations: {service.alpha.kubernetes.io/tolerate-unready-endpoints: "true"}', notReady), answer: ['10.4.1.1'], state: 'present' },
    { name: 'none ready, one still serving', objects: petsWith('', draining), answer: ['10.4.1.1'], state: 'present' },
    { name: 'one ready, another one serving', objects: petsWith('', draining.slice(0, -1) + ', {addresses: [10.4.1.3]}]'), answer: ['10.4.1.3'], state: 'present' }
  ]
  for (const { name, objects, answer, state } of rows) {
    const zones = zonesForYaml(objects)
    t.same(ask(zones, 'pets.zoo.svc.cluster.local', 'A'), answer, name)
    t.equal(stateOf(zones, 'pets.zoo.svc.cluster.local'), state, `${name}: state`)
    t.same(ask(zones, 'zoo.svc.cluster.local', 'A'), ['NODATA'], `${name}: the namespace exists`)
  }
})

test('2.4.2 SRV of a headless Service', async (t) => {
  const hosts = ['cat', '10-4-1-2', '2001-db8--0'].map((host) => `${host}.pets.zoo.svc.cluster.local.`)
  check(t, headless, [
    ['_http._tcp.pets.zoo.svc.cluster.local', 'SRV', ...hosts.map((host) => `0 33 8080 ${host}`)],
    ['_Admin._tcp.pets.zoo.svc.cluster.local', 'SRV', ...hosts.map((host) => `0 33 8081 ${host}`)],
    ['pets.zoo.svc.cluster.local', 'SRV', ...hosts.flatMap((host) => [`0 16 8080 ${host}`, `0 16 8081 ${host}`])],
    ['_http._udp.pets.zoo.svc.cluster.local', 'SRV', 'NXDOMAIN']
  ])
  const many = Array.from({ length: 150 }, (_, at) => `{addresses: [10.4.2.${at}]}`)
  const srv = ask(zonesForYaml(petsWith('', `[${many.join(', ')}]`)), '_http._tcp.pets.zoo.svc.cluster.local', 'SRV')
  t.equal(srv.length, 150)
  t.ok(
    srv.every((text) => text.startsWith('0 1 8080 ')),
    'a weight is at least 1'
  )
})

test('2.4.3 PTR of a headless Service', async (t) => {
  check(t, headless, [
    [reverseNameOf('10.4.1.1'), 'PTR', 'cat.pets.zoo.svc.cluster.local.'],
    [reverseNameOf('10.4.1.2'), 'PTR', '10-4-1-2.pets.zoo.svc.cluster.local.'],
    [reverseNameOf('fd00:4::1:1'), 'PTR', 'cat.pets.zoo.svc.cluster.local.'],
    [reverseNameOf('2001:db8::'), 'PTR', '2001-db8--0.pets.zoo.svc.cluster.local.'],
    [reverseNameOf('10.4.1.3'), 'PTR', 'NXDOMAIN']
  ])
})

test('2.4 several slices, and Endpoints without slices', async (t) => {
  const second = `
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: pets-2, namespace: zoo, labels: {kubernetes.io/service-name: pets}}
addressType: IPv4
ports: [{name: http, port: 8080}, {name: more, port: 9}]
endpoints: [{addresses: [10.4.1.1], hostname: cat}, {addresses: [10.4.1.4], hostname: cat}]
`
  const first = petsWith('', '[{addresses: [10.4.1.1], hostname: cat}, {addresses: [10.4.1.2], hostname: dog}]')
  const endpoints = `
---
apiVersion: v1
kind: Endpoints
metadata: {name: pets, namespace: zoo}
subsets:
- addresses: [{ip: 10.4.9.1, hostname: old}]
  notReadyAddresses: [{ip: 10.4.9.2}]
  ports: [{name: http, port: 8888}]
`
  const host = (name: string): string => `${name}.pets.zoo.svc.cluster.local.`
  check(t, first + second + endpoints, [
    [host('').slice(1), 'A', '10.4.1.1', '10.4.1.2', '10.4.1.4'],
    [host('cat'), 'A', '10.4.1.1', '10.4.1.4'],
    [`_http._tcp.${host('').slice(1)}`, 'SRV', `0 50 8080 ${host('cat')}`, `0 50 8080 ${host('dog')}`],
    [`_more._tcp.${host('').slice(1)}`, 'SRV', `0 100 9 ${host('cat')}`],
    [host('old'), 'A', 'NXDOMAIN']
  ])
  const service = first.slice(0, first.indexOf('---'))
  check(t, service + endpoints, [
    [host('').slice(1), 'A', '10.4.9.1'],
    [host('old'), 'A', '10.4.9.1'],
    [`_http._tcp.${host('').slice(1)}`, 'SRV', `0 100 8888 ${host('old')}`]
  ])
  check(t, service.replace('None', 'None, publishNotReadyAddresses: true') + endpoints, [
    [host('').slice(1), 'A', '10.4.9.1', '10.4.9.2']
  ])
  const lone = zonesForYaml(service)
  t.same(ask(lone, 'pets.zoo.svc.cluster.local', 'A'), ['NXDOMAIN'])
  t.equal(stateOf(lone, 'pets.zoo.svc.cluster.local'), 'unknown')
})

test('2.5 ExternalName', async (t) => {
  const external = (name: string, target: string): string =>
    `---\napiVersion: v1\nkind: Service\nmetadata: {name: ${name}, namespace: shop}\nspec: {type: ExternalName, externalName: "${target}", ports: [{name: db, port: 5432}]}\n`
  const objects =
    external('plain', 'WWW.example.com') + external('dotted', 'db.example.com.') + external('digits', '192.0.2.7')
  check(t, objects, [
    ['plain.shop.svc.cluster.local', 'CNAME', 'www.example.com.'],
    ['plain.shop.svc.cluster.local', 'A', 'CNAME www.example.com.'],
    ['dotted.shop.svc.cluster.local', 'AAAA', 'CNAME db.example.com.'],
    ['dotted.shop.svc.cluster.local', 'SRV', 'CNAME db.example.com.'],
    ['digits.shop.svc.cluster.local', 'A', 'CNAME 192.0.2.7.'],
    ['x.plain.shop.svc.cluster.local', 'A', 'NXDOMAIN'],
    ['_db._tcp.plain.shop.svc.cluster.local', 'SRV', 'NXDOMAIN'],
    [reverseNameOf('10.0.2.7'), 'PTR', 'NXDOMAIN']
  ])
})

const pods = `
apiVersion: v1
kind: Namespace
metadata: {name: shop}
---
apiVersion: v1
kind: Pod
metadata: {name: walker, namespace: shop}
spec: {hostNetwork: true}
status: {phase: Running, podIP: 10.4.5.5, podIPs: [{ip: 10.4.5.5}, {ip: "fd00:4::"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: runner, namespace: shop}
status: {phase: Running, podIP: 10.4.5.5}
---
apiVersion: v1
kind: Pod
metadata: {name: done, namespace: shop}
status: {phase: Succeeded, podIP: 10.4.5.6}
`

test('2.6 pod records, insecure', async (t) => {
  check(t, pods, [
    ['10-4-5-5.shop.pod.cluster.local', 'A', '10.4.5.5'],
    ['10-4-5-5.shop.pod.cluster.local', 'AAAA', 'NODATA'],
    ['192-0-2-1.SHOP.pod.cluster.local', 'A', '192.0.2.1'],
    ['192-0-2-1.shop.pod.cluster.local', 'ANY', '192.0.2.1'],
    ['2001-DB8--1.shop.pod.cluster.local', 'AAAA', '2001:db8::1'],
    ['2001-db8--1.shop.pod.cluster.local', 'A', 'NODATA'],
    ['--1.shop.pod.cluster.local', 'AAAA', '::1'],
    ['192-0-2-1.nosuch.pod.cluster.local', 'A', 'NXDOMAIN'],
    ['192-0-2-256.shop.pod.cluster.local', 'A', 'NXDOMAIN'],
    ['192-0-2.shop.pod.cluster.local', 'A', 'NXDOMAIN'],
    ['walker.shop.pod.cluster.local', 'A', 'NXDOMAIN'],
    ['x.192-0-2-1.shop.pod.cluster.local', 'A', 'NXDOMAIN'],
    ['192\\.0\\.2\\.1.shop.pod.cluster.local', 'A', 'NXDOMAIN'],
    ['shop.pod.cluster.local', 'A', 'NODATA'],
    ['192-0-2-1.shop.pod.clusterset.local', 'A', 'NXDOMAIN']
  ])
  t.equal(ttlOf(zonesForYaml(pods), '192-0-2-1.shop.pod.cluster.local', 'A'), 5)
})

test('2.6 pod records, verified and disabled', async (t) => {
  const rows: Row[] = [
    ['10-4-5-5.shop.pod.cluster.local', 'A', '10.4.5.5'],
    ['fd00-4--0.shop.pod.cluster.local', 'AAAA', 'fd00:4::'],
    ['10-4-5-5.shop.pod.cluster.local', 'AAAA', 'NODATA'],
    ['10-4-5-6.shop.pod.cluster.local', 'A', 'NXDOMAIN'],
    ['192-0-2-1.shop.pod.cluster.local', 'A', 'NXDOMAIN'],
    ['shop.pod.cluster.local', 'A', 'NODATA']
  ]
  check(t, pods, rows, { pods: 'verified' })
  const denied = rows.map(([name, type]): Row => [name, type, name.startsWith('shop') ? 'NODATA' : 'NXDOMAIN'])
  check(t, pods, denied, { pods: 'disabled' })
})
