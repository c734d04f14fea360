// A peer that passes its probes and fails what clients ask: clients stop paying for it, and it comes back by itself.
import { test } from 'tap'
import { ask, until } from '../support/in-process.ts'
import type { StubFault } from '../support/stub-peer.ts'
import { below, policy, quickProbes, recordsOf, startB, stub } from './two-peers.ts'

const probeName = 'backend.svc.cluster.local'
const faults: StubFault[] = ['silent', 'wrong-id', 'wrong-question', 'garbage', 'servfail', 'refused']

for (const fault of faults) {
  test(`${fault} for all but the probe: the next target is asked first, and the peer returns`, async (t) => {
    const names = Array.from({ length: 40 }, (_, at) => below(`s${at}`))
    const records = (net: string) => [
      ...recordsOf(net, 'cluster.local', 1),
      ...names.map((name) => ({ type: 'A' as const, name, ttl: 1, data: `${net}.9` }))
    ]
    const [a, b] = [await stub(t, records('172.30.1')), await stub(t, records('172.30.2'))]
    const server = await startB(
      t,
      [`a: {servers: ["${a.text}"]`, `b: {servers: ["${b.text}"]`]
        .map((one) => `  ${one}, probe: ${quickProbes}}\n`)
        .join(''),
      policy('p', probeName, '[a, b]')
    )
    const healthOf = (): string => server.server.peers.status()[0]!.health
    t.ok(await until(() => healthOf() === 'up'))
    t.equal((await ask(server, below('api'))).text, '172.30.1.1')
    a.faultExceptFor = new Set([probeName])
    a.fault = fault
    const rest = names[Symbol.iterator]()
    const answers: string[] = []
    for (let at = 0; at < 20 && healthOf() !== 'doubtful'; at++)
      answers.push((await ask(server, rest.next().value!)).text)
    t.equal(healthOf(), 'doubtful')
    t.ok(
      answers.every((text) => text === '172.30.2.9'),
      'every client got an answer meanwhile'
    )
    const tookMs: number[] = []
    for (let at = 0; at < 10; at++) {
      const reply = await ask(server, rest.next().value!)
      t.equal(reply.text, '172.30.2.9')
      tookMs.push(reply.tookMs)
    }
    // Half of them, so that a machine with much else to do does not matter.
    t.ok(tookMs.sort((one, other) => one - other)[4]! < 100, `${tookMs.map(Math.round).join(' ')} ms`)
    t.equal(healthOf(), 'doubtful')
    const absent = await ask(server, below('nobody-has-it'))
    t.equal(absent.text, 'NXDOMAIN')
    t.match(absent.ede, [{ code: 22 }])
    t.ok(
      server.server.operator.events.since(0).some(({ text }) => text.includes('doubtful')),
      'an event'
    )
    a.fault = 'none'
    t.ok(await until(() => healthOf() === 'up'), 'it is up again')
    t.equal((await ask(server, rest.next().value!)).text, '172.30.1.9', 'and asked first')
  })
}

test('one suffix that a peer refuses does not take it from the others', async (t) => {
  const shop = 'shop.svc.cluster.local'
  const ofShop = Array.from({ length: 60 }, (_, at) => `s${at}.${shop}`)
  const [a, c] = [await stub(t, recordsOf('172.30.1', 'cluster.local', 1)), await stub(t, recordsOf('172.30.2'))]
  for (const name of ofShop) c.records.push({ type: 'A', name, ttl: 1, data: '172.30.2.9' })
  a.faultExceptFor = new Set([probeName, below('api')])
  a.fault = 'refused'
  const server = await startB(
    t,
    [`a: {servers: ["${a.text}"]`, `c: {servers: ["${c.text}"]`]
      .map((one) => `  ${one}, probe: {every: 1s, timeout: 1s, fall: 100, rise: 1}}\n`)
      .join(''),
    policy('p', probeName, '[a, c]') + policy('q', shop, '[a, c]')
  )
  t.ok(await until(() => server.server.peers.status().every(({ health }) => health === 'up')))
  const names = ofShop[Symbol.iterator]()
  for (let at = 0; at < 10; at++) t.equal((await ask(server, names.next().value!)).text, '172.30.2.9')
  const asksApi = async (): Promise<boolean> => {
    server.server.cache.flush()
    return (await ask(server, below('api'))).text === '172.30.1.1'
  }
  t.ok(await until(asksApi), 'the suffix that it answers is its own again')
  for (const name of names) t.equal((await ask(server, name)).text, '172.30.2.9')
  t.ok(await until(asksApi), 'and stays so')
})

test('what is told of a server chains: down outweighs a doubt, and a doubt that ends meanwhile is no return', async (t) => {
  const names = Array.from({ length: 20 }, (_, at) => below(`s${at}`))
  const a = await stub(t, recordsOf('172.30.1', 'cluster.local', 1))
  const b = await startB(
    t,
    `  a: {servers: ["${a.text}"], probe: {every: 100ms, timeout: 1s, fall: 2, rise: 1}}\n`,
    policy('p', probeName, '[a, local]')
  )
  const { peers, operator } = b.server
  const healthOf = (): string => peers.status()[0]!.health
  const changes = (): string[] =>
    operator.events
      .since(0)
      .filter(({ kind, peer }) => kind === 'health' && peer === 'a')
      .map(({ text }) => /(\w+ -> \w+): /.exec(text)![1]!)
  t.ok(await until(() => healthOf() === 'up'))
  a.faultExceptFor = new Set([probeName])
  a.fault = 'servfail'
  const rest = names[Symbol.iterator]()
  for (let at = 0; at < 10 && healthOf() !== 'doubtful'; at++) await ask(b, rest.next().value!)
  t.equal(healthOf(), 'doubtful')
  a.faultExceptFor = new Set()
  t.ok(await until(() => healthOf() === 'down'), 'its probes fail too')
  t.same(changes(), ['unknown -> up', 'up -> doubtful', 'doubtful -> down'])
  t.same(peers.status()[0]!.servers[0]!.health, 'down', 'and so it is shown')
  // Whatever clients ask is answered again, and only the probe is not: its doubt ends.
  a.faultExceptFor = new Set([...names, ...recordsOf('').map(({ name }) => name)])
  const before = a.queries.length
  const isTried = (): boolean => a.queries.slice(before).some(({ name }) => name !== probeName)
  t.ok(await until(() => isTried()))
  t.same(changes().length, 3, 'no return')
  a.fault = 'none'
  t.ok(await until(() => healthOf() === 'up'))
  const told = changes().map((change) => change.split(' -> '))
  for (const [at, [from]] of told.entries()) t.equal(from, at === 0 ? 'unknown' : told[at - 1]![1], told.join(' '))
  t.equal(told.at(-1)![1], 'up')
})
