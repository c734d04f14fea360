// `select: first` over real sockets: who is asked, and whose answer counts, for each pattern of targets.
import { test } from 'tap'
import { ask, clusterB, startInProcess, until } from '../support/in-process.ts'
import { service } from '../support/objects.ts'
import { askedOf, below, objectsOfB, peer, policy, recordsOf, startB, stub } from './two-peers.ts'

const suffix = 'backend.svc.cluster.local'

type Row = { name: string; question: string; type?: string; want: string; asked?: string[] }

test('[a] delegates: our own zone is not asked', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a]'))
  const rows: Row[] = [
    { name: 'a name on both sides', question: below('api'), want: '172.30.1.1' },
    { name: 'a name of the peer alone', question: below('a-only'), want: '172.30.1.4' },
    { name: 'a name of ours alone', question: below('b-only'), want: 'NXDOMAIN' },
    { name: 'another type', question: below('api'), type: 'AAAA', want: 'NODATA' },
    { name: 'SRV', question: `_grpc._tcp.${below('api')}`, type: 'SRV', want: `0 100 9090 ${below('api')}` },
    { name: 'a port that only we have', question: `_http._tcp.${below('api')}`, type: 'SRV', want: 'NXDOMAIN' },
    { name: 'the suffix itself', question: suffix, want: 'NODATA' },
    { name: 'outside of the suffix', question: 'cart.shop.svc.cluster.local', want: '10.1.5.20' }
  ]
  for (const { name, question, type = 'A', want } of rows) {
    const reply = await ask(b, question, { type })
    t.equal(reply.text, want, name)
    t.equal(reply.flags.aa, !question.endsWith(suffix), `${name}: AA only from our own zone`)
  }
  const srv = await ask(b, `_grpc._tcp.${below('api')}`, { type: 'SRV' })
  t.match(srv.additional, [/^api\.backend\.svc\.cluster\.local \d+ A 172\.30\.1\.1$/])
  t.ok(
    a.queries.every(({ packet }) => !packet.flag_rd),
    'RD=0'
  )
})

test('[local, a] prefers local, and takes one Service whole', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const b = await startB(t, peer('a', a), policy('p', suffix, '[local, a]'))
  const rows: Row[] = [
    { name: 'a name on both sides', question: below('api'), want: '10.1.1.20', asked: [] },
    { name: 'NODATA is having it', question: below('api'), type: 'AAAA', want: 'NODATA', asked: [] },
    { name: 'MX too', question: below('web'), type: 'MX', want: 'NODATA', asked: [] },
    {
      name: 'a port that local lacks while it has the Service',
      question: `_grpc._tcp.${below('api')}`,
      type: 'SRV',
      want: 'NXDOMAIN',
      asked: []
    },
    { name: 'a host that local lacks', question: `pod-0.${below('api')}`, want: 'NXDOMAIN', asked: [] },
    {
      name: 'a name of the peer alone',
      question: below('a-only'),
      want: '172.30.1.4',
      asked: [`${below('a-only')} A`]
    },
    { name: 'and its other type', question: below('a-only'), type: 'AAAA', want: 'NODATA', asked: [`${below('a-only')} AAAA`] }, // prettier-ignore
    { name: 'empty here: the peer has it', question: below('idle'), want: '172.30.1.3', asked: [`${below('idle')} A`] },
    { name: 'nobody has it', question: below('nobody'), want: 'NXDOMAIN', asked: [`${below('nobody')} A`] }
  ]
  for (const { name, question, type = 'A', want, asked } of rows) {
    const before = askedOf(a).length
    t.equal((await ask(b, question, { type })).text, want, name)
    t.same(askedOf(a).slice(before), asked, `${name}: what the peer was asked`)
  }
  const denial = await ask(b, below('nobody'))
  t.equal(denial.ede.length, 0, 'all were reached: the first denial as it came')
  t.match(denial.authority, [/^cluster\.local 5 SOA/])
  t.equal(denial.flags.aa, true, 'and it is our own')
})

test('[a, local] prefers the peer and falls back, name by name', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a, local]'))
  const rows: Row[] = [
    { name: 'a name on both sides', question: below('api'), want: '172.30.1.1' },
    { name: 'IPv4 only there', question: below('api'), type: 'AAAA', want: 'NODATA' },
    { name: 'a name of ours alone', question: below('b-only'), want: '10.1.4.20' },
    { name: 'the peer knows nothing of empty', question: below('idle'), want: '172.30.1.3' },
    {
      name: 'a port that the peer lacks while it has the Service',
      question: `_http._tcp.${below('api')}`,
      type: 'SRV',
      want: 'NXDOMAIN'
    },
    { name: 'a host that the peer lacks', question: `api-0.${below('api')}`, want: 'NXDOMAIN' },
    {
      name: 'a port of a Service of ours alone',
      question: `_http._tcp.${below('b-only')}`,
      type: 'SRV',
      want: `0 100 8080 ${below('b-only')}`
    },
    { name: 'nobody has it', question: below('nobody'), want: 'NXDOMAIN' }
  ]
  for (const { name, question, type = 'A', want } of rows) {
    for (const again of ['', ' (from memory)']) t.equal((await ask(b, question, { type })).text, want, name + again)
  }
  a.fault = 'servfail'
  t.equal((await ask(b, below('web'))).text, '10.1.2.20', 'an unreachable peer: local')
  t.equal((await ask(b, below('api'))).text, '172.30.1.1', 'while what is held is fresh')
  await a.stop()
  t.equal((await ask(b, `_http._tcp.${below('web')}`, { type: 'SRV' })).text, `0 100 8080 ${below('web')}`)
})

test('[a, c, local] fails over in that order', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const c = await stub(t, [...recordsOf('172.30.2'), { type: 'A', name: below('c-only'), ttl: 10, data: '172.30.2.9' }])
  const b = await startB(t, peer('a', a) + peer('c', c), policy('p', suffix, '[a, c, local]', ', maxTtl: 1s'))
  t.equal((await ask(b, below('api'))).text, '172.30.1.1')
  t.equal((await ask(b, below('c-only'))).text, '172.30.2.9')
  t.equal((await ask(b, below('b-only'))).text, '10.1.4.20')
  for (const fault of ['refused', 'servfail', 'notimp', 'formerr', 'garbage', 'silent'] as const) {
    a.fault = fault
    b.server.cache.flush()
    const reply = await ask(b, below('a-only'))
    t.equal(reply.text, '172.30.2.4', `${fault}: the second one`)
    t.equal(reply.ede.length, 0, fault)
    t.ok(reply.tookMs < 1_200, `${fault}: after ${reply.tookMs.toFixed(0)} ms`)
  }
  c.fault = 'servfail'
  b.server.cache.flush()
  t.equal((await ask(b, below('api'))).text, '10.1.1.20', 'then the third')
  t.equal((await ask(b, below('api'), { type: 'AAAA' })).text, 'NODATA')
  a.fault = 'none'
  b.server.cache.flush()
  t.ok(await isBack(() => ask(b, below('api')).then(({ text }) => text === '172.30.1.1')), 'and the first again')
})

/** The failure of a question is remembered for a second, that of a server for a little longer. */
const isBack = (isSo: () => Promise<boolean>): Promise<boolean> => until(isSo)

test('nextOn says what sends a query on', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const dead = await stub(t, [])
  dead.fault = 'refused'
  const b = await startB(
    t,
    peer('a', a) + peer('dead', dead),
    [
      policy('absent-only', 'backend.svc.cluster.local', '[local, a]', ', nextOn: [absent]'),
      policy('empty-only', 'idle.backend.svc.cluster.local', '[local, a]', ', nextOn: [empty]'),
      policy('not-absent', 'a-only.backend.svc.cluster.local', '[local, a]', ', nextOn: [unreachable, empty]'),
      policy('not-empty', 'two.backend.svc.cluster.local', '[local, a]', ', nextOn: [unreachable, absent]'),
      policy('not-unreachable', 'api.backend.svc.cluster.local', '[dead, a]', ', nextOn: [absent, empty]'),
      policy('unreachable', 'web.backend.svc.cluster.local', '[dead, local]', ', nextOn: [unreachable]')
    ].join('')
  )
  const rows: Row[] = [
    { name: 'absent sends on', question: below('a-2'), want: 'NXDOMAIN', asked: [`${below('a-2')} A`] },
    { name: 'empty sends on', question: below('idle'), want: '172.30.1.3', asked: [`${below('idle')} A`] },
    { name: 'absent does not', question: below('a-only'), want: 'NXDOMAIN', asked: [] },
    { name: 'unreachable does not', question: below('api'), want: 'SERVFAIL', asked: [] },
    { name: 'unreachable does', question: below('web'), want: '10.1.2.20', asked: [] }
  ]
  for (const { name, question, want, asked } of rows) {
    const before = askedOf(a).length
    t.equal((await ask(b, question)).text, want, name)
    t.same(askedOf(a).slice(before), asked, `${name}: what the next target was asked`)
  }
})

test('clients: a policy that is not for a client gives way to the next shorter dnsName', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const c = await stub(t, recordsOf('172.30.2'))
  const b = await startB(
    t,
    peer('a', a) + peer('c', c),
    policy('narrow', below('api'), '[a]', ', clients: [127.0.0.2]') +
      policy('wide', suffix, '[c]', ', clients: [127.0.0.2, 127.0.0.3]')
  )
  const rows = [
    { from: '127.0.0.2', question: below('api'), want: '172.30.1.1' },
    { from: '127.0.0.3', question: below('api'), want: '172.30.2.1' },
    { from: '127.0.0.4', question: below('api'), want: '10.1.1.20' },
    { from: '127.0.0.2', question: below('a-only'), want: '172.30.2.4' },
    { from: '127.0.0.4', question: below('a-only'), want: 'NXDOMAIN' }
  ]
  for (const { from, question, want } of rows) {
    const reply = await ask(b, question, { from })
    t.equal(reply.text, want, `${question} from ${from}`)
    t.equal(reply.flags.ra, from !== '127.0.0.4', `RA for ${from}: where a policy is for it`)
  }
})

test('the rule of empty Services', async (t) => {
  const a = await startInProcess(t, clusterB('forward: []\n').replace('name: b', 'name: a'), {
    objects: [...service('api.backend', '172.30.1.1', { ready: [] }), ...service('idle.backend', '172.30.3.1')]
  })
  for (const recursion of [false, true]) {
    const b = await startInProcess(
      t,
      clusterB(
        `peers: {a: {servers: ["${a.text}"], recursion: ${recursion}}}
policies:
${policy('p', suffix, '[a, local]')}${policy('local-first', 'idle.backend.svc.cluster.local', '[local, a]')}
${policy('alone', 'api.shop.svc.cluster.local', '[a, local]')}forward: []
`
      ),
      { objects: [...objectsOfB, ...service('none.backend', '10.1.6.20', { ready: [] })] }
    )
    const how = `peers asked with RD=${recursion ? 1 : 0}`
    t.equal((await ask(b, below('api'))).text, '10.1.1.20', `${how}: empty at the peer, the next target has it`)
    t.equal((await ask(b, below('api'))).text, '10.1.1.20', `${how}: from memory too`)
    t.equal((await ask(b, below('idle'))).text, '172.30.3.1', `${how}: empty here, the peer has it`)
    t.equal((await ask(b, below('none'))).text, '10.1.6.20', `${how}: nobody else has it, so it keeps its ClusterIP`)
    t.equal((await ask(b, `_http._tcp.${below('idle')}`, { type: 'SRV' })).text, `0 100 8080 ${below('idle')}`)
    await b.stop()
  }
  const own = await ask(a, below('api'))
  t.equal(own.text, '172.30.1.1', 'our own clients get the address of an empty Service')
  t.same(own.options, [], 'and are told nothing of it')
  const foreign = await ask(a, below('api'), { recursionDesired: false })
  t.equal(foreign.text, '172.30.1.1', 'a foreign server too')
})

test('local outside of our zones answers hand-written records', async (t) => {
  const a = await stub(t, [{ type: 'A', name: 'far.db.example', ttl: 10, data: '192.0.2.7' }], 'db.example')
  const b = await startInProcess(
    t,
    clusterB(
      `peers:\n${peer('a', a)}policies:\n${policy('p', 'db.example', '[local, a]')}forward: []\n`,
      ', records: ["near.db.example. 10 A 192.0.2.5", "hand.backend.svc.cluster.local. 10 A 172.30.9.9"]'
    ),
    { objects: objectsOfB }
  )
  const rows: [question: string, type: string, want: string, aa: boolean][] = [
    ['near.db.example', 'A', '192.0.2.5', true],
    ['near.db.example', 'AAAA', 'NODATA', true],
    ['far.db.example', 'A', '192.0.2.7', false],
    ['none.db.example', 'A', 'NXDOMAIN', true],
    [below('hand'), 'A', '172.30.9.9', true],
    [below('api'), 'A', '10.1.1.20', true]
  ]
  for (const [question, type, want, aa] of rows) {
    const reply = await ask(b, question, { type })
    t.equal(reply.text, want, `${question} ${type}`)
    t.equal(reply.flags.aa, aa, `${question} ${type}: AA`)
  }
  t.equal((await ask(b, 'near.db.example', { recursionDesired: false })).text, '192.0.2.5', 'RD=0: it is ours')
  t.equal((await ask(b, 'far.db.example', { recursionDesired: false })).text, 'NXDOMAIN')
})
