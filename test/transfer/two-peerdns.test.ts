/** One peerdns that mirrors another: cluster A's zone on cluster B, whole, followed, and answered as A answers. */
import { test } from 'tap'
import { RRTYPE } from '../../src/wire/iana.ts'
import { isAtOrBelow, nameToText, parseName } from '../../src/wire/name.ts'
import { ask, clusterB, startInProcess, until, type InProcessServer, type Reply } from '../support/in-process.ts'
import { namespace, service } from '../support/objects.ts'
import { backendObjects, backendQuestions } from './backend-of-a.ts'

const clusterA = (export_ = ''): string =>
  `cluster: {name: a, source: {manifests: ["{manifests}"]}, pods: insecure}
transfer: {allow: [private]${export_}}
forward: []
`

const configB = (port: number, mirror: boolean, rest = ''): string =>
  clusterB(`peers:
  a: {servers: ["127.0.0.1:${port}"], mirror: ${mirror}${rest}}
policies:
- {name: backend, dnsName: [backend.svc.cluster.local, backend.pod.cluster.local], targets: [a, local]}
- {name: mapped, dnsName: backend.svc.east.local, targets: [{peer: a, zone: cluster.local}]}
forward: []
`)

const objects = backendObjects
const questions = [...backendQuestions, ['backend.svc', 'A']] as const

const shown = (reply: Reply) => ({
  rcode: reply.rcode,
  answer: [...reply.answer].sort(),
  additional: [...reply.additional].sort(),
  ede: reply.ede
})

const isLive = ({ server }: InProcessServer): boolean =>
  server.mirrors.status().every(({ zones }) => zones.length > 0 && zones.every((zone) => zone.isLive))

void test('a mirror of a peerdns answers as that peerdns does, and sees changes at once', async (t) => {
  const a = await startInProcess(t, clusterA(), { objects: objects(['10.0.1.20', '10.0.1.21']) })
  const forwarding = await startInProcess(t, configB(a.port, false))
  const mirroring = await startInProcess(t, configB(a.port, true))
  t.ok(await until(() => isLive(mirroring)), 'it has come')
  t.comment(mirroring.server.mirrors.status().flatMap(({ zones }) => zones))
  for (const suffix of ['cluster.local', 'east.local']) {
    for (const [name, type] of questions) {
      const qname = `${name}.${suffix}`
      const [forwarded, mirrored] = [await ask(forwarding, qname, { type }), await ask(mirroring, qname, { type })]
      t.same(shown(mirrored), shown(forwarded), `${qname} ${type}`)
    }
  }
  a.writeObjects(objects(['10.0.1.21', '10.0.1.22']))
  t.ok(
    await until(async () => (await ask(mirroring, 'web.backend.svc.cluster.local')).text === '10.0.1.21 10.0.1.22'),
    'a change is seen'
  )
  const [zone] = mirroring.server.mirrors.status()[0]!.zones
  t.ok(zone!.stats.deltaTransfers > 0, 'by a delta')
  t.equal(zone!.stats.wholeTransfers, 1)
  t.ok(Math.abs(zone!.clockOffsetMs!) < 100, 'the clocks are one')
})

void test('only what is exported is kept; the rest is asked for', async (t) => {
  const a = await startInProcess(t, clusterA(', export: {namespaces: [backend]}'), { objects: objects(['10.0.1.20']) })
  const b = await startInProcess(t, configB(a.port, true))
  t.ok(await until(() => b.server.mirrors.status()[0]!.zones.some((zone) => zone.isLive)), 'it has come')
  t.equal((await ask(b, 'web.backend.svc.cluster.local')).text, '10.0.1.20')
  t.comment(
    b.server.mirrors
      .status()
      .flatMap(({ zones }) => zones.map(({ apex, state, isLive: live }) => ({ apex, state, live })))
  )
})

void test('where the peer gives nothing away, its names are asked for as before; a permission is enough to change that', async (t) => {
  const a = await startInProcess(t, clusterA().replace('[private]', '[]'), {
    objects: objects(['10.0.1.20']),
    watchConfig: true
  })
  const b = await startInProcess(t, configB(a.port, true))
  t.equal((await ask(b, 'web.backend.svc.cluster.local')).text, '10.0.1.20')
  a.writeConfig(clusterA())
  t.ok(await until(() => isLive(b), 15_000), 'it has come')
})

void test('a policy is enough: what it names is taken as soon as it is there, and dropped with it', async (t) => {
  const a = await startInProcess(t, clusterA(), {
    objects: [...objects(['10.0.1.20']), namespace('shop'), ...service('cart.shop', '10.96.3.1')]
  })
  const shop = `- {name: shop, dnsName: shop.svc.cluster.local, targets: [a]}\n`
  const config = (more: string): string => configB(a.port, true).replace('policies:\n', `policies:\n${more}`)
  const b = await startInProcess(t, config(''), { watchConfig: true })
  const kept = (): string[] =>
    b.server.mirrors.copies().map(({ zone }) => nameToText(zone.apex)).sort() // prettier-ignore
  t.ok(await until(() => isLive(b)))
  const before = kept()
  b.writeConfig(config(shop))
  t.ok(await until(() => kept().includes('shop.svc.cluster.local.')), 'nothing has to be said on A')
  const connections = b.server.mirrors.status().map(({ link }) => link.connections)
  t.same(connections, [1], 'over the connection that is there')
  t.equal((await ask(b, 'cart.shop.svc.cluster.local')).text, '10.96.3.1')
  b.writeConfig(config(''))
  t.ok(await until(() => kept().join() === before.join()), 'and is not kept for nobody')
})

void test('what is told beside records, and what is hidden, reaches copies after a reload', async (t) => {
  const a = await startInProcess(t, clusterA(), { objects: objects(['10.0.1.20']), watchConfig: true })
  const b = await startInProcess(t, configB(a.port, true))
  t.ok(await until(() => isLive(b)), 'it has come')
  const pod = '10-0-0-7.backend.pod.cluster.local'
  t.equal((await ask(b, pod)).text, '10.0.0.7')
  const before = a.server.view.zones.zone.serial
  a.writeConfig(clusterA().replace('pods: insecure', 'pods: disabled'))
  t.ok(await until(async () => (await ask(b, pod)).rcode === 'NXDOMAIN', 10_000), 'no pods any more')
  t.not(a.server.view.zones.zone.serial, before, 'by another serial')
  t.equal((await ask(b, 'web.backend.svc.cluster.local')).text, '10.0.1.20')
})

void test('a change that comes with copies that overlap counts once', async (t) => {
  const a = await startInProcess(t, clusterA(), { objects: objects(['10.0.1.20']) })
  const wider = '- {name: wider, dnsName: svc.cluster.local, targets: [a, local]}\n'
  const b = await startInProcess(t, configB(a.port, true).replace('policies:\n', `policies:\n${wider}`))
  const web = parseName('web.backend.svc.cluster.local')
  const copies = () => b.server.mirrors.copies().filter(({ zone }) => isAtOrBelow(web, zone.apex))
  const have = (address: string): boolean =>
    copies().every(
      ({ zone }) =>
        zone
          .rrset(web, RRTYPE.A)
          ?.rdata.map((octets) => octets.join('.'))
          .join() === address
    )
  t.ok(await until(() => isLive(b) && copies().length >= 2 && have('10.0.1.20')), 'they have come')
  const counted = () => b.server.freshness.stats.peerSeconds.get('a')?.counts.reduce((sum, count) => sum + count, 0)
  t.equal(counted(), undefined)
  a.writeObjects(objects(['10.0.1.21']))
  t.ok(await until(() => have('10.0.1.21')), 'all have the change')
  t.equal(b.server.freshness.changesOf(web).length, 1)
  t.equal(counted(), 1)
})
