import { test } from 'tap'
import fc from 'fast-check'
import { isAtOrBelow, joinLabels, nameToText, parseName, type DomainName } from '../../src/wire/name.ts'
import { isReserved, readKubernetesName, type KubernetesNameKind } from '../../src/policy/kubernetes-name.ts'
import { PolicyTable } from '../../src/policy/policy-table.ts'
import type { Policy, Target } from '../../src/policy/policy.ts'
import { policyOf, targetOf } from './policies.ts'
import { mappedZoneOf, toOurs, toTheirs, zoneMapping, zoneOfDnsName } from '../../src/policy/zone-mapping.ts'

const zone = parseName('cluster.local')

const kinds: [string, KubernetesNameKind, string | null][] = [
  ['cluster.local', 'namespace', null],
  ['svc.cluster.local', 'namespace', null],
  ['backend.svc.cluster.local', 'namespace', null],
  ['api.backend.svc.cluster.local', 'service', 'api.backend.svc.cluster.local.'],
  ['svc.backend.svc.cluster.local', 'service', 'svc.backend.svc.cluster.local.'],
  ['pod-0.api.backend.svc.cluster.local', 'below-service', 'api.backend.svc.cluster.local.'],
  ['_tcp.api.backend.svc.cluster.local', 'below-service', 'api.backend.svc.cluster.local.'],
  ['_http._tcp.api.backend.svc.cluster.local', 'below-service', 'api.backend.svc.cluster.local.'],
  ['google.com.backend.svc.cluster.local', 'below-service', 'com.backend.svc.cluster.local.'],
  ['www.google.com.backend.svc.cluster.local', 'impossible', null],
  ['a._http._tcp.api.backend.svc.cluster.local', 'impossible', null],
  ['http._tcp.api.backend.svc.cluster.local', 'impossible', null],
  ['foo.cluster.local', 'impossible', null],
  ['*.backend.svc.cluster.local', 'impossible', null],
  ['api.back_end.svc.cluster.local', 'impossible', null],
  ['a\\.b.backend.svc.cluster.local', 'impossible', null],
  ['10-0-0-1.backend.pod.cluster.local', 'pod', null],
  ['x.10-0-0-1.backend.pod.cluster.local', 'impossible', null]
]

test('readKubernetesName tells what a name means', async (t) => {
  for (const [text, kind, service] of kinds) {
    const name = readKubernetesName(parseName(text), zone)
    t.equal(name?.kind, kind, text)
    t.equal(name?.service === undefined || name.service === null ? null : nameToText(name.service), service, text)
  }
  t.equal(readKubernetesName(parseName('example.org'), zone), null, 'a name elsewhere has no meaning here')
  t.equal(readKubernetesName(parseName('xcluster.local'), zone), null, 'half a label is no suffix')
})

test('isReserved keeps the API server and the DNS namespace at home', async (t) => {
  const reserved = (text: string): boolean => isReserved(readKubernetesName(parseName(text), zone)!, zone)
  for (const text of [
    'kubernetes.default.svc.cluster.local',
    '_https._tcp.kubernetes.default.svc.cluster.local',
    'kube-dns.kube-system.svc.cluster.local',
    'kube-system.svc.cluster.local',
    '10-0-0-1.kube-system.pod.cluster.local'
  ]) {
    t.equal(reserved(text), true, text)
  }
  for (const text of [
    'kubernetes.backend.svc.cluster.local',
    'default.svc.cluster.local',
    'api.default.svc.cluster.local'
  ]) {
    t.equal(reserved(text), false, text)
  }
})

const target = (options: Partial<Target>): Target => targetOf('a', options)

const policy = (name: string, dnsNames: readonly string[], options: Partial<Policy> = {}): Policy =>
  policyOf([target({})], { name, dnsNames: dnsNames.map(parseName), ...options })

const only = (address: string): Policy['clients'] => ({ contains: (client) => client === address })

test('PolicyTable finds the longest dnsName that is for the client', async (t) => {
  const table = new PolicyTable(
    [
      policy('short', ['svc.cluster.local']),
      policy('long', ['backend.svc.cluster.local', 'shop.svc.cluster.local']),
      policy('blue', ['api.backend.svc.cluster.local'], { clients: only('192.0.2.1') })
    ],
    [zone]
  )
  const find = (text: string, client = '192.0.2.9'): string | undefined =>
    table.match(parseName(text), client, () => true)?.policy.name
  t.equal(find('api.backend.svc.cluster.local'), 'long', 'a policy for other clients is passed over')
  t.equal(find('api.backend.svc.cluster.local', '192.0.2.1'), 'blue')
  t.equal(find('x.api.backend.svc.cluster.local', '192.0.2.1'), 'blue')
  t.equal(find('backend.svc.cluster.local'), 'long')
  t.equal(find('shop.svc.cluster.local'), 'long')
  t.equal(find('data.svc.cluster.local'), 'short')
  t.equal(find('notbackend.svc.cluster.local'), 'short', 'half a label is no suffix')
  t.equal(find('cluster.local'), undefined)
  t.equal(
    table.match(parseName('api.backend.svc.cluster.local'), '192.0.2.9', () => false),
    null
  )
})

const labelArbitrary = fc.constantFrom('a', 'b', 'c', 'svc')
const nameArbitrary = fc
  .array(labelArbitrary, { minLength: 1, maxLength: 5 })
  .map((labels) => joinLabels(labels, parseName('local')))

test('PolicyTable agrees with a slow scan', async (t) => {
  fc.assert(
    fc.property(fc.uniqueArray(nameArbitrary, { maxLength: 8 }), nameArbitrary, (dnsNames, qname) => {
      const table = new PolicyTable(
        dnsNames.map((dnsName) => policy(nameToText(dnsName), [nameToText(dnsName)])),
        []
      )
      const longest = dnsNames
        .filter((dnsName) => isAtOrBelow(qname, dnsName))
        .toSorted((left, right) => right.length - left.length)[0]
      const found = table.match(qname, '192.0.2.1', () => true)?.dnsName
      return found === longest
    }),
    { seed: 20_261_130 }
  )
  t.pass('the longest suffix is found for 100 random tables')
})

test('zone mapping goes both ways', async (t) => {
  const own = [zone, parseName('clusterset.local')]
  t.equal(zoneOfDnsName(parseName('backend.svc.cluster.local'), own), zone, 'below a zone of ours: that zone')
  t.equal(
    nameToText(zoneOfDnsName(parseName('backend.svc.cluster-a.local'), own)),
    'cluster-a.local.',
    'what follows svc'
  )
  t.equal(nameToText(zoneOfDnsName(parseName('partner.example'), own)), 'partner.example.', 'else the dnsName itself')

  const mapping = zoneMapping(zone, target({ zone: parseName('cluster-a.local') }))
  const theirs = toTheirs(parseName('api.backend.svc.cluster.local'), mapping)
  t.equal(theirs === null ? null : nameToText(theirs), 'api.backend.svc.cluster-a.local.')
  t.equal(nameToText(toOurs(theirs!, mapping)), 'api.backend.svc.cluster.local.')
  t.equal(nameToText(toOurs(parseName('example.org'), mapping)), 'example.org.', 'names outside stay')
  t.equal(zoneMapping(zone, target({ zone })), null, 'the same name on both sides needs no mapping')

  const longZone = parseName(`${'x'.repeat(60)}.${'y'.repeat(60)}.${'z'.repeat(60)}.local`)
  const tooLong = joinLabels(['a'.repeat(60), 'b'.repeat(60), 'svc'], zone)
  const reverse = parseName('30.172.in-addr.arpa')
  t.equal(mappedZoneOf(reverse, own), zone, 'a reverse name is called the same everywhere, what it points at is not')
  t.equal(mappedZoneOf(parseName('backend.svc.cluster.local'), own), zone)
  t.equal(nameToText(mappedZoneOf(parseName('partner.example'), own)), 'partner.example.')
  t.equal(toTheirs(tooLong, { ours: zone, theirs: longZone }), null, 'a name that would be too long has no place there')
})

test('zone mapping there and back is the identity for every name below the zone', async (t) => {
  const theirs = parseName('east.example')
  fc.assert(
    fc.property(fc.array(fc.stringMatching(/^[a-z0-9_-]{1,12}$/), { maxLength: 6 }), (labels) => {
      const name: DomainName = joinLabels(labels, zone)
      const there = toTheirs(name, { ours: zone, theirs })
      return there !== null && toOurs(there, { ours: zone, theirs }) === name
    }),
    { seed: 20_261_130 }
  )
  t.pass('100 random names came back')
})
