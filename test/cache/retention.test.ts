import { test } from 'tap'
import { maxAliases } from '../../src/base/limits.ts'
import { RCODE, RRTYPE } from '../../src/wire/iana.ts'
import { nameToText, parseName } from '../../src/wire/name.ts'
import type { Sections } from '../../src/wire/rr.ts'
import { retentionOf } from '../../src/cache/retention.ts'
import { rrset, sections, soa } from '../support/records.ts'

const caps = { maxTtlSeconds: 3_600, maxNegativeTtlSeconds: 30 }
const over31Bits = 2 ** 31

const a = (owner: string, ttlSeconds: number) => rrset(owner, 'A', ttlSeconds, '192.0.2.1')
const cname = (owner: string, ttlSeconds: number, end: string) => rrset(owner, 'CNAME', ttlSeconds, end)

type Row = {
  name: string
  type?: number
  said: Partial<Sections>
  caps?: Partial<typeof caps>
  /** Kind and seconds; null: nothing that may be kept. */
  want: string | null
}

const rows: Row[] = [
  { name: 'an answer', said: { answer: [a('x.test', 20)] }, want: 'positive 20' },
  {
    name: 'an answer over the cap',
    said: { answer: [a('x.test', 20)] },
    caps: { maxTtlSeconds: 9.9 },
    want: 'positive 9'
  },
  { name: 'TTL 0', said: { answer: [a('x.test', 0)] }, want: 'positive 0' },
  { name: 'a cap of 0', said: { answer: [a('x.test', 20)] }, caps: { maxTtlSeconds: 0.5 }, want: 'positive 0' },
  {
    name: 'no cap',
    said: { answer: [a('x.test', 90_000)] },
    caps: { maxTtlSeconds: Infinity },
    want: 'positive 90000'
  },
  { name: 'a TTL of 2^31-1', said: { answer: [a('x.test', over31Bits - 1)] }, want: 'positive 3600' },
  { name: 'one above it counts as 0 (RFC 2181 §8)', said: { answer: [a('x.test', over31Bits)] }, want: 'positive 0' },
  { name: 'every type for ANY', type: RRTYPE.ANY, said: { answer: [a('x.test', 20)] }, want: 'positive 20' },
  {
    name: 'the lowest TTL of an alias and its end',
    said: { answer: [cname('x.test', 7, 'y.test'), a('y.test', 20)] },
    want: 'positive 7'
  },
  {
    name: 'an alias in another case and order',
    said: { answer: [a('y.test', 20), cname('x.test', 30, 'Y.TEST')] },
    want: 'positive 20'
  },
  { name: 'an alias whose end is left open', said: { answer: [cname('x.test', 20, 'y.other')] }, want: 'positive 20' },
  {
    name: 'an alias that was asked for',
    type: RRTYPE.CNAME,
    said: { answer: [cname('x.test', 20, 'y.test')] },
    want: 'positive 20'
  },
  {
    name: 'a loop of aliases',
    said: { answer: [cname('x.test', 5, 'y.test'), cname('y.test', 5, 'x.test')] },
    want: null
  },
  { name: 'NODATA', said: { authority: [soa('test', 20, 15)] }, want: 'nodata 15' },
  { name: 'NODATA, the SOA TTL being lower', said: { authority: [soa('test', 10, 15)] }, want: 'nodata 10' },
  { name: 'NXDOMAIN', said: { rcode: RCODE.NXDOMAIN, authority: [soa('test', 20, 15)] }, want: 'nxdomain 15' },
  { name: 'a denial over its cap', said: { authority: [soa('test', 900, 900)] }, want: 'nodata 30' },
  {
    name: 'a denial over the cap for everything',
    said: { authority: [soa('test', 900, 900)] },
    caps: { maxTtlSeconds: 4 },
    want: 'nodata 4'
  },
  { name: 'a MINIMUM of 0', said: { authority: [soa('test', 20, 0)] }, want: 'nodata 0' },
  { name: 'a MINIMUM over 31 bits', said: { authority: [soa('test', 20, over31Bits)] }, want: 'nodata 0' },
  { name: 'NODATA without SOA', said: {}, want: null },
  { name: 'NXDOMAIN without SOA', said: { rcode: RCODE.NXDOMAIN }, want: null },
  { name: 'a SOA of a zone that does not hold the name', said: { authority: [soa('other', 20, 15)] }, want: null },
  { name: 'a SOA below the name', said: { authority: [soa('a.x.test', 20, 15)] }, want: null },
  { name: 'a referral', said: { authority: [rrset('test', 'NS', 20, 'ns.test')] }, want: null },
  { name: 'records of another name', said: { answer: [a('z.test', 20)] }, want: null },
  {
    name: 'NXDOMAIN at the end of an alias',
    said: { rcode: RCODE.NXDOMAIN, answer: [cname('x.test', 20, 'y.other')], authority: [soa('other', 9, 9)] },
    want: 'nxdomain 9'
  },
  {
    name: 'NXDOMAIN at the end of an alias that runs out first',
    said: { rcode: RCODE.NXDOMAIN, answer: [cname('x.test', 3, 'y.other')], authority: [soa('other', 9, 9)] },
    want: 'nxdomain 3'
  },
  {
    name: 'NXDOMAIN at the end of an alias, with the SOA of its beginning',
    said: { rcode: RCODE.NXDOMAIN, answer: [cname('x.test', 20, 'y.other')], authority: [soa('test', 9, 9)] },
    want: null
  },
  {
    name: 'NODATA at the end of an alias',
    said: { answer: [cname('x.test', 20, 'y.other')], authority: [soa('other', 9, 9)] },
    want: 'nodata 9'
  },
  ...[RCODE.SERVFAIL, RCODE.REFUSED, RCODE.FORMERR, RCODE.NOTIMP].map((rcode) => ({
    name: `RCODE ${rcode}`,
    said: { rcode, answer: [a('x.test', 20)] },
    want: null
  }))
]

test('retentionOf says what may be kept, and for how long', async (t) => {
  for (const { name, type = RRTYPE.A, said, caps: other, want } of rows) {
    const kept = retentionOf(sections(said), { name: parseName('x.test'), type }, { ...caps, ...other })
    t.equal(kept === null ? null : `${kept.kind} ${kept.ttlSeconds}`, want, name)
  }
  const chain = Array.from({ length: maxAliases + 1 }, (_, at) =>
    cname(at === 0 ? 'x.test' : `${at}.test`, 5, `${at + 1}.test`)
  )
  const question = { name: parseName('x.test'), type: RRTYPE.A }
  const ofAliases = (count: number) =>
    retentionOf(sections({ answer: [...chain.slice(0, count), a(`${count}.test`, 5)] }), question, caps)
  t.ok(ofAliases(maxAliases), 'as many aliases are followed')
  t.equal(ofAliases(maxAliases + 1), null, 'and no more')
})

test('retentionOf caps every TTL, and leaves out what would run out before the answer', async (t) => {
  const question = { name: parseName('x.test'), type: RRTYPE.SRV }
  const said = sections({
    answer: [rrset('x.test', 'SRV', 60, '0 100 80 h1.test', '0 100 80 h2.test')],
    authority: [rrset('test', 'NS', 100_000, 'ns.test')],
    additional: [a('h1.test', 60), a('h2.test', 5), a('h3.test', 100_000), a('h4.test', over31Bits)]
  })
  const text = (all: Sections['answer']): string[] => all.map((one) => `${nameToText(one.owner)} ${one.ttlSeconds}`)
  const kept = retentionOf(said, question, caps)!.sections
  t.same(text(kept.answer), ['x.test. 60'])
  t.same(text(kept.authority), ['test. 3600'])
  t.same(text(kept.additional), ['h1.test. 60', 'h3.test. 3600'])
  t.equal(kept.answer[0], said.answer[0], 'what needs no cap is not copied')
  const capped = retentionOf(said, question, { ...caps, maxTtlSeconds: 4 })!.sections
  t.same(text(capped.additional), ['h1.test. 4', 'h2.test. 4', 'h3.test. 4'])

  const denial = sections({
    rcode: RCODE.NXDOMAIN,
    authority: [soa('test', 900, 600), rrset('test', 'NS', 10, 'ns.test')]
  })
  const { sections: told, zoneApex } = retentionOf(denial, question, caps)!
  t.same(text(told.authority), ['test. 30'], "the SOA's TTL says how long the denial may be kept further down")
  t.equal(nameToText(zoneApex!), 'test.')
  t.equal(told.rcode, RCODE.NXDOMAIN)
})
