/** A node's resolver: the cluster's zones by transfer from the cluster's own peerdns, without access to its objects. */
import { test } from 'tap'
import { transferRequestsInFlight } from '../../src/base/transfer-limits.ts'
import { ask, shown, startInProcess, until } from '../support/in-process.ts'
import { namespace, service } from '../support/objects.ts'
import { backendObjects, backendQuestions } from './backend-of-a.ts'

const hub = (allow = 'private'): string =>
  `cluster: {name: b, source: {manifests: ["{manifests}"]}, reverse: [10.0.0.0/8], records: ["db.backend.svc.cluster.local. 10 A 172.30.9.9"]}
transfer: {allow: [${allow}]}
forward: []
`

const node = (port: number): string =>
  `cluster: {name: b, source: {mirror: ["127.0.0.1:${port}"]}, reverse: [10.0.0.0/8]}
forward: []
`

const objects = (addresses: readonly string[]): object[] => [
  ...backendObjects(addresses),
  namespace('vacant'),
  ...service('kubernetes.default', '10.96.0.1')
]

const questions = [
  ...backendQuestions.map(([name, type]) => [`${name}.cluster.local`, type] as const),
  ['vacant.svc.cluster.local', 'A'],
  ['10-0-0-7.none.pod.cluster.local', 'A'],
  ['db.backend.svc.cluster.local', 'A'],
  ['dns-version.cluster.local', 'TXT'],
  ['dns-version.clusterset.local', 'TXT'],
  ['cluster.local', 'SOA'],
  ['1.1.96.10.in-addr.arpa', 'PTR'],
  ['9.9.96.10.in-addr.arpa', 'PTR'],
  ['www.example.org', 'A']
] as const

void test('a node answers as its hub does, and follows it', async (t) => {
  const own = await startInProcess(t, hub(), { objects: objects(['10.0.1.20', '10.0.1.21']) })
  const resolver = await startInProcess(t, node(own.port))
  const isReady = (): boolean => resolver.server.inspect.readiness().isReady
  t.ok(await until(isReady), 'ready')
  for (const [name, type] of questions) {
    t.same(shown(await ask(resolver, name, { type })), shown(await ask(own, name, { type })), `${name} ${type}`)
  }
  const serials = (server: typeof own.server) =>
    server.inspect.zones().map(({ apex, serial, epoch }) => [apex, serial, epoch])
  await until(() => JSON.stringify(serials(resolver.server)) === JSON.stringify(serials(own.server)))
  t.same(serials(resolver.server), serials(own.server), 'serials and epochs are those of the hub')

  own.writeObjects(objects(['10.0.1.22']))
  const web = 'web.backend.svc.cluster.local'
  t.ok(await until(async () => (await ask(resolver, web)).text === '10.0.1.22'), 'a change is seen')
  const status = resolver.server.view.status()
  t.equal(status.kind, 'mirror')
  t.ok(status.lastSignOfLifeAgeMs! < 5_000)
  t.ok(status.resources.every(({ hasSynced }) => hasSynced))

  await own.stop()
  t.equal((await ask(resolver, web)).text, '10.0.1.22', 'without its hub it serves on')
  t.equal(isReady(), true)
  const age = () => resolver.server.view.status().lastSignOfLifeAgeMs!
  t.ok(await until(() => age() > 1_500), 'and its age grows')

  t.ok(await until(async () => (await ask(resolver, web)).ede[0]?.code === 3), 'beyond the lease it says so')
  for (let time = 0; time < 3; time++) t.equal((await ask(resolver, web)).ede[0]?.code, 3, 'each time')
  t.equal((await ask(resolver, 'none.backend.svc.cluster.local')).ede[0]?.code, 19)
  const { conditions } = resolver.server.inspect.readiness()
  t.match(
    conditions.find(({ name }) => name === 'zone')!,
    { isMet: true, detail: /the hub has been silent for \d/ }
  )
  const again = await startInProcess(t, hub(), { objects: objects(['10.0.1.23']), port: own.port })
  t.ok(await until(async () => (await ask(resolver, web)).text === '10.0.1.23'), 'another instance takes over')
  await until(() => JSON.stringify(serials(resolver.server)) === JSON.stringify(serials(again.server)))
  t.same(serials(resolver.server), serials(again.server))
  t.ok(await until(async () => (await ask(resolver, web)).ede.length === 0), 'and no reason is left')
})

void test('before the first transfer nothing is denied; permission is enough', async (t) => {
  const own = await startInProcess(t, hub('192.0.2.1'), { objects: objects(['10.0.1.20']), watchConfig: true })
  const resolver = await startInProcess(t, node(own.port), { isUnread: true })
  const refused = await ask(resolver, 'api.backend.svc.cluster.local')
  t.equal(refused.rcode, 'SERVFAIL')
  t.equal(refused.ede[0]!.code, 14)
  const unread = resolver.server.inspect.readiness()
  t.equal(unread.isReady, false)
  t.match(
    unread.conditions.find(({ name }) => name === 'zone')!,
    { isMet: false, detail: /has not been read completely yet/ }
  )
  own.writeConfig(hub())
  t.ok(await until(() => resolver.server.inspect.readiness().isReady), 'ready')
  t.equal((await ask(resolver, 'api.backend.svc.cluster.local')).text, '10.96.1.1')
})

void test('more zones than may be asked for at once all come, and are followed', async (t) => {
  // 2 networks that end within an octet: 128 and 64 zones each.
  const reverse = 'reverse: [10.1.2.0/25, 10.128.0.0/9, 10.1.3.0/26]'
  const text = hub().replace('reverse: [10.0.0.0/8]', reverse)
  const own = await startInProcess(t, text, { objects: objects(['10.1.2.20', '10.1.2.21']) })
  const resolver = await startInProcess(t, node(own.port).replace('reverse: [10.0.0.0/8]', reverse))
  t.ok(own.server.inspect.zones().length > transferRequestsInFlight)
  t.ok(await until(() => resolver.server.inspect.readiness().isReady), 'ready')
  t.equal(resolver.server.inspect.zones().length, own.server.inspect.zones().length)
  const before = '20.2.1.10.in-addr.arpa'
  const after = '22.2.1.10.in-addr.arpa'
  const pointer = (name: string) => ask(resolver, name, { type: 'PTR' })
  t.not((await pointer(before)).text, 'NODATA')
  own.writeObjects(objects(['10.1.2.22']))
  t.ok(await until(async () => (await pointer(after)).text !== 'NODATA'), 'a change is seen')
  t.ok(await until(async () => (await pointer(before)).text === 'NODATA'))
  const { stats, subscriptions } = own.server.inspect.parts().primary
  t.match(stats, { subscriptionsRefusedTotal: 0 })
  t.equal(subscriptions, own.server.inspect.zones().length, 'it is told of the changes of each')
})
