// Which names may leave the cluster, and which never do: counted at the stub that stands for the other cluster.
import { test } from 'tap'
import { ask } from '../support/in-process.ts'
import { askedOf, below, peer, policy, recordsOf, startB, stub } from './two-peers.ts'

const zone = 'cluster.local'

test('names that the schema cannot have are denied here and never leave', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const b = await startB(t, peer('a', a), policy('p', zone, '[a]') + policy('q', 'clusterset.local', '[a]'))
  const impossible = [
    'foo.cluster.local',
    'www.example.org.cluster.local',
    'backend.cluster.local',
    'www.google.com.backend.svc.cluster.local',
    'a.b.c.d.backend.svc.cluster.local',
    '_http._tcp.x.api.backend.svc.cluster.local',
    'http._tcp.api.backend.svc.cluster.local',
    '_http.tcp.api.backend.svc.cluster.local',
    'api.back_end.svc.cluster.local',
    '_api.backend.svc.cluster.local',
    '*.backend.svc.cluster.local',
    'a\\.b.backend.svc.cluster.local',
    'x.10-0-0-1.backend.pod.cluster.local',
    '_dns-sd._udp.cluster.local'
  ]
  for (const question of impossible) {
    for (const type of ['A', 'AAAA', 'SRV', 'TXT']) {
      const reply = await ask(b, question, { type })
      t.equal(reply.text, 'NXDOMAIN', `${question} ${type}`)
      t.match(reply.authority, [/^cluster\.local \d+ SOA /], `${question} ${type}: with the SOA`)
      t.equal(reply.flags.aa, true, `${question} ${type}: of our own zone`)
    }
  }
  const escaped = await ask(b, 'a\\000b.backend.svc.cluster.local')
  t.equal(escaped.text, 'NXDOMAIN')
  t.same(askedOf(a), [], 'the peer was asked nothing')

  const possible = [
    below('api'),
    `pod-0.${below('api')}`,
    `_http._tcp.${below('api')}`,
    `_tcp.${below('api')}`,
    'backend.svc.cluster.local',
    '10-0-0-1.backend.pod.cluster.local',
    'API.Other.svc.Cluster.LOCAL'
  ]
  for (const question of possible) await ask(b, question)
  t.same(askedOf(a).map((line) => line.toLowerCase()).sort(), possible.map((name) => `${name} A`.toLowerCase()).sort()) // prettier-ignore
})

const reserved = [
  'kubernetes.default.svc.cluster.local',
  '_https._tcp.kubernetes.default.svc.cluster.local',
  'x.kubernetes.default.svc.cluster.local',
  'kube-dns.kube-system.svc.cluster.local',
  'x.kube-dns.kube-system.svc.cluster.local',
  'kube-system.svc.cluster.local',
  '10-0-0-1.kube-system.pod.cluster.local'
]

test('reserved names never leave without allowReserved', async (t) => {
  const a = await stub(
    t,
    reserved.map((name) => ({ type: 'A', name, ttl: 10, data: '172.30.0.1' }))
  )
  const b = await startB(t, peer('a', a), policy('p', zone, '[a, local]') + policy('q', `svc.${zone}`, '[a]'))
  for (const name of reserved) {
    const reply = await ask(b, name)
    t.notMatch(reply.text, /172\.30/, name)
    t.equal(reply.flags.aa, true, `${name}: our own zone answers`)
  }
  t.same(askedOf(a), [])
  for (const name of [
    'api.default.svc.cluster.local',
    'kubernetes.backend.svc.cluster.local',
    'default.svc.cluster.local'
  ])
    // prettier-ignore
    await ask(b, name)
  t.equal(askedOf(a).length, 3, 'their neighbours do')
})

test('with allowReserved they do', async (t) => {
  const a = await stub(
    t,
    reserved.map((name) => ({ type: 'A', name, ttl: 10, data: '172.30.0.1' }))
  )
  const b = await startB(
    t,
    peer('a', a),
    policy('p', `kube-system.svc.${zone}`, '[a]', ', allowReserved: true') + policy('wide', zone, '[a]')
  )
  t.equal((await ask(b, 'kube-dns.kube-system.svc.cluster.local')).text, '172.30.0.1')
  t.notMatch((await ask(b, 'kubernetes.default.svc.cluster.local')).text, /172/, 'by the policy that says so alone')
})

test('the longest dnsName wins, whole labels only', async (t) => {
  const [a, c] = [await stub(t, recordsOf('172.30.1')), await stub(t, recordsOf('172.30.2'))]
  const b = await startB(
    t,
    peer('a', a) + peer('c', c),
    policy('wide', 'backend.svc.cluster.local', '[a]') +
      policy('narrow', '[api.backend.svc.cluster.local, shop.svc.cluster.local]', '[c]') +
      policy('own', 'b-only.backend.svc.cluster.local', '[local]')
  )
  const rows = [
    [below('api'), '172.30.2.1'],
    [`pod-0.${below('api')}`, '172.30.2.11'],
    [below('a-only'), '172.30.1.4'],
    [below('b-only'), '10.1.4.20'],
    ['cart.shop.svc.cluster.local', 'NXDOMAIN'],
    ['API.BACKEND.SVC.CLUSTER.LOCAL', '172.30.2.1']
  ] as const
  for (const [question, want] of rows) t.equal((await ask(b, question)).text, want, question)
  t.equal((await ask(b, 'x.mybackend.svc.cluster.local')).flags.aa, true, 'half a label is no suffix')
})

test('static addresses answer any name at or below the dnsName', async (t) => {
  const b = await startB(
    t,
    '',
    policy('p', '[ext.example, late.example]', '[{addresses: [10.9.0.7, 10.9.0.8, "fd00::7"]}]', ', maxTtl: 9s') +
      policy('four', 'four.example', '[{addresses: [10.9.0.9]}]') +
      policy('back', 'api.backend.svc.cluster.local', '[local, {addresses: [10.9.0.7]}]')
  )
  const rows = [
    ['ext.example', 'A', '10.9.0.7 10.9.0.8'],
    ['a.b.ext.example', 'A', '10.9.0.7 10.9.0.8'],
    ['a.late.example', 'AAAA', 'fd00::7'],
    ['four.example', 'AAAA', 'NODATA'],
    ['ext.example', 'TXT', 'NODATA'],
    [below('api'), 'A', '10.1.1.20']
  ] as const
  for (const [question, type, want] of rows) {
    const reply = await ask(b, question, { type })
    t.equal(reply.text, want, `${question} ${type}`)
    if (want === 'NODATA') t.match(reply.authority, [/ SOA /], `${question} ${type}: with a SOA`)
    else if (type !== 'A' || question !== below('api')) t.equal(reply.ttl, 9, `${question} ${type}: maxTtl`)
  }
})

test('limits of who may ask, and names that nobody is for', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const b = await startB(
    t,
    peer('a', a),
    policy('p', 'backend.svc.cluster.local', '[a]', ', clients: [127.0.0.1, 127.0.0.9]'),
    'forward: []\nallow: [127.0.0.1, 127.0.0.2]\n'
  )
  const refused = await ask(b, 'cart.shop.svc.cluster.local', { from: '127.0.0.9' })
  t.equal(refused.text, 'REFUSED')
  t.match(refused.ede, [{ code: 18 }], 'not in allow')
  t.equal((await ask(b, 'cart.shop.svc.cluster.local', { from: '127.0.0.2' })).text, '10.1.5.20')
  for (const from of ['127.0.0.1', '127.0.0.2']) {
    const nobody = await ask(b, 'www.example.org', { from })
    t.equal(nobody.text, 'REFUSED')
    t.match(nobody.ede, [{ code: 20 }], 'no rule')
    t.equal(nobody.authority.length, 0)
  }
  const plain = await ask(b, 'www.example.org', { edns: false })
  t.equal(plain.options, null, 'without OPT there is none in the answer')
})
