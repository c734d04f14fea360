// What a client gets where no target has the name, or none can be reached: the five rules in their order.
import { test } from 'tap'
import { returnMs } from '../../src/base/limits.ts'
import { ask, clusterB, delay, startInProcess, until, type InProcessServer } from '../support/in-process.ts'
import { service } from '../support/objects.ts'
import {
  askedOf,
  below,
  objectsOfB,
  peer,
  policy,
  quickProbes,
  rareProbes,
  recordsOf,
  startB,
  stub
} from './two-peers.ts'

const suffix = 'backend.svc.cluster.local'

const probed = (name: string, probe: string, ...servers: { text: string }[]): string =>
  `  ${name}: {servers: [${servers.map(({ text }) => `"${text}"`).join(', ')}], probe: ${probe}}\n`

const healthOf = (b: InProcessServer, name: string): string =>
  b.server.inspect.peers().find((peer) => peer.name === name)?.health ?? 'missing'

const isDown = (b: InProcessServer, ...names: string[]): Promise<boolean> =>
  until(() => names.every((name) => healthOf(b, name) === 'down'))

test('rule 1: an empty target’s own address comes before everything else', async (t) => {
  const a = await stub(t, recordsOf('172.30.1', 'cluster.local', 1))
  const b = await startInProcess(
    t,
    clusterB(
      `peers:\n${peer('a', a)}policies:\n${policy('p', suffix, '[a, local]') + policy('q', below('none'), '[local, a]')}forward: []\n`
    ),
    { objects: [...objectsOfB, ...service('none.backend', '10.1.6.20', { ready: [] })] }
  )
  const absent = await ask(b, below('none'))
  t.equal(absent.text, '10.1.6.20', 'empty here, absent there')
  t.equal(absent.ede.length, 0)
  t.equal((await ask(b, below('idle'))).text, '172.30.1.3', 'it has been at the peer')
  a.fault = 'servfail'
  b.server.cache.flush()
  const unreachable = await ask(b, below('idle'))
  t.equal(unreachable.text, '10.1.3.20', 'empty here, unreachable there')
  t.equal(unreachable.flags.aa, true)
  const stale = await ask(b, below('none'))
  t.equal(stale.text, '10.1.6.20')
})

test('rule 2: all were reached, so the first denial comes as it is', async (t) => {
  const [a, c] = [await stub(t, recordsOf('172.30.1')), await stub(t, recordsOf('172.30.2'))]
  a.records.push({ type: 'A', name: 'x.y.z', ttl: 1, data: '192.0.2.1' })
  const b = await startB(t, peer('a', a) + peer('c', c), policy('p', suffix, '[a, c]'))
  const denial = await ask(b, below('nobody'))
  t.equal(denial.text, 'NXDOMAIN')
  t.same(denial.authority, ['cluster.local 5 SOA ns.cluster.local 5'], 'with its SOA')
  t.equal(denial.ede.length, 0)
  t.equal(denial.flags.aa, false)
  t.same([askedOf(a), askedOf(c)], [[`${below('nobody')} A`], [`${below('nobody')} A`]])
  await ask(b, below('nobody'))
  t.equal(askedOf(a).length + askedOf(c).length, 2, 'and both are kept')
})

test('rule 3: a stale answer of the unreachable target itself, with EDE 3', async (t) => {
  const [a, c] = [await stub(t, recordsOf('172.30.1', 'cluster.local', 1)), await stub(t, recordsOf('172.30.2'))]
  const b = await startB(
    t,
    peer('a', a) + peer('c', c),
    policy('alone', below('api'), '[a]') +
      policy('p', suffix, '[a, c]') +
      policy('last', below('b-only'), '[a, local]') +
      policy('mapped', 'backend.svc.clusterset.local', '[{peer: a, zone: cluster.local}, c]')
  )
  c.records = []
  const mapped = 'a-only.backend.svc.clusterset.local'
  for (const name of [below('api'), below('a-only'), mapped]) t.equal((await ask(b, name)).rcode, 'NOERROR', name)
  t.equal((await ask(b, below('gone'))).rcode, 'NXDOMAIN')
  a.fault = 'servfail'
  await delay(1_100)
  for (const [name, question, address] of [
    ['the only target', below('api'), '172.30.1.1'],
    ['the next one denies', below('a-only'), '172.30.1.4'],
    ['zones are mapped', mapped, '172.30.1.4']
  ] as const) {
    for (const again of ['', ', failure remembered']) {
      const reply = await ask(b, question)
      t.equal(reply.text, address, name + again)
      t.match(reply.answer, [new RegExp(`^${question} `)], `${name}${again}: our name`)
      t.match(reply.ede, [{ code: 3, text: /\ba\b/ }], name + again)
      t.ok(reply.ttl! <= 30 && reply.ttl! > 0, `${name}: TTL ${reply.ttl}`)
      t.equal(reply.flags.aa, false)
    }
  }
  a.fault = 'none'
  a.records = []
  t.ok(await until(async () => (await ask(b, below('api'))).text === 'NXDOMAIN'), 'it denies the name itself now')
  a.fault = 'servfail'
  const denied = await ask(b, below('api'))
  t.equal(denied.text, 'NXDOMAIN', 'never stale over a fresh denial of the same target')
})

test('what was given out stale is asked for again meanwhile, and fresh for the next client', async (t) => {
  const a = await stub(t, recordsOf('172.30.1', 'cluster.local', 1))
  const resolver = await stub(t, [{ type: 'A', name: 'www.example.org', ttl: 1, data: '192.0.2.1' }], 'example.org')
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a]'), `forward: ["${resolver.text}"]\n`)
  const names = [below('api'), 'www.example.org'] as const
  for (const name of names) t.equal((await ask(b, name)).rcode, 'NOERROR')
  a.fault = resolver.fault = 'servfail'
  for (const name of names)
    t.ok(await until(async () => (await ask(b, name)).ede[0]?.code === 3, 5_000), `${name}: stale`)
  a.records = a.records.map((record) => ({ ...record, ttl: 300 }))
  resolver.records = resolver.records.map((record) => ({ ...record, ttl: 300 }))
  a.fault = resolver.fault = 'none'
  const { stats } = b.server.peers.staleRefresh
  t.ok(await until(() => stats.refreshed >= 2, 15_000), 'nobody asked us')
  const before = a.queries.length + resolver.queries.length
  for (const name of names) t.same((await ask(b, name)).ede, [], `${name}: fresh`)
  t.equal(a.queries.length + resolver.queries.length, before, 'from memory')
  t.equal(
    b.server.peers.status().reduce((sum, one) => sum + one.stats.hedged, 0),
    0
  )
})

test('rule 3: what is stale is not kept past serveStale', async (t) => {
  const a = await stub(t, recordsOf('172.30.1', 'cluster.local', 1))
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a]'), 'forward: []\ncache: {serveStale: 1s}\n')
  t.equal((await ask(b, below('api'))).text, '172.30.1.1')
  a.fault = 'refused'
  await delay(1_200)
  t.equal((await ask(b, below('api'))).text, '172.30.1.1')
  await delay(1_000)
  t.equal((await ask(b, below('api'))).text, 'SERVFAIL')
})

test('rules 4 and 5: a doubtful denial for a second; else SERVFAIL', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a, local]') + policy('alone', 'web.' + suffix, '[a]'))
  for (const fault of ['servfail', 'refused', 'notimp', 'formerr', 'garbage', 'silent'] as const) {
    a.fault = fault
    const doubtful = await ask(b, below(`nobody-${fault}`))
    t.equal(doubtful.text, 'NXDOMAIN', fault)
    t.equal(doubtful.ttl, 1, `${fault}: TTL`)
    t.match(doubtful.ede, [{ code: 22, text: /^p: a: / }], `${fault}: EDE 22 names who could not be reached`)
    t.match(doubtful.authority, [/^cluster\.local 1 SOA/], fault)
  }
  a.fault = 'servfail'
  const failure = await ask(b, below('web'))
  t.equal(failure.text, 'SERVFAIL')
  t.match(failure.ede, [{ code: 22, text: /^alone: a: / }])
  t.equal(failure.answer.length + failure.authority.length, 0)
  const remembered = await ask(b, below('web'))
  t.equal(remembered.text, 'SERVFAIL')
  t.same(remembered.ede.map(({ code }) => code).sort((x, y) => x - y), [13, 22], 'a failure out of the cache says so') // prettier-ignore
  a.fault = 'none'
  t.equal((await ask(b, below('web'))).text, 'SERVFAIL', 'for a second')
  t.ok(await until(async () => (await ask(b, below('web'))).text === 'NXDOMAIN'))
})

test('a denial of ours keeps at most maxNegativeTtl', async (t) => {
  const a = await stub(t, [
    ...recordsOf('172.30.1'),
    { type: 'CNAME', name: below('alias'), ttl: 60, data: below('api') },
    { type: 'CNAME', name: below('to-none'), ttl: 60, data: below('none') }
  ])
  const b = await startB(
    t,
    peer('a', a),
    policy('short', suffix, '[a]', ', maxNegativeTtl: 2s') + policy('zero', 'zero.' + suffix, '[a]', ', maxNegativeTtl: 0s') // prettier-ignore
  )
  const rows: [name: string, question: string, type: string, want: string][] = [
    ['NXDOMAIN', below('none'), 'A', 'NXDOMAIN'],
    ['NODATA', below('api'), 'AAAA', 'NODATA'],
    ['NODATA behind an alias', below('alias'), 'AAAA', below('api')],
    ['NXDOMAIN behind an alias', below('to-none'), 'A', `NXDOMAIN ${below('none')}`]
  ]
  for (const [name, question, type, want] of rows) {
    for (const again of ['', ' (from memory)']) {
      const reply = await ask(b, question, { type })
      t.equal(reply.text, want, name + again)
      const soa = reply.authority.find((line) => line.includes(' SOA '))
      t.ok(Number(soa?.split(' ')[1]) <= 2, `${name}${again}: ${soa}`)
    }
  }
  const before = askedOf(a).length
  for (let at = 0; at < 2; at++) t.equal((await ask(b, 'x.zero.' + suffix)).ttl, 0)
  t.ok(askedOf(a).length >= before + 2, 'with 0 s a denial is not kept')
})

test('a bare NOERROR without SOA proves nothing', async (t) => {
  const [a, c] = [await stub(t, recordsOf('172.30.1')), await stub(t, recordsOf('172.30.2'))]
  a.fault = 'no-soa'
  const b = await startB(
    t,
    peer('a', a) + peer('c', c),
    policy('p', suffix, '[a, c, local]') + policy('alone', 'web.' + suffix, '[a]') + policy('two', 'two.' + suffix, '[a, c]') // prettier-ignore
  )
  a.records = [{ type: 'TXT', name: `deep.${below('api')}`, ttl: 9, data: 'makes api exist' }]
  t.equal((await ask(b, below('api'))).text, '172.30.2.1', 'the next target is asked')
  a.records = [{ type: 'TXT', name: `deep.${below('web')}`, ttl: 9, data: 'makes web exist' }]
  for (let at = 1; at <= 3; at++) {
    const reply = await ask(b, below('web'))
    t.equal(reply.text, 'NODATA', 'it is used where nobody has better')
    t.equal(reply.authority.length, 0)
    t.equal(askedOf(a).filter((question) => question === `${below('web')} A`).length, at, 'and never kept')
  }
  a.records = [{ type: 'TXT', name: `deep.two.${suffix}`, ttl: 9, data: 'makes two exist' }]
  const better = await ask(b, `two.${suffix}`)
  t.equal(better.text, 'NXDOMAIN', 'a denial with SOA is better')
  t.equal(better.authority.length, 1)
})

test('all targets down: search lists are not made to wait, others for at most 500 ms', async (t) => {
  const [a, c] = [await stub(t, recordsOf('172.30.1')), await stub(t, recordsOf('172.30.2'))]
  const b = await startB(
    t,
    probed('a', quickProbes, a) + probed('c', quickProbes, c),
    policy('p', suffix, '[a, c]', ', maxTtl: 1s')
  )
  t.equal((await ask(b, `pod-0.${below('api')}`)).text, '172.30.1.11')
  t.equal((await ask(b, `pod-7.${below('a-only')}`)).text, 'NXDOMAIN')
  for (const one of [a, c]) one.fault = 'silent'
  t.ok(await isDown(b, 'a', 'c'), 'probes say so')
  for (const question of ['google.com', 'pod-0.com']) {
    const reply = await ask(b, below(question))
    t.equal(reply.text, 'NXDOMAIN', question)
    t.equal(reply.ttl, 1, question)
    t.match(reply.ede, [{ code: 22, text: /^p: / }], question)
    t.ok(reply.tookMs < 250, `${question}: at once, after ${reply.tookMs.toFixed(0)} ms`)
    t.equal(reply.authority.length, 1, `${question}: a denial needs a SOA to be kept`)
  }
  b.server.cache.flush()
  const given = [below('api'), `_http._tcp.${below('api')}`, `pod-1.${below('a-only')}`]
  // No search list makes such names: whoever asks for them means a Service, and may not be told that there is none.
  const meant = [`_tcp.${below('unheard-of')}`, `_x._tcp.${below('unheard-of')}`]
  for (const question of [...given, ...meant]) {
    const reply = await ask(b, question)
    t.equal(reply.text, 'SERVFAIL', question)
    t.ok(reply.tookMs > 300 && reply.tookMs < 1_200, `${question}: after ${reply.tookMs.toFixed(0)} ms`)
    t.match(reply.ede, [{ code: 22, text: 'p: a: it is down; c: it is down' }], question)
  }
  a.fault = 'none'
  const early = await ask(b, below('idle'))
  t.equal(early.text, '172.30.1.3', 'a probe may be wrong: they are asked all the same')
  t.ok(await until(() => healthOf(b, 'a') === 'up'))
  t.equal((await ask(b, below('google.com'))).text, 'NXDOMAIN')
  t.equal((await ask(b, below('google.com'))).ede.length > 0, true, 'c is still unreachable')
})

test('probes take a dead target out, and healthy ones back in', async (t) => {
  const [a, c] = [await stub(t, recordsOf('172.30.1')), await stub(t, recordsOf('172.30.2'))]
  const b = await startB(
    t,
    probed('a', quickProbes, a) + probed('c', rareProbes, c),
    policy('p', suffix, '[a, c, local]') + policy('mapped', 'backend.svc.clusterset.local', '[{peer: a, zone: cluster.local}, c]', ', maxTtl: 1s') // prettier-ignore
  )
  t.equal((await ask(b, below('api'))).text, '172.30.1.1')
  t.equal((await ask(b, 'a-only.backend.svc.clusterset.local')).text, '172.30.1.4')
  a.fault = 'silent'
  t.ok(await isDown(b, 'a'))
  const asked = askedOf(a).length
  const reply = await ask(b, below('api'))
  t.equal(reply.text, '172.30.2.1', 'the next one at once, though an answer of the dead one is still fresh')
  t.ok(reply.tookMs < 300)
  t.equal((await ask(b, below('b-only'))).text, '10.1.4.20')
  const denial = await ask(b, below('nobody'))
  t.equal(denial.text, 'NXDOMAIN')
  t.equal(denial.ttl, 1)
  t.match(denial.ede, [{ code: 22, text: /a: it is down/ }])
  c.records = []
  const mapped = 'a-only.backend.svc.clusterset.local'
  const fresh = await ask(b, mapped)
  t.equal(fresh.text, '172.30.1.4', 'rule 3 for a target that is not even asked')
  t.equal(fresh.ede.length, 0, 'nothing is stale while the TTL runs')
  await delay(1_100)
  const stale = await ask(b, mapped)
  t.equal(stale.text, '172.30.1.4')
  t.match(stale.answer, [/^a-only\.backend\.svc\.clusterset\.local /], 'with our names')
  t.match(stale.ede, [{ code: 3, text: /a: it is down/ }])
  t.equal(askedOf(a).length, asked, 'the dead one is not asked')
  a.fault = 'none'
  t.ok(await until(() => healthOf(b, 'a') === 'up'))
  t.ok(await until(async () => (await ask(b, below('api'))).text === '172.30.1.1', 3 * returnMs), 'and comes back')
})

test('local before its first sync is unreachable', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const b = await startInProcess(
    t,
    clusterB(
      `peers:\n${peer('a', a)}policies:\n${policy('p', suffix, '[local, a]') + policy('own', 'shop.svc.cluster.local', '[local]')}forward: []\n`
    ),
    { isUnread: true }
  )
  const [own, peered, denied, alone, again] = await Promise.all([
    ask(b, 'svc.cluster.local'),
    ask(b, below('api')),
    ask(b, below('nobody')),
    ask(b, 's1.shop.svc.cluster.local'),
    ask(b, '1.0.0.10.in-addr.arpa', { type: 'PTR' })
  ])
  t.equal(b.server.inspect.readiness().isReady, false, 'not ready: what it serves has not come yet')
  t.equal(own.text, 'SERVFAIL')
  t.match(own.ede, [{ code: 14 }])
  t.equal(again.text, 'SERVFAIL', 'reverse zones too')
  t.equal(peered.text, '172.30.1.1', 'peered suffixes work')
  t.equal(denied.text, 'NXDOMAIN')
  t.equal(denied.ttl, 1)
  t.match(denied.ede, [{ code: 22, text: /local/ }])
  t.equal(alone.text, 'SERVFAIL')
  t.match(alone.ede, [{ code: 22, text: /local/ }])
  b.writeObjects([...objectsOfB, ...service('s1.shop', '10.9.0.1')])
  t.ok(await until(() => b.server.inspect.readiness().isReady))
  t.equal((await ask(b, below('api'))).text, '10.1.1.20')
  t.equal((await ask(b, 's1.shop.svc.cluster.local')).text, '10.9.0.1')
})

test('forward: the same for what is neither ours nor peered', async (t) => {
  const up = await stub(t, [{ type: 'A', name: 'www.example.org', ttl: 1, data: '192.0.2.80' }], 'example.org')
  const b = await startB(t, '', '', `forward: ["${up.text}"]\n`)
  t.equal((await ask(b, 'www.example.org')).text, '192.0.2.80')
  t.equal((await ask(b, 'none.example.org')).text, 'NXDOMAIN')
  t.equal((await ask(b, 'www.example.org', { type: 'AAAA' })).text, 'NODATA')
  for (const fault of ['servfail', 'garbage', 'silent'] as const) {
    up.fault = fault
    const failure = await ask(b, `${fault}.example.org`)
    t.equal(failure.text, 'SERVFAIL', fault)
    t.match(failure.ede, [{ code: 22, text: /^forward: / }, { code: 23 }], `${fault}: a failed or nonsensical exchange`)
    t.ok(failure.tookMs < 2_300, fault)
  }
  await delay(1_000)
  const stale = await ask(b, 'www.example.org')
  t.equal(stale.text, '192.0.2.80', 'stale')
  t.match(stale.ede, [{ code: 3 }])
})
