// What is kept of peers' answers and for how long, who shares one query, what is too much, and reloads under way.
import { test } from 'tap'
import { ask, askPlain, clusterB, delay, startInProcess, until } from '../support/in-process.ts'
import { askedOf, below, objectsOfB, peer, policy, rareProbes, recordsOf, startB, stub } from './two-peers.ts'

const suffix = 'backend.svc.cluster.local'

test('TTLs count down and never exceed what came, nor the caps', async (t) => {
  const a = await stub(t, [
    { type: 'A', name: below('long'), ttl: 300, data: '172.30.1.1' },
    { type: 'A', name: below('short'), ttl: 3, data: '172.30.1.2' },
    { type: 'A', name: below('short'), ttl: 9, data: '172.30.1.3' },
    { type: 'A', name: below('zero'), ttl: 0, data: '172.30.1.4' },
    { type: 'A', name: below('x.capped'), ttl: 300, data: '172.30.1.5' },
    { type: 'CNAME', name: below('alias'), ttl: 2, data: below('long') }
  ])
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a]') + policy('c', below('capped'), '[a]', ', maxTtl: 4s')) // prettier-ignore
  t.equal((await ask(b, below('long'))).ttl, 300)
  const short = await ask(b, below('short'))
  t.same(short.answer.map((line) => line.split(' ')[1]), ['3', '3'], 'one TTL in an RRset, the lowest') // prettier-ignore
  t.equal((await ask(b, below('x.capped'))).ttl, 4, 'maxTtl')
  t.equal((await ask(b, below('alias'))).ttl, 2)
  t.equal((await ask(b, below('none'))).ttl, 5, 'maxNegativeTtl')
  t.equal((await askPlain(b, below('long'))).answers[0]?.ttl, 300)
  await delay(1_050)
  t.ok((await ask(b, below('long'))).ttl! <= 299)
  t.equal((await ask(b, below('x.capped'))).ttl, 3, 'a cap runs down too')
  t.equal((await ask(b, below('alias'))).ttl, 1)
  t.ok((await ask(b, below('none'))).ttl! <= 4)
  t.same(askedOf(a).length, 5, 'all of that from memory')
  await delay(2_050)
  t.equal((await ask(b, below('short'))).ttl, 3, 'asked again when it has run out')
  t.equal(askedOf(a).length, 6)
  for (let at = 1; at <= 3; at++) {
    t.equal((await ask(b, below('zero'))).ttl, 0)
    t.equal(askedOf(a).length, 6 + at, 'TTL 0 is not kept')
  }
})

test('our own zone is not kept: a change is seen by the next query', async (t) => {
  const b = await startInProcess(t, clusterB('forward: []\n'), { objects: objectsOfB })
  t.equal((await ask(b, below('api'))).text, '10.1.1.20')
  t.equal((await ask(b, below('api'))).ttl, 5)
  t.equal(b.server.cache.stats.entries, 0)
})

test('equal misses share one query; different ones do not', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  a.fault = 'slow'
  a.delayMs = 30
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a]'))
  /** A datagram that was sent again has the same id. */
  const exchanges = (): number =>
    new Set(a.queries.filter(({ type }) => type !== 'SOA').map(({ packet }) => packet.id)).size
  const replies = await Promise.all(
    Array.from({ length: 100 }, (_, at) => ask(b, at % 2 === 0 ? below('api') : below('API'), { isTcp: at % 3 === 0 }))
  )
  t.ok(replies.every(({ text }) => text === '172.30.1.1'))
  t.equal(exchanges(), 1, '100 clients, one query')
  await Promise.all(Array.from({ length: 30 }, (_, at) => ask(b, below(`none-${at % 3}`))))
  t.equal(exchanges(), 4)
  await Promise.all([ask(b, below('api'), { type: 'AAAA' }), ask(b, below('api'), { dnssecOk: true })])
  t.equal(exchanges(), 6, 'another type and DO are other questions')
})

test('above maxInFlight a query gets SERVFAIL at once, or the next target', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  a.fault = 'slow'
  a.delayMs = 1_000
  const limited = `  a: {servers: ["${a.text}"], maxInFlight: 3, probe: ${rareProbes}}\n`
  const b = await startB(t, limited, policy('p', suffix, '[a]') + policy('q', 'shop.svc.cluster.local', '[a, local]'))
  const waiting = Array.from({ length: 3 }, (_, at) => ask(b, below(`w${at}`)))
  t.ok(await until(() => askedOf(a).length === 3))
  const over = await ask(b, below('w9'))
  t.equal(over.text, 'SERVFAIL')
  t.match(over.ede, [{ code: 22, text: /3 questions are in flight at a/ }])
  t.ok(over.tookMs < 250, `at once: ${over.tookMs.toFixed(0)} ms`)
  t.equal((await ask(b, 'cart.shop.svc.cluster.local')).text, '10.1.5.20')
  t.same((await Promise.all(waiting)).map(({ text }) => text), ['NXDOMAIN', 'NXDOMAIN', 'NXDOMAIN']) // prettier-ignore
  t.equal(b.server.inspect.peers()[0]?.stats.overloaded, 2, 'counted')
  a.fault = 'none'
  t.equal((await ask(b, below('w9'))).text, 'NXDOMAIN', 'an overload is not remembered')
})

test('limits.inFlight: SERVFAIL at once for what would have to wait', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  a.fault = 'slow'
  a.delayMs = 800
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a]'), 'forward: []\nlimits: {inFlight: 3}\n')
  const waiting = Array.from({ length: 3 }, (_, at) => ask(b, below(`w${at}`)))
  t.ok(await until(() => askedOf(a).length === 3))
  for (const isTcp of [false, true]) {
    const over = await ask(b, below('w9'), { isTcp })
    t.equal(over.text, 'SERVFAIL', isTcp ? 'TCP' : 'UDP')
    t.match(over.ede, [{ code: 0, text: /too many queries in flight/ }])
    t.ok(over.tookMs < 250)
    t.equal((await ask(b, 'cart.shop.svc.cluster.local', { isTcp })).text, '10.1.5.20', 'what is in memory is answered')
  }
  t.equal(b.server.dataPlane.stats.overloaded, 2, 'counted')
  await Promise.all(waiting)
})

test('hot reload: a policy comes and goes while queries run; a wrong file changes nothing', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const without = clusterB('forward: []\n')
  const withPolicy = clusterB(`peers:\n${peer('a', a)}policies:\n${policy('p', suffix, '[a]')}forward: []\n`)
  const b = await startInProcess(t, without, { objects: objectsOfB, watchConfig: true })
  const state = { isRunning: true, wrong: 0, answered: 0 }
  const asking = Promise.all(
    Array.from({ length: 4 }, async () => {
      while (state.isRunning) {
        const { text } = await ask(b, below('api'))
        state.answered++
        if (text !== '10.1.1.20' && text !== '172.30.1.1') state.wrong++
      }
    })
  )
  t.equal((await ask(b, below('api'))).text, '10.1.1.20')
  b.writeConfig(withPolicy)
  t.ok(await until(async () => (await ask(b, below('api'))).text === '172.30.1.1'), 'the policy is in use')
  b.writeConfig(withPolicy.replace('dnsName', 'dnsNam'))
  t.ok(await until(() => b.server.reloads.refused === 1))
  t.equal((await ask(b, below('api'))).text, '172.30.1.1', 'the old configuration stays')
  t.equal(b.server.inspect.readiness().isReady, true)
  t.match(b.server.configProblems, [{ message: /dnsNam/ }, {}].slice(0, b.server.configProblems.length))
  b.writeConfig(without)
  t.ok(await until(async () => (await ask(b, below('api'))).text === '10.1.1.20'), 'the policy is gone')
  t.equal(b.server.configProblems.length, 0)
  state.isRunning = false
  await asking
  t.equal(state.wrong, 0, `${state.answered} answers meanwhile, none wrong`)
  t.ok(state.answered > 50)
})

test('a query in flight at a peer that a reload takes away ends, and the answer is not lost for others', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  a.fault = 'slow'
  a.delayMs = 600
  const b = await startInProcess(
    t,
    clusterB(`peers:\n${peer('a', a)}policies:\n${policy('p', suffix, '[a, local]')}forward: []\n`),
    { objects: objectsOfB, watchConfig: true }
  )
  const waiting = ask(b, below('api'))
  t.ok(await until(() => askedOf(a).length === 1))
  b.writeConfig(clusterB('forward: []\n'))
  t.ok(await until(() => b.server.reloads.taken === 1))
  const reply = await waiting
  t.equal(reply.text, '10.1.1.20', 'its peer is gone, so the next target answers')
  t.ok(reply.tookMs < 1_000)
})

test('a peer that a reload points at other servers does not answer with what the old ones said', async (t) => {
  const old = await stub(t, recordsOf('172.30.1'))
  const next = await stub(t, recordsOf('172.30.9'))
  const towards = (servers: typeof old) =>
    clusterB(`peers:\n${peer('a', servers)}policies:\n${policy('p', suffix, '[a]')}forward: []\n`)
  const b = await startInProcess(t, towards(old), { objects: objectsOfB, watchConfig: true })
  t.equal((await ask(b, below('api'))).text, '172.30.1.1')
  b.writeConfig(towards(next))
  t.ok(await until(() => b.server.reloads.taken === 1))
  t.equal((await ask(b, below('api'))).text, '172.30.9.1', 'the TTL of the old answer still runs')
})
