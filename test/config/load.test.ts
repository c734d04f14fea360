/** What a right configuration becomes: defaults, units, paths, forms, and what of it this version refuses. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import type { Config } from '../../src/config/config.ts'
import { loadConfig, parseConfig } from '../../src/config/load.ts'
import { nearestWord } from '../../src/config/nearest.ts'
import { ConfigError } from '../../src/config/problem.ts'
import { networkOfReverseName } from '../../src/config/reverse-name.ts'
import type { Policy } from '../../src/policy/policy.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { nameToText, parseName } from '../../src/wire/name.ts'
import { rdataToText } from '../../src/wire/record-text.ts'

const options = { home: '/home/user' }
const parse = (text: string): Config => parseConfig({ text, hash: 'h' }, '/etc/peerdns/peerdns.yaml', options)
const shortest = 'cluster: {name: b, source: {manifests: [m]}}\n'

void test('parseConfig fills in the defaults of the design', async (t) => {
  const config = parse(shortest)
  const { cluster } = config
  t.match(cluster, {
    name: 'b',
    region: '',
    ttlSeconds: 5,
    pods: 'insecure',
    reverse: [],
    importsInZone: false,
    records: [],
    leases: null,
    probes: false,
    source: { kind: 'manifests', paths: ['/etc/peerdns/m'] }
  })
  t.equal(nameToText(cluster.zone), 'cluster.local.')
  t.equal(nameToText(cluster.clustersetZone), 'clusterset.local.')
  t.same(config.listen, [
    { address: '0.0.0.0', port: 53 },
    { address: '::', port: 53 }
  ])
  t.equal(config.observe, null)
  t.same(config.admin, { address: '127.0.0.1', port: 9154 })
  t.equal(config.threads, 1)
  t.equal(config.lameDuckMs, 0)
  t.equal(
    String(config.allow),
    '10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, ::1/128, fc00::/7, fe80::/10'
  )
  t.same(config.forward, [{ kind: 'resolv-conf', path: '/etc/resolv.conf' }])
  t.same(config.log, { level: 'info', querySample: null })
  t.same(config.limits, { inFlightQueries: 10_000, tcpConnections: 1_000, tcpIdleTimeoutMs: 10_000 })
  t.same(config.regions, [])
  t.same(config.cache, {
    maxOctets: 67_108_864,
    maxTtlSeconds: 3_600,
    maxNegativeTtlSeconds: 30,
    serveStaleSeconds: 3_600
  })
  t.match(config.transfer, {
    keys: [],
    notify: [],
    export: { namespaces: [], services: [], address: 'clusterIP', hideEmpty: false }
  })
  t.equal(String(config.transfer.allow), '')
  t.same([config.peers, config.policies], [[], []])
  t.equal(config.file, '/etc/peerdns/peerdns.yaml')
  t.equal(config.hash, 'h')
})

void test('parseConfig fills in the defaults of peers, policies and targets', async (t) => {
  const config = parse(
    [
      'cluster: {name: b, region: us-west, source: {manifests: [m]}}',
      'peers:',
      '  cluster-a: {servers: [192.0.2.1]}',
      '  cluster-c: {servers: ["[2001:db8::1]:5353", dns.example.org], region: eu}',
      'policies:',
      '- name: p',
      '  dnsName: backend.svc.cluster.local',
      '  targets: [cluster-a, local, cluster-c, {addresses: [10.9.0.7, "2001:DB8::7"]}]'
    ].join('\n')
  )
  t.same(config.peers[0], {
    name: 'cluster-a',
    servers: [{ host: '192.0.2.1', port: 53 }],
    region: '',
    recursion: false,
    transport: 'auto',
    families: [4, 6],
    mirror: false,
    key: null,
    leaseMs: 5_000,
    maxAgeMs: null,
    maxInFlight: 1_000,
    probe: { everyMs: 1_000, timeoutMs: 500, fall: 2, rise: 2, name: null, type: RRTYPE.SOA },
    position: { line: 3, column: 3 }
  })
  t.same(config.peers[1]?.servers, [
    { host: '2001:db8::1', port: 5_353 },
    { host: 'dns.example.org', port: 53 }
  ])
  const [policy] = config.policies
  t.same(policy, {
    name: 'p',
    dnsNames: [parseName('backend.svc.cluster.local')],
    targets: [
      { id: 'peer:cluster-a', kind: 'peer', peer: 'cluster-a', region: '', zone: null, weight: 1, addresses: [], probe: null, position: { line: 8, column: 13 } },
      { id: 'local', kind: 'local', peer: null, region: 'us-west', zone: null, weight: 1, addresses: [], probe: null, position: { line: 8, column: 24 } },
      { id: 'peer:cluster-c', kind: 'peer', peer: 'cluster-c', region: 'eu', zone: null, weight: 1, addresses: [], probe: null, position: { line: 8, column: 31 } },
      { id: 'addresses:10.9.0.7,2001:db8::7', kind: 'addresses', peer: null, region: '', zone: null, weight: 1, addresses: ['10.9.0.7', '2001:db8::7'], probe: null, position: { line: 8, column: 42 } }
    ], // prettier-ignore
    select: 'first',
    nextOn: new Set(['unreachable', 'absent', 'empty']),
    clients: null,
    maxTtlSeconds: null,
    maxNegativeTtlSeconds: 5,
    transit: false,
    allowReserved: false,
    enforce: true,
    allDown: 'next',
    tricklePercent: 0,
    position: { line: 6, column: 3 }
  })
  // A policy of the configuration is one for the policy table.
  const policies: readonly Policy[] = config.policies
  t.equal(policies.length, 1)
})

void test('parseConfig reads every form that may be written', async (t) => {
  const config = parse(
    [
      'cluster:',
      '  name: b',
      '  zone: Cluster-B.Local.',
      '  ttl: 1m',
      '  reverse: [10.0.0.0/8, "fd00:1::/64", 10.0.0.0/8]',
      '  records:',
      '    - db.backend.svc.cluster-b.local. 10 A 172.30.9.9',
      '    - "txt.backend.svc.cluster-b.local TXT \\"a b\\""',
      '  leases: "{cluster}-alive"',
      '  probes: on',
      '  source: {kubernetes: {kubeconfig: ~/.kube/config, context: b}}',
      'listen: ["127.0.0.1:0", "[::1]:5300"]',
      'observe: "0.0.0.0:9153"',
      'admin: off',
      'allow: [any]',
      'forward: [9.9.9.9, "dns.example.org:5353", ./resolv.conf, ~/resolv.conf]',
      'cache: {maxBytes: 1GiB, maxTtl: 1d, maxNegativeTtl: 0s, serveStale: 0s}',
      'threads: 2',
      'lameDuck: 1500ms',
      'log: {level: debug, queries: {sample: 100}}',
      'limits: {inFlight: 10, tcpConnections: 20, tcpIdleTimeout: 2s}',
      'regions: {10.8.0.0/14: us-west, any: elsewhere}',
      'peers:',
      '  7: {servers: [192.0.2.1], transport: tcp, families: [4], maxAge: 30s, probe: {name: x.example, type: A}}',
      'policies:',
      '- {name: z, dnsName: [b.example, a.example], targets: [{peer: "7", weight: 0, zone: Cluster.Local, region: moon}],',
      '   clients: [10.8.0.0/14], nextOn: [absent], maxTtl: 10s, maxNegativeTtl: 1s, select: weighted, trickle: 5}',
      '- {name: a, dnsName: svc.cluster-b.local, targets: [{local: true, weight: 30}], clients: everyone, nextOn: []}',
      'transfer: {allow: [private], notify: [192.0.2.7], keys: [{name: k.example, file: key}]}'
    ].join('\n')
  )
  t.equal(nameToText(config.cluster.zone), 'cluster-b.local.')
  t.same(config.cluster.reverse.map(({ text }) => text), ['10.0.0.0/8', 'fd00:1::/64']) // prettier-ignore
  t.same(
    config.cluster.records.map(({ owner, type, ttlSeconds, rdata, position }) => [
      nameToText(owner),
      ttlSeconds,
      rdataToText(type, rdata),
      position.line
    ]),
    [
      ['db.backend.svc.cluster-b.local.', 10, '172.30.9.9', 7],
      ['txt.backend.svc.cluster-b.local.', 60, '"a b"', 8]
    ]
  )
  t.same(config.cluster.source, { kind: 'kubernetes', kubeconfig: '/home/user/.kube/config', context: 'b' })
  t.equal(config.cluster.leases, '{cluster}-alive')
  t.equal(config.cluster.probes, true)
  t.equal(config.admin, null)
  t.ok(config.allow.contains('8.8.8.8'))
  t.same(config.forward, [
    { kind: 'server', server: { host: '9.9.9.9', port: 53 } },
    { kind: 'server', server: { host: 'dns.example.org', port: 5_353 } },
    { kind: 'resolv-conf', path: '/etc/peerdns/resolv.conf' },
    { kind: 'resolv-conf', path: '/home/user/resolv.conf' }
  ])
  t.same(config.cache, {
    maxOctets: 1_073_741_824,
    maxTtlSeconds: 86_400,
    maxNegativeTtlSeconds: 0,
    serveStaleSeconds: 0
  })
  t.equal(config.lameDuckMs, 1_500)
  t.same(config.log, { level: 'debug', querySample: 100 })
  t.same(config.limits, { inFlightQueries: 10, tcpConnections: 20, tcpIdleTimeoutMs: 2_000 })
  t.same(
    config.regions.map(({ network, region }) => `${network.text} ${region}`),
    ['10.8.0.0/14 us-west', '0.0.0.0/0 elsewhere', '::/0 elsewhere']
  )
  t.match(config.peers[0], {
    name: '7',
    transport: 'tcp',
    families: [4],
    maxAgeMs: 30_000,
    position: { line: 24, column: 3 }
  })
  t.same(config.peers[0]?.probe.name, parseName('x.example'))
  t.same(config.policies.map(({ name }) => name), ['z', 'a'], 'the order of the file is kept') // prettier-ignore
  const [first, second] = config.policies
  t.match(first, { maxTtlSeconds: 10, maxNegativeTtlSeconds: 1, select: 'weighted', tricklePercent: 5 })
  t.same(first?.nextOn, new Set(['absent']))
  t.equal(String(first?.clients), '10.8.0.0/14')
  t.match(first?.targets[0], { id: 'peer:7', weight: 0, zone: parseName('cluster.local'), region: 'moon' })
  t.match(second, { clients: null, nextOn: new Set() })
  t.match(second?.targets[0], { id: 'local', weight: 30 })
  t.same(config.transfer.keys, [{ name: parseName('k.example'), algorithm: 'hmac-sha256', file: '/etc/peerdns/key' }])
  t.same(config.positions.get('cluster.source'), { line: 11, column: 3 })
  t.same(config.positions.get('threads'), { line: 18, column: 1 })
})

void test('loadConfig says why a file cannot be read', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-config-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const says = (file: string, want: RegExp) => {
    try {
      loadConfig(file, options)
      t.fail(`${file} was loaded`)
    } catch (error) {
      t.type(error, ConfigError)
      t.match((error as ConfigError).problems, [{ file, line: 1, column: 1, path: '', message: want }])
    }
  }
  says(join(folder, 'none.yaml'), /no such file/)
  says(folder, /cannot be read \(EISDIR\)/)
  writeFileSync(join(folder, 'latin1.yaml'), Buffer.from('cluster: {name: b\xe9}', 'latin1'))
  says(join(folder, 'latin1.yaml'), /not UTF-8/)
  writeFileSync(join(folder, 'bom.yaml'), `\ufeff${shortest}`)
  const config = loadConfig(join(folder, 'bom.yaml'), options)
  t.equal(config.cluster.name, 'b')
  t.match(config.hash, /^[0-9a-f]{64}$/)
})

void test('nearestWord finds what was meant and nothing else', async (t) => {
  const known = ['maxTtl', 'maxNegativeTtl', 'targets', 'dnsName', 'name', 'servers', 'importsInZone']
  const rows: [word: string, want: string | null][] = [
    ['maxTTL', 'maxTtl'],
    ['max_ttl', 'maxTtl'],
    ['max-negative-ttl', 'maxNegativeTtl'],
    ['target', 'targets'],
    ['tragets', 'targets'],
    ['dnsname', 'dnsName'],
    ['dnsNames', 'dnsName'],
    ['nam', 'name'],
    ['server', 'servers'],
    ['importInZone', 'importsInZone'],
    ['color', null],
    ['x', null],
    ['', null],
    ['maxTtl'.repeat(20), null]
  ]
  for (const [word, want] of rows) t.equal(nearestWord(word, known), want, word)
})

void test('networkOfReverseName reads octets and nibbles', async (t) => {
  const rows: [name: string, want: string | null][] = [
    ['2.1.10.in-addr.arpa', '10.1.2.0/24'],
    ['4.3.2.1.in-addr.arpa', '1.2.3.4/32'],
    ['in-addr.arpa', '0.0.0.0/0'],
    ['1.0.0.0.0.0.d.f.ip6.arpa', 'fd00:1::/32'],
    ['ip6.arpa', '::/0'],
    ['256.in-addr.arpa', null],
    ['x.in-addr.arpa', null],
    ['5.4.3.2.1.in-addr.arpa', null],
    ['10.ip6.arpa', null],
    ['arpa', null],
    ['in-addr.example', null]
  ]
  for (const [name, want] of rows) t.equal(networkOfReverseName(parseName(name))?.text ?? null, want, name)
})
