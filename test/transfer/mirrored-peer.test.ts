/**
 * A peer whose zone is kept here by transfer: its names are answered without asking it, as it would answer them. The
 * peers are real servers (BIND, Knot, CoreDNS).
 */
import { test } from 'tap'
import { ask, clusterB, startInProcess, until, type Reply } from '../support/in-process.ts'
import { startForeign, whyNo, type ForeignKind } from '../support/foreign-primary.ts'
import { namespace, service } from '../support/objects.ts'

const zone = 'cluster.local'
const records = [
  `api.backend.svc.${zone}. 30 IN A 172.30.1.0`,
  `alias.backend.svc.${zone}. 30 IN CNAME api.backend.svc.${zone}.`,
  `away.backend.svc.${zone}. 30 IN CNAME www.example.org.`,
  `web.backend.svc.${zone}. 30 IN A 10.0.1.20`,
  `web.backend.svc.${zone}. 30 IN A 10.0.1.21`,
  `a.web.backend.svc.${zone}. 30 IN A 10.0.1.20`,
  `b.web.backend.svc.${zone}. 30 IN A 10.0.1.21`,
  `_http._tcp.web.backend.svc.${zone}. 30 IN SRV 0 50 8080 a.web.backend.svc.${zone}.`,
  `_http._tcp.web.backend.svc.${zone}. 30 IN SRV 0 50 8080 b.web.backend.svc.${zone}.`,
  `txt.backend.svc.${zone}. 30 IN TXT "one" "two"`,
  // What a copy cannot know by itself.
  `*.wild.backend.svc.${zone}. 30 IN A 10.0.9.9`,
  `cut.backend.svc.${zone}. 30 IN NS ns.cut.backend.svc.${zone}.`,
  `ns.cut.backend.svc.${zone}. 30 IN A 192.0.2.7`
]

const config = (servers: string, mirror: boolean, rest = ''): string =>
  clusterB(`peers:
  a: {servers: ["${servers}"], mirror: ${mirror}${rest}}
policies:
- {name: backend, dnsName: backend.svc.${zone}, targets: [a]}
- {name: mapped, dnsName: backend.svc.east.local, targets: [{peer: a, zone: ${zone}}]}
forward: []
`)

const questions = [
  ['api.backend.svc', 'A'],
  ['api.backend.svc', 'AAAA'],
  ['api.backend.svc', 'TXT'],
  ['alias.backend.svc', 'A'],
  ['alias.backend.svc', 'CNAME'],
  ['alias.backend.svc', 'AAAA'],
  ['away.backend.svc', 'A'],
  ['web.backend.svc', 'A'],
  ['a.web.backend.svc', 'A'],
  ['_http._tcp.web.backend.svc', 'SRV'],
  ['_tcp.web.backend.svc', 'A'],
  ['txt.backend.svc', 'TXT'],
  ['none.backend.svc', 'A'],
  ['backend.svc', 'A'],
  ['x.wild.backend.svc', 'A'],
  ['wild.backend.svc', 'A'],
  ['cut.backend.svc', 'A']
] as const

const shown = (reply: Reply) => ({
  rcode: reply.rcode,
  answer: [...reply.answer].sort(),
  authority: reply.authority,
  additional: [...reply.additional].sort(),
  ede: reply.ede
})

for (const kind of ['bind', 'knot', 'coredns'] as readonly ForeignKind[]) {
  void test(`${kind}: a mirror answers as the peer does`, { skip: whyNo(kind) ?? false }, async (t) => {
    const primary = await startForeign(t, kind, { zone, records })
    const forwarding = await startInProcess(t, config(primary.text, false))
    const mirroring = await startInProcess(t, config(primary.text, true))
    t.ok(await until(() => mirroring.server.mirrors.status()[0]!.zones.some(({ isLive }) => isLive)), 'it has come')
    for (const suffix of [zone, 'east.local']) {
      for (const [name, type] of questions) {
        const qname = `${name}.${suffix}`
        const [forwarded, mirrored] = [await ask(forwarding, qname, { type }), await ask(mirroring, qname, { type })]
        t.same(shown(mirrored), shown(forwarded), `${qname} ${type}`)
      }
    }
    const reply = await ask(mirroring, `api.backend.svc.${zone}`)
    t.equal(reply.flags.aa, true, 'AA of a mirror')
    t.ok(mirroring.server.dataPlane.stats.responsesBySource.get('mirror')! > 10)

    primary.update({ remove: [records[0]!], add: [`api.backend.svc.${zone}. 30 IN A 172.30.1.9`] })
    t.ok(
      await until(async () => (await ask(mirroring, `api.backend.svc.${zone}`)).text === '172.30.1.9'),
      'a change is seen long before the TTL ends'
    )
  })
}

void test(
  'a silent peer: the next target, then stale answers with their reason',
  { skip: whyNo('knot') ?? false },
  async (t) => {
    const primary = await startForeign(t, 'knot', { zone, records })
    const alone = await startInProcess(t, config(primary.text, true, ', lease: 1s'))
    const withLocal = await startInProcess(
      t,
      clusterB(`peers:
  a: {servers: ["${primary.text}"], mirror: true, lease: 1s}
policies:
- {name: backend, dnsName: backend.svc.${zone}, targets: [a, local]}
forward: []
`),
      { objects: [namespace('backend'), ...service('web.backend', '10.1.2.20')] }
    )
    const both = [alone, withLocal]
    t.ok(await until(() => both.every(({ server }) => server.mirrors.status()[0]!.zones.some(({ isLive }) => isLive))))
    primary.freeze()
    t.equal((await ask(alone, `api.backend.svc.${zone}`)).text, '172.30.1.0', 'within the lease it answers on')
    t.ok(
      await until(async () => (await ask(alone, `api.backend.svc.${zone}`)).ede.length > 0),
      'after that with a reason'
    )
    const stale = await ask(alone, `api.backend.svc.${zone}`)
    t.equal(stale.text, '172.30.1.0')
    t.equal(stale.ede[0]!.code, 3)
    t.ok(stale.ttl! <= 5)
    t.equal(stale.flags.aa, false)
    t.equal((await ask(alone, `none.backend.svc.${zone}`)).ede[0]!.code, 19)
    const next = await ask(withLocal, `api.backend.svc.${zone}`)
    t.equal(next.rcode, 'NOERROR', 'a stale answer stands above the doubtful denial of another target')
    t.equal(next.text, '172.30.1.0')
    const held = await ask(withLocal, `web.backend.svc.${zone}`)
    t.match(held, { text: '10.1.2.20', ede: [] }, 'who has the name answers for it')

    primary.thaw()
    t.ok(await until(async () => (await ask(alone, `api.backend.svc.${zone}`)).ede.length === 0), 'it is back')
  }
)

void test('a copy older than its SOA lets it be is given out no more', { skip: whyNo('knot') ?? false }, async (t) => {
  const primary = await startForeign(t, 'knot', { zone, records, expireSeconds: 1 })
  const b = await startInProcess(t, config(primary.text, true, ', lease: 500ms'))
  t.ok(await until(() => b.server.mirrors.status()[0]!.zones.some(({ isLive }) => isLive)))
  primary.freeze()
  const api = `api.backend.svc.${zone}`
  t.ok(await until(async () => (await ask(b, api)).rcode === 'SERVFAIL', 15_000), 'beyond EXPIRE')
  const { ede } = await ask(b, api)
  t.match(ede, [{ code: 22 }, { code: 24, text: /has expired/ }], 'nobody can be reached, and the copy has expired')
  t.equal(b.server.mirrors.status()[0]!.zones[0]!.isExpired, true)
  primary.thaw()
  t.ok(await until(async () => (await ask(b, api)).text === '172.30.1.0', 15_000), 'it is back')
})
