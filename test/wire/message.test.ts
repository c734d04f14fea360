import * as fc from 'fast-check'
import { test } from 'tap'
import { WireError } from '../../src/base/errors.ts'
import { maxMessageOctets } from '../../src/base/limits.ts'
import { CLASS, RCODE, RRTYPE } from '../../src/wire/iana.ts'
import { decodeMessage, encodeMessage, groupRRsets, type Message } from '../../src/wire/message.ts'
import { parseName, rootName } from '../../src/wire/name.ts'
import { aRdata, nameRdata, srvRdata } from '../../src/wire/rdata.ts'
import type { ResourceRecord } from '../../src/wire/rr.ts'
import { message as anyMessage, rdataOf, recordTypes, seed } from './arbitraries.ts'
import { hex, messageToLines, readVectors } from './message-text.ts'

const empty: Message = {
  id: 0x1234,
  qr: true,
  opcode: 0,
  aa: false,
  tc: false,
  rd: false,
  ra: false,
  ad: false,
  cd: false,
  rcode: 0,
  questions: [],
  answer: [],
  authority: [],
  additional: [],
  edns: null
}

const name = parseName('api.backend.svc.cluster.local')

const record = (owner: string, type: number, rdata: Uint8Array, ttlSeconds = 5): ResourceRecord => ({
  owner: parseName(owner),
  type,
  class: CLASS.IN,
  ttlSeconds,
  rdata
})

const codeOf = (octets: Uint8Array): string => {
  try {
    decodeMessage(octets)
    return 'decoded'
  } catch (error) {
    if (error instanceof WireError) return error.code
    throw error
  }
}

test('decodeMessage reads the golden messages, and encodeMessage writes them again', async (t) => {
  const vectors = readVectors()
  t.ok(vectors.length >= 20, 'the vectors are there')
  for (const { name: vector, octets, lines } of vectors) {
    const message = decodeMessage(octets)
    t.same(messageToLines(message), lines, vector)
    const written = encodeMessage(message)
    t.same(decodeMessage(written), message, `${vector}: the same message again`)
    // The question's case is not kept in a Message, so a name in RDATA that has that case finds nothing to point to.
    if (vector !== 'response-unbound-alias') t.ok(written.length <= octets.length, `${vector}: no longer than it was`)
  }
})

test('encodeMessage then decodeMessage gives the same message, for every type', async (t) => {
  fc.assert(
    fc.property(anyMessage, (message) => {
      t.same(decodeMessage(encodeMessage(message)), message)
    }),
    { seed, numRuns: 300 }
  )
  for (const type of recordTypes) {
    fc.assert(
      fc.property(rdataOf(type), (rdata) => {
        const message = { ...empty, answer: [record('x', type, rdata), record('y.x', type, rdata)] }
        t.same(decodeMessage(encodeMessage(message)), message)
      }),
      { seed, numRuns: 20 }
    )
  }
})

test('decodeMessage rejects what is malformed', async (t) => {
  const question = '01 78 00 0001 0001'
  const opt = '00 0029 04d0 00000000 0000'
  const tsig = '00 00fa 00ff 00000000 0011 00 00*6 012c 0000 1122 0000 0000'
  const rows: [string, string, string][] = [
    ['nothing', '', 'TRUNCATED'],
    ['eleven octets', '00*11', 'TRUNCATED'],
    ['four counts and nothing else', '1234 8180 ffff ffff ffff ffff', 'BAD_COUNT'],
    ['65535 questions, one there', `1234 8180 ffff 0000 0000 0000 ${question}`, 'BAD_COUNT'],
    ['65535 answers, one there', `1234 8180 0000 ffff 0000 0000 00 0001 0001 00000000 0004 0a000001`, 'BAD_COUNT'],
    ['half a question', '1234 8180 0001 0000 0000 0000 01 78 00 0001', 'TRUNCATED'],
    ['half a record', '1234 8180 0000 0001 0000 0000 00 0001 0001 0000', 'TRUNCATED'],
    ['RDLENGTH behind the end', '1234 8180 0000 0001 0000 0000 00 0001 0001 00000000 0005 0a000001', 'TRUNCATED'],
    ['RDLENGTH too short', '1234 8180 0000 0001 0000 0000 00 0001 0001 00000000 0003 0a000001', 'BAD_RDATA'],
    [
      'RDLENGTH that takes the next record',
      `1234 8180 0000 0002 0000 0000 ${'00 0001 0001 00000000 0013 0a000001'.repeat(2)}`,
      'BAD_RDATA'
    ],
    ['octets behind it', `1234 8180 0001 0000 0000 0000 ${question} 00`, 'TRAILING_OCTETS'],
    ['a pointer to itself', '1234 8180 0001 0000 0000 0000 c00c 0001 0001', 'BAD_POINTER'],
    ['a pointer forward', '1234 8180 0001 0000 0000 0000 c00e 0001 0001', 'BAD_POINTER'],
    ['a reserved label type', '1234 8180 0001 0000 0000 0000 80 00 0001 0001', 'BAD_LABEL'],
    ['a second OPT', `1234 8180 0000 0000 0000 0002 ${opt} ${opt}`, 'BAD_EDNS'],
    ['OPT of a name', '1234 8180 0000 0000 0000 0001 01 78 00 0029 04d0 00000000 0000', 'BAD_EDNS'],
    ['OPT as an answer', `1234 8180 0000 0001 0000 0000 ${opt}`, 'BAD_EDNS'],
    ['half an option', '1234 8180 0000 0000 0000 0001 00 0029 04d0 00000000 0003 000a00', 'BAD_EDNS'],
    ['TSIG before OPT', `1234 8180 0000 0000 0000 0002 ${tsig} ${opt}`, 'BAD_TSIG'],
    ['TSIG before an address', `1234 8180 0000 0000 0000 0002 ${tsig} 00 0001 0001 00000000 0004 0a000001`, 'BAD_TSIG'],
    ['TSIG as an answer', `1234 8180 0000 0001 0000 0000 ${tsig}`, 'BAD_TSIG'],
    ['TSIG of class IN', `1234 8180 0000 0000 0000 0001 ${tsig.replace('00ff', '0001')}`, 'BAD_TSIG'],
    ['OPT, then TSIG', `1234 8180 0000 0000 0000 0002 ${opt} ${tsig}`, 'decoded'],
    [
      'a root owner as a pointer',
      '1234 8180 0000 0002 0000 0000 00 0001 0001 00000000 0004 0a000001 c00c 0001 0001 00000000 0004 0a000001',
      'decoded'
    ]
  ]
  for (const [row, octets, want] of rows) t.equal(codeOf(hex(octets)), want, row)
})

test('decodeMessage takes a TTL with its highest bit for 0', async (t) => {
  const ttlOf = (ttl: string): number =>
    decodeMessage(hex(`1234 8180 0000 0001 0000 0000 00 0001 0001 ${ttl} 0004 0a000001`)).answer[0]!.ttlSeconds
  t.equal(ttlOf('7fffffff'), 2_147_483_647)
  t.equal(ttlOf('80000000'), 0)
  t.equal(ttlOf('ffffffff'), 0)
})

test('encodeMessage compresses owners and the names of RFC 1035 types only', async (t) => {
  const target = nameRdata(parseName('web.backend.svc.cluster.local'))
  const questions = [{ name, type: RRTYPE.ANY, class: CLASS.IN }]
  const sizeWith = (type: number, rdata: Uint8Array): number =>
    encodeMessage({ ...empty, questions, answer: [{ ...record('x', type, rdata), owner: name }] }).length
  const plain = 12 + name.length + 4 + 2 + 10
  t.equal(sizeWith(RRTYPE.CNAME, target), plain + 6, 'CNAME: "web" and a pointer')
  t.equal(sizeWith(RRTYPE.MX, Uint8Array.of(0, 1, ...target)), plain + 8, 'MX')
  t.equal(sizeWith(RRTYPE.DNAME, target), plain + target.length, 'DNAME is written in full')
  const srv = srvRdata({ priority: 0, weight: 1, port: 80, target: name })
  t.equal(sizeWith(RRTYPE.SRV, srv), plain + srv.length, 'SRV is written in full')
  t.equal(sizeWith(65_400, target), plain + target.length, 'so is an unknown type')
})

test('encodeMessage keeps the case of RDATA, and finds owners whatever their case', async (t) => {
  const mixed = hex('03 576562 07 6261636b656e64 03 737663 00')
  const message = {
    ...empty,
    answer: [record('web.backend.svc', RRTYPE.PTR, mixed), record('WEB.backend.svc', RRTYPE.NS, mixed)]
  }
  const octets = encodeMessage(message)
  t.same(decodeMessage(octets), message, 'case and all')
  // Owner 17, then "Web" and a pointer; the second record points to both of them.
  t.equal(octets.length, 12 + 17 + 10 + 6 + 2 + 10 + 2)
})

test('encodeMessage points no further than 14 bits and remembers no more than it may', async (t) => {
  const answer = Array.from({ length: 2000 }, (_, i) =>
    record(`host-${i % 1000}.example.org`, RRTYPE.A, aRdata('192.0.2.1'))
  )
  const message = { ...empty, answer }
  t.same(decodeMessage(encodeMessage(message)), message)
})

test('encodeMessage places OPT before TSIG, and throws where it cannot write', async (t) => {
  const tsig = { ...record('key', RRTYPE.TSIG, hex('00 00*6 012c 0000 1122 0000 0000'), 0), class: CLASS.ANY }
  const edns = { version: 0, udpPayloadOctets: 1232, dnssecOk: false, options: [] }
  const message = {
    ...empty,
    rcode: RCODE.BADVERS,
    additional: [record('x', RRTYPE.A, aRdata('192.0.2.1')), tsig],
    edns
  }
  t.same(decodeMessage(encodeMessage(message)), message)
  t.throws(() => encodeMessage({ ...empty, rcode: RCODE.BADVERS }), { code: 'BAD_EDNS' }, 'an RCODE without room')
  const big = record('.', 65_400, new Uint8Array(60_000))
  t.throws(() => encodeMessage({ ...empty, answer: [big, big] }), { code: 'TOO_LARGE' })
  const exact = (octets: number): Message => ({ ...empty, answer: [record('.', 65_400, new Uint8Array(octets - 23))] })
  t.equal(encodeMessage(exact(maxMessageOctets)).length, maxMessageOctets, 'the largest message')
  t.throws(() => encodeMessage(exact(maxMessageOctets + 1)), { code: 'TOO_LARGE' }, 'one octet more')
  t.throws(() => encodeMessage({ ...exact(maxMessageOctets), edns }), { code: 'TOO_LARGE' }, 'no room for OPT')
  const signed = { ...exact(maxMessageOctets - 11 - tsig.rdata.length - 15), edns, additional: [tsig] }
  t.equal(encodeMessage(signed).length, maxMessageOctets, 'OPT and TSIG in the last octets')
})

test('groupRRsets makes RRsets of records', async (t) => {
  const a = parseName('a')
  const b = parseName('b')
  const records = [
    record('b', RRTYPE.A, aRdata('192.0.2.2'), 30),
    record('a', RRTYPE.A, aRdata('192.0.2.1'), 10),
    record('B', RRTYPE.A, aRdata('192.0.2.1'), 20),
    record('b', RRTYPE.A, aRdata('192.0.2.2'), 40),
    record('b', RRTYPE.CNAME, nameRdata(a), 5),
    record('b', RRTYPE.CNAME, hex('01 41 00'), 6),
    { ...record('b', RRTYPE.A, aRdata('192.0.2.3'), 1), class: CLASS.CH }
  ]
  t.same(groupRRsets(records), [
    { owner: b, type: RRTYPE.A, ttlSeconds: 20, rdata: [aRdata('192.0.2.2'), aRdata('192.0.2.1')] },
    { owner: a, type: RRTYPE.A, ttlSeconds: 10, rdata: [aRdata('192.0.2.1')] },
    { owner: b, type: RRTYPE.CNAME, ttlSeconds: 5, rdata: [nameRdata(a)] }
  ])
  t.same(groupRRsets([]), [])
  t.equal(groupRRsets([record('.', RRTYPE.NS, nameRdata(rootName))])[0]!.owner, rootName)
})
