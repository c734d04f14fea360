// Queries between clusters do not travel on, and a circle of servers ends soon and costs nobody else anything.
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import * as dnsPacket from 'dns-packet'
import { test } from 'tap'
import { peerdnsOptionCode } from '../../src/wire/peerdns-option.ts'
import { ask, clusterB, readReply, startInProcess, type Where } from '../support/in-process.ts'
import { service } from '../support/objects.ts'
import type { StubQuery } from '../support/stub-peer.ts'
import { askedOf, below, objectsOfB, peer, policy, rareProbes, recordsOf, startB, stub } from './two-peers.ts'

const suffix = 'backend.svc.cluster.local'

test('RD=0 is answered from our own zones only', async (t) => {
  const a = await stub(t, [
    ...recordsOf('172.30.1'),
    { type: 'A', name: 'x.partner.example', ttl: 9, data: '192.0.2.1' }
  ])
  const up = await stub(t, [{ type: 'A', name: 'www.example.org', ttl: 60, data: '192.0.2.80' }], 'example.org')
  const b = await startB(
    t,
    peer('a', a),
    policy('p', suffix, '[a, local]') +
      policy('partner', 'partner.example', '[a]') +
      policy('open', 'open.backend.svc.cluster.local', '[a]', ', transit: true'),
    `forward: ["${up.text}"]\n`
  )
  for (const cached of ['', ', cached']) {
    const rows = [
      [below('api'), '10.1.1.20'],
      [below('a-only'), 'NXDOMAIN'],
      ['x.partner.example', 'REFUSED'],
      ['www.example.org', 'REFUSED'],
      ['to-peer.shop.svc.cluster.local', `10.1.1.20 ${below('api')}`],
      ['to-own.shop.svc.cluster.local', '10.1.5.20 cart.shop.svc.cluster.local'],
      ['to-out.shop.svc.cluster.local', 'www.example.org']
    ] as const
    for (const [question, want] of rows) {
      const reply = await ask(b, question, { recursionDesired: false })
      t.equal(reply.text, want, question + cached)
      if (want === 'REFUSED') t.match(reply.ede, [{ code: 20 }], question + cached)
      t.equal(reply.flags.rd, false)
    }
    if (cached === '') {
      t.same([askedOf(a), askedOf(up)], [[], []], 'nobody was asked')
      t.equal((await ask(b, 'x.partner.example')).text, '192.0.2.1')
      t.equal((await ask(b, 'www.example.org')).text, '192.0.2.80')
      t.equal((await ask(b, below('a-only'))).text, '172.30.1.4')
    }
  }
  const before = askedOf(a).length
  t.equal((await ask(b, `x.open.${suffix}`, { recursionDesired: false })).text, 'NXDOMAIN')
  t.equal(askedOf(a).length, before + 1, 'transit: true lifts it')
})

test('policies of two clusters at each other do not loop', async (t) => {
  for (const recursion of [false, true]) {
    // A's port has to be known before A is there.
    const a = await startInProcess(t, clusterB('forward: []\n'), {
      objects: service('a-only.backend', '172.30.4.1'),
      watchConfig: true
    })
    const b = await startInProcess(
      t,
      clusterB(
        `peers: {a: {servers: ["${a.text}"], recursion: ${recursion}, probe: ${rareProbes}}}\npolicies:\n${policy('p', suffix, '[a, local]')}forward: []\n`
      ),
      { objects: objectsOfB }
    )
    a.writeConfig(
      clusterB(
        `peers: {b: {servers: ["${b.text}"], recursion: ${recursion}, probe: ${rareProbes}}}\npolicies:\n${policy('p', suffix, '[b, local]')}forward: []\n`
      )
    )
    await a.server.reload()
    const how = `asked with RD=${recursion ? 1 : 0}`
    t.equal((await ask(a, below('b-only'))).text, '10.1.4.20', how)
    t.equal((await ask(b, below('a-only'))).text, '172.30.4.1', how)
    const nobody = await ask(b, below('nobody'))
    t.equal(nobody.text, 'NXDOMAIN', how)
    t.ok(nobody.tookMs < 500, how)
    const { queriesUdp } = a.server.dataPlane.stats
    t.ok(queriesUdp < 12, `${how}: ${queriesUdp} queries reached A`)
    await b.stop()
    await a.stop()
  }
})

/** A foreign server that forwards everything, RD=1 and all EDNS options kept, to where it is told. */
async function forwarder(t: { teardown: (done: () => void) => void }) {
  const socket = createSocket('udp4')
  const seen: { name: string; options: number[] }[] = []
  const state: { to: Where | null } = { to: null }
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  socket.on('message', (octets, sender) => {
    const packet = dnsPacket.decode(octets)
    const opt = packet.additionals?.find(({ type }) => type === 'OPT')
    const options = ((opt as { options?: { code: number }[] } | undefined)?.options ?? []).map(({ code }) => code)
    seen.push({ name: packet.questions?.[0]?.name ?? '', options })
    octets[2]! |= 0x01
    const onward = createSocket('udp4')
    t.teardown(() => onward.unref())
    onward.on('message', (reply) => {
      replies.push(Buffer.from(reply))
      socket.send(reply, sender.port, sender.address)
      onward.close()
    })
    if (state.to !== null) onward.send(octets, state.to.port, state.to.address)
  })
  const replies: Buffer[] = []
  const { port } = socket.address()
  return { text: `127.0.0.1:${port}`, seen, replies, state }
}

test('a loop through a foreign server ends at once, and other names do not feel it', async (t) => {
  const foreign = await forwarder(t)
  const b = await startB(
    t,
    peer('f', foreign),
    policy('p', suffix, '[f]') + policy('q', 'shop.svc.cluster.local', '[f, local]')
  )
  foreign.state.to = b
  const looping = await ask(b, below('api'))
  t.equal(looping.text, 'SERVFAIL')
  t.ok(looping.tookMs < 1_500, `after ${looping.tookMs.toFixed(0)} ms`)
  t.ok(foreign.seen.length <= 6, `${foreign.seen.length} queries went round`)
  t.ok(foreign.seen.every(({ options }) => options.includes(peerdnsOptionCode) || options.length === 0))
  const inner = readReply(foreign.replies[0]!)
  t.equal(inner.text, 'SERVFAIL')
  t.match(inner.ede, [{ code: 0, text: /loop/ }], 'the one that came back is told why')
  const before = foreign.seen.length
  const many = await Promise.all(Array.from({ length: 50 }, () => ask(b, below('web'))))
  t.ok(many.every(({ text }) => text === 'SERVFAIL'))
  t.ok(foreign.seen.length - before <= 6, `50 at once: ${foreign.seen.length - before} went round`)
  t.equal((await ask(b, 'cart.shop.svc.cluster.local')).text, '10.1.5.20', 'the next target answers')
  const other = await ask(b, 'svc.cluster.local')
  t.equal(other.text, 'NODATA')
  t.ok(other.tookMs < 250)
})

test('a chain of servers is bounded, and the list of instances grows by one each', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a]'))
  const instances = (count: number) => ({
    code: peerdnsOptionCode,
    data: Buffer.concat([Buffer.from('pDNS\x01\x01', 'latin1'), Buffer.from([count * 6]), Buffer.alloc(count * 6, 7)])
  })
  const passed = await ask(b, below('api'), { options: [instances(3)] })
  t.equal(passed.text, '172.30.1.1')
  t.same(optionOf(a.queries.at(-1)!, peerdnsOptionCode)?.length, 5 + 2 + 4 * 6)
  const tooMany = await ask(b, below('a-only'), { options: [instances(8)] })
  t.equal(tooMany.text, 'SERVFAIL')
  t.match(tooMany.ede, [{ code: 0, text: /loop/ }])
  for (const data of ['70444e53', '', '70444e530101ff', '70444e5301010700010203040506', '00'.repeat(40)]) {
    const odd = await ask(b, below('api'), { options: [{ code: peerdnsOptionCode, data: Buffer.from(data, 'hex') }] })
    t.equal(odd.text, '172.30.1.1', `another use of our code: ${data}`)
  }
})

/** The data of an EDNS option in a query as it arrived. */
function optionOf(query: StubQuery, code: number): Buffer | undefined {
  const opt = query.packet.additionals?.find(({ type }) => type === 'OPT')
  const options = (opt as { options?: { code: number; data: Buffer }[] } | undefined)?.options ?? []
  return options.find((option) => option.code === code)?.data
}

test('EDNS is per hop: nothing that a client or a peer says is passed on', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const b = await startB(t, peer('a', a), policy('p', suffix, '[a]'))
  const cookie = { code: 10, data: Buffer.from('0102030405060708', 'hex') }
  const unknown = { code: 65_001, data: Buffer.from('abcd', 'hex') }
  const subnet = { code: 8, data: Buffer.from('00011800c00002', 'hex') }
  const reply = await ask(b, below('api'), { options: [cookie, unknown, subnet], flags: dnsPacket.AUTHENTIC_DATA })
  t.equal(reply.text, '172.30.1.1')
  t.same(reply.options, [], 'nor given back')
  t.equal(reply.flags.ad, false)
  const asked = a.queries.at(-1)!
  for (const { code } of [cookie, unknown, subnet]) t.equal(optionOf(asked, code), undefined, `option ${code}`)
  t.equal(asked.packet.flag_ad, false)
  t.equal(asked.packet.flag_rd, false)
  t.ok(asked.hasEdns)
  const plain = await ask(b, below('a-only'), { edns: false })
  t.equal(plain.options, null)
  t.ok(a.queries.at(-1)!.hasEdns, 'the hop to the peer has EDNS of its own')
  const withCd = await ask(b, below('idle'), { flags: dnsPacket.CHECKING_DISABLED })
  t.equal(withCd.flags.cd, true, 'CD is the query’s')
  t.equal((await ask(b, below('idle'))).flags.cd, false)
})
