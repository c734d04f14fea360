import * as fc from 'fast-check'
import { test } from 'tap'
import { journalRecords, journalRRsets } from '../../src/base/limits.ts'
import { parseName } from '../../src/wire/name.ts'
import type { RRset } from '../../src/wire/rr.ts'
import { Journal } from '../../src/zone/journal.ts'
import { isLaterSerial, nextSerial, serialFromTime } from '../../src/zone/serial.ts'
import type { ZoneChange } from '../../src/zone/zone-change.ts'
import { ZoneStore } from '../../src/zone/zone-store.ts'
import { Zones } from '../../src/zone/zones.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { rrset } from '../support/records.ts'

const owner = parseName('a.example.org')

/** A change with so many RRsets of so many records each. */
function change(fromSerial: number, toSerial: number, rrsets = 1, records = 1): ZoneChange {
  const rdata = Array.from({ length: records }, () => Uint8Array.of(192, 0, 2, 1))
  const after: RRset = { owner, type: 1, ttlSeconds: 5, rdata }
  const sets = Array.from({ length: rrsets }, () => ({ owner, type: 1, before: null, after }))
  const zone = parseName('example.org')
  const parts = { sets, services: [], names: [], existence: [] }
  return { zone, epoch: 'e', fromSerial, toSerial, originAtMs: 0, learnedAtMs: 0, ...parts }
}

test('Journal.since is exact or null', async (t) => {
  const journal = new Journal(10)
  t.same(journal.since(10), [], 'nothing has changed since the start')
  t.equal(journal.since(9), null)
  const changes = [change(10, 11), change(11, 15), change(15, 16)]
  for (const one of changes) journal.push(one)
  const rows: [number, ZoneChange[] | null][] = [
    [9, null],
    [10, changes],
    [11, changes.slice(1)],
    [12, null], // between two serials that the zone had
    [15, changes.slice(2)],
    [16, []],
    [17, null]
  ]
  for (const [serial, want] of rows) t.same(journal.since(serial), want, `since ${serial}`)
  t.throws(() => journal.push(change(17, 18)), RangeError, 'a gap')
  t.equal(journal.size, 3)
})

test('Journal forgets the oldest changes when they hold too much', async (t) => {
  const many = new Journal(0)
  // Serials with gaps, as the clock makes them.
  for (let at = 0; at < journalRRsets + 3; at++) many.push(change(at * 7, (at + 1) * 7))
  t.equal(many.entries, journalRRsets)
  t.equal(many.oldestSerial, 21)
  t.equal(many.since(14), null)
  t.equal(many.since(21)!.length, journalRRsets)

  const large = new Journal(0)
  const perChange = 1_000
  const kept = journalRecords / perChange
  for (let serial = 0; serial < kept + 5; serial++) large.push(change(serial, serial + 1, 1, perChange))
  t.equal(large.size, kept, 'records count too')

  const whole = new Journal(0)
  whole.push(change(0, 1))
  whole.push(change(1, 2, journalRRsets + 1))
  t.equal(whole.size, 0, 'a change that is too large leaves it empty')
  t.equal(whole.since(1), null)
  t.same(whole.since(2), [])
  whole.push(change(2, 3))
  t.equal(whole.since(2)!.length, 1, 'and it goes on from there')

  const bare = new Journal(0)
  for (let serial = 0; serial < journalRRsets + 1; serial++) bare.push(change(serial, serial + 1, 0))
  t.equal(bare.size, journalRRsets, 'changes without entries are bounded as well')
})

test('Journal goes on where serials wrap', async (t) => {
  const max = 2 ** 32 - 1
  const journal = new Journal(max - 1)
  journal.push(change(max - 1, max))
  journal.push(change(max, 0))
  journal.push(change(0, 1))
  t.equal(journal.since(max)!.length, 2)
  t.equal(journal.since(1)!.length, 0)
})

test('isLaterSerial compares as RFC 1982 says', async (t) => {
  const rows: [number, number, boolean][] = [
    [1, 0, true],
    [0, 1, false],
    [5, 5, false],
    [0, 2 ** 32 - 1, true],
    [2 ** 32 - 1, 0, false],
    [2 ** 31 - 1, 0, true],
    [2 ** 31, 0, false], // exactly opposite: in no order
    [0, 2 ** 31, false],
    [0, 2 ** 31 + 1, true]
  ]
  for (const [one, other, want] of rows) t.equal(isLaterSerial(one, other), want, `${one} after ${other}`)
})

test('nextSerial is always later, and follows the clock where that is later', async (t) => {
  const serial = fc.integer({ min: 0, max: 2 ** 32 - 1 })
  const epochMs = fc.integer({ min: 0, max: 2 ** 48 })
  fc.assert(
    fc.property(serial, epochMs, (previous, nowMs) => {
      const next = nextSerial(previous, nowMs)
      const plusOne = (previous + 1) % 2 ** 32
      return (
        next >= 0 &&
        next < 2 ** 32 &&
        isLaterSerial(next, previous) &&
        (next === plusOne || next === serialFromTime(nowMs))
      )
    }),
    { seed: 7 }
  )
  const now = Date.UTC(2026, 0, 1)
  t.equal(nextSerial(serialFromTime(now), now + 1_000), serialFromTime(now) + 20)
  t.equal(nextSerial(serialFromTime(now), now + 10), serialFromTime(now) + 1)
})

test('Zones.find gives the longest apex at or above a name', async (t) => {
  const clock = new ManualClock()
  const zone = (apex: string): ZoneStore => {
    const name = parseName(apex)
    const soa = { mname: name, rname: name, refresh: 1, retry: 1, expire: 1, minimumSeconds: 1, ttlSeconds: 1 }
    return new ZoneStore({ apex: name, epoch: 'e', soa, ns: rrset(apex, 'NS', 1, 'ns.example.org'), clock })
  }
  const zones = new Zones()
  const cluster = zone('cluster.local')
  const below = zone('backend.svc.cluster.local')
  const reverse = zone('10.in-addr.arpa')
  for (const each of [cluster, below, reverse]) zones.add(each)
  const rows: [string, ZoneStore | null][] = [
    ['cluster.local', cluster],
    ['api.shop.svc.cluster.local', cluster],
    ['svc.cluster.local', cluster],
    ['backend.svc.cluster.local', below],
    ['x.api.backend.svc.cluster.local', below],
    ['xbackend.svc.cluster.local', cluster],
    ['xcluster.local', null],
    ['local', null],
    ['.', null],
    ['1.0.0.10.in-addr.arpa', reverse],
    ['1.0.0.11.in-addr.arpa', null],
    // A label whose octets look like the wire form of an apex must not match.
    ['a\\007cluster\\005local.example', null]
  ]
  for (const [qname, want] of rows) t.equal(zones.find(parseName(qname)), want, qname)

  const again = zone('cluster.local')
  zones.add(again)
  t.equal(zones.find(parseName('a.cluster.local')), again, 'a zone of the same apex is replaced')
  t.equal(zones.get(again.apex), again)
  t.equal(zones.all().length, 3)
  t.ok(zones.remove(below.apex))
  t.notOk(zones.remove(below.apex))
  t.equal(zones.find(parseName('api.backend.svc.cluster.local')), again)
  t.ok(zones.remove(again.apex))
  t.equal(zones.find(parseName('a.cluster.local')), null)
  for (const apex of ['one.test', 'two.test']) zones.add(zone(apex))
  zones.remove(parseName('one.test'))
  t.equal(zones.find(parseName('a.one.test')), null)
  t.equal(zones.find(parseName('a.two.test'))?.apex, parseName('two.test'), 'one of two apexes of equal length stays')
  const root = zone('.')
  zones.add(root)
  t.equal(zones.find(parseName('example.org')), root)
  t.equal(zones.find(parseName('.')), root)
})
