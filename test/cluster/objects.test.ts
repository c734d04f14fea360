import * as fc from 'fast-check'
import { test } from 'tap'
import { addressFromLabel, addressOctets, addressToLabel, canonicalAddress } from '../../src/cluster/address.ts'
import { reduceObject } from '../../src/cluster/objects.ts'
import type { KubernetesObject, ObjectKind } from '../../src/cluster/objects.ts'
import { octetsOf } from '../../src/wire/octets.ts'
import type { Raw } from './fixture.ts'

const service = (spec: unknown, metadata: Raw = {}): Raw => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name: 'web', namespace: 'shop', ...metadata },
  spec
})
const slice = (fields: Raw, labels: unknown = { 'kubernetes.io/service-name': 'web' }): Raw => ({
  apiVersion: 'discovery.k8s.io/v1',
  kind: 'EndpointSlice',
  metadata: { name: 'web-1', namespace: 'shop', labels },
  addressType: 'IPv4',
  ...fields
})
const serviceImport = (fields: Raw, version = 'v1alpha1'): Raw => ({
  apiVersion: `multicluster.x-k8s.io/${version}`,
  kind: 'ServiceImport',
  metadata: { name: 'web', namespace: 'shop' },
  ...fields
})

/** The reduced object, as far as `wanted` speaks of it. */
function reduced(raw: unknown, kind: ObjectKind | null = null): Record<string, unknown> {
  const result = reduceObject(raw, kind)
  return 'ok' in result ? result.ok : { ...result }
}

test('reduceObject reads what API servers and files hold', async (t) => {
  // prettier-ignore
  const rows: { name: string; raw: unknown; kind?: ObjectKind; want: Record<string, unknown> }[] = [
    { name: 'clusterIPs of both families', raw: service({ clusterIP: '10.1.2.3', clusterIPs: ['10.1.2.3', 'FD00:0::1'] }), want: { serviceType: 'clusterIP', clusterIPs: ['10.1.2.3', 'fd00::1'] } },
    { name: 'clusterIP alone', raw: service({ clusterIP: '10.1.2.3' }), want: { clusterIPs: ['10.1.2.3'] } },
    { name: 'leading zeros are decimal, as Go reads them', raw: service({ clusterIP: '010.1.2.003' }), want: { clusterIPs: ['10.1.2.3'] } },
    { name: 'IPv4-mapped IPv6', raw: service({ clusterIP: '::ffff:10.1.2.3' }), want: { clusterIPs: ['10.1.2.3'] } },
    { name: 'None in clusterIP', raw: service({ clusterIP: 'None' }), want: { serviceType: 'headless', clusterIPs: [] } },
    { name: 'None in clusterIPs only', raw: service({ clusterIPs: ['None'] }), want: { serviceType: 'headless' } },
    { name: 'no address', raw: service({}), want: { serviceType: 'clusterIP', clusterIPs: [] } },
    { name: 'an empty address', raw: service({ clusterIP: '', clusterIPs: null }), want: { clusterIPs: [] } },
    { name: 'no spec', raw: service(undefined), want: { serviceType: 'clusterIP', ports: [] } },
    { name: 'null lists', raw: service({ clusterIPs: null, ports: null }), want: { ports: [] } },
    { name: 'port defaults', raw: service({ ports: [{ port: 80 }, { name: 'DNS', port: 53, protocol: 'udp' }, { name: 'x' }] }), want: { ports: [{ name: '', protocol: 'tcp', port: 80 }, { name: 'dns', protocol: 'udp', port: 53 }, { name: 'x', protocol: 'tcp', port: 0 }] } },
    { name: 'no namespace', raw: service({}, { namespace: undefined }), want: { namespace: 'default' } },
    { name: 'a name that begins with a digit', raw: service({}, { name: '7seas' }), want: { name: '7seas' } },
    { name: 'publishNotReadyAddresses', raw: service({ publishNotReadyAddresses: true }), want: { publishesNotReady: true } },
    { name: 'the old annotation for it', raw: service({}, { annotations: { 'service.alpha.kubernetes.io/tolerate-unready-endpoints': 'true' } }), want: { publishesNotReady: true } },
    { name: 'null annotations and labels', raw: service({}, { annotations: null, labels: null }), want: { publishesNotReady: false } },
    { name: 'TTL', raw: service({}, { annotations: { 'peerdns.io/ttl': '1m30s' } }), want: { ttlSeconds: 90 } },
    { name: 'probe', raw: service({}, { annotations: { 'peerdns.io/probe': 'http:8080/healthz' } }), want: { check: 'http:8080/healthz' } },
    { name: 'no probe', raw: service({}), want: { check: null } },
    { name: 'TTL 0', raw: service({}, { annotations: { 'peerdns.io/ttl': '0s' } }), want: { ttlSeconds: 0 } },
    { name: 'ExternalName', raw: service({ type: 'ExternalName', externalName: 'Db.Example.ORG' }), want: { serviceType: 'externalName', externalName: '\x02db\x07example\x03org\0' } },
    { name: 'ExternalName with a last dot', raw: service({ type: 'ExternalName', externalName: 'db.example.org.' }), want: { externalName: '\x02db\x07example\x03org\0' } },
    { name: 'ExternalName that looks like an address', raw: service({ type: 'ExternalName', externalName: '10.0.0.1' }), want: { serviceType: 'externalName', externalName: '\x0210\x010\x010\x011\0', clusterIPs: [] } },
    { name: 'ExternalName passes over clusterIP', raw: service({ type: 'ExternalName', externalName: 'a.b', clusterIP: 'None' }), want: { serviceType: 'externalName' } },
    { name: 'an item of a typed list', raw: { metadata: { name: 'web', namespace: 'shop' }, spec: {} }, kind: 'Service', want: { kind: 'Service', name: 'web' } },
    { name: 'a Namespace', raw: { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', namespace: 'x' } }, want: { kind: 'Namespace', namespace: '', name: 'shop' } },
    { name: 'endpoint conditions', raw: slice({ endpoints: [{ addresses: ['10.0.0.1'] }, { addresses: ['10.0.0.2'], conditions: null }, { addresses: ['10.0.0.3'], conditions: { ready: null, serving: true } }, { addresses: ['10.0.0.4'], conditions: { ready: false, serving: true, terminating: true } }, { addresses: ['10.0.0.5'], conditions: { ready: false } }, { addresses: ['10.0.0.6'], conditions: { ready: false, serving: false } }] }), want: { endpoints: ['ready', 'ready', 'ready', 'serving', 'notReady', 'notReady'].map((state, at) => ({ address: `10.0.0.${at + 1}`, hostname: '', state })) } },
    { name: 'null endpoints', raw: slice({ endpoints: null, ports: null }), want: { endpoints: [], ports: [], serviceName: 'web', isImported: false } },
    { name: 'an endpoint without addresses', raw: slice({ endpoints: [{ addresses: null }, {}] }), want: { endpoints: [] } },
    { name: 'several addresses, a hostname in capitals', raw: slice({ endpoints: [{ addresses: ['10.0.0.1', '10.0.0.2'], hostname: 'Pet-0' }] }), want: { endpoints: [{ address: '10.0.0.1', hostname: 'pet-0', state: 'ready' }, { address: '10.0.0.2', hostname: 'pet-0', state: 'ready' }] } },
    { name: 'names as addresses', raw: slice({ addressType: 'FQDN', endpoints: [{ addresses: ['a.example.org'] }] }), want: { endpoints: [] } },
    { name: 'v1beta1', raw: { ...slice({}), apiVersion: 'discovery.k8s.io/v1beta1' }, want: { serviceName: 'web' } },
    { name: 'a slice of no Service', raw: slice({}, null), want: { serviceName: '' } },
    { name: 'an imported slice', raw: slice({}, { 'multicluster.kubernetes.io/service-name': 'db', 'multicluster.kubernetes.io/source-cluster': 'East-1', 'kubernetes.io/service-name': 'web' }), want: { isImported: true, serviceName: 'db', sourceCluster: 'east-1' } },
    { name: 'Endpoints', raw: { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'web', namespace: 'shop' }, subsets: [{ addresses: [{ ip: '10.0.0.1', hostname: 'a' }], notReadyAddresses: [{ ip: '10.0.0.2' }], ports: [{ port: 80 }] }, { addresses: null }] }, want: { groups: [{ ports: [{ name: '', protocol: 'tcp', port: 80 }], endpoints: [{ address: '10.0.0.1', hostname: 'a', state: 'ready' }, { address: '10.0.0.2', hostname: '', state: 'notReady' }], sourceCluster: '' }, { ports: [], endpoints: [], sourceCluster: '' }] } },
    { name: 'Endpoints without subsets', raw: { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'web' } }, want: { groups: [] } },
    { name: 'an import, fields in spec', raw: serviceImport({ spec: { type: 'ClusterSetIP', ips: ['10.9.0.1', 'FD00::9'], ports: [{ name: 'http', port: 80 }] } }), want: { importType: 'clusterSetIP', ips: ['10.9.0.1', 'fd00::9'], ports: [{ name: 'http', protocol: 'tcp', port: 80 }] } },
    { name: 'an import, fields beside spec', raw: serviceImport({ type: 'ClusterSetIP', ips: ['10.9.0.1'], ports: [{ port: 80 }] }, 'v1beta1'), want: { ips: ['10.9.0.1'], ports: [{ name: '', protocol: 'tcp', port: 80 }] } },
    { name: 'a headless import', raw: serviceImport({ spec: { type: 'Headless', ips: null, ports: null } }, 'v1beta1'), want: { importType: 'headless', ips: [] } },
    { name: 'both podIP and podIPs', raw: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, status: { phase: 'Running', podIP: '10.0.0.1', podIPs: [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }] } }, want: { addresses: ['10.0.0.1', 'fd00::1'] } },
    { name: 'a finished Pod', raw: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, status: { phase: 'Failed', podIP: '10.0.0.1' } }, want: { addresses: [] } },
    { name: 'a Pod without status', raw: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' } }, want: { addresses: [] } }
  ]
  for (const { name, raw, kind, want } of rows) t.match(reduced(raw, kind ?? null), want, name)
})

test('reduceObject passes over what DNS has no use for', async (t) => {
  // prettier-ignore
  const rows: { name: string; raw: Raw }[] = [
    { name: 'another kind', raw: { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'x' } } },
    { name: 'a kind of the same name in another group', raw: { ...service({ clusterIP: 7 }), apiVersion: 'serving.knative.dev/v1' } },
    { name: 'a kind that objects of JavaScript inherit', raw: { apiVersion: 'v1', kind: 'constructor', metadata: { name: 'x' } } }
  ]
  for (const { name, raw } of rows) t.ok('ignored' in reduceObject(raw), name)
})

test('reduceObject leaves out a malformed object whole, and says where', async (t) => {
  // prettier-ignore
  const rows: { name: string; raw: unknown; path: string }[] = [
    { name: 'no object', raw: 'text', path: '' },
    { name: 'null', raw: null, path: '' },
    { name: 'a list', raw: [], path: '' },
    { name: 'no kind', raw: { metadata: {} }, path: 'kind' },
    { name: 'no apiVersion', raw: { kind: 'Service', metadata: { name: 'x' } }, path: 'apiVersion' },
    { name: 'no metadata', raw: { apiVersion: 'v1', kind: 'Service' }, path: 'metadata.name' },
    { name: 'a number as name', raw: service({}, { name: 7 }), path: 'metadata.name' },
    { name: 'a name that is no label', raw: service({}, { name: 'a.b' }), path: 'metadata.name' },
    { name: 'a name in capitals', raw: service({}, { name: 'Web' }), path: 'metadata.name' },
    { name: 'a name of 64 characters', raw: service({}, { name: 'a'.repeat(64) }), path: 'metadata.name' },
    { name: '__proto__ as name', raw: service({}, { name: '__proto__' }), path: 'metadata.name' },
    { name: 'a bad namespace', raw: service({}, { namespace: '*' }), path: 'metadata.namespace' },
    { name: 'spec as list', raw: service([]), path: 'spec' },
    { name: 'an unknown type', raw: service({ type: 'Magic' }), path: 'spec.type' },
    { name: 'an address that is none', raw: service({ clusterIPs: ['10.0.0.1', 'nope'] }), path: 'spec.clusterIPs[1]' },
    { name: 'an address with a zone id', raw: service({ clusterIP: 'fe80::1%eth0' }), path: 'spec.clusterIP' },
    { name: 'an address as number', raw: service({ clusterIP: 167772161 }), path: 'spec.clusterIP' },
    { name: 'a port above 65535', raw: service({ clusterIP: '10.0.0.1', ports: [{ port: 80 }, { port: 65_536 }] }), path: 'spec.ports[1].port' },
    { name: 'a port as text', raw: service({ ports: [{ port: '80' }] }), path: 'spec.ports[0].port' },
    { name: 'a port of half', raw: service({ ports: [{ port: 80.5 }] }), path: 'spec.ports[0].port' },
    { name: 'a port that is null', raw: service({ ports: [null] }), path: 'spec.ports[0]' },
    { name: 'a port name that is no label', raw: service({ ports: [{ name: 'a_b', port: 1 }] }), path: 'spec.ports[0].name' },
    { name: 'an unknown protocol', raw: service({ ports: [{ protocol: 'ICMP', port: 1 }] }), path: 'spec.ports[0].protocol' },
    { name: 'ports that are no list', raw: service({ ports: {} }), path: 'spec.ports' },
    { name: 'ExternalName without name', raw: service({ type: 'ExternalName' }), path: 'spec.externalName' },
    { name: 'ExternalName with a space', raw: service({ type: 'ExternalName', externalName: 'a b' }), path: 'spec.externalName' },
    { name: 'ExternalName with an empty label', raw: service({ type: 'ExternalName', externalName: 'a..b' }), path: 'spec.externalName' },
    { name: 'ExternalName that is an URL', raw: service({ type: 'ExternalName', externalName: 'https://a.b/' }), path: 'spec.externalName' },
    { name: 'ExternalName that is too long', raw: service({ type: 'ExternalName', externalName: 'abcdefghi.'.repeat(26) }), path: 'spec.externalName' },
    { name: 'publishNotReadyAddresses as text', raw: service({ publishNotReadyAddresses: 'true' }), path: 'spec.publishNotReadyAddresses' },
    { name: 'endpoints that are no list', raw: slice({ endpoints: 'x' }), path: 'endpoints' },
    { name: 'an endpoint address that is none', raw: slice({ endpoints: [{ addresses: ['10.0.0.1'] }, { addresses: ['10.0.0.256'] }] }), path: 'endpoints[1].addresses[0]' },
    { name: 'an address of the other family', raw: slice({ endpoints: [{ addresses: ['fd00::1'] }] }), path: 'endpoints[0].addresses[0]' },
    { name: 'a hostname that is no label', raw: slice({ endpoints: [{ addresses: [], hostname: 'a.b' }] }), path: 'endpoints[0].hostname' },
    { name: 'a condition as text', raw: slice({ endpoints: [{ addresses: [], conditions: { ready: 'yes' } }] }), path: 'endpoints[0].conditions.ready' },
    { name: 'an unknown addressType', raw: slice({ addressType: 'IPX' }), path: 'addressType' },
    { name: 'a bad cluster id', raw: slice({}, { 'multicluster.kubernetes.io/service-name': 'a', 'multicluster.kubernetes.io/source-cluster': 'a_b' }), path: 'metadata.labels["multicluster.kubernetes.io/source-cluster"]' },
    { name: 'an Endpoints address without ip', raw: { apiVersion: 'v1', kind: 'Endpoints', metadata: { name: 'x' }, subsets: [{ addresses: [{}] }] }, path: 'subsets[0].addresses[0].ip' },
    { name: 'an unknown import type', raw: serviceImport({ spec: { type: 'x' } }), path: 'spec.type' },
    { name: 'an import address that is none', raw: serviceImport({ ips: [''] }, 'v1beta1'), path: 'ips[0]' },
    { name: 'a Pod address that is none', raw: { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'x' }, status: { podIPs: [{ ip: 'x' }] } }, path: 'status.podIPs[0].ip' }
  ]
  for (const { name, raw, path } of rows) {
    const result = reduceObject(raw)
    t.ok('invalid' in result && result.path === path && result.invalid !== '', `${name}: ${JSON.stringify(result)}`)
  }
  t.match(reduceObject(service({ clusterIP: 'x' })), { identity: { kind: 'Service', namespace: 'shop', name: 'web' } })
})

test('reduceObject passes over a TTL that is none, with a warning', async (t) => {
  for (const ttl of ['10', '', 'soon', '500ms', '-1s', '48h', 10, null, { s: 1 }]) {
    const result = reduceObject(service({}, { annotations: { 'peerdns.io/ttl': ttl } }))
    t.ok('ok' in result && (result.ok as { ttlSeconds?: unknown }).ttlSeconds === null, JSON.stringify(ttl))
    t.equal('ok' in result && result.warning !== null, ttl !== null, `${JSON.stringify(ttl)} is warned of`)
  }
})

test('reduceObject never reads what objects inherit', async (t) => {
  const polluted = JSON.parse(
    '{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","__proto__":{"namespace":"evil"}},"spec":{"__proto__":{"clusterIP":"10.0.0.1"}}}'
  ) as unknown
  t.match(reduced(polluted), { namespace: 'default', clusterIPs: [] })
})

test('reduceObject gives an object or one reason for anything whatever', async (t) => {
  const kinds = ['Service', 'EndpointSlice', 'Endpoints', 'Namespace', 'ServiceImport', 'Pod'] as const
  const keys = [
    'metadata',
    'spec',
    'status',
    'name',
    'namespace',
    'labels',
    'annotations',
    'ports',
    'port',
    'endpoints',
    'addresses',
    'subsets',
    'clusterIPs',
    'ips',
    'podIPs',
    'ip',
    'conditions',
    'ready',
    'hostname',
    '__proto__'
  ]
  const anything = fc.letrec((tie) => ({
    value: fc.oneof(
      { depthSize: 'medium' },
      fc.constantFrom(null, undefined, '', 'web', 'None', '10.0.0.1', 'fd00::1', 0, 80, -1, true, Number.NaN),
      fc.string(),
      fc.array(tie('value'), { maxLength: 4 }),
      fc.dictionary(fc.constantFrom(...keys), tie('value'), { maxKeys: 6 })
    )
  })).value
  fc.assert(
    fc.property(anything, fc.constantFrom(...kinds), (raw, kind) => {
      const result = reduceObject(raw, kind)
      return 'invalid' in result
        ? result.invalid !== ''
        : 'ok' in result && (result.ok satisfies KubernetesObject).kind === kind
    }),
    { numRuns: 3_000, seed: 7 }
  )
  t.pass('3,000 values')
})

test('canonicalAddress has one spelling for each address, and labels keep it', async (t) => {
  // prettier-ignore
  const rows: [string, string | null, string?][] = [
    ['10.0.0.1', '10.0.0.1', '10-0-0-1'],
    ['010.000.0.01', '10.0.0.1', '10-0-0-1'],
    ['FD00:0:0:0::0001', 'fd00::1', 'fd00--1'],
    ['fd00::', 'fd00::', 'fd00--0'],
    ['::1', '::1', '--1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1', '2001-db8-0-1-1-1-1-1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1', '2001-0-0-1--1'],
    ['10.0.0', null],
    ['10.0.0.1.', null],
    ['10.0.0.1/32', null],
    ['1::2::3', null],
    ['12345::', null],
    ['fe80::1%1', null],
    [' 10.0.0.1', null],
    ['0'.repeat(200) + '.0.0.1', null],
    ['', null]
  ]
  for (const [text, want, label] of rows) {
    t.equal(canonicalAddress(text), want, text.slice(0, 40))
    if (want === null || label === undefined) continue
    t.equal(addressToLabel(want), label)
    t.same(addressFromLabel(label), octetsOf(addressOctets(want)))
  }
  for (const label of [
    'blah',
    '10-0-0',
    '10-0-0-256',
    '010-0-0-1',
    '10.0-0-0-1',
    'fd00:-1',
    '1-2-3-4-5',
    'g--1',
    '-',
    '---'
  ]) {
    t.equal(addressFromLabel(label), null, label)
  }
  t.throws(() => addressOctets('x'), TypeError)
})

test('reduceObject passes over a probe that is none, and says so beside a wrong TTL', async (t) => {
  const result = reduceObject(service({}, { annotations: { 'peerdns.io/probe': 'udp:53', 'peerdns.io/ttl': 'soon' } }))
  t.match(result, { ok: { check: null, ttlSeconds: null }, warning: /peerdns\.io\/ttl is passed over: .*; annotation peerdns\.io\/probe is passed over: expected tcp:8080/ }) // prettier-ignore
})
