/** Transfers that are signed with TSIG, taken from real servers; wrong keys and clocks leave what is there. */
import { createHmac, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { openMessageStream } from '../../src/peer/message-stream.ts'
import { PeerMirror } from '../../src/transfer/peer-mirror.ts'
import { signRequest, type TsigAlgorithm, type TsigKey } from '../../src/transfer/tsig-signer.ts'
import { tsigSigner } from '../../src/transfer/tsig-verifier.ts'
import { parseName } from '../../src/wire/name.ts'
import { ask, clusterB, exchangeTcp, exchangeUdp, queryOctets, startInProcess, until } from '../support/in-process.ts'
import { loopClock } from '../support/loop-clock.ts'
import { startForeign, whyNo, type ForeignKind } from '../support/foreign-primary.ts'
import { namespace, service } from '../support/objects.ts'

const zone = 'shop.example.org'
const hosts = Array.from({ length: 5_000 }, (_, at) => `host-${at}.${zone}. 60 IN A 10.0.${at >> 8}.${at & 255}`)

for (const kind of ['bind', 'knot'] as readonly ForeignKind[]) {
  for (const algorithm of ['hmac-sha256', 'hmac-sha512'] as readonly TsigAlgorithm[]) {
    void test(`${kind}, ${algorithm}: taken with the right key alone`, { skip: whyNo(kind) ?? false }, async (t) => {
      const secret = randomBytes(32)
      const key = { algorithm, name: 'mirror-key', secret: secret.toString('base64') }
      const primary = await startForeign(t, kind, { zone, records: hosts, key })
      let offsetSeconds = 0
      const faults: string[] = []
      const start = (given: TsigKey | null): PeerMirror => {
        const now = (): number => Math.floor(Date.now() / 1000) + offsetSeconds
        const mirror = new PeerMirror({
          servers: () => [primary.text],
          open: openMessageStream,
          signer: given === null ? null : tsigSigner(() => given, now),
          instanceId: '010203040506',
          leaseMs: 5_000,
          clock: loopClock,
          random: Math.random,
          names: [parseName(zone)],
          mayAscend: false,
          onSwap: () => {},
          onChange: () => {},
          onFault: (_zone, fault) => void faults.push(`${fault.kind}: ${fault.message}`),
          onLink: () => {}
        })
        t.teardown(() => mirror.stop())
        mirror.start()
        return mirror
      }
      const right: TsigKey = { name: parseName('mirror-key'), algorithm, secret: Uint8Array.from(secret) }
      const mirror = start(right)
      const copy = () => mirror.find(parseName(zone))?.store ?? null
      t.ok(await until(() => copy() !== null, 15_000), 'the zone has come')
      t.equal(copy()?.sizes.rrsets, hosts.length + 3)
      primary.update({ add: [`new.${zone}. 60 IN A 10.9.9.9`] })
      t.ok(await until(() => copy()?.rrset(parseName(`new.${zone}`), 1) !== null), 'and is followed')
      mirror.stop()
      t.same(faults, [])

      const wrong = [
        null,
        { ...right, secret: Uint8Array.from(randomBytes(32)) },
        { ...right, name: parseName('another-key') },
        { ...right, algorithm: algorithm === 'hmac-sha256' ? 'hmac-sha512' : 'hmac-sha256' } as TsigKey
      ]
      for (const given of wrong) {
        faults.length = 0
        const refused = start(given)
        t.ok(await until(() => faults.length > 0 || refused.status()[0]?.state === 'refused'), 'refused')
        t.equal(refused.find(parseName(zone)), null)
        refused.stop()
      }
      offsetSeconds = 4_000
      faults.length = 0
      const skewed = start(right)
      t.ok(await until(() => faults.length > 0), 'clocks that differ')
      t.match(faults[0], /^signature: /)
      t.equal(skewed.find(parseName(zone)), null)
      skewed.stop()
    })
  }
}

void test('two peerdns with a key', async (t) => {
  const folder = t.testdir({})
  const file = join(folder, 'secret')
  writeFileSync(file, `${createHmac('sha256', 'x').digest('base64')}\n`)
  const keys = `keys: [{name: mirror-key, algorithm: hmac-sha512, file: ${file}}]`
  const objects = [namespace('backend'), ...service('api.backend', '10.96.1.1')]
  const a = await startInProcess(
    t,
    `cluster: {name: a, source: {manifests: ["{manifests}"]}}\ntransfer: {allow: [private], ${keys}}\nforward: []\n`,
    { objects }
  )
  const config = (key: string): string =>
    clusterB(`transfer: {${keys}}
peers:
  a: {servers: ["127.0.0.1:${a.port}"], mirror: true${key}}
policies:
- {name: backend, dnsName: backend.svc.cluster.local, targets: [a]}
forward: []
`)
  const isLive = (server: typeof a): boolean => server.server.mirrors.status()[0]!.zones.some((it) => it.isLive)
  const b = await startInProcess(t, config(', key: mirror-key'))
  t.ok(await until(() => isLive(b)), 'taken')
  t.equal((await ask(b, 'api.backend.svc.cluster.local')).flags.aa, true)
  const node = await startInProcess(
    t,
    `cluster: {name: a, source: {mirror: ["127.0.0.1:${a.port}"], key: mirror-key}}\ntransfer: {${keys}}\nforward: []\n`
  )
  t.ok(await until(() => node.server.inspect.readiness().isReady), 'a node too')
  const without = await startInProcess(t, config(''))
  t.equal((await ask(without, 'api.backend.svc.cluster.local')).text, '10.96.1.1', 'asked for, as nothing is given')
  t.equal(isLive(without), false)
})

void test('NOTIFY: the key of a peer speaks for that peer alone, over UDP and TCP', async (t) => {
  const folder = t.testdir({})
  const secrets = new Map(['of-a', 'of-b', 'of-nobody'].map((name) => [name, randomBytes(32)]))
  for (const [name, secret] of secrets) writeFileSync(join(folder, name), secret.toString('base64'))
  const keys = [...secrets.keys()].map((name) => `{name: ${name}, file: ${folder}/${name}}`).join(', ')
  const b = await startInProcess(
    t,
    clusterB(`transfer: {keys: [${keys}]}
peers:
  a: {servers: ["192.0.2.1:53"], key: of-a}
  b: {servers: ["192.0.2.2:53"], key: of-b}
  c: {servers: ["127.0.0.1:1"]}
policies:
- {name: a, dnsName: a.svc.cluster.local, targets: [a]}
- {name: b, dnsName: b.svc.cluster.local, targets: [b]}
- {name: c, dnsName: c.svc.cluster.local, targets: [c]}
forward: []
`)
  )
  const notify = async (name: string, key: string | null, isTcp: boolean): Promise<string> => {
    const plain = queryOctets(name, { type: 'SOA', flags: 4 << 11, recursionDesired: false })
    const octets =
      key === null
        ? plain
        : signRequest(
            plain,
            { name: parseName(key), algorithm: 'hmac-sha256', secret: Uint8Array.from(secrets.get(key)!) },
            Math.floor(Date.now() / 1000)
          )
    const exchange = isTcp ? exchangeTcp : exchangeUdp
    const reply = await exchange(b, Buffer.from(octets), 3_000)
    return ['NOERROR', '', '', '', 'NOTIMP', 'REFUSED'][reply![3]! & 15]!
  }
  for (const isTcp of [false, true]) {
    const of = async (name: string, key: string | null): Promise<string> =>
      notify(`${name}.svc.cluster.local`, key, isTcp)
    t.equal(await of('a', 'of-a'), 'NOERROR')
    t.equal(await of('a', 'of-b'), 'REFUSED', 'the key of another peer')
    t.equal(await of('a', 'of-nobody'), 'REFUSED', 'one that is no peer')
    t.equal(await of('a', null), 'REFUSED')
    t.equal(await of('c', 'of-a'), 'REFUSED', 'also for a peer without a key')
    t.equal(await of('c', 'of-nobody'), 'NOERROR')
    t.equal(await of('c', null), 'NOERROR', 'from its own address')
  }
})
