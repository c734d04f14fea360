// `select: weighted | geo | merge` and `trickle` through the whole server: shares with the cache on, TTLs, unions.
import { test, type Test } from 'tap'
import { returnMs } from '../../src/base/limits.ts'
import {
  ask,
  queryOctets,
  readReply,
  until,
  type AskOptions,
  type InProcessServer,
  type Reply
} from '../support/in-process.ts'
import { askedOf, below, peer, policy, quickProbes, recordsOf, startB, stub } from './two-peers.ts'

const suffix = 'backend.svc.cluster.local'
const many = 10_000
const out = new Uint8Array(65_535)

/** What the server answers from memory to a client of this address; fails where it would have to ask. */
function fromMemory(t: Test, b: InProcessServer, name: string, from: string, options: AskOptions = {}): Reply {
  const octets = queryOctets(name, options)
  const size = b.server.dataPlane.answer(octets, octets.length, { address: from, port: 1, transport: 'udp' }, out)
  if (size <= 0) t.fail(`${name} is not answered from memory`)
  return readReply(Buffer.from(out.subarray(0, size)))
}

const clientAt = (at: number): string => `10.${(at >> 16) & 255}.${(at >> 8) & 255}.${at & 255}`

/** The share of each text among so many answers. */
function sharesOf(count: number, textAt: (at: number) => string): Map<string, number> {
  const counts = new Map<string, number>()
  for (let at = 0; at < count; at++) {
    const text = textAt(at)
    counts.set(text, (counts.get(text) ?? 0) + 1 / count)
  }
  return counts
}

const isShare = (t: Test, found: number | undefined, want: number, name: string): unknown =>
  t.ok(Math.abs((found ?? 0) - want) < 0.02, `${name}: ${(found ?? 0).toFixed(3)} of ${want}`)

test('weighted: 70/30 over 10,000 clients for one name, out of the cache, A, AAAA and SRV from one cluster', async (t) => {
  const [a, c] = [await stub(t, recordsOf('172.30.1')), await stub(t, recordsOf('172.30.2'))]
  const targets = '[{peer: a, weight: 70}, {peer: c, weight: 30}]'
  const b = await startB(t, peer('a', a) + peer('c', c), policy('p', suffix, targets, ', select: weighted'))
  const port = `_grpc._tcp.${below('api')}`
  const questions = [[below('api'), 'A'], [below('api'), 'AAAA'], [port, 'SRV'], [`pod-0.${below('api')}`, 'A']] as const // prettier-ignore
  // Fills the cache: clients until both clusters were asked for everything.
  for (let at = 0; at < 40; at++) {
    for (const [name, type] of questions) {
      const octets = queryOctets(name, { type })
      await b.server.dataPlane.resolve(octets, { address: clientAt(at), port: 1, transport: 'udp' })
    }
  }
  const asked = askedOf(a).length + askedOf(c).length
  t.equal(asked, 2 * questions.length, 'each cluster was asked once for each question')
  const shares = sharesOf(many, (at) => {
    const reply = fromMemory(t, b, below('api'), clientAt(at))
    if (reply.ttl! > 10 || reply.ttl! < 0) t.fail(`TTL ${reply.ttl}`)
    return reply.text
  })
  isShare(t, shares.get('172.30.1.1'), 0.7, 'a')
  isShare(t, shares.get('172.30.2.1'), 0.3, 'c')
  for (let at = 0; at < 300; at++) {
    const client = clientAt(at)
    const net = fromMemory(t, b, below('api'), client).text.replace(/\.1$/, '')
    const pod = fromMemory(t, b, `pod-0.${below('api')}`, client)
    const srv = fromMemory(t, b, port, client, { type: 'SRV' })
    if (pod.text !== `${net}.11` || !srv.additional[0]!.endsWith(` ${net}.1`)) t.fail(`${client}: two clusters`)
  }
  t.equal(askedOf(a).length + askedOf(c).length, asked, 'nobody was asked again')
})

test('weighted: shares over 10,000 names from one client, and what is left when one is down', async (t) => {
  const [a, c] = [await stub(t, []), await stub(t, [])]
  a.fault = 'silent'
  const targets = (first: string): string =>
    `[{${first}, weight: 20}, {addresses: [192.0.2.7], weight: 70}, {addresses: [192.0.2.8], weight: 10}]`
  const quick = `  a: {servers: ["${a.text}"], probe: ${quickProbes}}\n`
  const b = await startB(
    t,
    quick + peer('c', c),
    policy('p', 'one.example', targets('addresses: [192.0.2.6]'), ', select: weighted') +
      policy('q', 'two.example', targets('peer: a'), ', select: weighted')
  )
  const shares = sharesOf(many, (at) => fromMemory(t, b, `n${at}.one.example`, '10.0.0.1').text)
  for (const [text, share] of Object.entries({ '192.0.2.6': 0.2, '192.0.2.7': 0.7, '192.0.2.8': 0.1 })) {
    isShare(t, shares.get(text), share, text)
  }
  t.ok(await until(() => b.server.peers.status()[0]!.health === 'down'))
  const left = sharesOf(many, (at) => fromMemory(t, b, `n${at}.two.example`, '10.0.0.1').text)
  for (const [text, share] of Object.entries({ '192.0.2.7': 7 / 8, '192.0.2.8': 1 / 8 })) {
    isShare(t, left.get(text), share, `one is down: ${text}`)
  }
})

test('weighted: no TTL reaches past the window of its choice', async (t) => {
  const b = await startB(
    t,
    '',
    policy('p', 'example.org', '[{addresses: [192.0.2.6]}, {addresses: [192.0.2.7]}]', ', select: weighted, maxTtl: 1h')
  )
  const ttls = Array.from({ length: 3_000 }, (_, at) => fromMemory(t, b, `n${at}.example.org`, '10.0.0.1').ttl!)
  t.ok(
    ttls.every((ttl) => ttl >= 0 && ttl <= 60),
    'never above a window'
  )
  t.ok(Math.min(...ttls) <= 1 && Math.max(...ttls) >= 58, 'windows of different names end at different moments')
  const denials = Array.from(
    { length: 300 },
    (_, at) => fromMemory(t, b, `n${at}.example.org`, '10.0.0.1', { type: 'MX' }).ttl!
  )
  t.ok(
    denials.every((ttl) => ttl <= 5),
    'denials keep their own cap'
  )
})

test('geo: clients get their region, the others by order, and a region that is down fails over', async (t) => {
  const [us, eu] = [await stub(t, recordsOf('172.30.1')), await stub(t, recordsOf('172.30.2'))]
  const of = (name: string, stubOf: { text: string }, region: string): string =>
    `  ${name}: {servers: ["${stubOf.text}"], region: ${region}, probe: ${quickProbes}}\n`
  const b = await startB(
    t,
    of('us', us, 'us') + of('eu', eu, 'eu'),
    policy('p', suffix, '[us, eu]', ', select: geo'),
    'forward: []\nregions: {10.8.0.0/14: eu, 10.12.0.0/14: us, 127.0.0.2/32: eu, 127.0.0.3/32: asia}\n'
  )
  t.equal((await ask(b, below('api'), { from: '127.0.0.2' })).text, '172.30.2.1', 'a client of eu')
  t.equal((await ask(b, below('api'), { from: '127.0.0.3' })).text, '172.30.1.1', 'nobody is in asia: the first')
  t.equal((await ask(b, below('api'))).text, '172.30.1.1', 'no region is known')
  t.equal(fromMemory(t, b, below('api'), '10.8.1.1').text, '172.30.2.1')
  t.equal(fromMemory(t, b, below('api'), '10.12.1.1').text, '172.30.1.1')
  eu.fault = 'silent'
  t.ok(await until(() => b.server.peers.status().some(({ name, health }) => name === 'eu' && health === 'down')))
  t.equal(fromMemory(t, b, below('api'), '10.8.1.1').text, '172.30.1.1', 'the region is down')
  eu.fault = 'none'
  const isBack = async (): Promise<boolean> => (await ask(b, below('api'), { from: '127.0.0.2' })).text === '172.30.2.1'
  t.ok(await until(isBack, 3 * returnMs + 10_000), 'and back')
})

test('geo: `local` is in the region of its cluster', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const b = await startB(
    t,
    `  a: {servers: ["${a.text}"], region: us-central}\n`,
    policy('p', suffix, '[a, {local: true, region: us-west}]', ', select: geo'),
    'forward: []\nregions: {127.0.0.0/8: us-west}\n'
  )
  t.equal((await ask(b, below('api'))).text, '10.1.1.20')
  t.equal((await ask(b, below('a-only'))).text, '172.30.1.4', 'what our region does not have')
})

test('trickle: 5 % of clients and names ask the second target first', async (t) => {
  const b = await startB(
    t,
    '',
    policy('p', 'example.org', '[{addresses: [192.0.2.6]}, {addresses: [192.0.2.7]}]', ', trickle: 5')
  )
  const names = sharesOf(many, (at) => fromMemory(t, b, `n${at}.example.org`, '10.0.0.1').text)
  const clients = sharesOf(many, (at) => fromMemory(t, b, 'n.example.org', clientAt(at)).text)
  isShare(t, names.get('192.0.2.7'), 0.05, 'names')
  isShare(t, clients.get('192.0.2.7'), 0.05, 'clients')
})

test('addresses: fixed ones answer every name at or below the dnsName', async (t) => {
  const b = await startB(t, '', policy('p', 'partner.example', '[{addresses: [192.0.2.6, "2001:db8::6", 192.0.2.7]}]'))
  const rows: [name: string, type: string, want: string][] = [
    ['partner.example', 'A', '192.0.2.6 192.0.2.7'],
    ['deep.below.partner.example', 'A', '192.0.2.6 192.0.2.7'],
    ['www.partner.example', 'AAAA', '2001:db8::6'],
    ['www.partner.example', 'TXT', 'NODATA']
  ]
  for (const [name, type, want] of rows) t.equal((await ask(b, name, { type })).text, want, `${name} ${type}`)
})

test('merge: the union without duplicates and with the lowest TTL; single pods come from who has them', async (t) => {
  const a = await stub(t, [
    ...recordsOf('172.30.1'),
    { type: 'A', name: below('web'), ttl: 3, data: '10.1.2.20' },
    { type: 'A', name: below('web'), ttl: 3, data: '172.30.1.2' },
    { type: 'CNAME', name: below('b-only'), ttl: 10, data: 'www.example.net' }
  ])
  const c = await stub(t, [
    ...recordsOf('172.30.2'),
    { type: 'A', name: `pod-9.${below('api')}`, ttl: 10, data: '172.30.2.19' }
  ])
  const b = await startB(t, peer('a', a) + peer('c', c), policy('p', suffix, '[local, a, c]', ', select: merge'))
  const rows: [name: string, question: string, type: string, want: string][] = [
    ['a Service of all three', below('api'), 'A', '10.1.1.20 172.30.1.1 172.30.2.1'],
    ['an address that two have', below('web'), 'A', '10.1.2.20 172.30.1.2'],
    ['of one alone', below('c-none'), 'A', 'NXDOMAIN'],
    ['empty here: the others', below('idle'), 'A', '172.30.1.3 172.30.2.3'],
    ['no such type anywhere', below('api'), 'AAAA', 'NODATA'],
    ['ports of both', `_grpc._tcp.${below('api')}`, 'SRV', `0 100 9090 ${below('api')}`],
    ['a pod that two have: the first', `pod-0.${below('api')}`, 'A', '172.30.1.11'],
    ['a pod of the last one', `pod-9.${below('api')}`, 'A', '172.30.2.19'],
    ['a pod of nobody', `pod-7.${below('api')}`, 'A', 'NXDOMAIN'],
    ['an alias stands alone, behind addresses it counts for nothing', below('b-only'), 'A', '10.1.4.20'],
    ['one SOA', suffix, 'SOA', 'NODATA']
  ]
  for (const again of ['', ', from memory']) {
    for (const [name, question, type, want] of rows) {
      t.equal((await ask(b, question, { type })).text, want, name + again)
    }
  }
  const web = await ask(b, below('web'))
  t.ok(
    web.answer.every((line) => Number(line.split(' ')[1]) <= 3),
    'the lowest TTL for all'
  )
  t.equal(web.answer.length, 2)
  t.equal(web.flags.aa, false, 'a part of it comes from others')
  a.fault = 'servfail'
  b.server.cache.flush()
  t.equal((await ask(b, below('api'))).text, '10.1.1.20 172.30.2.1', 'who can be reached')
  c.fault = 'silent'
  b.server.cache.flush()
  const reply = await ask(b, below('api'))
  t.equal(reply.text, '10.1.1.20')
  t.ok(reply.tookMs < 600, `a silent one is waited for a moment: ${reply.tookMs.toFixed(0)} ms`)
})

test('weight 0: only when nothing else is up', async (t) => {
  const [a, c] = [
    await stub(t, recordsOf('172.30.1')),
    await stub(t, [...recordsOf('172.30.2'), { type: 'A', name: below('c-only'), ttl: 1, data: '172.30.2.9' }])
  ]
  const b = await startB(t, peer('a', a) + peer('c', c), policy('p', suffix, '[{peer: c, weight: 0}, a]'))
  t.equal((await ask(b, below('api'))).text, '172.30.1.1')
  t.equal((await ask(b, below('c-only'))).text, 'NXDOMAIN', 'a denial of who is up is final')
  t.same(askedOf(c), [])
  a.fault = 'servfail'
  b.server.cache.flush()
  t.equal((await ask(b, below('c-only'))).text, '172.30.2.9')
})

test('merge with addresses: the addresses beside SRV records are the ones that a question for them gets', async (t) => {
  const a = await stub(t, [
    ...recordsOf('172.30.1'),
    {
      type: 'SRV',
      name: `_pod._tcp.${below('api')}`,
      ttl: 10,
      data: { priority: 0, weight: 100, port: 9090, target: `pod-0.${below('api')}` }
    }
  ])
  const targets = '[a, {addresses: [192.0.2.9, "2001:db8::9"]}]'
  const b = await startB(t, peer('a', a), policy('p', suffix, targets, ', select: merge, maxTtl: 7s'))
  const besides = async (question: string): Promise<string[]> =>
    (await ask(b, question, { type: 'SRV' })).additional.map((line) => line.replace(/ \d+ /, ' ')).sort()
  t.equal((await ask(b, below('api'))).text, '172.30.1.1 192.0.2.9')
  for (const again of ['', ', from memory']) {
    const want = [`${below('api')} A 172.30.1.1`, `${below('api')} A 192.0.2.9`]
    t.same(await besides(`_grpc._tcp.${below('api')}`), want, `of a Service${again}`)
    t.same(await besides(`_pod._tcp.${below('api')}`), [`pod-0.${below('api')} A 172.30.1.11`], `of a pod${again}`)
  }
})

test('merge: nextOn says whose outcome is the last one that counts', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const merged = (more: string): string => `, select: merge, nextOn: ${more}`
  const b = await startB(
    t,
    peer('a', a),
    policy('p', suffix, '[local, a]', merged('[unreachable]')) +
      policy('q', below('idle'), '[local, a]', merged('[unreachable, absent]'))
  )
  t.equal((await ask(b, below('api'))).text, '10.1.1.20 172.30.1.1')
  t.equal((await ask(b, below('a-only'))).text, 'NXDOMAIN', 'a denial is final')
  t.equal((await ask(b, below('idle'))).text, '10.1.3.20', 'a Service without endpoints too')
})
