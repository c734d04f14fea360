// What of a reply is believed: replies built with dns-packet against the lines that must be left of them.
import * as dnsPacket from 'dns-packet'
import type { Answer, RecordType, RrsigData } from 'dns-packet'
import * as fc from 'fast-check'
import { test } from 'tap'
import { CLASS, parseType, RCODE, RRTYPE, typeToText } from '../../src/wire/iana.ts'
import { decodeMessage, type Message } from '../../src/wire/message.ts'
import { isAtOrBelow, nameToText, parseName, rootName } from '../../src/wire/name.ts'
import type { RRset, Sections } from '../../src/wire/rr.ts'
import { cleanReply } from '../../src/peer/clean-reply.ts'

type Reply = {
  qname?: string
  qtype?: string
  rcode?: number
  answers?: Answer[]
  authorities?: Answer[]
  additionals?: Answer[]
}

const qname = 'api.backend.svc.cluster.local'
const zone = 'cluster.local'

const a = (name: string, data: string, ttl = 10): Answer => ({ type: 'A', name, ttl, data })
const aaaa = (name: string, data: string): Answer => ({ type: 'AAAA', name, ttl: 10, data })
const cname = (name: string, data: string): Answer => ({ type: 'CNAME', name, ttl: 20, data })
const srv = (name: string, target: string): Answer => ({ type: 'SRV', name, ttl: 10, data: { port: 80, target } })
const ns = (name: string, data: string): Answer => ({ type: 'NS', name, ttl: 10, data })
const soa = (name: string, ttl = 300, minimum = 5): Answer => ({
  type: 'SOA',
  name,
  ttl,
  data: { mname: `ns.${name}`, rname: `admin.${name}`, serial: 1, refresh: 1, retry: 1, expire: 1, minimum }
})
const rrsig = (name: string, typeCovered: string): Answer => {
  const fixed = { algorithm: 8, labels: 2, originalTTL: 1, expiration: 1, inception: 1, keyTag: 1, signersName: zone }
  const data: RrsigData = { typeCovered, ...fixed, signature: Buffer.from('0102', 'hex') }
  return { type: 'RRSIG', name, ttl: 10, data }
}
const nsec = (name: string): Answer => ({
  type: 'NSEC',
  name,
  ttl: 10,
  data: { nextDomain: 'z.local', rrtypes: ['A'] }
})

function messageOf(reply: Reply): Message {
  const octets = dnsPacket.encode({
    type: 'response',
    flags: reply.rcode ?? 0,
    questions: [{ name: reply.qname ?? qname, type: (reply.qtype ?? 'A') as RecordType }],
    answers: reply.answers ?? [],
    authorities: reply.authorities ?? [],
    additionals: reply.additionals ?? []
  })
  return decodeMessage(octets)
}

const lineOf = ({ owner, type, ttlSeconds, rdata }: RRset): string =>
  `${nameToText(owner).slice(0, -1)} ${ttlSeconds} ${typeToText(type)}${rdata.length > 1 ? ` x${rdata.length}` : ''}`

function clean(reply: Reply, inZone = zone, dnssecOk = false): Sections | null {
  const question = { name: parseName(reply.qname ?? qname), type: parseType(reply.qtype ?? 'A')!, dnssecOk }
  return cleanReply(messageOf(reply), question, parseName(inZone))
}

test('cleanReply keeps what the question asked for, and nothing else', async (t) => {
  type Want = { answer?: string[]; authority?: string[]; additional?: string[]; rcode?: number } | null
  const rows: { name: string; reply: Reply; zone?: string; want: Want }[] = [
    {
      name: 'addresses, without what came along',
      reply: {
        answers: [a(qname, '10.0.0.1'), a(qname, '10.0.0.2', 7), a('www.example.com', '192.0.2.66'), aaaa(qname, '::1')],
        authorities: [ns('com', 'ns.example.com'), soa('com')],
        additionals: [a('ns.example.com', '192.0.2.66'), a(qname, '192.0.2.66')]
      },
      want: { answer: [`${qname} 7 A x2`] }
    },
    { name: 'equal records are one', reply: { answers: [a(qname, '10.0.0.1'), a(qname, '10.0.0.1')] }, want: { answer: [`${qname} 10 A`] } },
    { name: 'case does not matter', reply: { answers: [a(qname.toUpperCase(), '10.0.0.1')] }, want: { answer: [`${qname} 10 A`] } },
    { name: 'nothing belongs', reply: { answers: [a('other.cluster.local', '10.0.0.1')] }, want: null },
    { name: 'another type only', reply: { answers: [aaaa(qname, '::1')] }, want: null },
    {
      name: 'aliases come first, in whatever order they were sent',
      reply: { answers: [a('c.cluster.local', '10.0.0.1'), cname('b.cluster.local', 'c.cluster.local'), cname(qname, 'b.cluster.local')] },
      want: { answer: [`${qname} 20 CNAME`, 'b.cluster.local 20 CNAME', 'c.cluster.local 10 A'] }
    },
    {
      name: 'an alias that hangs nowhere goes',
      reply: { answers: [cname(qname, 'b.cluster.local'), cname('x.cluster.local', 'y.cluster.local'), a('y.cluster.local', '10.0.0.1')] },
      want: { answer: [`${qname} 20 CNAME`] }
    },
    {
      name: 'an alias may leave the zone, and what lies behind goes',
      reply: { answers: [cname(qname, 'www.example.com'), a('www.example.com', '192.0.2.66')], authorities: [soa('example.com')] },
      want: { answer: [`${qname} 20 CNAME`] }
    },
    {
      name: 'NXDOMAIN behind an alias that left the zone says nothing of ours',
      reply: { rcode: 3, answers: [cname(qname, 'www.example.com')], authorities: [soa('cluster.local')] },
      want: { answer: [`${qname} 20 CNAME`], rcode: RCODE.NOERROR }
    },
    {
      name: 'NXDOMAIN behind an alias inside the zone stays, with its SOA',
      reply: { rcode: 3, answers: [cname(qname, 'b.cluster.local')], authorities: [soa('cluster.local')] },
      want: { answer: [`${qname} 20 CNAME`], authority: ['cluster.local 5 SOA'], rcode: RCODE.NXDOMAIN }
    },
    {
      name: 'for upstreams nothing is outside',
      reply: { answers: [cname(qname, 'www.example.com'), a('www.example.com', '192.0.2.1')] },
      zone: '.',
      want: { answer: [`${qname} 20 CNAME`, 'www.example.com 10 A'] }
    },
    {
      name: 'a loop of aliases: each once',
      reply: { answers: [cname(qname, 'b.cluster.local'), cname('b.cluster.local', qname)] },
      want: { answer: [`${qname} 20 CNAME`, 'b.cluster.local 20 CNAME'] }
    },
    {
      name: 'two aliases at one owner: the first',
      reply: { answers: [cname(qname, 'b.cluster.local'), cname(qname, 'c.cluster.local'), a('c.cluster.local', '10.0.0.1')] },
      want: { answer: [`${qname} 20 CNAME`] }
    },
    {
      name: 'a CNAME that was asked for is not followed',
      reply: { qtype: 'CNAME', answers: [cname(qname, 'b.cluster.local'), cname('b.cluster.local', 'c.cluster.local')] },
      want: { answer: [`${qname} 20 CNAME`] }
    },
    { name: 'NODATA, the SOA at most as long as its MINIMUM', reply: { authorities: [soa(zone, 300, 5)] }, want: { authority: ['cluster.local 5 SOA'] } },
    { name: 'NODATA, the SOA as it is if that is less', reply: { authorities: [soa(zone, 3, 5)] }, want: { authority: ['cluster.local 3 SOA'] } },
    { name: 'NXDOMAIN', reply: { rcode: 3, authorities: [soa('backend.svc.cluster.local')] }, want: { authority: ['backend.svc.cluster.local 5 SOA'], rcode: 3 } },
    { name: 'a SOA above the zone goes', reply: { authorities: [soa('local')] }, want: {} },
    { name: 'a SOA beside the name goes', reply: { authorities: [soa('web.cluster.local')] }, want: {} },
    { name: 'a SOA below the name goes', reply: { authorities: [soa(`x.${qname}`)] }, want: {} },
    { name: 'of two SOAs the nearer one', reply: { authorities: [soa(zone), soa('svc.cluster.local')] }, want: { authority: ['svc.cluster.local 5 SOA'] } },
    { name: 'a referral is nothing', reply: { authorities: [ns('svc.cluster.local', 'ns.cluster.local')], additionals: [a('ns.cluster.local', '10.0.0.1')] }, want: {} },
    { name: 'NXDOMAIN with the record itself', reply: { rcode: 3, answers: [a(qname, '10.0.0.1')], authorities: [soa(zone)] }, want: null },
    {
      name: 'SRV with the addresses of its targets inside the zone',
      reply: {
        qtype: 'SRV',
        answers: [srv(qname, 'p.cluster.local'), srv(qname, 'q.example.com')],
        additionals: [a('p.cluster.local', '10.0.0.1'), aaaa('p.cluster.local', '::1'), a('q.example.com', '192.0.2.66'), a('x.cluster.local', '10.0.0.9'), srv('p.cluster.local', 'x.cluster.local')]
      },
      want: { answer: [`${qname} 10 SRV x2`], additional: ['p.cluster.local 10 A', 'p.cluster.local 10 AAAA'] }
    },
    { name: 'ANY: all of the name, nothing of others', reply: { qtype: 'ANY', answers: [a(qname, '10.0.0.1'), aaaa(qname, '::1'), a('x.cluster.local', '10.0.0.1')] }, want: { answer: [`${qname} 10 A`, `${qname} 10 AAAA`] } },
    { name: 'the name is outside of the zone', reply: { answers: [a(qname, '10.0.0.1')] }, zone: 'example.org', want: null },
    { name: 'class CH', reply: { answers: [{ ...a(qname, '10.0.0.1'), class: 'CH' } as Answer] }, want: null },
    { name: 'signatures are not asked for without DO', reply: { answers: [a(qname, '10.0.0.1'), rrsig(qname, 'A')], authorities: [soa(zone), rrsig(zone, 'SOA')] }, want: { answer: [`${qname} 10 A`], authority: ['cluster.local 300 SOA'] } }
  ] // prettier-ignore
  for (const { name, reply, want, zone: inZone } of rows) {
    const sections = clean(reply, inZone)
    if (want === null || sections === null) {
      t.equal(sections, want, name)
      continue
    }
    const { answer = [], authority = [], additional = [], rcode = 0 } = want
    t.same(
      { ...sections, answer: sections.answer.map(lineOf), authority: sections.authority.map(lineOf), additional: sections.additional.map(lineOf) },
      { rcode, answer, authority, additional },
      name
    ) // prettier-ignore
  }
})

test('cleanReply keeps signatures and proofs with DO', async (t) => {
  const positive = clean({ answers: [rrsig(qname, 'A'), rrsig(qname, 'AAAA'), a(qname, '10.0.0.1')] }, zone, true)
  t.same(positive?.answer.map(lineOf), [`${qname} 10 A`, `${qname} 10 RRSIG`])
  const denial = clean(
    { rcode: 3, authorities: [soa(zone), rrsig(zone, 'SOA'), rrsig(zone, 'NS'), nsec('a.cluster.local'), rrsig('a.cluster.local', 'NSEC'), nsec('example.com')] },
    zone,
    true
  ) // prettier-ignore
  t.same(denial?.authority.map(lineOf), [
    'cluster.local 5 SOA',
    'a.cluster.local 10 NSEC',
    'cluster.local 10 RRSIG',
    'a.cluster.local 10 RRSIG'
  ])
})

test('cleanReply takes no answer to another question, and no TTL that is negative', async (t) => {
  const question = { name: parseName(qname), type: RRTYPE.A, dnssecOk: false }
  const message = messageOf({ answers: [a(qname, '10.0.0.1')] })
  const wrong: { name: string; message: Message }[] = [
    { name: 'name', message: { ...message, questions: [{ name: parseName('x.example'), type: RRTYPE.A, class: CLASS.IN }] } },
    { name: 'type', message: { ...message, questions: [{ name: question.name, type: RRTYPE.AAAA, class: CLASS.IN }] } },
    { name: 'class', message: { ...message, questions: [{ name: question.name, type: RRTYPE.A, class: CLASS.CH }] } },
    { name: 'none', message: { ...message, questions: [] } },
    { name: 'two', message: { ...message, questions: [...message.questions, ...message.questions] } },
    { name: 'a query', message: { ...message, qr: false } },
    { name: 'opcode', message: { ...message, opcode: 5 } }
  ] // prettier-ignore
  for (const row of wrong) t.equal(cleanReply(row.message, question, rootName), null, row.name)
  const record = message.answer[0]!
  for (const ttlSeconds of [0x8000_0000, 0xffff_ffff]) {
    const sections = cleanReply({ ...message, answer: [{ ...record, ttlSeconds }] }, question, rootName)
    t.equal(sections?.answer[0]?.ttlSeconds, 0, `TTL ${ttlSeconds}`)
  }
})

test('cleanReply: whatever is sent, what is left hangs together and lies in the zone', async (t) => {
  const names = [
    qname,
    'b.cluster.local',
    'c.cluster.local',
    'cluster.local',
    'local',
    'www.example.com',
    'x.cluster.local'
  ]
  const name = fc.constantFrom(...names)
  const record = fc.oneof(
    name.map((owner) => a(owner, '10.0.0.1')),
    fc.tuple(name, name).map(([owner, target]) => cname(owner, target)),
    fc.tuple(name, name).map(([owner, target]) => srv(owner, target)),
    name.map((owner) => soa(owner)),
    name.map((owner) => ns(owner, 'b.cluster.local'))
  )
  const records = fc.array(record, { maxLength: 8 })
  const reply = fc.record({
    qtype: fc.constantFrom('A', 'SRV', 'ANY', 'CNAME'),
    rcode: fc.constantFrom(0, 3),
    answers: records,
    authorities: records,
    additionals: records
  })
  fc.assert(
    fc.property(reply, (sent) => {
      const sections = clean(sent)
      if (sections === null) return
      const all = [...sections.answer, ...sections.authority, ...sections.additional]
      if (all.some(({ owner }) => !isAtOrBelow(owner, parseName(zone)))) throw new Error('outside of the zone')
      if (sections.authority.some(({ type }) => type !== RRTYPE.SOA)) throw new Error('more than a SOA')
      if (sections.answer.length > 0 && sections.answer[0]!.owner !== parseName(qname)) throw new Error('not the name')
      const owners = new Set(sections.answer.map(({ owner, type }) => `${owner} ${type}`))
      if (owners.size !== sections.answer.length) throw new Error('a set twice')
    }),
    { numRuns: 2_000, seed: 20_261_130 }
  )
  t.pass('2,000 replies')
})

test('cleanReply: a zone that may begin above believes a SOA from there, and nothing else', async (t) => {
  const message = messageOf({ rcode: 3, authorities: [soa('local', 300, 5)], additionals: [] })
  const question = { name: parseName(qname), type: RRTYPE.A, dnssecOk: false }
  const above = cleanReply(message, { ...question, soaMayBeAbove: true }, parseName(zone))
  t.same(
    above?.authority.map(({ owner, ttlSeconds }) => `${nameToText(owner)} ${ttlSeconds}`),
    ['local. 5']
  )
  t.same(cleanReply(message, question, parseName(zone))?.authority, [])
  const beside = messageOf({ rcode: 3, authorities: [soa('example.org', 300, 5)], additionals: [] })
  t.same(cleanReply(beside, { ...question, soaMayBeAbove: true }, parseName(zone))?.authority, [])
})
