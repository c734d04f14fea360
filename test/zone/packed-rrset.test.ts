import fc from 'fast-check'
import { test } from 'tap'
import { unpackedRecords, unpackedRRsets } from '../../src/base/limits.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { parseName } from '../../src/wire/name.ts'
import type { RRset } from '../../src/wire/rr.ts'
import { PackedRRset, packRRset, packText, recordsIn } from '../../src/zone/packed-rrset.ts'
import { isSameRRset } from '../../src/zone/zone-change.ts'
import { rrset } from '../support/records.ts'

const hex = ({ rdata }: RRset): string[] => rdata.map((octets) => Buffer.from(octets).toString('hex'))

test('packRRset gives back what it was given, in the order of the octets', async (t) => {
  const owners = ['a.example.org', 'example.org', '.', 'web.shop.svc.cluster.local'].map(parseName)
  const ends = owners.flatMap((owner) => [owner, owner.slice(1), owner.slice(-7), owner.slice(-8), owner.slice(-9), ''])
  const octets = fc
    .tuple(fc.uint8Array({ maxLength: 40 }), fc.constantFrom(...ends))
    .map(([head, end]) => Uint8Array.from([...head, ...Buffer.from(end, 'latin1')]))
  fc.assert(
    fc.property(fc.constantFrom(...owners), fc.array(octets, { minLength: 1, maxLength: 12 }), (owner, records) => {
      const distinct = new Map(records.map((record) => [Buffer.from(record).toString('hex'), record]))
      const given = { owner, type: 65_280, ttlSeconds: 7, rdata: [...distinct.values()] }
      const packed = packRRset(given)
      const isCounted = recordsIn(packed) === distinct.size
      const isRead = hex(packed).join() === [...distinct.keys()].sort().join()
      packed.letGo()
      const isReadAgain = hex(packed).join() === [...distinct.keys()].sort().join()
      const turned = packRRset({ ...given, rdata: given.rdata.toReversed() })
      return isCounted && isRead && isReadAgain && isSameRRset(packed, turned) && packRRset(packed) === packed
    }),
    { numRuns: 1_000, seed: 5 }
  )
  t.pass('1,000 sets')
})

test('sets of any size', async (t) => {
  const owner = parseName('a.example.org')
  const records = (count: number, octets: number): Uint8Array[] =>
    Array.from({ length: count }, (_, at) => new Uint8Array(octets).fill(at & 0xff).fill(at >> 8, 0, 1))
  for (const [count, octets] of [
    [2, 65_535],
    [4_096, 40],
    [3, 0x4000],
    [2, 1]
  ] as const) {
    // prettier-ignore
    const given = { owner, type: 65_280, ttlSeconds: 7, rdata: records(count, octets) }
    t.same(hex(packRRset(given)), hex(given).sort(), `${count} records of ${octets} octets`)
  }
})

test('a packed RRset is plain data to whoever clones, spreads or compares it', async (t) => {
  const plain = rrset('a.example.org', 'A', 5, '192.0.2.1', '192.0.2.2')
  const packed: RRset = packRRset(plain)
  t.same(structuredClone(packed), plain)
  t.same({ ...packed, ttlSeconds: 9 }, { ...plain, ttlSeconds: 9 })
  t.same(packed, plain)
  t.same(Object.keys(packed).toSorted(), Object.keys(plain).toSorted())
})

test('PackedRRset.equals tells a TTL, a record, and one record from several', async (t) => {
  const one = packRRset(rrset('a.example.org', 'A', 5, '192.0.2.1'))
  t.ok(one.equals(packRRset(rrset('a.example.org', 'A', 5, '192.0.2.1'))))
  t.notOk(one.equals(packRRset(rrset('a.example.org', 'A', 6, '192.0.2.1'))), 'another TTL')
  t.notOk(one.equals(packRRset(rrset('a.example.org', 'A', 5, '192.0.2.2'))), 'another address')
  const { owner, type, ttlSeconds } = one
  const text = packText(owner, ['\x01', '\x02'])
  const several = new PackedRRset(owner, type, ttlSeconds, text, false)
  const single = new PackedRRset(owner, type, ttlSeconds, text, true)
  for (const when of ['before', 'after']) t.notOk(several.equals(single), `the same text read otherwise, ${when} it is read`) // prettier-ignore
  t.equal(several.rdata.length + single.rdata.length, 3)
  t.notOk(several.equals(single))
})

test('the octets of the sets read last are at hand, and of no more than that', async (t) => {
  const owner = parseName('a.example.org')
  const make = (records: number): PackedRRset => {
    const texts = Array.from({ length: records }, (_, at) => String.fromCharCode(at >> 8, at & 255, 0, 0))
    return new PackedRRset(owner, RRTYPE.A, 5, packText(owner, texts), records === 1)
  }
  const first = make(2)
  const { rdata } = first
  for (let at = 1; at < unpackedRRsets; at++) make(1).rdata.at(0)
  t.equal(first.rdata, rdata, 'no more sets than fit')
  make(1).rdata.at(0)
  t.not(first.rdata, rdata, 'one more: made anew')
  t.same(first.rdata, rdata)
  const again = first.rdata
  const large = make(unpackedRecords + 1)
  t.equal(large.rdata.length, unpackedRecords + 1)
  t.equal(large.rdata, large.rdata, 'a set larger than all that is kept is kept alone')
  t.not(first.rdata, again)
})
