/** Changes that a peer tells of, without a copy here: the changed names leave the cache, whatever their TTL. */
import { pino } from 'pino'
import { test } from 'tap'
import { ask, clusterB, startInProcess, until, type InProcessServer } from '../support/in-process.ts'
import { startForeign, whyNo, type ForeignKind } from '../support/foreign-primary.ts'
import { loopClock } from '../support/loop-clock.ts'
import { namespace, service } from '../support/objects.ts'

const zone = 'cluster.local'
const record = (name: string, address: string): string => `${name}.backend.svc.${zone}. 300 IN A ${address}`

const config = (port: number, mirror: string): string =>
  clusterB(`peers:
  a: {servers: ["127.0.0.1:${port}"], mirror: ${mirror}}
policies:
- {name: backend, dnsName: backend.svc.${zone}, targets: [a]}
forward: []
`)

const isFollowing = ({ server }: InProcessServer): boolean => server.mirrors.status()[0]!.zones.some((it) => it.isLive)
const namesCached = ({ server }: InProcessServer): number => server.cache.stats.entries

for (const kind of ['bind', 'knot', 'coredns'] as readonly ForeignKind[]) {
  void test(
    `${kind}: changed names leave the cache, others stay where deltas tell`,
    { skip: whyNo(kind) ?? false },
    async (t) => {
      const records = [
        record('api', '10.0.0.1'),
        record('web', '10.0.0.2'),
        `alias.backend.svc.${zone}. 300 IN CNAME api.backend.svc.${zone}.`
      ]
      const primary = await startForeign(t, kind, { zone, records })
      const b = await startInProcess(t, config(primary.port, 'evict'))
      t.ok(await until(() => isFollowing(b)), 'followed')
      for (const name of ['api', 'web', 'alias']) await ask(b, `${name}.backend.svc.${zone}`)
      t.equal((await ask(b, `new.backend.svc.${zone}`)).rcode, 'NXDOMAIN')
      t.equal(namesCached(b), 4)
      primary.update({ remove: [records[0]!], add: [record('api', '10.0.9.1'), record('new', '10.0.9.9')] })
      const isNew = async (): Promise<boolean> => (await ask(b, `api.backend.svc.${zone}`)).text === '10.0.9.1'
      t.ok(await until(isNew), 'a change is seen long before the TTL ends')
      t.ok(
        await until(async () => (await ask(b, `alias.backend.svc.${zone}`)).text.includes('10.0.9.1')),
        'also behind an alias'
      )
      t.ok(
        await until(async () => (await ask(b, `new.backend.svc.${zone}`)).text === '10.0.9.9'),
        'and what was denied'
      )
      const asked = b.server.peers.status()[0]!.stats.asked
      await ask(b, `web.backend.svc.${zone}`)
      const asksAgain = b.server.peers.status()[0]!.stats.asked - asked
      t.equal(asksAgain, kind === 'coredns' ? 1 : 0, 'what has not changed is answered from the cache')
      t.equal(b.server.mirrors.status()[0]!.zones[0]!.keepsCopy, false)
    }
  )
}

void test(
  'knot: a NOTIFY empties the suffix where nothing is followed',
  { skip: whyNo('knot') ?? false },
  async (t) => {
    const b = await startInProcess(t, config(1, 'false'))
    const records = [record('api', '10.0.0.1')]
    const primary = await startForeign(t, 'knot', { zone, records, notify: b.port })
    b.writeConfig(config(primary.port, 'false'))
    await b.server.stop({ force: true })
    const again = await startInProcess(t, config(primary.port, 'false'), { port: b.port })
    t.equal((await ask(again, `api.backend.svc.${zone}`)).text, '10.0.0.1')
    primary.update({ remove: records, add: [record('api', '10.0.9.1')] })
    t.ok(
      await until(async () => (await ask(again, `api.backend.svc.${zone}`)).text === '10.0.9.1'),
      'the change is seen'
    )
  }
)

void test('a peerdns that is not mirrored: the changed names leave the cache', async (t) => {
  const objects = (address: string): object[] => [
    namespace('backend'),
    ...service('api.backend', '10.96.1.1'),
    ...service('web.backend', 'None', { ready: [address], ttl: '300s' })
  ]
  const a = await startInProcess(
    t,
    `cluster: {name: a, ttl: 300s, source: {manifests: ["{manifests}"]}}\ntransfer: {allow: [private]}\nforward: []\n`,
    { objects: objects('10.0.1.1') }
  )
  const b = await startInProcess(t, config(a.port, 'evict'))
  t.ok(await until(() => isFollowing(b)))
  const web = `web.backend.svc.${zone}`
  t.equal((await ask(b, web)).text, '10.0.1.1')
  t.equal((await ask(b, `api.backend.svc.${zone}`)).text, '10.96.1.1')
  a.writeObjects(objects('10.0.1.2'))
  t.ok(await until(async () => (await ask(b, web)).text === '10.0.1.2'))
  const [followed] = b.server.mirrors.status()[0]!.zones
  t.equal(followed!.pushes, true)
  t.equal(followed!.stats.deltaTransfers > 0, true)
  t.ok(
    b.server.freshness.changesOf('\x03web\x07backend\x03svc\x07cluster\x05local\0' as never).length > 0,
    'and it is known how late'
  )
})

void test('NOTIFY: only from the servers of a peer, only for what is theirs', async (t) => {
  const a = await startInProcess(t, `cluster: {name: a, source: {manifests: ["{manifests}"]}}\nforward: []\n`)
  const b = await startInProcess(t, config(a.port, 'false'))
  const notify = async (name: string, type: string, from: string) =>
    (await ask(b, name, { type, flags: 4 << 11, recursionDesired: false, from })).rcode
  t.equal(await notify(`backend.svc.${zone}`, 'SOA', '127.0.0.1'), 'NOERROR')
  t.equal(await notify(zone, 'SOA', '127.0.0.1'), 'NOERROR')
  t.equal(await notify('example.org', 'SOA', '127.0.0.1'), 'NOTIMP', 'nobody wants to hear of it')
  t.equal(await notify(zone, 'SOA', '127.0.0.2'), 'REFUSED')
  t.equal(await notify(zone, 'A', '127.0.0.1'), 'FORMERR')
  const before = loopClock.nowMs()
  for (let at = 0; at < 300; at++) await notify(zone, 'SOA', '127.0.0.1')
  const seconds = (loopClock.nowMs() - before) / 1000
  t.ok(b.server.mirrors.evictions('a')!.suffixes <= 2 + 2 * seconds, 'a flood empties the cache once a second')
})

void test(
  'knot: who gives its SOA and refuses transfers is warned of, once',
  { skip: whyNo('knot') ?? false },
  async (t) => {
    const records = [record('api', '10.0.0.1')]
    const key = { algorithm: 'hmac-sha256', name: 'others', secret: Buffer.alloc(32, 'x').toString('base64') }
    const primary = await startForeign(t, 'knot', { zone, records, key })
    const lines: { level: number; msg: string; why?: string }[] = []
    const log = pino(
      { level: 'warn' },
      { write: (line: string) => void lines.push(JSON.parse(line) as (typeof lines)[number]) }
    )
    const b = await startInProcess(t, config(primary.port, 'evict'), { log })
    t.ok(await until(() => isFollowing(b)), 'its SOA is seen')
    await ask(b, `api.backend.svc.${zone}`)
    let last = 1
    const change = async (): Promise<void> => {
      const before = record('api', `10.0.0.${last++}`)
      const address = `10.0.0.${last}`
      primary.update({ remove: [before], add: [record('api', address)] })
      t.ok(
        await until(async () => (await ask(b, `api.backend.svc.${zone}`)).text === address),
        'all of the suffix leaves the cache'
      )
    }
    await change()
    const warned = () => lines.filter(({ msg }) => msg.includes('gives no differences'))
    t.ok(await until(() => warned().length > 0))
    t.match(warned(), [{ why: /IXFR: .*(REFUSED|NOTAUTH)/ }])
    await change()
    t.equal(warned().length, 1)
  }
)
