/** Ready-made answers from a copy of a peer's zone: what would be worked out from it, whatever becomes of the copy. */
import { test } from 'tap'
import { nameToText, parseName } from '../../../src/wire/name.ts'
import { RRTYPE } from '../../../src/wire/iana.ts'
import { clusterB, startInProcess, until, type InProcessServer } from '../../support/in-process.ts'
import { namespace, service } from '../../support/objects.ts'
import { BothWays, query, variants } from './both-ways.ts'

const clusterA = 'cluster: {name: a, source: {manifests: ["{manifests}"]}}\ntransfer: {allow: [private]}\nforward: []\n'

const configOfB = (port: number): string =>
  clusterB(`peers:
  a: {servers: ["127.0.0.1:${port}"], mirror: true, lease: 1s}
policies:
- {name: backend, dnsName: backend.svc.cluster.local, targets: [a, local], maxTtl: 3s}
- {name: alone, dnsName: alone.svc.cluster.local, targets: [a]}
- {name: mapped, dnsName: backend.svc.east.local, targets: [{peer: a, zone: cluster.local}]}
forward: []
`)

const objects = (apiAddress: string, ...ready: string[]): object[] => [
  namespace('backend'),
  namespace('alone'),
  ...service('api.backend', apiAddress),
  ...service('web.backend', 'None', { ready }),
  ...service('idle.backend', '10.96.1.3', { ready: [] }),
  ...service('api.alone', apiAddress)
]

const names = [
  'api.backend.svc.cluster.local',
  'web.backend.svc.cluster.local',
  'web-0.web.backend.svc.cluster.local',
  '_http._tcp.web.backend.svc.cluster.local',
  'idle.backend.svc.cluster.local',
  'none.backend.svc.cluster.local',
  'backend.svc.cluster.local',
  'api.alone.svc.cluster.local',
  'none.alone.svc.cluster.local',
  'api.backend.svc.east.local',
  'none.backend.svc.east.local'
].map(parseName)
const types = [RRTYPE.A, RRTYPE.AAAA, RRTYPE.SRV]

/** A peerdns is told the age of the data in milliseconds, by the clock of the copy, which goes on between the two ways. */
const asked = variants.filter(({ name }) => !name.startsWith('what a peerdns'))

/** What differs between the two ways, over all questions. */
const differences = (both: BothWays): string[] =>
  names.flatMap((name) =>
    types.flatMap((type) =>
      asked.flatMap((variant) => {
        const difference = both.difference(query(name, type, variant))
        return difference === null ? [] : [`${nameToText(name)} ${type} ${variant.name}: ${difference}`]
      })
    )
  )

const isLive = ({ server }: InProcessServer): boolean =>
  server.mirrors.status().every(({ zones }) => zones.length > 0 && zones.every((zone) => zone.isLive))

void test('a copy that changes, is exchanged, and loses its peer', async (t) => {
  const a = await startInProcess(t, clusterA, { objects: objects('10.96.1.1', '10.0.1.20', '10.0.1.21') })
  const b = await startInProcess(t, configOfB(a.port))
  t.ok(await until(() => isLive(b)), 'it has come')
  const both = new BothWays(b.server.dataPlane.parts)
  const versions = (): string => b.server.mirrors.status().flatMap(({ zones }) => zones.map(({ epoch, serial }) => `${epoch} ${serial}`)).join() // prettier-ignore
  t.same(differences(both), [], 'at first')
  const readyOfCopies = both.fast.stats.responsesBySource.get('mirror')!
  t.ok(both.servedByWorker > names.length * asked.length, `workers gave ${both.servedByWorker}`)
  t.equal(readyOfCopies, both.slow.stats.responsesBySource.get('mirror'))
  t.ok(both.served > names.length * asked.length, `${both.served} were ready`)
  t.same([...both.fast.stats.responsesByRcode], [...both.slow.stats.responsesByRcode])

  let before = versions()
  a.writeObjects(objects('10.96.1.9', '10.0.1.21', '10.0.1.22'))
  t.ok(await until(() => versions() !== before), 'a delta has come')
  t.same(differences(both), [], 'after a delta')

  before = versions()
  await a.stop()
  const other = await startInProcess(t, clusterA, { objects: objects('10.96.1.7', '10.0.1.27'), port: a.port })
  t.ok(await until(() => versions() !== before && isLive(b)), 'another copy has come')
  t.same(differences(both), [], 'after an exchange')

  await other.stop()
  t.ok(await until(() => !isLive(b)), 'the peer is silent')
  t.same(differences(both), [], 'while the peer is silent')
})
