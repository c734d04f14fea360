/**
 * What others get of Services: which addresses, and whether those without endpoints; our own clients see no difference.
 */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'tap'
import { RRTYPE, typeToText } from '../../src/wire/iana.ts'
import { nameToText, parseName } from '../../src/wire/name.ts'
import { rdataToText } from '../../src/wire/record-text.ts'
import type { ZoneStore } from '../../src/zone/zone-store.ts'
import { command } from '../support/command.ts'
import { ask, clusterB, startInProcess, until, type InProcessServer } from '../support/in-process.ts'
import { externalName, namespace, service, slice } from '../support/objects.ts'

const balanced = (name: string, clusterIP: string, ingress: readonly object[]): object[] => {
  const [object, ...rest] = service(name, clusterIP, { ready: ['10.0.0.7'] })
  return [{ ...object, status: { loadBalancer: { ingress } } }, ...rest]
}

const objects = [
  namespace('backend'),
  ...service('api.backend', '10.1.1.20', { ready: ['10.0.0.1', '10.0.0.2'], ports: { http: 80 } }),
  ...service('empty.backend', '10.1.1.21', { ready: [] }),
  ...service('unknown.backend', '10.1.1.22', { ready: null }),
  ...service('headless.backend', 'None', { ready: ['10.0.0.5'] }),
  ...balanced('lb.backend', '10.1.1.23', [{ ip: '192.0.2.80' }, { ip: 'nonsense' }]),
  ...balanced('named.backend', '10.1.1.24', [{ hostname: 'lb.example.org' }]),
  externalName('ext.backend', 'example.org')
]

/** Records of the Services, `owner TYPE data` without the zone; SRV and TXT apart. */
function recordsOf(store: ZoneStore): string[] {
  const lines = [...store.records()].flatMap(({ owner, type, rdata }) =>
    rdata.map((octets) => `${nameToText(owner)} ${typeToText(type)} ${rdataToText(type, octets)}`)
  )
  const ofServices = lines.filter((line) => /backend\.svc\.cluster\.local\. (A|CNAME) /.test(line))
  return ofServices.map((line) => line.replace('.backend.svc.cluster.local.', '')).sort()
}

const start = async (t: Parameters<typeof startInProcess>[0], policy: string): Promise<InProcessServer> => {
  const config = `forward: []\ntransfer: {allow: [any], export: ${policy}}\n`
  const server = await startInProcess(
    t,
    clusterB(config, ', records: ["db.backend.svc.cluster.local. 10 A 172.30.9.9"]'),
    { objects }
  )
  return server
}

void test('transfer.export: addresses of Services, for others alone', async (t) => {
  const rows: [policy: string, toPeerdns: string[], toOthers: string[] | null][] = [
    [
      '{address: endpoints}',
      [
        'api A 10.0.0.1', 'api A 10.0.0.2', 'api-0.api A 10.0.0.1', 'api-1.api A 10.0.0.2', 'db A 172.30.9.9', 'ext CNAME example.org.',
        'headless A 10.0.0.5', 'headless-0.headless A 10.0.0.5', 'lb A 10.0.0.7', 'lb-0.lb A 10.0.0.7', 'named A 10.0.0.7',
        'named-0.named A 10.0.0.7'
      ],
      null
    ],
    [
      '{address: loadBalancer, hideEmpty: true}',
      [
        'db A 172.30.9.9', 'ext CNAME example.org.', 'headless A 10.0.0.5', 'headless-0.headless A 10.0.0.5', 'lb A 192.0.2.80',
        'named CNAME lb.example.org.'
      ],
      null
    ],
    [
      '{hideEmpty: true}',
      [
        'api A 10.1.1.20', 'api-0.api A 10.0.0.1', 'api-1.api A 10.0.0.2', 'db A 172.30.9.9', 'empty A 10.1.1.21', 'ext CNAME example.org.',
        'headless A 10.0.0.5', 'headless-0.headless A 10.0.0.5', 'lb A 10.1.1.23', 'lb-0.lb A 10.0.0.7', 'named A 10.1.1.24',
        'named-0.named A 10.0.0.7', 'unknown A 10.1.1.22'
      ],
      [
        'api A 10.1.1.20', 'api-0.api A 10.0.0.1', 'api-1.api A 10.0.0.2', 'db A 172.30.9.9', 'ext CNAME example.org.',
        'headless A 10.0.0.5', 'headless-0.headless A 10.0.0.5', 'lb A 10.1.1.23', 'lb-0.lb A 10.0.0.7', 'named A 10.1.1.24',
        'named-0.named A 10.0.0.7', 'unknown A 10.1.1.22'
      ]
    ]
  ] // prettier-ignore
  for (const [policy, toPeerdns, toOthers] of rows) {
    const server = await start(t, policy)
    const { zones } = server.server.view
    t.same(recordsOf(zones.exports.given(true)), toPeerdns, `${policy}: a peerdns`)
    t.same(recordsOf(zones.exports.given(false)), toOthers ?? toPeerdns, `${policy}: others`)
    t.equal((await ask(server, 'api.backend.svc.cluster.local')).text, '10.1.1.20', 'our clients get the ClusterIP')
    t.equal((await ask(server, 'empty.backend.svc.cluster.local')).text, '10.1.1.21')
    await server.stop()
  }
  const plain = await start(t, '{}')
  t.equal(plain.server.view.zones.exports.given(false), plain.server.view.zones.zone, 'nothing is kept twice')
})

void test('transfer.export: changes arrive there too, with the ports of endpoints', async (t) => {
  const server = await start(t, '{address: endpoints, hideEmpty: true}')
  const { zones } = server.server.view
  const stores = [zones.exports.given(true), zones.exports.given(false)] as const
  const api = parseName('api.backend.svc.cluster.local')
  const srv = stores[0].rrset(parseName('_http._tcp.api.backend.svc.cluster.local'), RRTYPE.SRV)
  t.match(srv?.rdata.map((octets) => rdataToText(RRTYPE.SRV, octets)).sort(), [
    /^0 50 8080 api-0\.api/,
    /^0 50 8080 api-1\.api/
  ])
  t.equal(stores[0].serviceState(parseName('empty.backend.svc.cluster.local')), 'empty')
  t.ok(stores[0].exists(parseName('unknown.backend.svc.cluster.local')), 'without addresses, but there')
  t.notOk(stores[1].exists(parseName('empty.backend.svc.cluster.local')))
  t.equal(new Set([...stores, zones.zone].map(({ epoch }) => epoch)).size, 3, 'serials of each are their own')
  const { serial } = stores[1]
  server.writeObjects(
    objects.map((object) =>
      JSON.stringify(object).includes('"api-1"') ? slice('api.backend', ['10.0.0.9'], false) : object
    )
  )
  await until(() => !stores[1].exists(api))
  t.notOk(stores[1].exists(api), 'no endpoint is ready any more')
  t.equal(stores[0].serviceState(api), 'empty')
  t.equal((await ask(server, 'api.backend.svc.cluster.local')).text, '10.1.1.20')
  server.writeObjects(objects)
  await until(() => stores[1].exists(api))
  t.equal(stores[1].rrset(api, RRTYPE.A)?.rdata.length, 2)
  await until(() => stores[1].serial !== serial)
  t.ok(stores[1].changesSince(serial)!.length >= 1, 'its journal tells the way')
})

void test('check warns of exports that do something else than it seems', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-export-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'objects.json'), JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }))
  const file = join(folder, 'config.yaml')
  const head = 'cluster: {name: b, source: {manifests: [objects.json]}}\nforward: []\n'
  const check = async (transfer: string, more = ''): Promise<string> => {
    writeFileSync(file, `${head}transfer:\n  ${transfer}\n${more}`)
    const { out, err } = await command(`check --config ${file}`)
    return out + err
  }
  const ports = await check('{allow: [any], export: {address: endpoints}}')
  t.match(
    ports,
    /config\.yaml:\d+:\d+: warning: transfer\.export\.address: backend\/api: port 80 \(http\) is 8080 at its endpoints/
  )
  t.notMatch(ports, /backend\/(lb|headless|empty):/, 'equal ports, and Services without ClusterIP, are fine')
  t.notMatch(await check('{allow: [any]}'), /warning/)
  t.match(await check('{notify: [192.0.2.1]}'), /warning: transfer: nobody may take zones/)
  writeFileSync(join(folder, 'secret'), randomBytes(32).toString('base64'))
  const keys = '{keys: [{name: one, algorithm: hmac-sha256, file: secret}]}'
  t.match(await check(keys), /warning: transfer: nobody may take zones/, 'a key that nobody uses')
  const peers = 'peers: {a: {servers: [192.0.2.1], mirror: true, key: one}}\npolicies: [{name: p, dnsName: a.svc.cluster.local, targets: [a]}]\n' // prettier-ignore
  t.notMatch(await check(keys, peers), /nobody may take zones/, 'a key for taking zones')
  const services = await check('{allow: [any], export: {namespaces: [shop], services: [backend/api]}}')
  t.match(services, /warning: transfer\.export\.services: backend\/api is not exported/)
})
