/** NOTIFY down connections that a peerdns holds open: told at once, never queued, bounded. */
import { test } from 'tap'
import {
  notifyAnswerTimeoutMs,
  notifySubscriptionsPerConnection,
  notifyUnanswered
} from '../../src/base/transfer-limits.ts'
import { NetworkSet } from '../../src/base/network.ts'
import type { Primary } from '../../src/transfer/primary.ts'
import { ZonePart } from '../../src/transfer/zone-part.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { decodeMessage, encodeMessage } from '../../src/wire/message.ts'
import { nameToText, parseName } from '../../src/wire/name.ts'
import { findPeerdnsOption } from '../../src/wire/peerdns-option.ts'
import { readSoa } from '../../src/wire/rdata.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { FakeStream, newPrimary, newStore, openTo, serviceEdit, sourceOf, zoneName } from './primary-fixture.ts'

const partOf = (primary: Primary, apex: string): ZonePart => {
  const part = primary.find(parseName(apex), true)
  if (!(part instanceof ZonePart)) throw new Error(part)
  return part
}

const read = (octets: Uint8Array) => {
  const message = decodeMessage(octets)
  const [soa] = message.answer
  return {
    id: message.id,
    zone: nameToText(message.questions[0]!.name),
    serial: readSoa(soa!.rdata).serial,
    told: findPeerdnsOption(message.edns!.options),
    message
  }
}

function respond(primary: Primary, connection: Readonly<{ address: string }>, request: Uint8Array): boolean {
  const message = decodeMessage(request)
  const octets = encodeMessage({ ...message, qr: true, answer: [], edns: null })
  return primary.takeResponse(connection, octets, octets.length)
}

test('Subscriptions: a NOTIFY after each batch that touches the zone, at once', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock)
  const primary = newPrimary(clock, store)
  const connection = { address: '192.0.2.9' }
  const stream = new FakeStream()
  for (const apex of [zoneName, `backend.svc.${zoneName}`]) {
    t.ok(primary.subscribe(connection, stream, partOf(primary, apex)))
    t.ok(primary.subscribe(connection, stream, partOf(primary, apex)), 'twice is once')
  }
  t.equal(primary.subscriptions, 2)
  clock.advance(1_000)
  store.apply(serviceEdit('api.backend', ['192.0.2.1']))
  t.same(stream.pushed.map((octets) => read(octets).zone).sort(), ['backend.svc.cluster.local.', 'cluster.local.'])
  const first = read(stream.pushed[0]!)
  t.equal(first.serial, store.serial)
  t.same(first.told, { ...first.told, epoch: 'epoch-1', clockMs: clock.epochMs(), ageMs: 17 })
  t.match(first.message, { opcode: 4, qr: false, aa: true, questions: [{ type: RRTYPE.SOA }], answer: [{ type: 6 }] })
  store.apply(serviceEdit('api.shop', ['192.0.2.1']))
  store.apply(serviceEdit('web.shop', ['192.0.2.1']))
  t.equal(stream.pushed.length, 2, 'the batch is not over')
  clock.advance(50)
  t.same(stream.pushed.slice(2).map((octets) => read(octets).zone), ['cluster.local.']) // prettier-ignore
  t.equal(new Set(stream.pushed.map((octets) => read(octets).id)).size, 3, 'ids differ')
  for (const request of stream.pushed) t.ok(respond(primary, connection, request))
  t.notOk(respond(primary, connection, stream.pushed[0]!), 'once')
  t.notOk(respond(primary, { address: '192.0.2.9' }, stream.pushed[0]!), 'on its own connection')
  t.match(primary.stats, { notifyPushedTotal: 3, notifyAnsweredTotal: 3, notifyLostTotal: 0 })
  stream.destroy()
  t.equal(primary.subscriptions, 0)
  clock.advance(60_000)
  t.equal(clock.pendingTimers, 0)
})

test('Subscriptions: who does not answer gets one for all that came meanwhile, and is cut after a time', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock)
  const primary = newPrimary(clock, store)
  const connection = { address: '192.0.2.9' }
  const stream = new FakeStream()
  primary.subscribe(connection, stream, partOf(primary, zoneName))
  for (let i = 0; i < 60; i++) {
    clock.advance(60)
    store.apply(serviceEdit('api.backend', [`192.0.2.${i}`]))
  }
  t.equal(stream.pushed.length, notifyUnanswered)
  respond(primary, connection, stream.pushed[3]!)
  t.equal(stream.pushed.length, notifyUnanswered + 1)
  t.equal(read(stream.pushed.at(-1)!).serial, store.serial, 'the newest serial')
  respond(primary, connection, stream.pushed[4]!)
  t.equal(stream.pushed.length, notifyUnanswered + 1, 'nothing new')
  t.notOk(stream.isClosed)
  clock.advance(notifyAnswerTimeoutMs)
  t.ok(stream.isClosed)
  t.equal(primary.stats.notifyLostTotal, notifyUnanswered - 1)
  t.equal(clock.pendingTimers, 0)

  const slow = new FakeStream()
  primary.subscribe({ address: '192.0.2.10' }, slow, partOf(primary, zoneName))
  slow.isFull = true
  store.apply(serviceEdit('api.backend', ['192.0.2.99']))
  t.ok(slow.isClosed, 'who does not read')
  t.equal(primary.subscriptions, 0)
  t.equal(clock.pendingTimers, 0)
})

test('Subscriptions: a subscriber that answers only now and then is not cut for the older ones', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock)
  const primary = newPrimary(clock, store)
  const connection = { address: '192.0.2.9' }
  const stream = new FakeStream()
  primary.subscribe(connection, stream, partOf(primary, zoneName))
  for (let i = 0; i < 40; i++) {
    clock.advance(notifyAnswerTimeoutMs / 4)
    store.apply(serviceEdit('api.backend', [`192.0.2.${i}`]))
    if (i >= 2) respond(primary, connection, stream.pushed[i - 2]!)
  }
  t.notOk(stream.isClosed)
  t.equal(stream.pushed.length, 40)
})

test('Subscriptions are bounded, and end with the right to take zones', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock)
  const primary = newPrimary(clock, store)
  const connection = { address: '192.0.2.9' }
  const stream = new FakeStream()
  for (let i = 0; i < notifySubscriptionsPerConnection + 5; i++) {
    const isTaken = primary.subscribe(connection, stream, partOf(primary, `ns${i}.svc.${zoneName}`))
    t.equal(isTaken, i < notifySubscriptionsPerConnection)
  }
  t.match(primary.stats, { subscriptionsRefusedTotal: 5 })
  const other = new FakeStream()
  primary.subscribe({ address: '198.51.100.1' }, other, partOf(primary, zoneName))

  const next = newStore(clock, { epoch: 'epoch-2' })
  primary.use({ ...openTo([]), allow: NetworkSet.parse(['198.51.100.0/24']) }, sourceOf(next))
  t.ok(stream.isClosed, 'not allowed any more')
  t.equal(read(other.pushed.at(-1)!).told!.epoch, 'epoch-2', 'told of the other history')
  store.apply(serviceEdit('api.backend', ['192.0.2.1']))
  t.equal(other.pushed.length, 1, 'the old zones are not listened to')
  next.apply(serviceEdit('api.backend', ['192.0.2.1']))
  clock.advance(100)
  t.equal(other.pushed.length, 2)
  primary.use(openTo(['any'], { schemaZones: [] }), sourceOf())
  t.ok(other.isClosed, 'the zone is gone')
})
