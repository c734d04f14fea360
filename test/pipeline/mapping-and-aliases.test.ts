// Names between clusters that call their zones differently, and aliases that lead on: whose name each of them means.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import * as dnsPacket from 'dns-packet'
import { test, type Test } from 'tap'
import { ask, clusterB, delay, startInProcess, until } from '../support/in-process.ts'
import { externalName } from '../support/objects.ts'
import type { StubRecord } from '../support/stub-peer.ts'
import { askedOf, below, objectsOfB, peer, policy, recordsOf, startB, stub } from './two-peers.ts'

const suffix = 'backend.svc.cluster.local'
const theirs = (label: string): string => `${label}.backend.svc.cluster-a.local`

test('zone mapping: owner names, targets of SRV, CNAME and PTR, and the SOA of denials', async (t) => {
  const records: StubRecord[] = [
    ...recordsOf('172.30.1', 'cluster-a.local'),
    { type: 'CNAME', name: theirs('alias'), ttl: 10, data: theirs('api') },
    { type: 'PTR', name: theirs('pointer'), ttl: 10, data: theirs('api') },
    { type: 'CNAME', name: theirs('out'), ttl: 10, data: 'www.example.org' },
    { type: 'TXT', name: theirs('text'), ttl: 10, data: 'api.backend.svc.cluster-a.local' }
  ]
  const a = await stub(t, records, 'cluster-a.local')
  const b = await startB(t, peer('a', a), policy('p', suffix, '[{peer: a, zone: cluster-a.local}]'))
  const rows: [question: string, type: string, want: string][] = [
    [below('api'), 'A', '172.30.1.1'],
    [below('api'), 'AAAA', 'NODATA'],
    [below('alias'), 'A', `172.30.1.1 ${below('api')}`],
    [below('alias'), 'CNAME', below('api')],
    [below('pointer'), 'PTR', below('api')],
    [`_grpc._tcp.${below('api')}`, 'SRV', `0 100 9090 ${below('api')}`],
    [below('out'), 'A', 'www.example.org'],
    [below('text'), 'TXT', 'api.backend.svc.cluster-a.local'],
    [below('none'), 'A', 'NXDOMAIN']
  ]
  for (const [question, type, want] of rows) {
    for (const again of ['', ' (from memory)']) {
      const reply = await ask(b, question, { type })
      t.equal(reply.text, want, `${question} ${type}${again}`)
      const lines = [...reply.answer, ...reply.authority, ...reply.additional]
      if (type !== 'TXT') t.notOk(lines.some((line) => line.includes('cluster-a')), lines.join('; ')) // prettier-ignore
      if (want === 'NODATA' || want === 'NXDOMAIN') {
        t.same(reply.authority, ['cluster.local 5 SOA ns.cluster.local 5'], `${question}: SOA`)
      }
    }
  }
  const srv = await ask(b, `_grpc._tcp.${below('api')}`, { type: 'SRV' })
  t.same(srv.additional, [`${below('api')} 10 A 172.30.1.1`])
  t.ok(
    askedOf(a).every((line) => line.includes('.cluster-a.local ')),
    'the peer is asked in its own words'
  )
  const before = askedOf(a).length
  t.equal((await ask(b, below('api').toUpperCase())).text, '172.30.1.1', 'whatever the case')
  t.equal(askedOf(a).length, before)
})

test('an alias that a peer gives inside its zone means the peer’s own name', async (t) => {
  const shop = (label: string): string => `${label}.shop.svc.cluster.local`
  const a = await stub(t, [
    ...recordsOf('172.30.1'),
    { type: 'CNAME', name: below('cart'), ttl: 10, data: shop('cart') },
    { type: 'A', name: shop('cart'), ttl: 10, data: '172.30.5.1' },
    { type: 'CNAME', name: below('lost'), ttl: 10, data: shop('lost') },
    { type: 'CNAME', name: below('ring-1'), ttl: 10, data: below('ring-2') },
    { type: 'CNAME', name: below('ring-2'), ttl: 10, data: below('ring-1') },
    { type: 'CNAME', name: below('self'), ttl: 10, data: below('self') }
  ])
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a]'))
  const whole = await ask(b, below('cart'))
  t.equal(whole.text, `172.30.5.1 ${shop('cart')}`, 'its cart, not ours')
  t.equal(whole.flags.aa, false)
  const own = await ask(b, shop('cart'))
  t.equal(own.text, '10.1.5.20', 'and never under our name')
  t.equal(own.flags.aa, true)
  t.equal((await ask(b, below('lost'))).text, `NXDOMAIN ${shop('lost')}`)

  // A peer that gives the alias without an address: the end is asked there, not here.
  a.records = a.records.filter(({ name }) => name !== shop('cart'))
  a.records.push({ type: 'TXT', name: shop('cart'), ttl: 10, data: 'no address' })
  b.server.cache.flush()
  t.equal((await ask(b, below('cart'))).text, shop('cart'))
  t.ok(askedOf(a).includes(`${shop('cart')} A`))
  for (const [name, want] of [
    ['ring-1', `${below('ring-1')} ${below('ring-2')}`],
    ['self', below('self')]
  ] as const) {
    for (const again of ['', ' (from memory)']) {
      const reply = await ask(b, below(name))
      t.equal(reply.text, want, `${name}: each alias once, NOERROR${again}`)
    }
  }
})

test('an alias that leaves the peer’s zone is chased by our rules', async (t) => {
  const a = await stub(t, [
    { type: 'CNAME', name: below('out'), ttl: 10, data: 'www.example.org' },
    { type: 'A', name: 'www.example.org', ttl: 10, data: '192.0.2.66' },
    { type: 'CNAME', name: below('ours'), ttl: 10, data: 'cart.shop.svc.east.example' },
    { type: 'CNAME', name: below('dead'), ttl: 10, data: 'dead.example.net' }
  ])
  const up = await stub(t, [{ type: 'A', name: 'www.example.org', ttl: 7, data: '192.0.2.80' }], 'example.org')
  const east = await stub(t, [{ type: 'A', name: 'cart.shop.svc.east.example', ttl: 10, data: '172.31.0.1' }], 'east.example') // prettier-ignore
  const b = await startB(
    t,
    peer('a', a) + peer('east', east),
    policy('p', suffix, '[a]') + policy('e', 'svc.east.example', '[east]'),
    `forward: ["${up.text}"]\n`
  )
  for (const again of ['', ' (from memory)']) {
    t.equal((await ask(b, below('out'))).text, '192.0.2.80 www.example.org', `forward, not what the peer says${again}`)
    t.equal((await ask(b, below('ours'))).text, '172.31.0.1 cart.shop.svc.east.example', `a policy${again}`)
  }
  t.equal((await ask(b, 'www.example.org')).text, '192.0.2.80')
  up.fault = 'servfail'
  t.equal((await ask(b, below('dead'))).text, 'SERVFAIL dead.example.net')
})

test('ExternalName is chased in our zones, below policies and through forward; loops end', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const up = await stub(
    t,
    [
      { type: 'CNAME', name: 'www.example.org', ttl: 60, data: 'web.example.org' },
      { type: 'A', name: 'web.example.org', ttl: 60, data: '192.0.2.80' }
    ],
    'example.org'
  )
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a]'), `forward: ["${up.text}"]\n`)
  const shop = (label: string): string => `${label}.shop.svc.cluster.local`
  const rows: [name: string, question: string, type: string, want: string][] = [
    ['below a policy', shop('to-peer'), 'A', `172.30.1.1 ${below('api')}`],
    ['in our zone', shop('to-own'), 'A', `10.1.5.20 ${shop('cart')}`],
    ['through forward', shop('to-out'), 'A', '192.0.2.80 web.example.org www.example.org'],
    ['to nothing', shop('to-none'), 'A', `NXDOMAIN ${shop('none')}`],
    ['another type', shop('to-peer'), 'AAAA', below('api')],
    ['CNAME itself', shop('to-peer'), 'CNAME', below('api')],
    ['a loop', shop('loop-1'), 'A', `${shop('loop-1')} ${shop('loop-2')}`],
    ['a loop of one', shop('loop-self'), 'A', shop('loop-self')],
    ['a name below an ExternalName Service', `x.${shop('to-out')}`, 'A', 'NXDOMAIN']
  ]
  for (const [name, question, type, want] of rows) {
    for (const again of ['', ' (from memory)']) {
      const reply = await ask(b, question, { type })
      t.equal(reply.text, want, name + again)
      t.equal(reply.flags.aa, true, `${name}${again}: AA speaks of the first owner, which is ours`)
      t.equal(reply.answer[0]?.split(' ')[0], want === 'NXDOMAIN' ? undefined : question, `${name}: the alias first`)
    }
  }
  t.equal((await ask(b, shop('to-out'), { recursionDesired: false })).text, 'www.example.org', 'RD=0: not outside')
  up.fault = 'servfail'
  b.server.cache.flush()
  t.equal((await ask(b, shop('to-out'))).text, 'SERVFAIL www.example.org')
})

test('AA, RA and the other bits', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const up = await stub(t, [{ type: 'A', name: 'www.example.org', ttl: 60, data: '192.0.2.80' }], 'example.org')
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a, local]'), `forward: ["${up.text}"]\n`)
  const rows: [question: string, aa: boolean][] = [
    [below('api'), false],
    [below('b-only'), true],
    ['cart.shop.svc.cluster.local', true],
    ['none.shop.svc.cluster.local', true],
    ['www.example.org', false],
    ['none.example.org', false],
    ['1.0.0.10.in-addr.arpa', true]
  ]
  for (const [question, aa] of rows) {
    for (const again of ['', ' (again)']) {
      const reply = await ask(b, question, { flags: dnsPacket.AUTHENTIC_DATA })
      t.match(reply.flags, { aa, ra: true, ad: false, tc: false, rd: true, cd: false }, question + again)
    }
  }
  t.ok(
    up.queries.every(({ packet }) => packet.flag_rd && !packet.flag_ad),
    'forward is asked with RD=1'
  )
  const closed = await startB(t, peer('a', a), policy('p', suffix, '[a]', ', clients: [127.0.0.5]'))
  t.equal((await ask(closed, below('api'))).flags.ra, false, 'neither policy nor forward for this client')
  t.equal((await ask(closed, below('api'), { from: '127.0.0.5' })).flags.ra, true)
})

test('A and AAAA of one name come from one target, while the first one fails for one type', async (t) => {
  const [a, c] = [await stub(t, recordsOf('172.30.1')), await stub(t, recordsOf('172.30.2'))]
  c.records.push({ type: 'AAAA', name: below('api'), ttl: 10, data: 'fd00::2' })
  const b = await startB(t, peer('a', a) + peer('c', c), policy('p', suffix, '[a, c]'))
  t.equal((await ask(b, below('api'), { type: 'AAAA' })).text, 'NODATA', 'IPv4 only at the first: never the second')
  t.equal((await ask(b, below('api'))).text, '172.30.1.1')
  t.same(askedOf(c), [])
  a.records.push({ type: 'AAAA', name: below('api'), ttl: 10, data: 'fd00::1' })
  t.equal((await ask(b, below('api'), { type: 'AAAA' })).text, 'NODATA', 'a NODATA is kept for its TTL')
  b.server.cache.flush()
  t.ok(await until(async () => (await ask(b, below('api'), { type: 'AAAA' })).text === 'fd00::1'))
})

test('a reverse suffix keeps its names, and what its PTR records point at is mapped', async (t) => {
  const records: StubRecord[] = [
    { type: 'PTR', name: '1.1.30.172.in-addr.arpa', ttl: 10, data: theirs('api') },
    { type: 'PTR', name: '2.1.30.172.in-addr.arpa', ttl: 10, data: 'www.example.org' }
  ]
  const a = await stub(t, records, '172.in-addr.arpa')
  const b = await startB(t, peer('a', a), policy('p', '1.30.172.in-addr.arpa', '[{peer: a, zone: cluster-a.local}]'))
  for (const again of ['', ' (from memory)']) {
    t.equal((await ask(b, '1.1.30.172.in-addr.arpa', { type: 'PTR' })).text, below('api'), `ours${again}`)
    t.equal((await ask(b, '2.1.30.172.in-addr.arpa', { type: 'PTR' })).text, 'www.example.org', `elsewhere${again}`)
  }
  t.same([...new Set(askedOf(a))], ['1.1.30.172.in-addr.arpa PTR', '2.1.30.172.in-addr.arpa PTR'])
})

test('a suffix outside of our zones may lie deep in the peer’s zone: its denials are denials', async (t) => {
  const a = await stub(t, [{ type: 'A', name: 'x.deep.partner.example', ttl: 10, data: '192.0.2.1' }], 'partner.example') // prettier-ignore
  const c = await stub(t, [{ type: 'A', name: 'none.deep.partner.example', ttl: 10, data: '192.0.2.2' }], 'partner.example') // prettier-ignore
  const b = await startB(t, peer('a', a) + peer('c', c), policy('p', 'deep.partner.example', '[a, c]'))
  for (let at = 0; at < 2; at++) {
    const nodata = await ask(b, 'x.deep.partner.example', { type: 'AAAA' })
    t.equal(nodata.text, 'NODATA')
    t.match(nodata.authority, [/^partner\.example \d SOA /], 'with the SOA of the zone above')
    t.equal((await ask(b, 'y.deep.partner.example')).text, 'NXDOMAIN')
  }
  t.same(askedOf(a), ['x.deep.partner.example AAAA', 'y.deep.partner.example A'], 'they are kept')
  t.same(askedOf(c), ['y.deep.partner.example A'], 'NODATA is having the name')
})

/** A server that gives each alias alone, so that its end has to be asked for. */
async function minimalServer(t: Test, records: StubRecord[]) {
  const socket = createSocket('udp4')
  const state = { isDead: false }
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  socket.on('message', (octets, sender) => {
    const query = dnsPacket.decode(octets)
    const { name, type } = query.questions![0]!
    const here = records.filter((record) => record.name === name && (record.type === type || record.type === 'CNAME'))
    const head = { type: 'response' as const, id: query.id, questions: query.questions }
    const reply = dnsPacket.encode(state.isDead ? { ...head, flags: 2 } : { ...head, answers: here })
    socket.send(reply, sender.port, sender.address)
  })
  return { text: `127.0.0.1:${socket.address().port}`, state }
}

test('a stale answer behind an alias is whole, or it is none', async (t) => {
  const server = await minimalServer(t, [
    { type: 'CNAME', name: below('long'), ttl: 60, data: below('end') },
    { type: 'CNAME', name: below('short'), ttl: 1, data: below('end') },
    { type: 'CNAME', name: below('half'), ttl: 1, data: below('missing') },
    { type: 'A', name: below('end'), ttl: 1, data: '172.30.1.9' }
  ])
  const b = await startB(t, peer('a', server), policy('p', suffix, '[a]'))
  for (const name of ['long', 'short']) t.equal((await ask(b, below(name))).text, `172.30.1.9 ${below('end')}`, name)
  t.equal((await ask(b, below('half'))).rcode, 'NOERROR')
  server.state.isDead = true
  await delay(1_100)
  for (const again of ['', ', failure remembered']) {
    for (const name of ['long', 'short']) {
      const reply = await ask(b, below(name))
      t.equal(reply.text, `172.30.1.9 ${below('end')}`, name + again)
      t.equal(reply.answer[0]?.split(' ')[0], below(name), `${name}${again}: it begins at the name that was asked`)
      t.match(reply.ede, [{ code: 3 }], name + again)
    }
    t.equal((await ask(b, below('half'))).text, 'SERVFAIL', `an alias alone would deny its end${again}`)
  }
})

test('forward has no say in our zones and below policies: aliases into them end by our rules', async (t) => {
  const partner = await stub(t, [{ type: 'A', name: 'plain.partner.example', ttl: 10, data: '192.0.2.77' }], 'partner.example') // prettier-ignore
  const lie = '6.6.6.6'
  const upstream = await stub(
    t,
    [
      { type: 'CNAME', name: 'into-zone.example.org', ttl: 10, data: below('api') },
      { type: 'A', name: below('api'), ttl: 10, data: lie },
      { type: 'CNAME', name: 'into-policy.example.org', ttl: 10, data: 'plain.partner.example' },
      { type: 'A', name: 'plain.partner.example', ttl: 10, data: lie },
      { type: 'CNAME', name: 'through.example.org', ttl: 10, data: 'end.example.org' },
      { type: 'A', name: 'end.example.org', ttl: 10, data: '192.0.2.5' }
    ],
    'example.org'
  )
  const b = await startB(t, peer('partner', partner), policy('p', 'partner.example', '[partner]'), `forward: ["${upstream.text}"]\n`) // prettier-ignore
  // Once by asking, once from memory.
  for (const round of ['asked', 'remembered']) {
    const own = await ask(b, 'into-zone.example.org')
    t.same(
      own.answer.filter((line) => line.includes(lie)),
      [],
      `${round}: no lie about our zone`
    )
    t.match(own.text, /10\.1\.1\.20/, `${round}: our own address`)
    const peered = await ask(b, 'into-policy.example.org')
    t.match(peered.text, /192\.0\.2\.77/, `${round}: the policy's target`)
    t.notMatch(peered.text, lie)
    t.match((await ask(b, 'through.example.org')).text, /192\.0\.2\.5/, `${round}: aliases elsewhere stay as they came`)
  }
})

test('a chain of aliases is followed as far as the limit, and is an error beyond', async (t) => {
  const chain = (prefix: string, length: number) =>
    Array.from({ length }, (_, at) =>
      externalName(`${prefix}${at}.shop`, at + 1 < length ? `${prefix}${at + 1}.shop.svc.cluster.local` : below('api'))
    )
  const c = await stub(t, [])
  c.records = Array.from({ length: 40 }, (_, at) => ({ type: 'CNAME', name: `n${at}.backend.svc.cluster.local`, ttl: 10, data: `n${at + 1}.backend.svc.cluster.local` })) // prettier-ignore
  const b = await startInProcess(t, clusterB('forward: []\n'), { objects: [...objectsOfB, ...chain('short', 14), ...chain('long', 20)] }) // prettier-ignore
  t.match((await ask(b, 'short0.shop.svc.cluster.local')).text, /10\.1\.1\.20/)
  const long = await ask(b, 'long0.shop.svc.cluster.local')
  t.equal(long.rcode, 'SERVFAIL')
  t.match(long.ede, [{ code: 0, text: /aliases/ }])
  const d = await startB(t, peer('c', c), policy('p', 'backend.svc.cluster.local', '[c]'))
  const endless = await ask(d, below('n0'))
  t.equal(endless.rcode, 'SERVFAIL', 'a peer without end')
  t.match(endless.ede, [{ code: 22, text: /aliases/ }])

  c.records = ['x', 'y'].map((label, at) => ({ type: 'CNAME', name: `${label}.backend.svc.cluster.local`, ttl: 10, data: `${'yx'[at]}.backend.svc.cluster.local` })) // prettier-ignore
  for (const round of ['asked', 'remembered', 'remembered by the other name']) {
    const loop = await ask(d, below(round.endsWith('name') ? 'y' : 'x'))
    t.equal(loop.rcode, 'NOERROR', `a loop of a peer, ${round}`)
    t.equal(loop.answer.length, 2, 'each alias once')
  }
})
