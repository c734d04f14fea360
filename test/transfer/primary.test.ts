/** Zones given away: whole, as differences, suffixes alone, what the export policy shows; equal record by record. */
import { test } from 'tap'
import { transferMessageOctets, transferTimeoutMs } from '../../src/base/transfer-limits.ts'
import { Primary } from '../../src/transfer/primary.ts'
import { nameRecord, stateRecord } from '../../src/transfer/private-records.ts'
import { decodeMessage } from '../../src/wire/message.ts'
import { isAtOrBelow, parseName } from '../../src/wire/name.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import type { ServiceState } from '../../src/zone/zone-change.ts'
import type { ZoneStore } from '../../src/zone/zone-store.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { rrset } from '../support/records.ts'
import { recordKey, ZoneCopy } from './copy.ts'
import {
  FakeStream,
  newPrimary,
  newStore,
  openTo,
  peerdns,
  serviceEdit,
  sourceOf,
  take,
  zoneName
} from './primary-fixture.ts'

/** What a copy of the zone, or of a suffix, should hold; worked out from the store alone. */
function expected(store: ZoneStore, apexText: string, withPrivate: boolean): string[] {
  const apex = parseName(apexText)
  const isSuffix = apex !== store.apex
  const keys: string[] = []
  for (const { owner, type, ttlSeconds, rdata } of store.records()) {
    if (!isAtOrBelow(owner, apex) || type === RRTYPE.SOA) continue
    for (const octets of rdata) keys.push(recordKey({ owner, type, ttlSeconds, rdata: octets }))
  }
  if (isSuffix) keys.push(recordKey({ ...rrset(apexText, 'NS', 30, `ns.dns.${zoneName}`), rdata: store.ns.rdata[0]! }))
  if (!withPrivate) return keys.sort()
  for (const [owner, state] of store.services()) {
    if (isAtOrBelow(owner, apex)) keys.push(recordKey(stateRecord(owner, state)))
  }
  for (const name of store.pseudoNames()) {
    if (isAtOrBelow(name, apex) && name !== apex) keys.push(recordKey(nameRecord(name)))
  }
  if (isSuffix && store.exists(apex)) keys.push(recordKey(nameRecord(apex)))
  return keys.sort()
}

const held = (copy: ZoneCopy): string[] => [...copy.records].filter((key) => !key.includes(' SOA ')).sort()

test('Primary gives a whole zone: plain to others, with what is no RRset to a peerdns', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock)
  clock.advance(1_000)
  store.apply(serviceEdit('api.backend', ['192.0.2.1', '192.0.2.2'], 'present', clock.epochMs() - 40))
  clock.advance(100)
  store.apply(serviceEdit('old.backend', [], 'empty', clock.epochMs() - 30))
  const primary = newPrimary(clock, store)

  const plain = new ZoneCopy(zoneName)
  t.equal(plain.take(await take(primary, zoneName)), 'whole')
  t.same(held(plain), expected(store, zoneName, false))
  t.equal(plain.serial, store.serial)
  t.equal(plain.meta, null)

  clock.advance(25)
  const ours = new ZoneCopy(zoneName)
  t.equal(ours.take(await take(primary, zoneName, { peerdns: peerdns() })), 'whole')
  t.same(held(ours), expected(store, zoneName, true))
  t.same(ours.meta, {
    epoch: 'epoch-1',
    originAtMs: clock.epochMs() - 55,
    learnedAtMs: clock.epochMs() - 25,
    sentAtMs: clock.epochMs(),
    pods: { mode: 'insecure', ttlSeconds: 5 }
  })
  t.match(primary.stats, { wholeTotal: 2, messagesTotal: 2, refusedTotal: 0, brokenTotal: 0 })
})

test('Primary: copies that follow by IXFR stay equal, the zone and suffixes alone, over 400 changes', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock, { serial: 0xffff_ff80 })
  const primary = newPrimary(clock, store)
  const suffixes = [zoneName, `backend.svc.${zoneName}`, `s1.backend.svc.${zoneName}`, `none.svc.${zoneName}`]
  const copies = suffixes.flatMap((apex) => [
    { apex, isOurs: false, copy: new ZoneCopy(apex), kinds: new Map<string, number>() },
    { apex, isOurs: true, copy: new ZoneCopy(apex), kinds: new Map<string, number>() }
  ])
  let random = 1
  const draw = (below: number): number => (random = (random * 48_271) % 0x7fff_ffff) % below
  for (let step = 0; step < 400; step++) {
    const namespace = ['backend', 'shop', 'data'][draw(3)]!
    const addresses = Array.from({ length: draw(4) }, () => `192.0.2.${draw(6)}`)
    const state = (['present', 'empty', 'unknown', null] as (ServiceState | null)[])[draw(4)]!
    store.apply(serviceEdit(`s${draw(4)}.${namespace}`, [...new Set(addresses)], state))
    clock.advance([0, 0, 10, 60][draw(4)]!)
    if (draw(3) > 0) continue
    clock.advance(50)
    for (const { apex, isOurs, copy, kinds } of copies) {
      // A suffix that has never been there is no zone for servers that are no peerdns.
      if (!isOurs && primary.find(parseName(apex), false) === 'not-authoritative') {
        t.equal(copy.serial, null, `step ${step}: ${apex}`)
        continue
      }
      const options = { serial: copy.serial, peerdns: isOurs ? peerdns('epoch-1') : null }
      const kind = copy.take(await take(primary, apex, options))
      kinds.set(kind, (kinds.get(kind) ?? 0) + 1)
      t.same(held(copy), expected(store, apex, isOurs), `step ${step}: ${apex}`)
    }
  }
  for (const { apex, isOurs, kinds } of copies.slice(0, 4)) {
    t.ok((kinds.get('differences') ?? 0) > 20, `${apex} ${isOurs}: ${JSON.stringify([...kinds])}`)
  }
  const quiet = copies.at(-1)!
  t.same([...quiet.kinds.keys()], ['whole', 'current'], 'what did not change has the same serial')
})

test('Primary: a transfer waits for the batch, so that it gives what its serial says', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock)
  const primary = newPrimary(clock, store)
  clock.advance(1_000)
  store.apply(serviceEdit('a.backend', ['192.0.2.1']))
  const first = new ZoneCopy(zoneName)
  first.take(await take(primary, zoneName))
  store.apply(serviceEdit('b.backend', ['192.0.2.2']))
  const whole = take(primary, zoneName)
  const difference = take(primary, zoneName, { serial: first.serial })
  const stream = new FakeStream()
  const current = take(primary, zoneName, { serial: store.serial, stream })
  await new Promise((resolve) => setImmediate(resolve))
  t.equal(stream.sent.length, 0, 'it waits')
  clock.advance(50)
  const second = new ZoneCopy(zoneName)
  t.equal(second.take(await whole), 'whole')
  t.equal(first.take(await difference), 'differences')
  t.same(held(first), held(second))
  t.equal(first.serial, second.serial)
  t.equal(first.serial, store.serial)
  await current
})

test('Primary: what an IXFR gets', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock)
  for (let i = 0; i < 30; i++) store.apply(serviceEdit(`s${i}.backend`, [`192.0.2.${i}`]))
  clock.advance(100)
  const primary = newPrimary(clock, store)
  const { serial } = store
  store.apply(serviceEdit('s1.backend', ['192.0.2.99']))
  clock.advance(100)
  const rows: [name: string, options: Parameters<typeof take>[2], first: number, records: number | null][] = [
    ['one batch behind', { serial }, store.serial, 6],
    ['the same serial', { serial: store.serial }, store.serial, 1],
    ['a newer serial', { serial: store.serial + 5 }, store.serial, 1],
    ['a serial that was never told', { serial: serial - 1 }, store.serial, null],
    ['a serial half the circle away', { serial: (store.serial + 2 ** 31) % 2 ** 32 }, store.serial, null],
    ['the same epoch', { serial, peerdns: peerdns('epoch-1') }, store.serial, 7],
    ['no epoch', { serial, peerdns: peerdns() }, store.serial, 7],
    ['another epoch', { serial, peerdns: peerdns('epoch-2') }, store.serial, null],
    ['another epoch with our serial', { serial: store.serial, peerdns: peerdns('epoch-2') }, store.serial, null],
    ['another epoch with a newer serial', { serial: serial + 99, peerdns: peerdns('epoch-2') }, store.serial, null]
  ]
  for (const [name, options, first, records] of rows) {
    const answer = (await take(primary, zoneName, options)).flatMap((octets) => decodeMessage(octets).answer)
    t.equal(new DataView(answer[0]!.rdata.buffer).getUint32(answer[0]!.rdata.length - 20), first, name)
    if (records === null) t.ok(answer.length > 30, `${name}: whole`)
    else t.equal(answer.length, records, name)
  }
})

test('Primary: large zones come in messages of bounded size, the question in the first only', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock)
  const sets = Array.from({ length: 3_000 }, (_, i) => rrset(`s${i}.backend.svc.${zoneName}`, 'A', 5, '192.0.2.1'))
  const large = rrset(`large.backend.svc.${zoneName}`, 'TYPE65400', 5)
  const rdata = [new Uint8Array(60_000).fill(7)]
  const edits = [...sets, { ...large, rdata }].map((after) => ({ owner: after.owner, type: after.type, after }))
  store.apply({ sets: edits, services: [], names: [], originAtMs: 0 })
  clock.advance(100)
  const messages = await take(newPrimary(clock, store), zoneName)
  t.ok(messages.length > 4)
  t.equal(messages.filter((octets) => octets.length > transferMessageOctets).length, 1, 'a large record has its own')
  const questions = messages.map((octets) => decodeMessage(octets).questions.length)
  t.same(questions, [1, ...messages.slice(1).map(() => 0)])
  for (const octets of messages) t.match(decodeMessage(octets), { id: 4711, qr: true, aa: true, rcode: 0, opcode: 0 })
  const copy = new ZoneCopy(zoneName)
  copy.take(messages)
  t.same(held(copy), expected(store, zoneName, false))
})

test('Primary: slow readers hold one message, are cut after a time, and let others in', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock)
  const sets = Array.from({ length: 3_000 }, (_, i) => rrset(`s${i}.backend.svc.${zoneName}`, 'A', 5, '192.0.2.1'))
  const edits = sets.map((after) => ({ owner: after.owner, type: after.type, after }))
  store.apply({ sets: edits, services: [], names: [], originAtMs: 0 })
  clock.advance(100)
  const primary = newPrimary(clock, store)
  const slow = Array.from({ length: 12 }, () => {
    const stream = new FakeStream()
    stream.isFull = true
    return { stream, done: take(primary, zoneName, { stream }) }
  })
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  t.same(
    slow.map(({ stream }) => stream.sent.length),
    [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0],
    'two wait for their turn'
  )
  store.apply(serviceEdit('s1.backend', ['192.0.2.99']))
  clock.advance(100)
  const copy = new ZoneCopy(zoneName)
  copy.serial = store.changesSince(store.oldestSerial)!.at(-1)!.fromSerial
  const small = await take(primary, zoneName, { serial: copy.serial })
  t.equal(small.length, 1, 'differences need no turn')
  slow[0]!.stream.destroy()
  await slow[0]!.done
  for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve))
  t.equal(slow[10]!.stream.sent.length, 1, 'its turn has come')
  clock.advance(transferTimeoutMs)
  await Promise.all(slow.map(async ({ done }) => done))
  t.ok(slow.every(({ stream }) => stream.isClosed))
  t.equal(clock.pendingTimers, 0)
  t.equal(primary.stats.brokenTotal, 12)
})

test('Primary: once a zone has been read whole, each part of it is another one', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock)
  const primary = newPrimary(clock, store)
  const part = primary.find(parseName('backend.svc.cluster.local'), true)
  if (typeof part === 'string') throw new Error(part)
  store.beginLoading()
  store.apply(serviceEdit('api.backend', ['192.0.2.1']))
  const { serial } = part
  clock.advance(100)
  store.endLoading()
  t.equal(part.serial, store.serial)
  t.ok(part.serial > serial)
  t.equal(part.differencesSince(serial, true), null, 'it has to be taken whole')
})

test('Primary.find: zones, suffixes, and what the export policy shows', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock)
  for (const name of ['api.backend', 'web.backend', 'web.shop']) store.apply(serviceEdit(name, ['192.0.2.1']))
  const hidden = { export: { namespaces: ['backend'], services: ['backend/api', 'shop/web'] } }
  const rows: [name: string, open: string, limited: string][] = [
    ['cluster.local', 'part', 'part'],
    ['svc.cluster.local', 'part', 'part'],
    ['backend.svc.cluster.local', 'part', 'part'],
    ['api.backend.svc.cluster.local', 'part', 'part'],
    ['web.backend.svc.cluster.local', 'part', 'hidden'],
    ['shop.svc.cluster.local', 'part', 'hidden'],
    ['web.shop.svc.cluster.local', 'part', 'hidden'],
    ['nosuch.svc.cluster.local', 'not-authoritative', 'hidden'],
    ['nosuch.backend.svc.cluster.local', 'not-authoritative', 'hidden'],
    ['_http._tcp.api.backend.svc.cluster.local', 'not-authoritative', 'not-authoritative'],
    ['dns.cluster.local', 'not-authoritative', 'not-authoritative'],
    ['pod.cluster.local', 'not-authoritative', 'not-authoritative'],
    ['local', 'not-authoritative', 'not-authoritative'],
    ['example.org', 'not-authoritative', 'not-authoritative']
  ]
  const open = newPrimary(clock, store)
  const limited = newPrimary(clock, store, hidden)
  const found = (primary: typeof open, name: string, toPeerdns = false): string => {
    const part = primary.find(parseName(name), toPeerdns)
    return typeof part === 'string' ? part : 'part'
  }
  for (const [name, ifOpen, ifLimited] of rows) {
    t.equal(found(open, name), ifOpen, name)
    t.equal(found(limited, name), ifLimited, `${name}, limited`)
  }
  t.equal(found(open, 'nosuch.svc.cluster.local', true), 'part', 'a peerdns may wait for one to come')
  const named = newPrimary(clock, store, { export: { namespaces: ['soon'], services: [] } })
  t.equal(found(named, 'soon.svc.cluster.local'), 'part', 'the export policy names it')
  for (let i = 0; i < 600; i++) found(open, `ns${i}.svc.cluster.local`, true)
  t.equal(found(open, 'backend.svc.cluster.local'), 'part', 'names that come and go are bounded')
  store.apply(serviceEdit('web.shop', [], null))
  t.equal(found(open, 'web.shop.svc.cluster.local'), 'not-authoritative', 'forgotten among so many, and gone')
  found(open, 'web.backend.svc.cluster.local')
  store.apply(serviceEdit('web.backend', [], null))
  t.equal(found(open, 'web.backend.svc.cluster.local'), 'part', 'who took it hears that it is empty now')
})

test('Primary: the export policy hides Services, pods, and the pointers to them, in differences too', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock)
  const reverse = newStore(clock, { apex: '10.in-addr.arpa' })
  const pod = rrset(`10-0-0-1.backend.pod.${zoneName}`, 'A', 5, '10.0.0.1')
  const version = rrset(`dns-version.${zoneName}`, 'TXT', 5, '1.1.0')
  const put = (after: typeof pod) => ({ owner: after.owner, type: after.type, after })
  const rest = { services: [], names: [], originAtMs: 0 }
  store.apply({ sets: [put(pod), put(version)], ...rest })
  const primary = newPrimary(clock, store, { export: { namespaces: [], services: ['backend/api'] } })
  const copy = new ZoneCopy(zoneName)
  clock.advance(100)
  copy.take(await take(primary, zoneName))
  for (const name of ['api.backend', 'web.backend', 'api.shop']) {
    store.apply(serviceEdit(name, ['192.0.2.1']))
    clock.advance(100)
    copy.take(await take(primary, zoneName, { serial: copy.serial }))
  }
  const owners = [...copy.records].map((key) => key.slice(0, key.indexOf(' '))).sort()
  t.same(owners, ['api.backend.svc.cluster.local.', 'cluster.local.', 'cluster.local.', 'dns-version.cluster.local.'])
  const { serial } = copy
  store.apply(serviceEdit('api.shop', ['192.0.2.2']))
  clock.advance(100)
  t.equal(copy.take(await take(primary, zoneName, { serial })), 'current', 'hidden changes leave the serial alone')

  const shown = `api.backend.svc.${zoneName}`
  reverse.apply({ sets: [put(rrset('1.0.0.10.in-addr.arpa', 'PTR', 5, shown, `api.shop.svc.${zoneName}`))], ...rest })
  clock.advance(100)
  const both = new Primary(
    clock,
    openTo(['any'], { export: { namespaces: [], services: ['backend/api'] } }),
    sourceOf(store, reverse)
  )
  const pointers = new ZoneCopy('10.in-addr.arpa')
  pointers.take(await take(both, '10.in-addr.arpa'))
  t.equal([...pointers.records].filter((key) => key.includes(' PTR ')).length, 1)
  t.notOk(both.find(parseName('0.10.in-addr.arpa'), false) instanceof Object, 'no suffixes of reverse zones')
})
