// What happens to bad input: each sentence of the design over real sockets, and the server goes on each time.
import { spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { dirname, join } from 'node:path'
import { Writable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import * as dnsPacket from 'dns-packet'
import { pino } from 'pino'
import { test, type Test } from 'tap'
import { parseType } from '../src/wire/iana.ts'
import { mutated, randomFrom, realMessages } from './soak/mutate.ts'
import {
  ask,
  clusterB,
  delay,
  exchangeTcp,
  exchangeUdp,
  queryOctets,
  readReply,
  startInProcess,
  until,
  type InProcessServer
} from './support/in-process.ts'
import { externalName, service } from './support/objects.ts'
import { startStubPeer, type StubFault } from './support/stub-peer.ts'

const cart = 'cart.shop.svc.cluster.local'
const objects = [...service('cart.shop', '10.1.5.20'), externalName('ext.shop', 'www.example.org')]

const start = (t: Test, rest = 'forward: []\n'): Promise<InProcessServer> =>
  startInProcess(t, clusterB(rest), { objects })

const query = queryOctets(cart, { edns: false })

/** A copy of the plain query with some octets exchanged. */
function changed(change: (octets: Buffer) => void): Buffer {
  const octets = Buffer.from(query)
  change(octets)
  return octets
}

/** A query with numbers that dns-packet does not write. */
function raw(qtype: number, qclass: number): Buffer {
  return changed((octets) => {
    octets.writeUInt16BE(qtype, octets.length - 4)
    octets.writeUInt16BE(qclass, octets.length - 2)
  })
}

const stillServes = async (t: Test, server: InProcessServer, after: string): Promise<void> => {
  for (const isTcp of [false, true]) t.equal((await ask(server, cart, { isTcp })).text, '10.1.5.20', `after ${after}`)
}

test('under 12 octets or QR=1: dropped and counted', async (t) => {
  const server = await start(t)
  const { stats } = server.server.dataPlane
  const rows: [string, Buffer][] = [
    ['an empty datagram', Buffer.alloc(0)],
    ['one octet', query.subarray(0, 1)],
    ['eleven octets', query.subarray(0, 11)],
    ['a response', changed((octets) => (octets[2]! |= 0x80))],
    ['a response with opcode 15', changed((octets) => (octets[2] = 0xf8))],
    ['a FORMERR response without question', Buffer.from('115080010000000000000000', 'hex')]
  ]
  for (const [name, octets] of rows) {
    const before = stats.dropped
    t.equal(await exchangeUdp(server, octets, 100), null, `${name}: UDP`)
    t.equal(stats.dropped, before + 1, `${name}: counted`)
    if (octets.length > 0) t.equal(await exchangeTcp(server, octets, 100), null, `${name}: TCP`)
  }
  await stillServes(t, server, 'all of them')
})

test('each kind of bad query gets its RCODE', async (t) => {
  const server = await start(t, 'forward: []\nallow: [127.0.0.1]\n')
  const opcode = (code: number): Buffer => changed((octets) => (octets[2] = code << 3))
  const counts = (at: number, count: number): Buffer => changed((octets) => octets.writeUInt16BE(count, at))
  const question = query.subarray(12)
  const withName = (...name: number[]): Buffer =>
    Buffer.concat([query.subarray(0, 12), Buffer.from(name), query.subarray(-4)])
  const opt = (hex: string): Buffer => Buffer.concat([counts(10, 1), Buffer.from(hex, 'hex')])
  const rows: [name: string, octets: Buffer, rcode: string][] = [
    ['opcode IQUERY', opcode(1), 'NOTIMP'],
    ['opcode STATUS', opcode(2), 'NOTIMP'],
    ['opcode NOTIFY where none is configured', opcode(4), 'NOTIMP'],
    ['opcode UPDATE', opcode(5), 'NOTIMP'],
    ['opcode 15', opcode(15), 'NOTIMP'],
    ['QDCOUNT 0', counts(4, 0), 'FORMERR'],
    ['QDCOUNT 0 and nothing more', Buffer.from('112801000000000000000000', 'hex'), 'FORMERR'],
    ['QDCOUNT 2, one question', counts(4, 2), 'FORMERR'],
    ['QDCOUNT 2, two questions', Buffer.concat([counts(4, 2), question]), 'FORMERR'],
    ['QDCOUNT 65535', counts(4, 65_535), 'FORMERR'],
    ['an answer that is not there', counts(6, 1), 'FORMERR'],
    ['additional records that are not there', counts(10, 65_535), 'FORMERR'],
    ['octets behind the message', Buffer.concat([query, Buffer.alloc(300)]), 'FORMERR'],
    ['half a question', query.subarray(0, query.length - 3), 'FORMERR'],
    ['a name without end', query.subarray(0, 20), 'FORMERR'],
    ['a pointer to itself', withName(0xc0, 0x0c), 'FORMERR'],
    ['a pointer forwards', withName(0xc0, 0x20), 'FORMERR'],
    ['half a pointer', Buffer.concat([query.subarray(0, 12), Buffer.from([0xc0])]), 'FORMERR'],
    ['a label of 64 octets', withName(0x40, ...Buffer.alloc(64, 'a'), 0), 'FORMERR'],
    ['a name of 256 octets', withName(...Array.from({ length: 127 }, () => [1, 97]).flat(), 1, 97, 0), 'FORMERR'],
    ['a second OPT', Buffer.concat([counts(10, 2), Buffer.from('00002904d000000000000000002904d0000000000000', 'hex')]), 'FORMERR'], // prettier-ignore
    ['half an EDNS option', opt('00002904d0000000000003000a00'), 'FORMERR'],
    ['EDNS version 1', opt('00002904d00001000000080064000400010203'), 'RCODE16'],
    ['EDNS version 255', opt('00002904d000ff00000000'), 'RCODE16'],
    ['class CH', raw(1, 3), 'REFUSED'],
    ['class HS', raw(1, 4), 'REFUSED'],
    ['class ANY', raw(1, 255), 'REFUSED'],
    ['class 0', raw(1, 0), 'REFUSED'],
    ['QTYPE OPT', raw(41, 1), 'FORMERR'],
    ['QTYPE TSIG', raw(250, 1), 'FORMERR'],
    ['AXFR', raw(parseType('AXFR')!, 1), 'REFUSED'],
    ['IXFR', raw(parseType('IXFR')!, 1), 'REFUSED'],
    ['QTYPE 0', raw(0, 1), 'NOERROR'],
    ['QTYPE 65535', raw(65_535, 1), 'NOERROR'],
    ['no rule', queryOctets('www.example.org', { edns: false }), 'REFUSED'],
    ['no rule for the root', queryOctets('.', { edns: false, type: 'NS' }), 'REFUSED']
  ]
  for (const [name, octets, rcode] of rows) {
    for (const exchange of [exchangeUdp, exchangeTcp]) {
      const reply = await exchange(server, octets, 1_000)
      if (reply === null) {
        t.fail(`${name}: no answer`)
        continue
      }
      const opts = rcode === 'RCODE16'
      const got = opts ? readReply(reply).rcode : dnsPacketRcode(reply)
      t.equal(got, rcode, name)
      t.equal(reply.readUInt16BE(0), octets.readUInt16BE(0), `${name}: its id`)
      t.equal(reply[2]! & 0x80, 0x80, `${name}: a response`)
      t.equal(reply.readUInt16BE(6), 0, `${name}: no answer records`)
      t.ok(reply.length <= octets.length + 100, `${name}: no amplification`)
    }
  }
  t.equal(server.server.dataPlane.stats.bugs, 0)
  const stranger = await ask(server, cart, { from: '127.0.0.7' })
  t.equal(stranger.text, 'REFUSED')
  t.match(stranger.ede, [{ code: 18 }])
  await stillServes(t, server, 'all of them')
})

const names = ['NOERROR', 'FORMERR', 'SERVFAIL', 'NXDOMAIN', 'NOTIMP', 'REFUSED']
const dnsPacketRcode = (reply: Buffer): string => names[reply[3]! & 0x0f] ?? String(reply[3]! & 0x0f)

test('QTYPE ANY: one RRset, as RFC 8482 allows', async (t) => {
  const server = await start(t)
  const any = await ask(server, cart, { type: 'ANY' })
  t.equal(any.rcode, 'NOERROR')
  t.equal(new Set(any.answer.map((line) => line.split(' ')[2])).size, 1)
  t.equal((await ask(server, 'none.shop.svc.cluster.local', { type: 'ANY' })).text, 'NXDOMAIN')
  t.equal((await ask(server, 'www.example.org', { type: 'ANY' })).text, 'REFUSED')
})

test('TCP: broken streams cost their own connection alone', async (t) => {
  const server = await start(t)
  const streams = ['00', '0000', 'ffff00', '0005', '000c112801000000000000000000', '00'.repeat(5_000), 'ff'.repeat(70_000)] // prettier-ignore
  for (const hex of streams) {
    const socket = connect({ host: server.address, port: server.port })
    socket.on('error', () => {})
    socket.resume()
    socket.write(Buffer.from(hex, 'hex'))
    await delay(20)
    await stillServes(t, server, `${hex.length / 2} octets beginning with ${hex.slice(0, 8)}`)
    socket.destroy()
  }
})

test('mutated packets: the server goes on', async (t) => {
  const server = await start(t)
  const random = randomFrom(7)
  const messages = realMessages()
  const socket = connect({ host: server.address, port: server.port })
  socket.on('error', () => {})
  socket.resume()
  for (let round = 0; round < 40; round++) {
    const packets = Array.from({ length: 50 }, () => Buffer.from(mutated(messages, random))) // prettier-ignore
    await Promise.all(packets.map((octets) => exchangeUdp(server, octets.subarray(0, 60_000), 3)))
    if (!socket.destroyed) for (const octets of packets) socket.write(Buffer.concat([Buffer.from([octets.length >> 8, octets.length & 255]), octets])) // prettier-ignore
  }
  socket.destroy()
  t.ok(server.server.dataPlane.stats.queriesUdp >= 1_500, `${server.server.dataPlane.stats.queriesUdp} came in`)
  t.equal(server.server.dataPlane.stats.bugs, 0, 'no bug was met')
  await stillServes(t, server, 'mutated packets')
})

test('whatever a peer sends, the query ends and others do not notice', async (t) => {
  const stub = await startStubPeer({ records: [{ type: 'A', name: 'a.south.example', ttl: 1, data: '192.0.2.1' }], zone: 'south.example' }) // prettier-ignore
  t.teardown(() => stub.stop())
  const server = await start(
    t,
    `peers: {s: {servers: ["${stub.text}"], probe: {every: 1h, fall: 100}}}\npolicies: [{name: p, dnsName: south.example, targets: [s]}]\nforward: []\n`
  )
  const faults: StubFault[] = ['garbage', 'broken-rdata', 'wrong-id', 'wrong-question', 'query-back', 'other-name', 'always-truncated', 'tcp-garbage', 'tcp-half', 'tcp-reset', 'bare-formerr', 'extra-records'] // prettier-ignore
  for (const fault of faults) {
    stub.fault = fault
    server.server.cache.flush()
    const [reply, own] = await Promise.all([ask(server, `${fault}.south.example`), ask(server, cart)])
    t.match(reply.rcode, /^(SERVFAIL|NXDOMAIN)$/, fault)
    t.ok(reply.tookMs < 2_300, `${fault}: after ${reply.tookMs.toFixed(0)} ms`)
    t.equal(own.text, '10.1.5.20', fault)
    t.ok(own.tookMs < 300, fault)
  }
  stub.fault = 'extra-records'
  await ask(server, 'a.south.example')
  t.equal((await ask(server, 'www.example.com')).text, 'REFUSED', 'records nobody asked for are not kept')
  stub.fault = 'none'
  t.ok(await until(async () => (await ask(server, 'a.south.example')).text === '192.0.2.1'))
  t.equal(server.server.dataPlane.stats.bugs, 0)
})

test('a malformed object is left out, logged once, counted and shown by check; the rest is served', async (t) => {
  const lines: string[] = []
  const sink = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      lines.push(...chunk.toString().split('\n').filter(Boolean))
      done()
    }
  })
  const bad = [
    { apiVersion: 'v1', kind: 'Service', metadata: { name: 'bad', namespace: 'shop' }, spec: { clusterIP: 'not-an-address', ports: [] } }, // prettier-ignore
    { apiVersion: 'v1', kind: 'Service', metadata: { name: 'UPPER_case', namespace: 'shop' }, spec: { clusterIP: '10.1.1.1' } }, // prettier-ignore
    { apiVersion: 'v1', kind: 'Service', metadata: { namespace: 'shop' }, spec: { clusterIP: '10.1.1.2' } },
    { apiVersion: 'v1', kind: 'Service', metadata: { name: 'ports', namespace: 'shop' }, spec: { clusterIP: '10.1.1.3', ports: [{ name: 'x', port: 700_000 }] } }, // prettier-ignore
    { kind: 'EndpointSlice', apiVersion: 'discovery.k8s.io/v1', metadata: { name: 's', namespace: 'shop' }, endpoints: 'none' }, // prettier-ignore
    { hello: 'world' },
    7
  ] as object[]
  const server = await startInProcess(t, clusterB('forward: []\n'), {
    objects: [...bad, ...objects],
    log: pino({ level: 'warn' }, sink)
  })
  t.equal((await ask(server, cart)).text, '10.1.5.20', 'the rest is served')
  t.equal((await ask(server, 'bad.shop.svc.cluster.local')).text, 'NXDOMAIN', 'the object is not')
  const { problems, problemsTotal } = server.server.inspect.source()
  t.ok(problems.length >= 4, problems.map(({ where, reason }) => `${where}: ${reason}`).join('; '))
  t.ok(problemsTotal >= problems.length, 'counted')
  server.writeObjects([...bad, ...objects, ...service('late.shop', '10.1.5.30')])
  t.ok(await until(async () => (await ask(server, 'late.shop.svc.cluster.local')).text === '10.1.5.30'))
  t.ok(
    lines.some((line) => line.includes('not-an-address') || line.includes('clusterIP')),
    lines.join('\n')
  )
  const repeated = lines.map((line) => line.replace(/"time":[^,]*,/, '')).filter((line, at, all) => all.indexOf(line) !== at) // prettier-ignore
  t.same(repeated, [], 'each reason is logged once')
  const main = join(dirname(fileURLToPath(import.meta.url)), '..', 'src', 'cli', 'main.ts')
  const check = spawnSync(process.execPath, [main, 'check', '--config', server.file], { encoding: 'utf8' })
  t.match(check.stdout + check.stderr, /bad/, 'check shows it')
})

test('configured manifests that are not there: never denied, answered once they are, kept while they are away', async (t) => {
  const stub = await startStubPeer({
    records: [{ type: 'A', name: 'a.south.example', ttl: 5, data: '192.0.2.1' }],
    zone: 'south.example'
  })
  t.teardown(() => stub.stop())
  const folder = t.testdir({})
  const later = join(folder, 'later')
  const lines: string[] = []
  const sink = new Writable({ write: (chunk: Buffer, _, done) => (lines.push(chunk.toString()), done()) })
  const server = await startInProcess(
    t,
    `cluster: {name: b, source: {manifests: ["{manifests}", "${later}"]}, reverse: [10.0.0.0/8]}
peers: {south: {servers: ["${stub.text}"]}}
policies: [{name: south, dnsName: south.example, targets: [south]}]
forward: []
`,
    { objects, log: pino({ level: 'error' }, sink) }
  )
  const isReady = (): boolean => server.server.inspect.readiness().isReady
  t.equal(isReady(), false, 'started, and not ready')
  t.match(lines.join(''), new RegExp(`"missing":\\["${later}"\\]`), 'which is said')
  for (const [name, type] of [
    ['late.shop.svc.cluster.local', 'A'],
    ['1.5.1.10.in-addr.arpa', 'PTR']
  ] as const) {
    t.match(await ask(server, name, { type }), { rcode: 'SERVFAIL', ede: [{ code: 14 }] }, name)
  }
  t.equal((await ask(server, 'a.south.example')).text, '192.0.2.1', 'peered names are answered')
  mkdirSync(later)
  writeFileSync(
    join(later, 'a.json'),
    JSON.stringify({ kind: 'List', apiVersion: 'v1', items: service('late.shop', '10.1.5.30') })
  )
  t.ok(await until(isReady), 'ready once it is there')
  t.equal((await ask(server, 'late.shop.svc.cluster.local')).text, '10.1.5.30')
  t.equal((await ask(server, 'none.shop.svc.cluster.local')).text, 'NXDOMAIN')
  rmSync(later, { recursive: true })
  t.ok(await until(() => server.server.inspect.source().problems.length > 0), 'gone again')
  await delay(300)
  t.equal((await ask(server, 'late.shop.svc.cluster.local')).text, '10.1.5.30', 'what it held is kept')
  t.equal(isReady(), true)
  t.match(server.server.inspect.source().problems, [{ where: later, reason: /stays in use until it is back/ }])
})

test('answers of odd size: a name of 255 octets, a question in odd case', async (t) => {
  const server = await start(t)
  const label = 'x'.repeat(60)
  const long = `${label}.${label}.${label}.${'y'.repeat(50)}.cluster.local`
  t.equal((await ask(server, long)).text, 'NXDOMAIN')
  const odd = await exchangeUdp(server, queryOctets('CaRt.sHoP.sVc.ClUsTeR.lOcAl', { edns: false }))
  t.equal(dnsPacket.decode(odd!).questions?.[0]?.name, 'CaRt.sHoP.sVc.ClUsTeR.lOcAl', 'comes back as written')
})

test('the log warns of a server that goes down, and only tells of one that comes up', async (t) => {
  const stub = await startStubPeer({ records: [], zone: 'south.example' })
  t.teardown(() => stub.stop())
  const lines: string[] = []
  const sink = new Writable({ write: (chunk: Buffer, _, done) => (lines.push(chunk.toString()), done()) })
  const told = (): string[] =>
    lines
      .map((line) => JSON.parse(line) as { level: number; from?: string; to?: string })
      .flatMap(({ level, from, to }) => (to === undefined ? [] : [`${pino.levels.labels[level]} ${from} ${to}`]))
  const probe = '{every: 100ms, timeout: 100ms, fall: 2, rise: 1}'
  await startInProcess(
    t,
    clusterB(
      `peers: {south: {servers: ["${stub.text}"], probe: ${probe}}}
policies: [{name: south, dnsName: south.example, targets: [south]}]
forward: []
`
    ),
    { objects, log: pino({ level: 'info' }, sink) }
  )
  t.ok(await until(() => told().length === 1))
  stub.fault = 'servfail'
  t.ok(await until(() => told().length === 2))
  stub.fault = 'none'
  t.ok(await until(() => told().length === 3))
  t.same(told(), ['info unknown up', 'warn up down', 'info down up'])
})
