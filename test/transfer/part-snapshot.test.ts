/**
 * Large zones are gone through in turns, and are what they were at one moment all the same; equal transfers are made
 * once.
 */
import { test } from 'tap'
import type { Clock } from '../../src/base/clock.ts'
import { ExportRule } from '../../src/transfer/export-rule.ts'
import { snapshotOf } from '../../src/transfer/part-snapshot.ts'
import { ZonePart } from '../../src/transfer/zone-part.ts'
import { decodeMeta, privateType } from '../../src/transfer/private-records.ts'
import { decodeMessage } from '../../src/wire/message.ts'
import { peerdnsOf } from '../../src/transfer/transfer-query.ts'
import type { RRset } from '../../src/wire/rr.ts'
import type { ZoneStore } from '../../src/zone/zone-store.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { newPrimary, newStore, peerdns, serviceEdit, take, zoneName } from './primary-fixture.ts'

const services = 3_000
const text = ({ owner, type, ttlSeconds, rdata }: RRset): string =>
  `${owner} ${type} ${ttlSeconds} ${rdata.map((octets) => Buffer.from(octets).toString('hex')).join(' ')}`

const contentOf = (store: ZoneStore, part: ZonePart) => ({
  rrsets: [...store.records()]
    .flatMap((rrset) => part.visible(rrset) ?? [])
    .map(text)
    .sort(),
  services: [...store.services()].map(([owner, state]) => `${owner} ${state}`).sort(),
  names: [...store.pseudoNames()].sort()
})

function filled(clock: ManualClock): ZoneStore {
  const store = newStore(clock)
  for (let at = 0; at < services; at++)
    store.apply(serviceEdit(`s${at}.ns`, at % 3 === 0 ? [] : [`10.0.0.${at % 250}`]))
  clock.advance(100)
  return store
}

test('a snapshot is the zone as it is when it is done, whatever changed while it was taken', async (t) => {
  const manual = new ManualClock()
  const store = filled(manual)
  // Each look at this clock finds that a turn is over.
  let looks = 0
  const clock: Clock = {
    nowMs: () => 10 * looks++,
    epochMs: () => manual.epochMs(),
    after: (ms, callback) => manual.after(ms, callback)
  }
  const part = new ZonePart(store, store.apex, ExportRule.open)
  const taken = snapshotOf(part, clock)
  let changes = 0
  const snapshot = { isOver: false }
  void taken.finally(() => (snapshot.isOver = true))
  while (!snapshot.isOver) {
    // Changed, gone, come back, new, with and without addresses.
    const name = `s${(changes * 997) % (services + 200)}.ns`
    store.apply(
      serviceEdit(name, changes % 4 === 0 ? [] : [`10.1.0.${changes % 250}`], changes % 5 === 0 ? null : 'present')
    )
    if (changes % 7 === 0) store.apply(serviceEdit(name, ['10.9.9.9']))
    changes++
    await new Promise((resolve) => setImmediate(resolve))
    manual.advance(60)
  }
  const { content, serial } = await taken
  t.ok(changes > 5, `${changes} turns`)
  // The last change came after the snapshot, or its batch did; so compare with what the serial stands for.
  const now = contentOf(store, part)
  const later = new Set(
    (store.changesSince(serial) ?? []).flatMap(({ sets, services: of, names }) =>
      [...sets, ...of, ...names].map(({ owner }) => owner)
    )
  )
  const isOf = (line: string): boolean => ![...later].some((owner) => line.startsWith(owner))
  t.same(content.rrsets.map(text).sort().filter(isOf), now.rrsets.filter(isOf))
  t.same(
    content.services
      .map(([owner, state]) => `${owner} ${state}`)
      .sort()
      .filter(isOf),
    now.services.filter(isOf)
  )
  t.same([...content.names].sort().filter(isOf), now.names.filter(isOf))
})

test('equal transfers are made once, with the id, the clock and the age of each', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock)
  const primary = newPrimary(clock, store)
  for (let at = 0; at < 50; at++) store.apply(serviceEdit(`s${at}.ns`, [`10.0.0.${at}`]))
  clock.advance(100)
  const from = store.serial
  store.apply(serviceEdit('s1.ns', ['10.0.1.1'], 'present', 77))
  clock.advance(100)
  for (const serial of [from, null]) {
    const asked = { serial, peerdns: peerdns(store.epoch) }
    const first = await take(primary, zoneName, asked)
    const firstAtMs = clock.epochMs()
    clock.advance(1_234)
    const second = await take(primary, zoneName, asked)
    t.equal(first.length, second.length)
    const [one, other] = [first, second].map((messages) => messages.map((message) => decodeMessage(message))) as [
      ReturnType<typeof decodeMessage>[],
      ReturnType<typeof decodeMessage>[]
    ]
    const records = (of: typeof one) => of.flatMap(({ answer }) => answer)
    const plain = (of: typeof one) => records(of).filter(({ type }) => type !== privateType.meta)
    t.same(plain(one), plain(other))
    const metas = (of: typeof one) =>
      records(of)
        .filter(({ type }) => type === privateType.meta)
        .map(({ rdata }) => decodeMeta(rdata))
    t.ok(
      metas(one).every(({ sentAtMs }) => sentAtMs === firstAtMs),
      'the clock of the first one'
    )
    t.ok(
      metas(other).every(({ sentAtMs }) => sentAtMs === firstAtMs + 1_234),
      'and of the second'
    )
    t.same(
      metas(one).map(({ originAtMs }) => originAtMs),
      metas(other).map(({ originAtMs }) => originAtMs)
    )
    t.same(peerdnsOf(other[0]!)?.epoch ?? null, peerdnsOf(one[0]!)?.epoch ?? null)
  }
  const whole = await take(primary, zoneName, { serial: null })
  t.notOk(
    whole.flatMap((message) => decodeMessage(message).answer).some(({ type }) => type >= privateType.meta),
    'who is no peerdns gets no private records'
  )
  t.equal(primary.stats.differencesTotal, 2)
  t.equal(primary.stats.wholeTotal, 3)
})
