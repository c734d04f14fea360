/**
 * A hub gives the copies that it holds of another cluster's zones on to the resolvers on its nodes: peered names are
 * answered there as the hub answers them, and nothing is sent to the other cluster but by the hub.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { ask, shown, startInProcess, until, type InProcessServer } from '../support/in-process.ts'
import { startForeign, whyNo } from '../support/foreign-primary.ts'
import { namespace, service } from '../support/objects.ts'
import { parseName } from '../../src/wire/name.ts'
import { backendObjects, backendQuestions } from './backend-of-a.ts'

const clusterA = `cluster: {name: a, source: {manifests: ["{manifests}"]}, pods: insecure}
transfer: {allow: [private]}
forward: []
`

type Around = Readonly<{ transfer?: string; peer?: string; mirror?: boolean; source?: string }>

const policies = `policies:
- {name: backend, dnsName: [backend.svc.cluster.local, backend.pod.cluster.local], targets: [a]}
forward: []
`

const hub = (a: string, { transfer = 'allow: [private]', peer = '', mirror = true }: Around = {}): string =>
  `cluster: {name: b, source: {manifests: ["{manifests}"]}}
transfer: {${transfer}}
peers: {a: {servers: ["${a}"], mirror: ${mirror}${peer}}}
${policies}`

const node = (hubServer: string, { source = '', transfer = '' }: Around = {}): string =>
  `cluster: {name: b, source: {mirror: ["${hubServer}"]${source}}}
transfer: {${transfer}}
peers: {a: {servers: ["${hubServer}"], recursion: true, mirror: true}}
${policies}`

const objects = (addresses: readonly string[]): object[] => [
  ...backendObjects(addresses),
  // So many that a change is not larger than the zone.
  ...Array.from({ length: 20 }, (_, at) => service(`s${at}.backend`, `10.96.2.${at}`)).flat()
]
/** What cluster B has under the same names. */
const ownObjects = [namespace('backend'), ...service('api.backend', '10.1.1.20'), ...service('shop.own', '10.1.9.9')]

const questions = [...backendQuestions, ['shop.own.svc', 'A']] as const

const copies = ({ server }: InProcessServer) => server.mirrors.status().flatMap(({ zones }) => zones)
const isLive = (one: InProcessServer): boolean =>
  copies(one).length > 0 && copies(one).every((zone) => zone.isLive && zone.serial !== null)

void test('a node answers peered names from copies that its hub passes on, and follows them', async (t) => {
  const a = await startInProcess(t, clusterA, { objects: objects(['10.0.1.20', '10.0.1.21']) })
  const b = await startInProcess(t, hub(a.text), { objects: ownObjects })
  t.ok(await until(() => isLive(b)), 'the hub has its copies')
  const resolver = await startInProcess(t, node(b.text))
  t.ok(await until(() => isLive(resolver) && resolver.server.inspect.readiness().isReady, 15_000), 'and the node')

  const versions = (of: InProcessServer) => copies(of).map(({ apex, serial, epoch }) => [apex, serial, epoch])
  t.same(versions(resolver), versions(b), "serials and epochs are those of the other cluster's zones")
  t.equal(copies(resolver)[0]!.server, b.text, 'taken from the hub')
  for (const [name, type] of questions) {
    const qname = `${name}.cluster.local`
    t.same(shown(await ask(resolver, qname, { type })), shown(await ask(b, qname, { type })), `${qname} ${type}`)
  }
  t.ok(resolver.server.dataPlane.stats.responsesBySource.get('mirror')! >= 8, 'without asking anybody')

  const web = 'web.backend.svc.cluster.local'
  const happenedAtMs = Date.now()
  a.writeObjects(objects(['10.0.1.22']))
  t.ok(await until(async () => (await ask(resolver, web)).text === '10.0.1.22'), 'a change is seen')
  t.ok(copies(resolver)[0]!.stats.deltaTransfers > 0, 'by a delta')
  const [change] = resolver.server.freshness.changesOf(parseName(web))
  t.equal(change!.peer, 'a')
  t.ok(Math.abs(change!.originAtMs - happenedAtMs) < 10_000, 'the time is that of where it happened')
  t.notOk(change!.cameWhole)
})

void test('how old a copy is goes along with it', async (t) => {
  const a = await startInProcess(t, clusterA, { objects: objects(['10.0.1.20']) })
  const b = await startInProcess(t, hub(a.text), { objects: ownObjects })
  const resolver = await startInProcess(t, node(b.text))
  t.ok(await until(() => isLive(b) && isLive(resolver), 15_000))
  await a.stop()
  t.ok(await until(() => copies(b).every((zone) => !zone.isLive), 20_000), 'the other cluster is silent')
  // The hub itself answers: the node's copy would be young if only that counted.
  t.ok(await until(() => copies(resolver).every((zone) => !zone.isLive), 2_500), 'at its node, too, within a heartbeat')
  const [own, passedOn] = [copies(b)[0]!.ageMs!, copies(resolver)[0]!.ageMs!]
  t.ok(passedOn >= own - 100, `the age at the node (${passedOn}) is not less than that at the hub (${own})`)
  const stale = await ask(resolver, 'api.backend.svc.cluster.local')
  t.equal(stale.text, '10.96.1.1')
  t.equal(stale.ede[0]?.code, 3)
  t.equal((await ask(resolver, 'shop.own.svc.cluster.local')).ede.length, 0, "the cluster's own names are fresh")

  const again = await startInProcess(t, clusterA, { objects: objects(['10.0.1.29']), port: a.port })
  const text = async (): Promise<string> => (await ask(resolver, 'web.backend.svc.cluster.local')).text
  t.ok(await until(async () => (await text()) === '10.0.1.29', 20_000), 'another instance of it, another history')
  t.ok(await until(() => copies(resolver)[0]!.epoch === again.server.view.zones.zone.epoch))
  t.equal((await ask(resolver, 'api.backend.svc.cluster.local')).ede.length, 0)
})

void test('copies of a server that is no peerdns are passed on too', { skip: whyNo('knot') ?? false }, async (t) => {
  const records = ['api.backend.svc.cluster.local. 30 IN A 172.30.1.0']
  const primary = await startForeign(t, 'knot', { zone: 'cluster.local', records })
  const b = await startInProcess(t, hub(primary.text), { objects: ownObjects })
  const resolver = await startInProcess(t, node(b.text))
  t.ok(await until(() => isLive(b) && isLive(resolver), 15_000))
  t.equal((await ask(resolver, 'api.backend.svc.cluster.local')).text, '172.30.1.0')
  primary.update({ remove: [records[0]!], add: ['api.backend.svc.cluster.local. 30 IN A 172.30.1.9'] })
  const text = async (): Promise<string> => (await ask(resolver, 'api.backend.svc.cluster.local')).text
  t.ok(await until(async () => (await text()) === '172.30.1.9', 10_000), 'a change is seen')
  t.equal(copies(resolver)[0]!.serial, copies(b)[0]!.serial)
})

void test('a hub without a copy, and whom copies are not for', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-keys-'))
  t.teardown(() => rmSync(folder, { recursive: true, force: true }))
  for (const name of ['nodes', 'a']) {
    writeFileSync(join(folder, name), Buffer.alloc(32, name).toString('base64'))
  }
  const keys = `keys: [{name: nodes, file: ${folder}/nodes}, {name: a, file: ${folder}/a}]`
  const a = await startInProcess(t, clusterA.replace('{allow: [private]}', `{allow: [private], ${keys}}`), {
    objects: objects(['10.0.1.20'])
  })
  const transfer = `allow: [private], ${keys}`
  const b = await startInProcess(t, hub(a.text, { transfer, peer: ', key: a' }), { objects: ownObjects })
  t.ok(await until(() => isLive(b)), 'the hub signs with the key of its peer')
  const refused = await startInProcess(t, node(b.text, { transfer: keys, source: ', key: a' }))
  const isRefused = (): boolean => copies(refused).some(({ state }) => state === 'refused')
  t.ok(await until(isRefused, 15_000), 'the key of a peer is good for our own zones alone')
  t.ok(await until(() => refused.server.inspect.readiness().isReady, 15_000), 'for them it is')
  t.equal((await ask(refused, 'api.backend.svc.cluster.local')).text, '10.96.1.1', 'the hub is asked instead')
  const taken = await startInProcess(t, node(b.text, { transfer: keys, source: ', key: nodes' }))
  t.ok(await until(() => isLive(taken), 15_000), 'the key of nodes is good for both')

  const asking = await startInProcess(t, hub(a.text, { mirror: false }), { objects: ownObjects })
  const without = await startInProcess(t, node(asking.text))
  t.ok(await until(() => copies(without).some(({ state }) => state === 'refused'), 15_000), 'no copy, nothing to take')
  t.notOk(
    copies(without).some(({ serial }) => serial !== null),
    "the hub's own zone of that name is not taken for it"
  )
})
