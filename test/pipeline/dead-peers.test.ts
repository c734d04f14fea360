// All targets down, or drained: what is denied at once, what is given of before, and what the client is told.
import { test } from 'tap'
import { ask, delay, until } from '../support/in-process.ts'
import type { Target } from '../../src/policy/policy.ts'
import { startStubPeer } from '../support/stub-peer.ts'
import { below, peer, policy, quickProbes, recordsOf, startB, stub } from './two-peers.ts'

const slack = 3

test('with `svc` as a whole peered to a dead cluster, search lists go on at once', async (t) => {
  const a = await stub(t, [
    ...recordsOf('172.30.1'),
    { type: 'A', name: 'db.far.svc.cluster.local', ttl: 1, data: '172.30.1.8' }
  ])
  const b = await startB(
    t,
    `  a: {servers: ["${a.text}"], probe: ${quickProbes}}\n`,
    policy('p', 'svc.cluster.local', '[a]') + policy('q', 'named.svc.cluster.local', '[a]')
  )
  t.equal((await ask(b, 'db.far.svc.cluster.local')).text, '172.30.1.8')
  a.fault = 'silent'
  t.ok(await until(() => b.server.peers.status()[0]!.health === 'down'))
  const rows: [name: string, question: string, want: string, atMostMs: number][] = [
    ['a namespace that nobody has', 'google.com.svc.cluster.local', 'NXDOMAIN', 50],
    ['a host name', `google.com.${below('x').slice(2)}`, 'NXDOMAIN', 50],
    ['a Service of a namespace of ours', below('other'), 'SERVFAIL', 500],
    ['a Service of a namespace that a gave a Service of', 'new.far.svc.cluster.local', 'SERVFAIL', 500],
    ['a Service of a namespace that the policy names', 'new.named.svc.cluster.local', 'SERVFAIL', 500]
  ]
  for (const [name, question, want, atMostMs] of rows) {
    const reply = await ask(b, question)
    t.equal(reply.text, want, name)
    t.match(reply.ede, [{ code: 22 }], name)
    if (want === 'NXDOMAIN') t.equal(reply.ttl, 1, name)
    t.ok(reply.tookMs < slack * atMostMs, `${name}: ${reply.tookMs.toFixed(1)} ms`)
  }
})

test('with every target down, what was given last is given within a moment, and refreshed where a probe was wrong', async (t) => {
  const a = await stub(t, recordsOf('172.30.1', 'cluster.local', 1))
  const b = await startB(
    t,
    `  a: {servers: ["${a.text}"], probe: ${quickProbes}}\n`,
    policy('p', 'backend.svc.cluster.local', '[a]')
  )
  t.equal((await ask(b, below('api'))).text, '172.30.1.1')
  a.fault = 'silent'
  t.ok(await until(() => b.server.peers.status()[0]!.health === 'down'))
  await delay(1_100)
  const stale = await ask(b, below('api'))
  t.equal(stale.text, '172.30.1.1')
  t.match(stale.ede, [{ code: 3 }])
  t.ok(stale.ttl! <= 30)
  t.ok(stale.tookMs < slack * 100, `after ${stale.tookMs.toFixed(0)} ms`)
})

test('a Service that only came from the cache under this name is known all the same when every target is down', async (t) => {
  const a = await stub(t, recordsOf('172.30.1', 'cluster.local', 1))
  const b = await startB(
    t,
    `  a: {servers: ["${a.text}"], probe: ${quickProbes}}\n`,
    policy('p', 'backend.svc.cluster.local', '[a]') +
      policy('single', 'single.example', '[{peer: a, zone: cluster.local}]')
  )
  t.equal((await ask(b, below('api'))).text, '172.30.1.1')
  t.equal((await ask(b, 'api.backend.svc.single.example')).text, '172.30.1.1', 'from the cache')
  a.fault = 'silent'
  t.ok(await until(() => b.server.peers.status()[0]!.health === 'down'))
  await delay(1_100)
  const stale = await ask(b, 'api.backend.svc.single.example')
  t.equal(stale.text, '172.30.1.1')
  t.match(stale.ede, [{ code: 3 }])
})

test('drained targets are not asked, nothing they said is given, and the client is told by whom', async (t) => {
  const a = await startStubPeer({ zone: 'cluster.local', records: recordsOf('172.30.1') })
  t.teardown(async () => a.stop())
  const b = await startB(
    t,
    peer('a', a),
    policy('p', 'backend.svc.cluster.local', '[a]') + policy('q', 'web.backend.svc.cluster.local', '[a, local]')
  )
  t.equal((await ask(b, below('api'))).text, '172.30.1.1')
  const { parts } = b.server.dataPlane
  const of = (): 'drained' => 'drained'
  b.server.dataPlane.use({
    ...parts,
    standings: { ...parts.standings, of: (target) => (target.peer === 'a' ? of() : 'up') }
  })
  const asked = a.queries.length
  const refused = await ask(b, below('api'))
  t.equal(refused.text, 'SERVFAIL')
  t.match(refused.ede, [{ code: 15, text: /a: drained by the operator/ }])
  t.equal((await ask(b, below('web'))).text, '10.1.2.20', 'the next one')
  t.equal(a.queries.length, asked)
})

test('with every target drained, or drained and down, search lists go on as with dead ones', async (t) => {
  const [a, c] = [await stub(t, recordsOf('172.30.1')), await stub(t, recordsOf('172.30.2'))]
  const b = await startB(t, peer('a', a) + peer('c', c), policy('p', 'backend.svc.cluster.local', '[a, c]'))
  t.equal((await ask(b, below('api'))).text, '172.30.1.1')
  const { parts } = b.server.dataPlane
  const asked = a.queries.length + c.queries.length
  const rows = [
    { c: 'drained', code: 15, text: 'p: every target is drained by the operator, and none ever gave this Service' },
    { c: 'down', code: 22, text: 'p: every target is down or drained, and none ever gave this Service' }
  ] as const
  for (const row of rows) {
    const standings = { ...parts.standings, of: ({ peer: name }: Target) => (name === 'a' ? 'drained' : row.c) }
    b.server.dataPlane.use({ ...parts, standings })
    for (const type of ['A', 'AAAA', 'SRV']) {
      const denied = await ask(b, below('google.com'), { type })
      t.equal(denied.text, 'NXDOMAIN', `${row.c}: ${type}`)
      t.equal(denied.ttl, 1, `${row.c}: ${type}`)
      t.same(denied.ede, [{ code: row.code, text: row.text }], `${row.c}: ${type}`)
    }
    t.equal(a.queries.length + c.queries.length, asked, 'nobody is asked')
  }
  b.server.dataPlane.use({ ...parts, standings: { ...parts.standings, of: () => 'drained' } })
  const known = await ask(b, `pod-7.${below('api')}`)
  t.equal(known.text, 'SERVFAIL', 'below a Service that they gave')
  t.match(known.ede, [{ code: 15 }])
})
