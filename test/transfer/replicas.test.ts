/**
 * Replicas on both sides of a load balancer that hides who asks: each replica has a history of its own, and no serial
 * of one means anything at another.
 */
import { createSocket } from 'node:dgram'
import { connect, createServer, type Socket } from 'node:net'
import { test, type Test } from 'tap'
import { ask, clusterB, delay, startInProcess, until, type InProcessServer } from '../support/in-process.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { isAtOrBelow, parseName } from '../../src/wire/name.ts'
import type { ZoneStore } from '../../src/zone/zone-store.ts'
import { namespace, service } from '../support/objects.ts'

type Balancer = Readonly<{ port: number; cut: () => void; only: (at: number | null) => void }>

/** Spreads TCP connections and UDP datagrams over servers of this machine, from an address of its own. */
async function balancer(t: Test, ports: readonly number[]): Promise<Balancer> {
  const open = new Set<Socket>()
  let turn = 0
  let only: number | null = null
  const next = (): number => ports[only ?? turn++ % ports.length]!
  const server = createServer((client) => {
    const upstream = connect({ host: '127.0.0.1', port: next(), localAddress: '127.0.0.9' })
    for (const [one, other] of [
      [client, upstream],
      [upstream, client]
    ] as const) {
      open.add(one)
      one.on('error', () => other.destroy())
      one.on('close', () => {
        open.delete(one)
        other.destroy()
      })
    }
    client.pipe(upstream).pipe(client)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  const socket = createSocket('udp4')
  socket.bind(port, '127.0.0.1')
  socket.on('message', (message, from) => {
    const out = createSocket('udp4')
    out.bind(0, '127.0.0.9', () => out.send(message, next(), '127.0.0.1'))
    out.on('message', (reply) => socket.send(reply, from.port, from.address))
    setTimeout(() => out.close(), 1_000).unref()
  })
  const cut = (): void => {
    for (const one of open) one.destroy()
  }
  t.teardown(() => {
    cut()
    server.close()
    socket.close()
  })
  return { port, cut, only: (at) => void (only = at) }
}

const objects = (at: number): object[] => [
  namespace('backend'),
  ...service('web.backend', 'None', { ready: [`10.0.${at >> 8}.${at & 255}`] }),
  ...Array.from({ length: at % 5 }, (_, more) => service(`s${more}.backend`, `10.96.1.${more + 1}`)).flat()
]

const suffix = parseName('backend.svc.cluster.local')

/** The records below the suffix, by the epoch and serial that they belong to. */
function versionOf(store: ZoneStore): [string, string] {
  const records = [...store.records()].filter(
    ({ owner, type }) => isAtOrBelow(owner, suffix) && type !== RRTYPE.SOA && type !== RRTYPE.NS
  )
  const lines = records.flatMap(({ owner, type, ttlSeconds, rdata }) =>
    rdata.map((it) => `${owner} ${type} ${ttlSeconds} ${it.join('.')}`)
  )
  return [`${store.epoch} ${store.serial}`, lines.sort().join('\n')]
}

void test('2 + 2 replicas behind load balancers: no delta and no serial of another history', async (t) => {
  const config = `cluster: {name: a, source: {manifests: ["{manifests}"]}}\ntransfer: {allow: [private]}\nforward: []\n`
  const as = [
    await startInProcess(t, config, { objects: objects(1) }),
    await startInProcess(t, config, { objects: objects(1) })
  ]
  const front = await balancer(
    t,
    as.map(({ port }) => port)
  )
  const configB = clusterB(`peers:
  a: {servers: ["127.0.0.1:${front.port}"], mirror: true}
policies:
- {name: backend, dnsName: backend.svc.cluster.local, targets: [a]}
forward: []
`)
  const bs = [await startInProcess(t, configB), await startInProcess(t, configB)]
  const isLive = ({ server }: InProcessServer): boolean => server.mirrors.status()[0]!.zones.some((zone) => zone.isLive)
  t.ok(await until(() => bs.every(isLive)), 'both have it')

  /** Every version that a replica of A had, by its epoch and serial. */
  const versions = new Map<string, string>()
  const note = (): void => {
    for (const a of as) versions.set(...versionOf(a.server.view.zones.zone))
  }
  let wrong = 0
  let looks = 0
  const look = (): void => {
    note()
    for (const b of bs) {
      const [key, text] = versionOf(b.server.mirrors.copiesOf('a')!.find(suffix)!.store!)
      // Versions between two looks are not known.
      if (!versions.has(key)) continue
      looks++
      if (versions.get(key) !== text) wrong++
    }
  }
  for (let round = 2; round < 14; round++) {
    as[round % 2]!.writeObjects(objects(round))
    await delay(150)
    look()
    if (round % 3 === 0) front.cut()
    as[(round + 1) % 2]!.writeObjects(objects(round))
    await delay(150)
    look()
    front.only(round % 4 === 0 ? 0 : round % 4 === 2 ? 1 : null)
  }
  const isLast = async (b: InProcessServer): Promise<boolean> =>
    (await ask(b, 'web.backend.svc.cluster.local')).text === '10.0.0.13'
  for (const b of bs) t.ok(await until(async () => isLast(b), 15_000), 'the last version')
  t.equal(wrong, 0)
  t.ok(looks > 10, `${looks} looks`)
  const epochs = bs.flatMap(({ server }) => server.mirrors.status()[0]!.zones.map(({ epoch }) => epoch))
  const known = new Set(as.flatMap(({ server }) => server.inspect.zones().map(({ epoch }) => epoch)))
  t.ok(epochs.every((epoch) => known.has(epoch!)))
  t.ok(
    bs.some(({ server }) => server.mirrors.status()[0]!.zones[0]!.stats.wholeTransfers > 1),
    'another replica was met'
  )
})
