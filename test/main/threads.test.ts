/** `threads`: workers answer what lies ready, and whatever ends an answer ends it in them at once. */
import { Worker } from 'node:worker_threads'
import { test, type Test } from 'tap'
import { loadConfig } from '../../src/config/load.ts'
import { loadOptions } from '../../src/main/load-options.ts'
import { loadLibc } from '../../src/server/mmsg/libc.ts'
import { parseName } from '../../src/wire/name.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { aRdata } from '../../src/wire/rdata.ts'
import { objectsOfB, peer, policy, recordsOf, stub, below } from '../pipeline/two-peers.ts'
import { until } from '../server/clients.ts'
import { turns } from '../support/loop-clock.ts'
import { ask, clusterB, queryOctets, startInProcess, type InProcessServer } from '../support/in-process.ts'

const hasLibc = await loadLibc().then(() => true, () => false) // prettier-ignore
const options = { skip: hasLibc ? false : 'koffi is not installed, or this is no Linux' }

async function start(t: Test, more: string, threads = 2): Promise<InProcessServer> {
  const config = more.startsWith('cluster:') ? more : clusterB(`threads: ${threads}\nforward: []\n${more}`)
  const running = await startInProcess(t, config, { objects: objectsOfB })
  await until('all workers read', () => running.server.serving?.workers?.reading.length === threads)
  return running
}

const api = below('api')
const apiName = parseName(api)
/** What came of the same question asked so often, one after the other. */
async function textsOf(where: InProcessServer, name: string, times: number): Promise<string[]> {
  const texts: string[] = []
  for (let time = 0; time < times; time++) texts.push((await ask(where, name)).text)
  return texts
}
const unique = (texts: readonly string[]): string[] => [...new Set(texts)]

void test('threads: where datagrams are read one at a time, or none is wanted, there is one', async (t) => {
  for (const [threads, batching, whyNone] of [
    [2, 'off', 'batching is off'],
    [0, 'auto', null]
  ] as const) {
    const config = clusterB(`threads: ${threads}\nbatching: ${batching}\nforward: []\n`)
    const running = await startInProcess(t, config, { objects: objectsOfB })
    t.equal(running.server.serving!.workers, null)
    t.same(unique(await textsOf(running, api, 5)), ['10.1.1.20'])
    t.equal(running.server.inspect.dataPlane.ready!.stats.served, 3)
    const { wanted, whyNone: said } = running.server.inspect.workers()
    t.same([wanted, said], [threads, whyNone])
  }
})

void test('threads: one beside the main thread', options, async (t) => {
  const running = await start(t, '', 1)
  t.same(unique(await textsOf(running, api, 10)), ['10.1.1.20'])
  await ask(running, api, { isTcp: true })
  const { inspect } = running.server
  t.equal(inspect.dataPlane.ready!.servedByWorkers, 8)
  t.equal(inspect.listenerStats().udp.answeredTotal, 10)
  const { wanted, reading, steered, answered, forwarded, whyNone } = inspect.workers()
  t.same({ wanted, reading, steered, answered, forwarded, whyNone }, { wanted: 1, reading: 1, steered: 1, answered: 8, forwarded: 2, whyNone: null }) // prettier-ignore
  const [worker] = running.server.serving!.workers!.reading
  await worker!.terminate()
  t.same(unique(await textsOf(running, api, 3)), ['10.1.1.20'], 'the main thread reads')
  await until('another one reads', () => running.server.serving!.workers!.reading.length === 1)
  t.same(unique(await textsOf(running, api, 3)), ['10.1.1.20'])
})

void test('threads: drains, disabled policies, flushes and reloads hold when they return', options, async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const config = (targets: string): string =>
    clusterB(
      `threads: 2\nforward: []\npeers:\n${peer('a', a)}policies:\n${policy('p', 'backend.svc.cluster.local', targets)}`
    )
  const running = await start(t, config('[a, local]'))
  const { server } = running
  const [peers, own] = ['172.30.1.1', '10.1.1.20']
  const servedByWorkers = (): number => server.inspect.dataPlane.ready!.servedByWorkers
  const check = async (want: string, when: string, isReady = true): Promise<void> => {
    const before = servedByWorkers()
    t.same(unique(await textsOf(running, api, 4)), [want], when)
    // What a peer said runs out now and then.
    if (isReady) {
      for (let time = 0; servedByWorkers() === before && time < 1_000; time++) await ask(running, api)
      t.ok(servedByWorkers() > before, `${when}: workers answer again`)
    }
    t.same(unique(await textsOf(running, api, 2)), [want], when)
  }
  await check(peers, 'at first')
  const act = async (action: Parameters<typeof server.operator.act>[0]['action']): Promise<unknown> =>
    t.equal(await server.operator.act({ action, clientAddress: '127.0.0.1' }), null)
  const override = { sinceEpochMs: 0, untilEpochMs: null, reason: '', by: 'test' }
  for (let round = 0; round < 3; round++) {
    await act({ kind: 'drain', peer: 'a', override })
    // What a target further down the order says is worked out for each query.
    await check(own, 'drained', false)
    await act({ kind: 'undrain', peer: 'a' })
    await check(peers, 'in use again')
    await act({ kind: 'disable', policy: 'p', override })
    await check(own, 'disabled')
    await act({ kind: 'enable', policy: 'p' })
    await check(peers, 'enabled')
  }
  const before = servedByWorkers()
  const asked = a.queries.length
  server.inspect.flushCache({ name: apiName })
  t.same(await textsOf(running, api, 1), [peers])
  t.equal(servedByWorkers(), before, 'what was flushed is not given')
  t.ok(a.queries.length > asked, 'it was asked for again')
  const hitsOf = (): number => server.inspect.parts().cache.stats.hits
  const [hits, served] = [hitsOf(), servedByWorkers()]
  await check(peers, 'kept again')
  t.ok(hitsOf() - hits >= servedByWorkers() - served, 'the cache counts what workers gave')
  for (const targets of ['[local, a]', '[a, local]', '[local]']) {
    running.writeConfig(config(targets))
    await server.use(loadConfig(running.file, loadOptions()))
    await check(targets.startsWith('[a') ? peers : own, targets)
  }
})

/** Asks one question after the other in a thread of its own, and says how many were answered. */
const asking = `
const { createSocket } = require('node:dgram')
const { workerData, parentPort } = require('node:worker_threads')
const socket = createSocket('udp4')
const { port, octets, answered, wanted } = workerData
const ask = () => socket.send(octets, port, '127.0.0.1')
socket.on('message', () => {
  if (Atomics.add(answered, 0, 1) + 1 >= wanted) {
    Atomics.notify(answered, 0)
    socket.close()
  } else ask()
})
socket.bind(0, '127.0.0.1', ask)
`

/**
 * Asks one question after the other in a thread of its own. The last octets of each answer are the number of a change;
 * one that was made when the question was sent must be in the answer.
 */
const watching = `
const { createSocket } = require('node:dgram')
const { workerData, parentPort } = require('node:worker_threads')
const { port, octets, made, changes } = workerData
const socket = createSocket('udp4')
let least = 0, answers = 0, late = 0
const ask = () => {
  least = Atomics.load(made, 0)
  socket.send(octets, port, '127.0.0.1')
}
socket.on('message', (answer) => {
  answers++
  if (answer.readUInt16BE(answer.length - 2) < least) late++
  if (least < changes) return ask()
  socket.close()
  parentPort.postMessage({ answers, late })
})
socket.bind(0, '127.0.0.1', ask)
`

void test('threads: processes with other numbers of them take over from one another', options, async (t) => {
  const head = (threads: number): string => clusterB(`threads: ${threads}\ntakeover: on\nforward: []\n`)
  let running = await startInProcess(t, head(2), { objects: objectsOfB })
  const { port } = running
  let asked = 0
  const texts = new Set<string>()
  const ended = new AbortController()
  // Each answer that is missing ends this with an error.
  const clients = Promise.all(
    Array.from({ length: 3 }, async () => {
      for (; !ended.signal.aborted; asked++) texts.add((await ask(running, api)).text)
    })
  )
  for (const threads of [3, 1, 0, 1]) {
    const next = await startInProcess(t, head(threads), { objects: objectsOfB, port })
    await until('all workers read', () => (next.server.serving?.workers?.reading.length ?? 0) === threads)
    const before = asked
    await until('some were asked of both', () => asked > before + 20)
    await running.server.stop()
    await until('and of the new one', () => asked > before + 40)
    running = next
  }
  ended.abort()
  await clients
  t.same([...texts], ['10.1.1.20'])
})

void test('threads: one server', options, async (t) => {
  const running = await start(t, '')
  const { server } = running

  await t.test('workers answer what was asked twice, and all is counted', async (t) => {
    t.same(unique(await textsOf(running, api, 10)), ['10.1.1.20'])
    await ask(running, api, { isTcp: true })
    const { stats, ready } = server.inspect.dataPlane
    t.equal(ready!.servedByWorkers, 8)
    t.same([stats.queriesUdp, stats.queriesTcp], [10, 1])
    t.equal(stats.responsesByRcode[0], 11)
    t.equal(stats.responsesBySource.get('zone'), 11)
    const { udp } = server.inspect.listenerStats()
    t.same([udp.receivedTotal, udp.answeredTotal], [10, 10])
  })

  await t.test('a change of the zone is in the next answer', async (t) => {
    const { zone } = running.server.view.zones
    for (let number = 1; number <= 20; number++) {
      const address = `192.0.2.${number}`
      const after = { owner: apiName, type: RRTYPE.A, ttlSeconds: 5, rdata: [aRdata(address)] }
      zone.apply({ sets: [{ owner: apiName, type: RRTYPE.A, after }], services: [], names: [], originAtMs: 0 })
      t.same(unique(await textsOf(running, api, 4)), [address])
    }
    t.ok(running.server.inspect.dataPlane.ready!.servedByWorkers >= 20)
  })

  await t.test('no answer is older than a change that was made before the question', async (t) => {
    const { zone } = running.server.view.zones
    const changes = 2_000
    const made = new Int32Array(new SharedArrayBuffer(4))
    const change = (number: number): void => {
      const after = { owner: apiName, type: RRTYPE.A, ttlSeconds: 5, rdata: [aRdata(`10.0.${number >> 8}.${number & 255}`)] } // prettier-ignore
      zone.apply({ sets: [{ owner: apiName, type: RRTYPE.A, after }], services: [], names: [], originAtMs: 0 })
      Atomics.store(made, 0, number)
    }
    change(0)
    const octets = queryOctets(api, { edns: false })
    const client = new Worker(watching, { eval: true, workerData: { port: running.port, octets, made, changes } })
    const result = new Promise<{ answers: number; late: number }>((resolve) => void client.once('message', resolve))
    for (let number = 1; number <= changes; number++) {
      // Some stay for long enough to be made ready and given.
      await turns(number % 7)
      change(number)
    }
    const { answers, late } = await result
    t.equal(late, 0, `of ${answers} answers, ${running.server.inspect.dataPlane.ready!.servedByWorkers} by workers`)
    await client.terminate()
  })

  await t.test('whatever keeps the main thread busy delays no answer that lies ready', async (t) => {
    await textsOf(running, api, 3)
    const wanted = 200
    const answered = new Int32Array(new SharedArrayBuffer(4))
    const octets = queryOctets(api)
    const client = new Worker(asking, { eval: true, workerData: { port: running.port, octets, answered, wanted } })
    const ended = new Promise((resolve) => void client.once('exit', resolve))
    const longestMs = 60_000
    for (let seen = 0; seen < wanted; seen = Atomics.load(answered, 0)) {
      if (Atomics.wait(answered, 0, seen, longestMs) === 'timed-out') break
    }
    t.equal(Atomics.load(answered, 0), wanted, 'while the main thread did nothing else than wait for that')
    await client.terminate()
    await ended
  })

  await t.test('where a worker ends, others answer, and it is started again', async (t) => {
    const other = below('b-only')
    await textsOf(running, other, 3)
    for (const worker of server.serving!.workers!.reading) {
      const before = server.serving!.workers!.reading
      // What it has in hand is lost.
      await worker.terminate()
      t.same(unique(await textsOf(running, other, 10)), ['10.1.4.20'])
      await until('another one reads', () => server.serving!.workers!.reading.length === 2 && server.serving!.workers!.reading.some((one) => !before.includes(one))) // prettier-ignore
      t.same(unique(await textsOf(running, other, 10)), ['10.1.4.20'])
    }
  })
})
