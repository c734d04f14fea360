/**
 * Faults that users met elsewhere (the numbers are those of test/cases/reports.md), through the whole server. What one
 * peer's servers do among themselves is in test/peer/reports.test.ts.
 */
import { test, type Test } from 'tap'
import { ask, clusterB, delay, startInProcess, until, type InProcessServer, type Reply } from './support/in-process.ts'
import { loopClock } from './support/loop-clock.ts'
import { externalName, namespace, service, slice } from './support/objects.ts'
import { startStubPeer, type StubPeer, type StubRecord } from './support/stub-peer.ts'

const zone = 'south.example'
const rareProbes = '{every: 1h, fall: 100, rise: 1}'

const records = (address = '192.0.2.1'): StubRecord[] => [
  { type: 'A', name: `api.${zone}`, ttl: 10, data: address },
  ...Array.from({ length: 5 }, (_, at): StubRecord => ({ type: 'A', name: `five.${zone}`, ttl: 10, data: `192.0.2.${10 + at}` })), // prettier-ignore
  ...Array.from({ length: 40 }, (_, at): StubRecord => ({ type: 'A', name: `many.${zone}`, ttl: 10, data: `198.51.100.${at}` })) // prettier-ignore
]

async function stub(t: Test, address?: string): Promise<StubPeer> {
  const peer = await startStubPeer({ records: records(address), zone })
  t.teardown(() => peer.stop())
  return peer
}

/** Cluster b with `south.example` peered to one peer with these servers. */
const startSouth = (
  t: Test,
  stubs: StubPeer[],
  peerMore = '',
  more = '',
  objects: object[] = []
): Promise<InProcessServer> =>
  // prettier-ignore
  startInProcess(
    t,
    clusterB(
      `peers: {south: {servers: [${stubs.map(({ text }) => `"${text}"`).join(', ')}], probe: ${rareProbes}${peerMore}}}
policies: [{name: p, dnsName: ${zone}, targets: [south]${more}}]
forward: []
`
    ),
    { objects }
  )

test('1 (kubernetes/dns#186): no denial before the first lists are in', async (t) => {
  const objects = Array.from({ length: 8_000 }, (_, at) => service(`s${at}.shop`, `10.9.${at >> 8}.${at & 255}`)).flat()
  const b = await startInProcess(t, clusterB('forward: []\n'), { objects, isUnread: true })
  const seen = new Map<string, number>()
  const name = 's7999.shop.svc.cluster.local'
  for (let at = 0; at < 300; at++) {
    const wasReady = b.server.inspect.readiness().isReady
    const { text } = await ask(b, name)
    seen.set(text, (seen.get(text) ?? 0) + 1)
    if (text !== 'SERVFAIL') {
      t.ok(b.server.inspect.readiness().isReady, 'answered only when ready')
      break
    }
    t.equal(wasReady, false)
    await delay(50)
  }
  t.ok((seen.get('SERVFAIL') ?? 0) > 1, `asked while it was reading: ${JSON.stringify([...seen])}`)
  t.same([...seen.keys()], ['SERVFAIL', '10.9.31.63'], 'SERVFAIL, then the answer, and nothing in between')
})

test('2 (coredns#779): AAAA of an IPv4-only name is NODATA, and denies nothing else', async (t) => {
  const south = await stub(t)
  const b = await startSouth(t, [south], '', '', service('cart.shop', '10.1.5.20'))
  for (const name of [`api.${zone}`, 'cart.shop.svc.cluster.local']) {
    for (const again of ['', ' (again)']) {
      const reply = await ask(b, name, { type: 'AAAA' })
      t.equal(reply.text, 'NODATA', name + again)
      t.match(reply.authority, [/ SOA /], `${name}: with SOA`)
    }
    t.match((await ask(b, name)).text, /^(192\.0\.2\.1|10\.1\.5\.20)$/, `${name}: a cached NODATA never answers A`)
    t.equal((await ask(b, name, { type: 'AAAA' })).text, 'NODATA')
  }
})

test('3 (coredns#4183): a truncated part never reaches a client as the whole', async (t) => {
  const south = await stub(t)
  south.fault = 'truncated'
  const b = await startSouth(t, [south])
  const five = '192.0.2.10 192.0.2.11 192.0.2.12 192.0.2.13 192.0.2.14'
  const steps = [{ edns: false }, { isTcp: true }, { edns: false }, {}]
  for (const [at, options] of steps.entries()) {
    const reply = await ask(b, `five.${zone}`, options)
    t.equal(reply.text, five, `step ${at + 1}: all five, fetched over TCP`)
    t.equal(reply.flags.tc, false)
  }
  t.same(south.queries.filter(({ name }) => name.startsWith('five')).map(({ transport }) => transport), ['udp', 'tcp']) // prettier-ignore
  const small = await ask(b, `many.${zone}`, { edns: false })
  t.equal(small.flags.tc, true, '40 do not fit in 512 octets: TC')
  t.equal((await ask(b, `many.${zone}`, { isTcp: true })).answer.length, 40)
  t.equal((await ask(b, `many.${zone}`, { edns: false })).flags.tc, true)
  t.equal((await ask(b, `many.${zone}`)).answer.length, 40, 'in 1232 octets they do')
  south.fault = 'always-truncated'
  b.server.cache.flush()
  const none = await ask(b, `five.${zone}`)
  t.equal(none.text, 'SERVFAIL', 'a part alone is nothing')
  t.same(b.server.cache.list(9).filter(({ entry }) => entry.kind === 'positive'), [], 'and is not kept') // prettier-ignore
})

test('4 (coredns#7457): the second server answers within the same query, and denials are answers', async (t) => {
  for (const fault of ['servfail', 'refused', 'notimp', 'formerr'] as const) {
    const [bad, good] = [await stub(t, '192.0.2.66'), await stub(t)]
    bad.fault = fault
    const b = await startSouth(t, [bad, good])
    for (const name of ['api', 'five', 'many']) {
      const reply = await ask(b, `${name}.${zone}`, { isTcp: true })
      t.equal(reply.rcode, 'NOERROR', `${fault}: ${name}`)
      t.ok(reply.tookMs < 500)
    }
    t.ok(bad.queries.filter(({ hasEdns }) => hasEdns).length <= 2, `${fault}: not asked first each time`)
    await b.stop()
  }
  const [first, second] = [await stub(t), await stub(t)]
  const b = await startSouth(t, [first, second])
  t.equal((await ask(b, `none.${zone}`)).text, 'NXDOMAIN')
  t.equal((await ask(b, `api.${zone}`, { type: 'AAAA' })).text, 'NODATA')
  t.equal(second.queries.length, 0, 'NXDOMAIN and NODATA are answers')
})

test('5 (coredns#3432) and 7 (coredns#3879): a new address and a deletion are seen at once', async (t) => {
  const pod = 'db-0.db.shop.svc.cluster.local'
  const headless = (address: string): object[] => service('db.shop', 'None', { ready: [address] })
  const b = await startInProcess(t, clusterB('forward: []\n'), {
    objects: [...headless('10.0.0.1'), ...service('gone.shop', '10.1.9.9')]
  })
  t.equal((await ask(b, pod)).text, '10.0.0.1')
  t.equal((await ask(b, '9.9.1.10.in-addr.arpa', { type: 'PTR' })).text, 'gone.shop.svc.cluster.local')
  const startedAtMs = loopClock.nowMs()
  b.writeObjects(headless('10.0.0.2'))
  t.ok(await until(async () => (await ask(b, pod)).text === '10.0.0.2'))
  const tookMs = loopClock.nowMs() - startedAtMs
  t.ok(tookMs < 900, `the new address after ${tookMs.toFixed(0)} ms`)
  for (const [name, type] of [
    ['gone.shop.svc.cluster.local', 'A'],
    ['9.9.1.10.in-addr.arpa', 'PTR'],
    ['1.0.0.10.in-addr.arpa', 'PTR']
  ] as const)
    // prettier-ignore
    t.equal((await ask(b, name, { type })).text, 'NXDOMAIN', `${name}: exactly what is there now`)
})

test('8 (submariner#821): a dead cluster’s address is given up after fall probes, and nobody waits in vain', async (t) => {
  const [dead, alive] = [await stub(t, '192.0.2.1'), await stub(t, '192.0.2.2')]
  const probe = '{every: 200ms, timeout: 100ms, fall: 2, rise: 2}'
  const b = await startInProcess(
    t,
    clusterB(`
peers:
  dead: {servers: ["${dead.text}"], probe: ${probe}}
  alive: {servers: ["${alive.text}"], probe: ${probe}}
policies: [{name: p, dnsName: ${zone}, targets: [dead, alive], maxTtl: 1s}]
forward: []
`)
  )
  const healthOf = (name: string) => b.server.inspect.peers().find((peer) => peer.name === name)?.health
  t.ok(await until(() => healthOf('dead') === 'up' && healthOf('alive') === 'up'))
  t.equal((await ask(b, `api.${zone}`)).text, '192.0.2.1')
  dead.fault = 'silent'
  const diedAtMs = loopClock.nowMs()
  b.server.cache.flush()
  const early = await Promise.all(Array.from({ length: 20 }, () => ask(b, `api.${zone}`)))
  for (const { text, tookMs } of early) {
    t.equal(text, '192.0.2.2', 'retried within its own deadline')
    t.ok(tookMs < 1_000, `after ${tookMs.toFixed(0)} ms`)
  }
  t.ok(await until(() => healthOf('dead') === 'down'))
  const detectedMs = loopClock.nowMs() - diedAtMs
  t.ok(detectedMs < 1_500, `down after ${detectedMs.toFixed(0)} ms`)
  const before = dead.queries.filter(({ type }) => type === 'A').length
  for (let at = 0; at < 10; at++) {
    b.server.cache.flush()
    const reply = await ask(b, `api.${zone}`)
    t.equal(reply.text, '192.0.2.2')
    t.ok(reply.tookMs < 200)
  }
  t.equal(dead.queries.filter(({ type }) => type === 'A').length, before, 'the dead one is not asked any more')
  dead.fault = 'none'
  const backAtMs = loopClock.nowMs()
  t.ok(await until(() => healthOf('dead') === 'up'))
  // Its share grows step by step, so when this name returns depends on the name.
  const isBackInUse = async (): Promise<boolean> => {
    b.server.cache.flush()
    return (await ask(b, `api.${zone}`)).text === '192.0.2.1'
  }
  t.ok(await until(isBackInUse))
  t.ok(loopClock.nowMs() - backAtMs < 30_000, 'back in use within 30 s')
})

test('9 (kubernetes/dns#745): dead TCP connections to a peer fail nobody', async (t) => {
  const south = await stub(t)
  const b = await startSouth(t, [south], ', transport: tcp')
  const fresh = async (): Promise<Reply> => {
    b.server.cache.flush()
    return ask(b, `api.${zone}`)
  }
  t.equal((await fresh()).text, '192.0.2.1')
  south.endConnections()
  t.equal((await fresh()).text, '192.0.2.1', 'closed')
  await south.stop()
  await south.start()
  t.equal((await fresh()).text, '192.0.2.1', 'restarted')
  south.fault = 'tcp-hang'
  const hanging = fresh()
  await delay(450)
  south.fault = 'none'
  t.equal((await hanging).text, '192.0.2.1', 'hung: asked once more within the same query')
  for (let at = 0; at < 30; at++) t.equal((await fresh()).text, '192.0.2.1')
  t.ok(south.connections <= 4, `${south.connections} connections are open`)
})

test('10 (coredns#2593): a slow peer costs neither memory nor anybody else’s time', async (t) => {
  const south = await stub(t)
  south.fault = 'slow'
  south.delayMs = 5_000
  const b = await startSouth(t, [south], ', maxInFlight: 200', '', service('cart.shop', '10.1.5.20'))
  const outcomes = new Map<string, number>()
  const localMs: number[] = []
  let slowestOverloadMs = 0
  let mostInFlight = 0
  const waiting: Promise<void>[] = []
  for (let tick = 0; tick < 60; tick++) {
    for (let at = 0; at < 20; at++) {
      waiting.push(
        ask(b, `x${tick}-${at}.${zone}`, { timeoutMs: 4_000 }).then(({ text, ede, tookMs }) => {
          const kind = ede.some(({ text }) => text.includes('in flight')) ? 'overload' : text
          if (kind === 'overload') slowestOverloadMs = Math.max(slowestOverloadMs, tookMs)
          outcomes.set(kind, (outcomes.get(kind) ?? 0) + 1)
          return undefined
        })
      )
    }
    const own = await ask(b, 'cart.shop.svc.cluster.local')
    if (own.text === '10.1.5.20') localMs.push(own.tookMs)
    await delay(20)
    const { inFlight } = b.server.inspect.peers()[0]!.servers[0]!
    mostInFlight = Math.max(mostInFlight, inFlight)
  }
  await Promise.all(waiting)
  t.ok(mostInFlight <= 201, `${mostInFlight} were in flight, one probe among them`)
  t.same([...outcomes.keys()].sort(), ['SERVFAIL', 'overload'], 'everybody is told')
  t.ok((outcomes.get('overload') ?? 0) > 500, JSON.stringify([...outcomes]))
  t.equal(localMs.length, 60, 'local names are all answered')
  const median = localMs.toSorted((x, y) => x - y)[30]!
  t.ok(median < 100, `as fast as ever: ${median.toFixed(1)} ms`)
  t.ok(slowestOverloadMs < 1_000, `at once: ${slowestOverloadMs.toFixed(0)} ms with 20 new sockets a tick`)
  t.equal(b.server.inspect.peers()[0]?.stats.overloaded, outcomes.get('overload'), 'counted')
  t.equal(b.server.dataPlane.stats.inFlight, 0)
})

test('11 (coredns#5733): a name below an ExternalName Service does not exist', async (t) => {
  const b = await startInProcess(t, clusterB('forward: []\n'), { objects: [externalName('ext.shop', 'www.example.org')] }) // prettier-ignore
  for (const name of ['x', '_http._tcp', '_tcp', 'www.example']) {
    for (const type of ['A', 'CNAME', 'SRV']) {
      const reply = await ask(b, `${name}.ext.shop.svc.cluster.local`, { type })
      t.equal(reply.text, 'NXDOMAIN', `${name} ${type}`)
      t.match(reply.authority, [/^cluster\.local \d+ SOA /])
    }
  }
  t.equal((await ask(b, 'ext.shop.svc.cluster.local', { type: 'CNAME' })).text, 'www.example.org')
})

test('12 (kubernetes#92559): a denial does not outlive the object’s birth', async (t) => {
  const pod = 'db-0.db.shop.svc.cluster.local'
  const headless = service('db.shop', 'None', { ready: null })
  const a = await startInProcess(t, clusterB('forward: []\n').replace('name: b', 'name: a'), {
    objects: [namespace('shop'), ...headless, slice('db.shop', ['10.0.0.1'], false)]
  })
  const peers = `peers: {a: {servers: ["${a.text}"], probe: ${rareProbes}}}\n`
  const b = await startInProcess(t, clusterB(`${peers}policies: [{name: p, dnsName: shop.svc.cluster.local, targets: [a]}]\nforward: []\n`)) // prettier-ignore
  const c = await startInProcess(t, clusterB(`${peers}policies: [{name: p, dnsName: shop.svc.cluster.local, targets: [a], maxNegativeTtl: 1s}]\nforward: []\n`)) // prettier-ignore
  for (const server of [a, b, c]) t.equal((await ask(server, pod)).text, 'NXDOMAIN', 'not ready')
  const bornAtMs = loopClock.nowMs()
  a.writeObjects([namespace('shop'), ...headless, slice('db.shop', ['10.0.0.1'])])
  const since = async (server: InProcessServer): Promise<number> => {
    t.ok(await until(async () => (await ask(server, pod)).text === '10.0.0.1'))
    return loopClock.nowMs() - bornAtMs
  }
  const [locally, by5s, by1s] = await Promise.all([since(a), since(b), since(c)])
  t.ok(locally < 900, `locally after ${locally.toFixed(0)} ms`)
  t.ok(by5s < 6_000, `across a peer after ${by5s.toFixed(0)} ms`)
  t.ok(by1s < 2_000, `with maxNegativeTtl 1s after ${by1s.toFixed(0)} ms`)
})
