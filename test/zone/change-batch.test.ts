import * as fc from 'fast-check'
import { test } from 'tap'
import { RRTYPE } from '../../src/wire/iana.ts'
import { nameToText, parseName } from '../../src/wire/name.ts'
import { readSoa } from '../../src/wire/rdata.ts'
import type { ServiceState, ZoneChange } from '../../src/zone/zone-change.ts'
import { ZoneStore, type ZoneEdit } from '../../src/zone/zone-store.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { rrset } from '../support/records.ts'
import { apex, ns, soa } from './apex.ts'
import { seed } from '../wire/arbitraries.ts'

const gatherMs = 50

function newStore(clock: ManualClock, gatherMs: number, serial?: number): ZoneStore {
  return new ZoneStore({ apex, epoch: 'e1', soa, ns, clock, gatherMs, ...(serial === undefined ? {} : { serial }) })
}

const address = (owner: string, text: string | null, originAtMs = 0): ZoneEdit => {
  const name = parseName(`${owner}.cluster.local`)
  const after = text === null ? null : rrset(`${owner}.cluster.local`, 'A', 5, text)
  return { sets: [{ owner: name, type: RRTYPE.A, after }], services: [], names: [], originAtMs }
}

test('ZoneStore gathers changes: seen at once, in serial and journal by batches', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock, gatherMs)
  const started = store.serial
  const immediate: ZoneChange[] = []
  const batches: ZoneChange[] = []
  store.subscribe((change) => void immediate.push(change))
  store.subscribeBatches((change) => {
    t.equal(store.serial, change.toSerial, 'a batch is told when the serial has it')
    batches.push(change)
  })

  clock.advance(1_000)
  const first = store.apply(address('a', '192.0.2.1', 7))
  t.equal(batches.length, 1, 'after a pause, at once')
  t.equal(first, batches[0], 'the change is the batch')
  t.equal(store.serial, first!.toSerial)
  t.not(store.serial, started)

  const told = store.serial
  const second = store.apply(address('b', '192.0.2.2', 20))
  store.apply(address('c', '192.0.2.3', 10))
  store.apply(address('b', '192.0.2.4', 30))
  t.match(second, { fromSerial: told, toSerial: told }, 'a change that waits has equal serials')
  t.equal(store.lookup(parseName('c.cluster.local'), RRTYPE.A).kind, 'answer', 'look-ups see it')
  t.equal(immediate.length, 4, 'and listeners')
  t.equal(store.serial, told)
  t.equal(readSoa(store.soa.rdata[0]!).serial, told, 'the SOA waits')
  t.same(store.changesSince(told), [], 'and so does the journal')
  let isBatched = false
  store.whenBatched(() => (isBatched = true))
  t.notOk(isBatched)

  clock.advance(gatherMs)
  t.ok(isBatched)
  t.equal(batches.length, 2)
  const batch = batches[1]!
  t.equal(batch.fromSerial, told)
  t.equal(batch.originAtMs, 10, 'the earliest origin of them')
  t.same(batch.late, [{ owner: parseName('b.cluster.local'), originAtMs: 20 }], 'and who was touched later')
  t.same(store.changesSince(told), [batch])
  t.same(
    batch.sets.map(({ owner, before, after }) => [nameToText(owner), before, after?.rdata[0]?.at(-1)]),
    [
      ['b.cluster.local.', null, 4],
      ['c.cluster.local.', null, 3]
    ]
  )
  t.equal(clock.pendingTimers, 0)

  store.apply(address('x', '192.0.2.9'))
  clock.advance(10)
  store.apply(address('y', '192.0.2.9'))
  store.apply(address('y', null))
  clock.advance(10)
  const before = store.serial
  store.apply(address('z', '192.0.2.9'))
  store.apply(address('z', null))
  store.close()
  t.equal(clock.pendingTimers, 0, 'close ends the timer')
  t.equal(store.serial, before)
})

test('ZoneStore: what undoes itself within a batch leaves no trace', async (t) => {
  const clock = new ManualClock()
  const store = newStore(clock, gatherMs)
  store.apply(address('a', '192.0.2.1'))
  const { serial } = store
  let batches = 0
  store.subscribeBatches(() => batches++)
  store.apply(address('b.c', '192.0.2.1'))
  store.apply(address('b.c', null))
  clock.advance(200)
  t.equal(batches, 0)
  t.equal(store.serial, serial)
})

test('ZoneStore.takeOverFrom goes on behind the serials of the other, without a journal', async (t) => {
  const clock = new ManualClock()
  const old = newStore(clock, 0, 0xffff_fff0)
  for (let i = 0; i < 40; i++) old.apply(address('a', `192.0.2.${i}`))
  const store = newStore(clock, gatherMs, 0xffff_fff8)
  store.apply(address('a', '192.0.2.1'))
  const own = store.serial
  store.takeOverFrom(old)
  t.equal(store.serial, old.serial + 1, 'over the wrap')
  t.equal(store.changesSince(own), null)
  t.equal(store.changesSince(old.serial), null)
  t.same(store.changesSince(store.serial), [])
})

type Step = { owner: number; value: number | null; state: ServiceState | null; advanceMs: number }

test('ZoneStore: a copy made by replaying batches equals the zone, and serials rise by the clock', async (t) => {
  const step: fc.Arbitrary<Step> = fc.record({
    owner: fc.nat(3),
    value: fc.option(fc.nat(3)),
    state: fc.constantFrom<(ServiceState | null)[]>('present', 'empty', null),
    advanceMs: fc.constantFrom(0, 0, 1, 20, 60)
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      const clock = new ManualClock()
      const store = newStore(clock, gatherMs)
      const copy = newStore(clock, 0, store.serial)
      const serials: number[] = []
      store.subscribeBatches((batch) => {
        serials.push(batch.toSerial)
        t.equal(copy.replay(batch), 'applied')
        t.same(contentOf(copy), contentOf(store))
      })
      for (const { owner, value, state, advanceMs } of steps) {
        const name = parseName(`s${owner}.n.svc.cluster.local`)
        const { sets } = address(`s${owner}.n.svc`, value === null ? null : `192.0.2.${value}`)
        const names = [{ owner: parseName(`m${owner}.svc.cluster.local`), exists: value === null }]
        store.apply({ sets, services: [{ owner: name, after: state }], names, originAtMs: 0 })
        clock.advance(advanceMs)
      }
      clock.advance(gatherMs)
      t.same(contentOf(copy), contentOf(store))
      for (const [at, serial] of serials.entries()) {
        if (at > 0) t.ok(serial > serials[at - 1]!)
        t.ok(serial <= Math.floor(clock.epochMs() / gatherMs) + 2, 'no further than the clock')
      }
    }),
    { seed, numRuns: 60 }
  )
})

function contentOf(store: ZoneStore): unknown {
  return {
    serial: store.serial,
    records: [...store.records()].map(({ owner, type, rdata }) => `${owner} ${type} ${rdata.join('|')}`).sort(),
    services: [...store.services()].map(([owner, state]) => `${owner} ${state}`).sort(),
    names: [...store.pseudoNames()].sort()
  }
}
