/** What a response leaves out, and in which order it says the rest. */
import * as fc from 'fast-check'
import { test } from 'tap'
import { encodeEde } from '../../src/wire/edns.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { decodeMessage, groupRRsets } from '../../src/wire/message.ts'
import { parseName } from '../../src/wire/name.ts'
import { aRdata, srvRdata, txtRdata } from '../../src/wire/rdata.ts'
import { encodeResponse } from '../../src/wire/response.ts'
import type { ResourceRecord, RRset } from '../../src/wire/rr.ts'
import { drawIndex, putBackIndexes } from '../../src/wire/shuffle.ts'
import { cpuMsOf } from '../support/cpu-time.ts'
import { rrset } from '../support/records.ts'
import { domainName, resourceRecord, seed } from './arbitraries.ts'
import { addresses, asked, decode, encode, name, noEdns, randomFrom, response } from './response-fixture.ts'

test('encodeResponse leaves out first what is missed least', async (t) => {
  const big = (owner: string): RRset => ({ ...rrset(owner, 'TXT', 5, 'x'), rdata: [txtRdata(['x'.repeat(250)])] })
  const some = rrset(name, 'A', 5, '10.0.0.1')
  const additional = decode(response({ answer: [some], additional: [big('a'), big('b'), some] }), 512)
  t.equal(additional.tc, false, 'additional records are left out without TC')
  t.same(
    additional.additional.map(({ type }) => type),
    [RRTYPE.TXT, RRTYPE.A],
    'and whole; what still fits stays'
  )
  const authority = decode(response({ answer: [some], authority: [big('a'), big('b')], additional: [some] }), 512)
  t.equal(authority.tc, true, 'authority records with TC')
  t.equal(authority.authority.length, 1)
  t.equal(authority.additional.length, 0, 'and nothing follows')
  const answer = decode(
    response({ answer: [some, big(name), big('b'), some], authority: [some], additional: [some] }),
    512
  )
  t.equal(answer.tc, true, 'answers with TC')
  t.equal(answer.answer.length, 2)
  t.equal(answer.authority.length + answer.additional.length, 0)
  t.ok(answer.edns !== null, 'OPT stays')
  const alias = rrset(name, 'CNAME', 5, 'x')
  const chain = decode(response({ answer: [alias, rrset('x', 'A', 5, ...addresses(50))] }), 512)
  t.equal(chain.answer[0]!.type, RRTYPE.CNAME, 'an alias stays before what it leads to')
  t.equal(chain.answer.length, 1 + Math.floor((512 - 12 - asked.length - 11 - 15 + 1) / 16))
})

test('an RRset that did not fit leaves nothing that a later one points to', async (t) => {
  const owner = `${'y'.repeat(60)}.example`
  const filler = { ...rrset(name, 'TXT', 5, 'x'), rdata: [txtRdata(['x'.repeat(255), 'x'.repeat(110)])] }
  const long = { ...rrset(owner, 'TXT', 5, 'x'), rdata: [txtRdata(['x'.repeat(40)])] }
  const additional = [long, rrset(owner, 'A', 5, '10.0.0.1'), rrset('svc', 'A', 5, '10.0.0.2'), long]
  for (let limit = 512; limit < 640; limit++) {
    const message = decode(response({ answer: [filler], additional }), limit)
    const owners = message.additional.map((record) => record.owner)
    t.same(
      owners,
      owners.filter((each) => each === parseName(owner) || each === parseName('svc')),
      `limit ${limit}`
    )
    t.ok(message.additional.every(({ owner: each, type }) => type !== RRTYPE.TXT || each === parseName(owner)))
  }
})

test('encodeResponse keeps OPT to the last, and its options as long as they fit', async (t) => {
  const options = [encodeEde(22, 'x'.repeat(600))]
  const edns = { ...noEdns, options }
  t.same(decode(response({}, { edns }), 512).edns, noEdns, 'the options go')
  t.same(decode(response({}, { edns }), 1232).edns, edns)
  t.throws(() => encode(response({}), 40), { code: 'TOO_LARGE' }, 'no room for the question')
  const longest = Uint8Array.from([...Array.from({ length: 127 }).flatMap(() => [1, 0x61]), 0, 0, 1, 0, 1])
  t.equal(decode(response({}, { question: longest, edns }), 512).questions.length, 1, '512 octets always have room')
})

test('encodeResponse cuts an RRset that does not fit to a fair random subset', async (t) => {
  for (const type of ['A', 'TXT']) {
    const total = 100
    const texts = type === 'A' ? addresses(total) : addresses(total).map((text) => text.padEnd(12))
    const set = rrset(name, type, 5, ...texts)
    const rounds = 4000
    const random = randomFrom(seed)
    const seen = new Map<string, number>()
    let bothOfTwo = 0
    let kept = 0
    for (let round = 0; round < rounds; round++) {
      const { answer, tc } = decode(response({ answer: [set] }), 512, random)
      kept = answer.length
      const keys = new Set(answer.map(({ rdata }) => Buffer.from(rdata).toString('hex')))
      if (!tc || keys.size !== kept) t.fail('TC, and no record twice')
      for (const key of keys) seen.set(key, (seen.get(key) ?? 0) + 1)
      if ([0, 1].every((i) => keys.has(Buffer.from(set.rdata[i]!).toString('hex')))) bothOfTwo++
    }
    // Each record's number of appearances is binomial: five standard deviations are enough for 100 of them.
    const share = kept / total
    const deviation = Math.sqrt(rounds * share * (1 - share))
    for (const rdata of set.rdata) {
      const count = seen.get(Buffer.from(rdata).toString('hex')) ?? 0
      if (Math.abs(count - rounds * share) > 5 * deviation)
        t.fail(`${type}: one record came ${count} times of ${rounds}`)
    }
    t.equal(seen.size, total, `${type}: each record comes, ${kept} of ${total} at a time`)
    const pairShare = (share * (kept - 1)) / (total - 1)
    const pairDeviation = Math.sqrt(rounds * pairShare * (1 - pairShare))
    t.ok(Math.abs(bothOfTwo - rounds * pairShare) < 5 * pairDeviation, `${type}: neighbours are no more often together`)
  }
})

test('encodeResponse writes A, AAAA and SRV in fair random order, and nothing else', async (t) => {
  const sets = [
    rrset(name, 'A', 5, ...addresses(4)),
    rrset(name, 'AAAA', 5, '2001:db8::1', '2001:db8::2', '2001:db8::3', '2001:db8::4'),
    rrset(name, 'SRV', 5, '0 25 1 a', '0 25 2 b', '0 25 3 c', '0 25 4 d')
  ]
  for (const set of sets) {
    const rounds = 24_000
    const random = randomFrom(seed)
    const orders = new Map<string, number>()
    for (let round = 0; round < rounds; round++) {
      const { answer } = decode(response({ answer: [set] }), 1232, random)
      const order = answer.map(({ rdata }) => set.rdata.findIndex((each) => Buffer.compare(each, rdata) === 0)).join('')
      orders.set(order, (orders.get(order) ?? 0) + 1)
    }
    const expected = rounds / 24
    const chiSquare = [...orders.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0)
    t.equal(orders.size, 24, 'all 24 orders come')
    t.ok(chiSquare < 50, `none more often than another: chi-square ${chiSquare.toFixed(1)} with 23 degrees of freedom`)
  }
  for (const [type, texts] of [
    ['TXT', ['a', 'b', 'c']],
    ['NS', ['c', 'b', 'a']]
  ] as const) {
    const set = rrset(name, type, 5, ...texts)
    const { answer } = decode(response({ answer: [set] }))
    t.same(
      answer.map(({ rdata }) => rdata),
      set.rdata,
      `${type} keeps its order`
    )
  }
})

test('drawIndex gives each index once, and putBackIndexes restores the order', async (t) => {
  const random = randomFrom(5)
  for (const [total, drawn] of [
    [1, 1],
    [10, 10],
    [1000, 30],
    [70, 70],
    [5000, 1]
  ] as const) {
    const indexes = Array.from({ length: drawn }, (_, i) => drawIndex(i, total, random))
    putBackIndexes(drawn)
    t.equal(new Set(indexes).size, drawn)
    t.ok(
      indexes.every((index) => index >= 0 && index < total),
      `${drawn} of ${total}`
    )
  }
  const first = Array.from({ length: 9 }, (_, i) => drawIndex(i, 9, () => 0))
  putBackIndexes(9)
  t.same(first, [0, 1, 2, 3, 4, 5, 6, 7, 8], 'nothing is left of the draws before')
})

test('encodeResponse fits every limit, whatever it is given', async (t) => {
  const rrsets = fc.array(resourceRecord, { maxLength: 12 }).map(groupRRsets)
  fc.assert(
    fc.property(
      rrsets,
      rrsets,
      rrsets,
      domainName,
      fc.integer({ min: 512, max: 4096 }),
      (answer, authority, additional, qname, limit) => {
        const question = Uint8Array.from([...Buffer.from(qname, 'latin1'), 0, 1, 0, 1])
        const given = response({ answer, authority, additional }, { question, maxTtlSeconds: 0x7fff_ffff })
        const octets = encode(given, limit)
        const message = decodeMessage(octets)
        const whole = [answer, authority].flat().reduce((sum, { rdata }) => sum + rdata.length, 0)
        const isWhole = message.answer.length + message.authority.length === whole
        t.ok(octets.length <= limit, 'fits')
        t.equal(message.tc, !isWhole, 'TC exactly where something is missing')
        t.equal(message.questions[0]!.name, qname)
        t.ok(message.edns !== null, 'OPT')
        const records = (sets: readonly RRset[]): Set<string> =>
          new Set(
            sets.flatMap(({ owner, type, ttlSeconds, rdata }) =>
              rdata.map((each) => keyOf({ owner, type, ttlSeconds, rdata: each }))
            )
          )
        const known = records(answer)
        t.ok(
          message.answer.every((record) => known.delete(keyOf(record))),
          'no record that was not given, none twice'
        )
      }
    ),
    { seed, numRuns: 300 }
  )
})

const keyOf = ({ owner, type, ttlSeconds, rdata }: Omit<ResourceRecord, 'class'>): string =>
  `${owner} ${type} ${ttlSeconds} ${Buffer.from(rdata).toString('hex')}`

test('encodeResponse stays bounded for RRsets far larger than a message', async (t) => {
  const huge = {
    ...rrset(name, 'A', 5, '10.0.0.1'),
    rdata: Array.from({ length: 50_000 }, (_, i) => aRdata(`10.0.${i % 256}.${(i >> 8) % 256}`))
  }
  const tookMs = cpuMsOf(() => {
    for (let round = 0; round < 1000; round++)
      encodeResponse(new Uint8Array(1232), response({ answer: [huge] }), 1232, Math.random)
  })
  t.ok(tookMs < 2000, 'a response costs what is written, not what there is')
  t.equal(
    decode(response({ answer: [huge] }), 65_535).answer.length,
    Math.floor((65_535 - 12 - asked.length - 11) / 16)
  )
  const target = parseName('pod.backend.svc')
  const srv = Array.from({ length: 500 }, (_, port) => srvRdata({ priority: 0, weight: 1, port, target }))
  const { tc, answer } = decode(
    response({ answer: [{ owner: parseName(name), type: RRTYPE.SRV, ttlSeconds: 5, rdata: srv }] })
  )
  t.ok(tc && answer.length > 20, 'SRV is cut as well')
})
