// Types that were not asked for while a target could be reached, of names that it is known to have.
import { test, type Test } from 'tap'
import type { Target } from '../../src/policy/policy.ts'
import { parseName } from '../../src/wire/name.ts'
import { ask, delay, type InProcessServer } from '../support/in-process.ts'
import { askedOf, below, peer, policy, recordsOf, startB, stub } from './two-peers.ts'

const suffix = 'backend.svc.cluster.local'
const aOnly = below('a-only')

/** What clients get for each type of a name that a is known to have. */
const want: readonly [type: string, text: string][] = [
  ['AAAA', 'NODATA'],
  ['TXT', 'SERVFAIL'],
  ['SRV', 'SERVFAIL']
]

async function checkTypes(t: Test, b: InProcessServer, name: string, what: string): Promise<void> {
  for (const [type, text] of want) {
    for (const again of ['', ', failure remembered']) {
      const reply = await ask(b, name, { type })
      t.equal(reply.text, text, `${what}: ${type}${again}`)
      t.match(reply.ede, [{ code: 22, text: new RegExp(`a has the name, and was not asked for ${type} `) }], what)
      if (text === 'NODATA') t.equal(reply.ttl, 1, `${what}: ${type}${again}`)
      t.equal(reply.flags.aa, false)
    }
  }
}

test('a name that an unreachable target has by another type is not denied by others', async (t) => {
  const [a, c] = [await stub(t, recordsOf('172.30.1', 'cluster.local', 1)), await stub(t, [])]
  const b = await startB(
    t,
    peer('a', a) + peer('c', c),
    policy('p', suffix, '[a, c, local]') +
      policy('alone', 'backend.svc.clusterset.local', '[{peer: a, zone: cluster.local}]') +
      policy('strict', below('api'), '[a, local]', ', nextOn: [absent]')
  )
  for (const name of [aOnly, below('api')]) t.equal((await ask(b, name)).rcode, 'NOERROR')
  a.fault = 'servfail'
  await checkTypes(t, b, aOnly, 'fresh')
  await checkTypes(t, b, 'a-only.backend.svc.clusterset.local', 'the only target, known by another policy')
  await checkTypes(t, b, below('api'), 'local has it too and may not be asked')
  t.equal((await ask(b, below('nobody'), { type: 'AAAA' })).text, 'NXDOMAIN', 'a name that nobody is known to have')
  await delay(1_100)
  await checkTypes(t, b, aOnly, 'stale')
  t.equal((await ask(b, aOnly)).text, '172.30.1.4')
  c.records = recordsOf('172.30.2')
  b.server.cache.flushName(parseName(aOnly), 'peer:c')
  const other = await ask(b, aOnly, { type: 'AAAA' })
  t.equal(other.text, 'NODATA', 'the next one has it')
  t.same(other.ede, [])
})

test('a target that is left out is known to have names too; one that is drained is not asked what it knew', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a, local]'))
  t.equal((await ask(b, aOnly, { type: 'AAAA' })).text, 'NODATA')
  const { parts } = b.server.dataPlane
  const use = (standing: 'down' | 'drained'): void =>
    b.server.dataPlane.use({
      ...parts,
      standings: { ...parts.standings, of: ({ peer: name }: Target) => (name === 'a' ? standing : 'up') }
    })
  use('down')
  const reply = await ask(b, aOnly)
  t.equal(reply.text, 'NODATA', 'known by NODATA of AAAA')
  t.same(reply.ede, [
    { code: 22, text: 'p: a: it is down; a has the name, and was not asked for A while it could be reached' }
  ])
  use('drained')
  t.equal((await ask(b, aOnly)).text, 'NXDOMAIN')
  t.equal(askedOf(a).length, 1)
})

test('the target’s last word on the name counts, whatever the type', async (t) => {
  const a = await stub(t, [])
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a, local]', ', maxNegativeTtl: 1s'))
  const [came, went] = [below('came'), below('went')]
  t.equal((await ask(b, came, { type: 'AAAA' })).text, 'NXDOMAIN')
  a.records = [came, went].map((name) => ({ type: 'A', name, ttl: 1, data: '172.30.1.9' }))
  for (const name of [came, went]) t.equal((await ask(b, name)).text, '172.30.1.9')
  a.records = a.records.filter(({ name }) => name !== went)
  t.equal((await ask(b, went, { type: 'AAAA' })).text, 'NXDOMAIN')
  a.fault = 'servfail'
  await delay(1_100)
  t.equal((await ask(b, came, { type: 'AAAA' })).text, 'NODATA', 'it came after the denial')
  const denied = await ask(b, went, { type: 'AAAA' })
  t.equal(denied.text, 'NXDOMAIN', 'it went')
  t.match(denied.ede, [{ code: 19 }])
  t.equal((await ask(b, went, { type: 'TXT' })).text, 'NXDOMAIN', 'another one’s denial')
})
