import { test } from 'tap'
import { listedLeftOutObjects } from '../../src/base/limits.ts'
import type { LeftOutObject } from '../../src/cluster/left-out.ts'
import { RRTYPE, typeToText } from '../../src/wire/iana.ts'
import { nameToText, parseName } from '../../src/wire/name.ts'
import { readSoa } from '../../src/wire/rdata.ts'
import type { RRset } from '../../src/wire/rr.ts'
import type { ZoneChange } from '../../src/zone/zone-change.ts'
import { rrset, soa } from '../support/records.ts'
import { ClusterZones } from '../../src/cluster/cluster-zones.ts'
import { ManualClock } from '../support/manual-clock.ts'
import {
  ask,
  defaultOptions,
  eventsFor,
  readYaml,
  recordLines,
  reverseNameOf,
  stateOf,
  ttlOf,
  zonesFor,
  zonesForYaml
} from './fixture.ts'
import type { Raw } from './fixture.ts'

const service = (name: string, spec: Raw, metadata: Raw = {}): Raw => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace: 'shop', ...metadata },
  spec
})
const slice = (name: string, serviceName: string, addresses: string[], fields: Raw = {}): Raw => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name, namespace: 'shop', labels: { 'kubernetes.io/service-name': serviceName } },
  ports: [{ name: 'http', port: 8080 }],
  endpoints: addresses.map((address) => ({ addresses: [address] })),
  ...fields
})
test('ClusterZones has SOA, NS and the name server before any object', async (t) => {
  const zones = zonesFor([], { nsAddresses: ['0.0.0.0', '192.0.2.53', '2001:db8::53', '::'] })
  t.equal(zones.hasSynced, false)
  zones.markSynced()
  t.equal(zones.hasSynced, true)
  t.equal(zones.zone.soa.ttlSeconds, 5)
  t.match(readSoa(zones.zone.soa.rdata[0]!), {
    refreshSeconds: 7200,
    retrySeconds: 1800,
    expireSeconds: 86_400,
    minimumSeconds: 5
  })
  t.match(
    zones.zones
      .all()
      .map((zone) => nameToText(zone.apex))
      .sort(),
    ['10.in-addr.arpa.', '16.172.in-addr.arpa.', '17.172.in-addr.arpa.']
  )
  for (const apex of ['cluster.local', 'clusterset.local']) {
    t.same(ask(zones, apex, 'NS'), [`ns.dns.${apex}.`])
    t.same(ask(zones, `ns.dns.${apex}`, 'A'), ['192.0.2.53'])
    t.same(ask(zones, `ns.dns.${apex}`, 'AAAA'), ['2001:db8::53'])
    t.same(ask(zones, `dns.${apex}`, 'A'), ['NODATA'])
  }
  t.same(ask(zones, '10.in-addr.arpa', 'NS'), ['ns.dns.cluster.local.'])
  t.equal(zonesFor([], { ttlSeconds: 600 }).zone.soa.ttlSeconds, 300, 'the TTL of a SOA is capped')
  t.same(ask(zonesFor([], { nsAddresses: [] }), 'ns.dns.cluster.local', 'A'), ['NODATA'])
})

test('ClusterZones takes the address of its name server from the DNS Service', async (t) => {
  const dns = (name: string, clusterIP: string, labels: Raw = {}): Raw =>
    service(name, { clusterIP }, { namespace: 'kube-system', labels })
  const steps: { name: string; put?: Raw; remove?: string; want: string }[] = [
    { name: 'kube-dns by name', put: dns('kube-dns', '10.0.0.10'), want: '10.0.0.10' },
    { name: 'another one by label', put: dns('coredns', '10.0.0.11', { 'k8s-app': 'kube-dns' }), want: '10.0.0.11' },
    { name: 'our own', put: dns('peerdns', '10.0.0.12'), want: '10.0.0.12' },
    { name: 'our own without address', put: dns('peerdns', 'None'), want: '10.0.0.11' },
    { name: 'the label is lost', put: dns('coredns', '10.0.0.11'), want: '10.0.0.10' },
    { name: 'in another namespace', put: service('peerdns', { clusterIP: '10.0.0.13' }), want: '10.0.0.10' },
    { name: 'none left', remove: 'kube-dns', want: '192.0.2.53' }
  ]
  const zones = zonesFor([])
  for (const { name, put, remove, want } of steps) {
    zones.apply(
      put === undefined
        ? [{ type: 'delete', kind: 'Service', namespace: 'kube-system', name: remove! }]
        : eventsFor([put]),
      0
    )
    t.same(ask(zones, 'ns.dns.cluster.local', 'A'), [want], name)
    t.same(ask(zones, 'ns.dns.clusterset.local', 'A'), [want], name)
  }
})

test('ClusterZones merges the PTR records of an address that several have', async (t) => {
  const ptr = reverseNameOf('10.0.0.1')
  const zones = zonesFor([
    service('one', { clusterIP: 'None' }, { annotations: { 'peerdns.io/ttl': '60s' } }),
    service('two', { clusterIP: 'None' }),
    slice('one-1', 'one', ['10.0.0.1', '11.0.0.1']),
    slice('two-1', 'two', ['10.0.0.1'])
  ])
  t.same(ask(zones, ptr, 'PTR'), ['10-0-0-1.one.shop.svc.cluster.local.', '10-0-0-1.two.shop.svc.cluster.local.'])
  t.equal(ttlOf(zones, ptr, 'PTR'), 5, 'the lowest TTL')
  t.same(ask(zones, reverseNameOf('11.0.0.1'), 'PTR'), ['NOTZONE'], 'an address outside of the reverse zones')
  zones.apply([{ type: 'delete', kind: 'EndpointSlice', namespace: 'shop', name: 'two-1' }], 0)
  t.same(ask(zones, ptr, 'PTR'), ['10-0-0-1.one.shop.svc.cluster.local.'])
  t.equal(ttlOf(zones, ptr, 'PTR'), 60)
  zones.apply([{ type: 'delete', kind: 'Service', namespace: 'shop', name: 'one' }], 0)
  t.same(ask(zones, ptr, 'PTR'), ['NXDOMAIN'])
})

test('ClusterZones gives all records of a Service its TTL', async (t) => {
  const objects = [
    service('pets', { clusterIP: 'None' }, { annotations: { 'peerdns.io/ttl': '30s' } }),
    slice('pets-1', 'pets', ['10.0.0.1'])
  ]
  const zones = zonesFor(objects)
  const host = '10-0-0-1.pets.shop.svc.cluster.local'
  for (const [name, type] of [
    ['pets.shop.svc.cluster.local', 'A'],
    [host, 'A'],
    ['_http._tcp.pets.shop.svc.cluster.local', 'SRV'],
    [reverseNameOf('10.0.0.1'), 'PTR']
  ] as const) {
    t.equal(ttlOf(zones, name, type), 30, `${name} ${type}`)
  }
  zones.apply(eventsFor([service('pets', { clusterIP: 'None' }, { annotations: { 'peerdns.io/ttl': 'soon' } })]), 0)
  t.equal(ttlOf(zones, host, 'A'), 5, 'a wrong TTL leaves the default')
  t.match(zones.leftOut(), [{ kind: 'Service', namespace: 'shop', name: 'pets', isServed: true }])
  zones.apply(eventsFor([service('pets', { clusterIP: 'None' })]), 0)
  t.same(zones.leftOut(), [])
})

test('ClusterZones tells whether a Service has endpoints', async (t) => {
  const spec = { clusterIP: '10.0.0.9', ports: [{ name: 'http', port: 80 }] }
  const notReady = [{ addresses: ['10.0.0.1'], conditions: { ready: false } }]
  const name = 'web.shop.svc.cluster.local'
  const endpoints = (subsets: unknown): Raw => ({
    apiVersion: 'v1',
    kind: 'Endpoints',
    metadata: { name: 'web', namespace: 'shop' },
    subsets
  })
  const rows: { name: string; objects: Raw[]; want: string | null }[] = [
    { name: 'no slice at all', objects: [service('web', spec)], want: 'unknown' },
    { name: 'a ready endpoint', objects: [service('web', spec), slice('a', 'web', ['10.0.0.1'])], want: 'present' },
    {
      name: 'endpoints: null',
      objects: [service('web', spec), slice('a', 'web', [], { endpoints: null })],
      want: 'empty'
    },
    {
      name: 'none ready',
      objects: [service('web', spec), slice('a', 'web', [], { endpoints: notReady })],
      want: 'empty'
    },
    {
      name: 'one of two slices',
      objects: [service('web', spec), slice('a', 'web', []), slice('b', 'web', ['10.0.0.1'])],
      want: 'present'
    },
    { name: 'Endpoints without addresses', objects: [service('web', spec), endpoints(null)], want: 'empty' },
    {
      name: 'Endpoints',
      objects: [service('web', spec), endpoints([{ addresses: [{ ip: '10.0.0.1' }] }])],
      want: 'present'
    },
    {
      name: 'an empty slice beside Endpoints',
      objects: [service('web', spec), endpoints([{ addresses: [{ ip: '10.0.0.1' }] }]), slice('a', 'web', [])],
      want: 'empty'
    },
    { name: 'a slice without Service', objects: [slice('a', 'web', ['10.0.0.1'])], want: null }
  ]
  for (const row of rows) {
    const zones = zonesFor(row.objects)
    t.equal(stateOf(zones, name), row.want, row.name)
    t.same(ask(zones, name, 'A'), [row.want === null ? 'NXDOMAIN' : '10.0.0.9'], `${row.name}: the address stays`)
  }
  const described = zonesFor(rows[1]!.objects).describeService('shop', 'web')
  t.match(described, {
    zone: { state: 'present', endpoints: [{ address: '10.0.0.1', state: 'ready' }] },
    clustersetZone: null
  })
  t.equal(described.zone!.records.length, 4)
  t.same(zonesFor([]).describeService('shop', 'web'), { zone: null, clustersetZone: null })
})

test('ClusterZones knows the namespaces that exist', async (t) => {
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'vacant' } }
  const zones = zonesFor([namespace])
  const names = ['vacant.svc.cluster.local', 'vacant.pod.cluster.local', 'vacant.svc.clusterset.local']
  const pod = '192-0-2-1.vacant.pod.cluster.local'
  for (const name of names) t.same(ask(zones, name, 'A'), ['NODATA'], name)
  t.same(ask(zones, pod, 'A'), ['192.0.2.1'])
  zones.apply([{ type: 'delete', kind: 'Namespace', namespace: '', name: 'vacant' }], 0)
  for (const name of [...names, pod]) t.same(ask(zones, name, 'A'), ['NXDOMAIN'], name)
  const orphan = zonesFor([service('web', { clusterIP: '10.0.0.1' })])
  t.same(ask(orphan, 'web.shop.svc.cluster.local', 'A'), ['10.0.0.1'], 'a Service without Namespace object is answered')
  t.same(ask(orphan, '192-0-2-1.shop.pod.cluster.local', 'A'), ['192.0.2.1'])
})

test('ClusterZones puts hand-written records in the place of generated ones', async (t) => {
  const objects = [
    service('web', { clusterIP: '10.0.0.1', ports: [{ name: 'http', port: 80 }] }),
    service('old', { clusterIP: '10.0.0.2' }),
    service('out', { type: 'ExternalName', externalName: 'a.example.org' })
  ]
  const records = [
    rrset('web.shop.svc.cluster.local', 'A', 10, '192.0.2.1'),
    rrset('web.shop.svc.cluster.local', 'A', 7, '192.0.2.2', '192.0.2.1'),
    rrset('old.shop.svc.cluster.local', 'CNAME', 10, 'web.shop.svc.cluster.local'),
    rrset('out.shop.svc.cluster.local', 'A', 10, '192.0.2.3'),
    rrset('db.backend.svc.cluster.local', 'A', 10, '192.0.2.4'),
    rrset(reverseNameOf('10.0.0.1'), 'PTR', 10, 'hand.example.org'),
    rrset('a.example.org', 'A', 10, '192.0.2.5'),
    rrset('b.a.example.org', 'A', 10, '192.0.2.6'),
    rrset('x.corp.example', 'A', 10, '192.0.2.7'),
    soa('cluster.local', 10, 5)
  ]
  const zones = zonesFor(objects, { records, recordZones: [parseName('corp.example')] })
  const rows: [string, string, ...string[]][] = [
    ['web.shop.svc.cluster.local', 'A', '192.0.2.1', '192.0.2.2'],
    ['web.shop.svc.cluster.local', 'SRV', '0 100 80 web.shop.svc.cluster.local.'],
    ['old.shop.svc.cluster.local', 'A', 'CNAME web.shop.svc.cluster.local.'],
    ['out.shop.svc.cluster.local', 'A', '192.0.2.3'],
    ['out.shop.svc.cluster.local', 'CNAME', 'NODATA'],
    ['db.backend.svc.cluster.local', 'A', '192.0.2.4'],
    ['backend.svc.cluster.local', 'A', 'NODATA'],
    [reverseNameOf('10.0.0.1'), 'PTR', 'hand.example.org.'],
    ['a.example.org', 'A', '192.0.2.5'],
    ['b.a.example.org', 'A', '192.0.2.6'],
    ['c.a.example.org', 'A', 'NXDOMAIN'],
    ['example.org', 'A', 'NOTZONE'],
    ['x.corp.example', 'A', '192.0.2.7'],
    ['corp.example', 'NS', 'ns.dns.cluster.local.']
  ]
  for (const [name, type, ...want] of rows) t.same(ask(zones, name, type), want, `${name} ${type}`)
  t.equal(ttlOf(zones, 'web.shop.svc.cluster.local', 'A'), 7)
  t.match(zones.leftOut(), [{ kind: 'records', name: 'cluster.local. SOA', isServed: false }])
  const hidden = zones.hiddenByHand().map(({ owner, type }) => `${nameToText(owner)} ${typeToText(type)}`)
  t.same(
    hidden.sort(),
    [
      `${reverseNameOf('10.0.0.1')} PTR`,
      'old.shop.svc.cluster.local. A',
      'out.shop.svc.cluster.local. CNAME',
      'web.shop.svc.cluster.local. A'
    ],
    'what is hidden is told'
  )
  zones.apply([{ type: 'delete', kind: 'Service', namespace: 'shop', name: 'web' }], 0)
  t.same(ask(zones, 'web.shop.svc.cluster.local', 'A'), ['192.0.2.1', '192.0.2.2'], 'it outlives the Service')
  t.same(ask(zones, 'web.shop.svc.cluster.local', 'SRV'), ['NODATA'])
})

test('ClusterZones.reconfigure takes over what leaves the zones as they are', async (t) => {
  const objects = [
    service('web', { clusterIP: '10.0.0.1', ports: [{ name: 'http', port: 80 }] }),
    ...['web', 'api'].map((name) => ({
      apiVersion: 'multicluster.x-k8s.io/v1alpha1',
      kind: 'ServiceImport',
      metadata: { name, namespace: 'shop' },
      spec: { ips: ['10.0.0.7'], ports: [] }
    })),
    { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p', namespace: 'shop' }, status: { podIP: '10.0.0.3' } }
  ]
  const byHand = (type: string, text: string): RRset => rrset('web.shop.svc.cluster.local', type, 10, text)
  const variants = [
    { pods: 'verified' },
    { pods: 'disabled', records: [byHand('A', '192.0.2.1')], nsAddresses: ['192.0.2.99'] },
    { importsInZone: true, records: [byHand('CNAME', 'x.org')] },
    {
      records: [rrset('dns-version.cluster.local', 'TXT', 1, '1'), rrset(reverseNameOf('10.0.0.1'), 'PTR', 1, 'x.org')]
    },
    { pods: 'verified', records: [rrset('10-0-0-3.shop.pod.cluster.local', 'A', 1, '192.0.2.1')] },
    {}
  ] as const
  const zones = zonesFor(objects)
  const options = (variant: (typeof variants)[number]) => zonesFor([], variant).options
  for (const variant of variants) {
    t.equal(zones.reconfigure(options(variant), 0), true, JSON.stringify(variant).slice(0, 80))
    const fresh = zonesFor(objects, variant)
    for (const zone of fresh.zones.all()) {
      const same = zones.zones.get(zone.apex)!
      t.same(recordLines(same), recordLines(zone), nameToText(zone.apex))
      t.same(
        { ...same.sizes, journalChanges: 0, journalEntries: 0 },
        { ...zone.sizes, journalChanges: 0, journalEntries: 0 }
      )
    }
  }
  for (const variant of [
    { ttlSeconds: 6 },
    { zone: parseName('other.local') },
    { reverse: [] },
    { records: [rrset('a.example.org', 'A', 1, '192.0.2.1')] },
    { records: [rrset('cluster.local', 'NS', 1, 'a.b')] }
  ]) {
    const before = recordLines(zones.zone)
    t.equal(zones.reconfigure(zonesFor([], variant).options, 0), false)
    t.same(recordLines(zones.zone), before)
  }
})

test('ClusterZones.apply works on what was touched, whatever else there is', async (t) => {
  const objects = (count: number): Raw[] =>
    Array.from({ length: count }, (_, at) => [
      service(`s${at}`, { clusterIP: at % 2 === 0 ? 'None' : `10.1.${at >> 8}.${at & 255}` }),
      slice(`s${at}-1`, `s${at}`, [`10.2.${at >> 8}.${at & 255}`])
    ]).flat()
  const costs = [10, 500].map((count) => {
    const zones = zonesFor(objects(count))
    const changes: ZoneChange[] = []
    for (const zone of zones.zones.all()) zone.subscribe((change) => changes.push(change))
    const before = zones.stats.recomputedServicesTotal
    t.equal(before, count, 'a batch computes each Service once')
    zones.apply(eventsFor([slice('s4-1', 's4', ['10.2.0.4', '10.3.0.1'])]), 123)
    t.ok(changes.every((change) => change.originAtMs === 123))
    return {
      services: zones.stats.recomputedServicesTotal - before,
      zones: changes.length,
      sets: changes.flatMap((change) => change.sets.map(({ owner, type }) => `${nameToText(owner)} ${type}`)).sort()
    }
  })
  const name = 's4.shop.svc.cluster.local.'
  t.same(costs[0], {
    services: 1,
    zones: 2,
    sets: [
      `${reverseNameOf('10.3.0.1')} ${RRTYPE.PTR}`,
      `10-3-0-1.${name} ${RRTYPE.A}`,
      `_http._tcp.${name} ${RRTYPE.SRV}`,
      `${name} ${RRTYPE.A}`,
      `${name} ${RRTYPE.SRV}`
    ].sort()
  })
  t.same(costs[1], costs[0])
})

test('ClusterZones.apply writes nothing where nothing changes', async (t) => {
  const objects = [service('web', { clusterIP: 'None' }), slice('web-1', 'web', ['10.0.0.1'])]
  const zones = zonesFor(objects)
  const serials = zones.zones.all().map((zone) => zone.serial)
  zones.apply(eventsFor([...objects, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } }]), 0)
  zones.apply([], 0)
  zones.apply([{ type: 'delete', kind: 'Service', namespace: 'shop', name: 'nosuch' }], 0)
  t.same(
    zones.zones.all().map((zone) => zone.serial),
    serials
  )
  t.match(zones.stats, { eventsTotal: 6, zoneChangesTotal: 3 })
})

test('ClusterZones moves a slice from one Service to another', async (t) => {
  const zones = zonesFor([
    service('a', { clusterIP: 'None' }),
    service('b', { clusterIP: 'None' }),
    slice('x', 'a', ['10.0.0.1'])
  ])
  zones.apply(eventsFor([slice('x', 'b', ['10.0.0.1'])]), 0)
  t.same(ask(zones, 'a.shop.svc.cluster.local', 'A'), ['NXDOMAIN'])
  t.equal(stateOf(zones, 'a.shop.svc.cluster.local'), 'unknown')
  t.same(ask(zones, 'b.shop.svc.cluster.local', 'A'), ['10.0.0.1'])
})

test('ClusterZones leaves out malformed objects, says so once and serves the rest', async (t) => {
  const told: LeftOutObject[] = []
  const zones = zonesFor([service('web', { clusterIP: '10.0.0.1' }), service('other', { clusterIP: '10.0.0.2' })], {
    onLeftOut: (object) => told.push(object)
  })
  const broken = service('web', { clusterIP: '10.0.0.1', ports: [{ port: 'http' }] })
  zones.apply(eventsFor([broken, broken]), 0)
  zones.apply(eventsFor([broken]), 0)
  t.same(ask(zones, 'web.shop.svc.cluster.local', 'A'), ['NXDOMAIN'], 'it is left out whole')
  t.same(ask(zones, 'other.shop.svc.cluster.local', 'A'), ['10.0.0.2'])
  const entry = { kind: 'Service', namespace: 'shop', name: 'web', path: 'spec.ports[0].port', isServed: false }
  t.match(told, [entry])
  t.equal(told.length, 1)
  t.match(zones.leftOut(), [entry])
  t.equal(zones.stats.rejectedTotal, 3)
  t.equal(zones.counts().Service, 1)
  zones.apply(eventsFor([service('web', { clusterIP: '10.0.0.3' })]), 0)
  t.same(ask(zones, 'web.shop.svc.cluster.local', 'A'), ['10.0.0.3'])
  t.same(zones.leftOut(), [])
  const many = Array.from({ length: listedLeftOutObjects + 5 }, (_, at) => service(`s${at}`, [] as unknown as Raw))
  zones.apply(eventsFor(many), 0)
  t.equal(zones.leftOut().length, listedLeftOutObjects)
  t.equal(zones.stats.rejectedTotal, 3 + many.length)
  zones.apply([{ type: 'delete', kind: 'Service', namespace: 'shop', name: 's0' }], 0)
  t.equal(zones.leftOut().length, listedLeftOutObjects - 1)
})

test('ClusterZones follows a Pod that changes its address or finishes', async (t) => {
  const pod = (name: string, ip: string, phase = 'Running'): Raw => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop' },
    status: { phase, podIP: ip }
  })
  const zones = zonesForYaml('', { pods: 'verified' })
  const name = (ip: string): string => `${ip.replaceAll('.', '-')}.shop.pod.cluster.local`
  zones.apply(eventsFor([pod('a', '10.0.0.1'), pod('b', '10.0.0.1')]), 0)
  t.same(ask(zones, name('10.0.0.1'), 'A'), ['10.0.0.1'], 'two Pods on the host network')
  zones.apply(eventsFor([pod('a', '10.0.0.2')]), 0)
  t.same(ask(zones, name('10.0.0.1'), 'A'), ['10.0.0.1'], 'the other one is still there')
  t.same(ask(zones, name('10.0.0.2'), 'A'), ['10.0.0.2'])
  zones.apply(eventsFor([pod('b', '10.0.0.1', 'Succeeded')]), 0)
  t.same(ask(zones, name('10.0.0.1'), 'A'), ['NXDOMAIN'])
  zones.apply(
    [
      { type: 'delete', kind: 'Pod', namespace: 'shop', name: 'a' },
      { type: 'delete', kind: 'Pod', namespace: 'shop', name: 'b' }
    ],
    0
  )
  t.same(ask(zones, name('10.0.0.2'), 'A'), ['NXDOMAIN'])
  t.same(ask(zones, 'shop.pod.cluster.local', 'A'), ['NXDOMAIN'])
})

test('ClusterZones: what is read for the first time has one serial, and nobody can go on from before', async (t) => {
  const objects = readYaml(`
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {clusterIP: None}}
---
{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: web-1, namespace: shop, labels: {kubernetes.io/service-name: web}}, addressType: IPv4, endpoints: [{addresses: [10.1.0.1]}, {addresses: [10.1.0.2]}], ports: [{name: http, port: 80}]}
`)
  const records = [
    rrset('10-1-0-1.web.shop.svc.cluster.local', 'CNAME', 9, 'x.example.org'),
    rrset('2.0.1.10.in-addr.arpa', 'PTR', 9, 'x.example.org')
  ]
  const zones = new ClusterZones({ ...defaultOptions, records }, new ManualClock())
  const { serial } = zones.zone
  zones.deferServices()
  zones.apply(eventsFor(objects), 0)
  while (zones.writeDeferred(1, 0));
  t.same(ask(zones, 'web.shop.svc.cluster.local', 'A'), ['10.1.0.1', '10.1.0.2'])
  t.equal(zones.zone.serial, serial)
  zones.markSynced()
  t.ok(zones.zone.serial > serial)
  t.equal(zones.zone.changesSince(serial), null)
  const others = zonesFor(objects, { records }).zones.all()
  t.strictSame(zones.zones.all().map(recordLines), others.map(recordLines))
  t.same(ask(zones, '10-1-0-1.web.shop.svc.cluster.local', 'A'), ['CNAME x.example.org.'])
  t.same(ask(zones, '1.0.1.10.in-addr.arpa', 'PTR'), ['10-1-0-1.web.shop.svc.cluster.local.'])
})
