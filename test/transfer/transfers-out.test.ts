/** Zone transfers of a whole server, over its sockets: who gets what, and what ordinary clients see of it. */
import { execFile, spawnSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { encodePeerdnsOption, findPeerdnsOption, type PeerdnsOption } from '../../src/wire/peerdns-option.ts'
import { decodeMessage } from '../../src/wire/message.ts'
import type { ResourceRecord } from '../../src/wire/rr.ts'
import { ask, clusterB, queryOctets, startInProcess, type AskOptions, type Where } from '../support/in-process.ts'
import { namespace, service } from '../support/objects.ts'
import { TcpClient, until } from '../server/clients.ts'
import { isComplete, ZoneCopy } from './copy.ts'

const objects = [
  namespace('backend'),
  namespace('quiet'),
  ...service('api.backend', '10.1.1.20', { ready: ['10.0.0.1', '10.0.0.2'] }),
  ...service('web.shop', '10.1.2.20', { ready: [] })
]

/** All messages of a transfer, or the only one of a refusal. */
async function transfer(where: Where, name: string, options: AskOptions = {}): Promise<Uint8Array[]> {
  const octets = queryOctets(name, { type: 'AXFR', recursionDesired: false, ...options })
  const socket = connect({ host: where.address, port: where.port })
  const done = Promise.withResolvers<Uint8Array[]>()
  const messages: Uint8Array[] = []
  const records: ResourceRecord[] = []
  let held = Buffer.alloc(0)
  socket.on('data', (chunk: Buffer) => {
    held = Buffer.concat([held, chunk])
    while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
      const message = Uint8Array.from(held.subarray(2, 2 + held.readUInt16BE(0)))
      held = held.subarray(2 + message.length)
      messages.push(message)
      const { answer, rcode } = decodeMessage(message)
      records.push(...answer)
      if (rcode !== 0 || isComplete(records, null)) done.resolve(messages)
    }
  })
  socket.on('error', done.reject)
  socket.on('close', () => done.reject(new Error('closed within a transfer')))
  socket.write(Buffer.concat([Buffer.from([octets.length >> 8, octets.length & 0xff]), octets]))
  const timer = setTimeout(() => done.reject(new Error('no end of a transfer')), 60_000)
  try {
    return await done.promise
  } finally {
    clearTimeout(timer)
    socket.destroy()
  }
}

const ours = (option: Partial<PeerdnsOption> = {}): AskOptions => ({ options: [encodePeerdnsOption(option)] })

void test('transfers: closed unless configured, and each refusal says why', async (t) => {
  const closed = await startInProcess(t, clusterB('forward: []\n'), { objects })
  const open = await startInProcess(t, clusterB('forward: []\ntransfer: {allow: [127.0.0.1]}\n'), { objects })
  const rows: [name: string, where: Where, zone: string, options: AskOptions, rcode: string, ede: number[]][] = [
    ['nobody is allowed', closed, 'cluster.local', { isTcp: true }, 'REFUSED', [18]],
    ['nor a suffix', closed, 'backend.svc.cluster.local', { isTcp: true }, 'REFUSED', [18]],
    ['over UDP', open, 'cluster.local', {}, 'REFUSED', [18]],
    ['no zone', open, 'example.org', { isTcp: true }, 'NOTAUTH', [20]],
    ['no zone over UDP', open, 'example.org', {}, 'NOTAUTH', [20]],
    ['no suffix', open, 'dns.cluster.local', { isTcp: true }, 'NOTAUTH', [20]],
    ['IXFR without a serial', open, 'cluster.local', { isTcp: true, type: 'IXFR' }, 'FORMERR', []],
    ['IXFR over UDP', open, 'cluster.local', { type: 'IXFR' }, 'NOERROR', []]
  ]
  for (const [name, where, zone, options, rcode, ede] of rows) {
    const reply = await ask(where, zone, { type: 'AXFR', recursionDesired: false, ...options })
    t.equal(reply.rcode, rcode, name)
    t.same(reply.ede.map(({ code }) => code), ede, name) // prettier-ignore
    t.equal(reply.flags.aa, rcode === 'NOERROR', name)
  }
  const other = await ask(open, 'cluster.local', { type: 'AXFR', from: '127.0.0.2' })
  t.equal(other.rcode, 'REFUSED', 'another address')
  t.match(closed.server.zonesOut.primary.stats, { refusedTotal: 2 })
  t.match(open.server.zonesOut.primary.stats, { refusedTotal: 2, notAuthoritativeTotal: 3, wholeTotal: 0 })
})

void test('transfers: before the first sync there is nothing to give', async (t) => {
  const config = 'cluster: {name: b, source: {manifests: ["{manifests}", missing]}}\ntransfer: {allow: [any]}\n'
  const server = await startInProcess(t, config, { objects, isUnread: true })
  const reply = await ask(server, 'cluster.local', { type: 'AXFR', isTcp: true })
  t.equal(reply.rcode, 'SERVFAIL')
  t.same(reply.ede.map(({ code }) => code), [14]) // prettier-ignore
})

void test('transfers: zones and suffixes; plain records for others, the rest for a peerdns', async (t) => {
  const server = await startInProcess(t, clusterB('forward: []\ntransfer: {allow: [127.0.0.0/8]}\n'), { objects })
  for (const zone of ['cluster.local', 'clusterset.local', '10.in-addr.arpa', 'backend.svc.cluster.local']) {
    const messages = await transfer(server, zone)
    const copy = new ZoneCopy(zone)
    t.equal(copy.take(messages), 'whole', zone)
    t.notOk(
      [...copy.records].some((key) => key.includes('TYPE')),
      `${zone}: plain records alone`
    )
    const soa = await ask(server, zone, { type: 'SOA', recursionDesired: false })
    t.match(soa, { rcode: 'NOERROR', flags: { aa: true }, answer: [new RegExp(`^${zone.replaceAll('.', '\\.')} `)] })
    const answer = soa.packet.answers![0] as unknown as { data: { serial: number } }
    t.equal(answer.data.serial, copy.serial, `${zone}: the SOA tells the same serial`)
    t.equal((await ask(server, zone, { type: 'NS', recursionDesired: false })).answer.length, 1)
  }

  const messages = await transfer(server, 'cluster.local', ours({ instances: ['00112233aabb'] }))
  const copy = new ZoneCopy('cluster.local')
  copy.take(messages)
  t.match(copy.meta, { epoch: server.server.view.zones.zone.epoch, pods: { mode: 'insecure', ttlSeconds: 5 } })
  const keys = [...copy.records].join('\n')
  t.match(keys, /web\.shop\.svc\.cluster\.local\. 0 TYPE65314 0101/, 'a Service without ready endpoints')
  t.match(keys, /quiet\.svc\.cluster\.local\. 0 TYPE65315 01/, 'a namespace without Services')
  const history = findPeerdnsOption(decodeMessage(messages[0]!).edns!.options)!
  t.equal(history.epoch, copy.meta!.epoch, 'the first message tells the epoch')
  t.ok(Math.abs(history.clockMs! - Date.now()) < 5_000)
  t.ok(history.ageMs! < 60_000)
  const told = await ask(server, 'backend.svc.cluster.local', { type: 'SOA', recursionDesired: false, ...ours() })
  t.same(told.options, [65_313], 'and its answer tells the epoch too')
})

void test('transfers: ordinary clients see the zone that a suffix lies in', async (t) => {
  const config = 'forward: []\ntransfer: {allow: [127.0.0.1]}\n'
  const server = await startInProcess(t, clusterB(config), { objects })
  const rows: [name: string, options: AskOptions][] = [
    ['asked recursively', { recursionDesired: true }],
    ['from elsewhere', { recursionDesired: false, from: '127.0.0.2' }]
  ]
  for (const [name, options] of rows) {
    const soa = await ask(server, 'backend.svc.cluster.local', { type: 'SOA', ...options })
    t.match(soa, { rcode: 'NOERROR', answer: [], authority: [/^cluster\.local /] }, name)
    const ns = await ask(server, 'backend.svc.cluster.local', { type: 'NS', ...options })
    t.match(ns, { rcode: 'NOERROR', answer: [], authority: [/^cluster\.local /] }, name)
  }
  const address = await ask(server, 'api.backend.svc.cluster.local', { recursionDesired: false })
  t.equal(address.text, '10.1.1.20')
})

void test('transfers: who may take zones may ask for them from outside of allow', async (t) => {
  const config = 'forward: []\nallow: [192.0.2.0/24]\ntransfer: {allow: [127.0.0.1]}\n'
  const server = await startInProcess(t, clusterB(config), { objects })
  t.equal((await ask(server, 'cluster.local', { type: 'SOA', recursionDesired: false })).rcode, 'NOERROR')
  t.equal((await ask(server, 'api.backend.svc.cluster.local', { recursionDesired: false })).rcode, 'REFUSED')
  t.equal(new ZoneCopy('cluster.local').take(await transfer(server, 'cluster.local')), 'whole')
})

void test('transfers: NOTIFY over UDP to listed servers, down the connection to a subscriber', async (t) => {
  const socket = createSocket('udp4')
  const datagrams: Uint8Array[] = []
  socket.on('message', (octets, from) => {
    datagrams.push(Uint8Array.from(octets))
    const response = Buffer.from(octets)
    response[2]! |= 0x80
    socket.send(response, from.port, from.address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  t.teardown(() => socket.close())
  const config = `forward: []\ntransfer: {allow: [127.0.0.1], notify: ["127.0.0.1:${socket.address().port}"]}\n`
  const server = await startInProcess(t, clusterB(config), { objects })
  await until('all zones are told of at the start', () => datagrams.length >= 3)
  for (const octets of datagrams) t.match(decodeMessage(octets), { opcode: 4, qr: false, edns: null })
  const { stats } = server.server.zonesOut.primary
  await until('and answered', () => stats.notifyAnsweredTotal === stats.notifySentTotal)

  const client = await TcpClient.open(t, server)
  const subscribe = { type: 'SOA', recursionDesired: false, ...ours({ subscribe: true }) }
  client.ask(queryOctets('backend.svc.cluster.local', subscribe))
  client.ask(queryOctets('backend.svc.cluster.local', subscribe))
  await client.gets(2)
  t.equal(server.server.zonesOut.primary.subscriptions, 1)
  const before = datagrams.length
  server.writeObjects([...objects, ...service('new.backend', '10.1.1.30')])
  await client.gets(3)
  const told = decodeMessage(Uint8Array.from(client.received[2]!))
  t.match(told, { opcode: 4, qr: false, answer: [{ type: 6 }] })
  t.equal(findPeerdnsOption(told.edns!.options)!.epoch, server.server.view.zones.zone.epoch)
  const response = Buffer.from(client.received[2]!)
  response[2]! |= 0x80
  client.ask(response)
  await until('the response is taken', () => stats.notifyAnsweredTotal >= before + 1)
  await until('listed servers are told too', () => datagrams.length > before)
  t.equal(server.server.dataPlane.stats.dropped, 0, 'a response that is waited for is not dropped')
  client.socket.destroy()
  await until('the subscription ends', () => server.server.zonesOut.primary.subscriptions === 0)
})

void test('transfers: dig and kdig understand them', async (t) => {
  for (const [tool, ...args] of [
    ['dig', '+noall', '+answer'],
    ['kdig', '+noall', '+answer']
  ]) {
    if (spawnSync(tool!, ['-h']).error !== undefined) {
      t.pass(tool!, { skip: `${tool} is not installed` })
      continue
    }
    const server = await startInProcess(t, clusterB('forward: []\ntransfer: {allow: [127.0.0.1]}\n'), { objects })
    const run = async (...question: string[]): Promise<string[]> => {
      const where = ['@127.0.0.1', '-p', String(server.port)]
      const { stdout } = await promisify(execFile)(tool!, [...where, ...args, ...question])
      return stdout.split('\n').filter((line) => line !== '' && !line.startsWith(';'))
    }
    const axfr = await run('AXFR', 'cluster.local')
    t.match(axfr[0], /\tSOA\t/)
    t.match(axfr.at(-1), /\tSOA\t/)
    const serial = axfr[0]!.split(/\s+/)[6]
    t.ok(axfr.some((line) => /^api\.backend\.svc\.cluster\.local\.\s+5\s+IN\s+A\s+10\.1\.1\.20$/.test(line)))
    t.equal((await run(`IXFR=${serial}`, 'cluster.local')).length, 1, `${tool}: nothing new`)
    t.same((await run('IXFR=1', 'cluster.local')).sort(), axfr.sort(), `${tool}: the whole zone instead`)
  }
})

void test('transfers: with keys, only to those who sign with one; dig and kdig check each message', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'peerdns-keys-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  const secrets = { one: 'c2VjcmV0IG9mIG9uZQ==', two: 'YW5vdGhlciBzZWNyZXQ=', three: 'YSB0aGlyZCBzZWNyZXQ=' }
  writeFileSync(join(folder, 'one'), `${secrets.one}\n`)
  writeFileSync(join(folder, 'two'), secrets.two)
  const key = (name: string, algorithm: string): string =>
    `{name: ${name}.example, algorithm: ${algorithm}, file: ${join(folder, name)}}`
  const list = [key('one', 'hmac-sha256'), key('two', 'hmac-sha512')].join(', ')
  const unreadable = clusterB(
    `forward: []\ntransfer: {allow: [127.0.0.1], keys: [${list}, ${key('missing', 'hmac-sha256')}]}\n`
  )
  await t.rejects(startInProcess(t, unreadable, { objects }), /missing`: there is no such file/, 'nothing starts')
  const many = Array.from({ length: 800 }, (_, i) => service(`s${i}.big`, `10.1.${i >> 8}.${i & 255}`)).flat()
  const server = await startInProcess(t, clusterB(`forward: []\ntransfer: {allow: [127.0.0.1], keys: [${list}]}\n`), {
    objects: [...objects, ...many]
  })
  const { stats } = server.server.zonesOut.primary
  t.match(await ask(server, 'cluster.local', { type: 'AXFR', isTcp: true }), { rcode: 'REFUSED', ede: [{ code: 18 }] })
  t.equal(stats.refusedTotal, 1)
  const suffix = 'backend.svc.cluster.local'
  t.same((await ask(server, suffix, { type: 'SOA', recursionDesired: false })).answer, [], 'nor the SOA of a suffix')

  const run = async (tool: string, name: string, algorithm: string, secret: string, ...rest: string[]) => {
    const args = ['@127.0.0.1', '-p', String(server.port), '-y', `${algorithm}:${name}.example:${secret}`, ...rest]
    return (await promisify(execFile)(tool, args).catch((error: { stdout: string }) => error)).stdout
  }
  for (const tool of ['dig', 'kdig']) {
    if (spawnSync(tool, ['-h']).error !== undefined) {
      t.pass(tool, { skip: `${tool} is not installed` })
      continue
    }
    for (const [name, algorithm, secret] of [
      ['one', 'hmac-sha256', secrets.one],
      ['two', 'hmac-sha512', secrets.two]
    ] as const) {
      const axfr = await run(tool, name, algorithm, secret, 'AXFR', 'cluster.local')
      t.match(axfr, /s799\.big\.svc\.cluster\.local\./, `${tool}: ${name}`)
      t.notMatch(axfr, /BADSIG|BADKEY|Couldn't verify|failed/, `${tool}: ${name} is right in every message`)
      t.match(
        await run(tool, name, algorithm, secret, '+norec', 'SOA', suffix),
        /NOERROR[^]*SOA\s+ns\.dns/,
        'the SOA too'
      )
      t.match(await run(tool, name, algorithm, secret, 'A', 'api.backend.svc.cluster.local'), /10\.1\.1\.20/)
    }
    const wrong = await run(tool, 'one', 'hmac-sha256', secrets.two, 'SOA', 'cluster.local')
    t.match(wrong, /NOTAUTH|BADKEY|BADSIG/, `${tool}: another secret`)
    t.match(
      await run(tool, 'three', 'hmac-sha256', secrets.three, 'SOA', 'cluster.local'),
      /NOTAUTH|BADKEY|BADSIG/,
      `${tool}: another key`
    )
    t.match(await run(tool, 'missing', 'hmac-sha256', secrets.three, 'SOA', 'cluster.local'), /NOTAUTH|BADKEY|BADSIG/)
  }
  const refusedBefore = stats.badSignaturesTotal
  t.ok(refusedBefore >= 3)

  // Over the old file in one step, as a mounted Secret changes.
  writeFileSync(join(folder, 'new'), secrets.three)
  renameSync(join(folder, 'new'), join(folder, 'one'))
  await until('the new secret is taken', () => {
    const [first] = server.server.zonesOut.keys
    return Buffer.from(first!.secret).toString('base64') === secrets.three
  })
  if (spawnSync('dig', ['-h']).error === undefined) {
    t.match(await run('dig', 'one', 'hmac-sha256', secrets.three, 'AXFR', 'cluster.local'), /s799\.big/)
    t.match(await run('dig', 'one', 'hmac-sha256', secrets.one, 'SOA', 'cluster.local'), /NOTAUTH|BADKEY|BADSIG/)
  }
})
