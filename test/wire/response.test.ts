import { test } from 'tap'
import { encodeEde } from '../../src/wire/edns.ts'
import { RCODE } from '../../src/wire/iana.ts'
import { parseName } from '../../src/wire/name.ts'
import { nameRdata } from '../../src/wire/rdata.ts'
import { encodeBareError } from '../../src/wire/response.ts'
import type { RRset } from '../../src/wire/rr.ts'
import { rrset, soa } from '../support/records.ts'
import { hex, messageToLines } from './message-text.ts'
import { addresses, asked, decode, encode, name, noEdns, response } from './response-fixture.ts'

test('encodeResponse writes header, question, sections and OPT', async (t) => {
  const given = response(
    {
      rcode: RCODE.NXDOMAIN,
      answer: [rrset(name, 'CNAME', 10, 'web.backend.svc')],
      authority: [soa('svc', 30, 5)],
      additional: [rrset('web.backend.svc', 'AAAA', 3, '2001:db8::1')]
    },
    { cd: true, ra: true, edns: { ...noEdns, dnssecOk: true, options: [encodeEde(3, 'old')] } }
  )
  t.same(messageToLines(decode(given)), [
    '1234 QUERY NXDOMAIN qr aa rd ra cd',
    'question api.backend.svc. IN A',
    'answer api.backend.svc. 10 IN CNAME web.backend.svc.',
    'authority svc. 30 IN SOA ns.svc. hostmaster.svc. 1 7200 1800 86400 5',
    'additional web.backend.svc. 3 IN AAAA 2001:db8::1',
    'edns 0 1232 do 15=00036f6c64'
  ])
  t.same(encode(given).subarray(12, 12 + asked.length), asked, 'the question octet for octet, capital letter and all')
  t.same(messageToLines(decode(response({}, { question: null, edns: null, aa: false, rd: false }))), [
    '1234 QUERY NOERROR qr'
  ])
  t.equal(decode(response({ rcode: RCODE.BADVERS })).rcode, RCODE.BADVERS, 'an RCODE of more than four bits')
  t.equal(decode(response({ rcode: RCODE.BADVERS }, { edns: null })).rcode, RCODE.SERVFAIL, 'which needs an OPT')
})

test('encodeResponse compresses against the question and the names before', async (t) => {
  const fixed = 12 + asked.length + 11
  const sizeOf = (...answer: RRset[]): number => encode(response({ answer })).length - fixed
  t.equal(sizeOf(rrset(name, 'A', 5, '10.0.0.1')), 2 + 10 + 4, 'the qname, whatever its case')
  t.equal(sizeOf(rrset(name, 'A', 5, ...addresses(5))), 5 * 16, 'each record of a set')
  t.equal(
    sizeOf(rrset('x.backend.svc', 'A', 5, ...addresses(2))),
    4 + 14 + 2 + 14,
    'a name below a name of the question'
  )
  t.equal(sizeOf(rrset('svc', 'A', 5, '10.0.0.1')), 16, 'the tail of the question')
  t.equal(sizeOf(rrset('other.example', 'A', 5, ...addresses(2))), 15 + 14 + 2 + 14, 'nothing in common')
  t.equal(sizeOf(rrset('.', 'NS', 5, 'a.svc', 'b.svc')), 1 + 10 + 4 + 1 + 10 + 4, 'the root is shorter than a pointer')
  t.equal(
    sizeOf(rrset(name, 'CNAME', 5, 'x.backend.svc')),
    12 + 4,
    'CNAME, with what the question has in the same case'
  )
  t.equal(sizeOf(rrset(name, 'CNAME', 5, name)), 12 + 6, 'the case of RDATA is kept: "api" is not "Api"')
  const srv = rrset(name, 'SRV', 5, '0 1 80 pod-0.other.example')
  t.equal(sizeOf(srv), 12 + 6 + 21, 'never the target of SRV')
  const target = rrset('pod-0.other.example', 'A', 5, '10.0.0.1')
  const withAddress = encode(response({ answer: [srv], additional: [target] }))
  t.equal(withAddress.length - fixed, 12 + 6 + 21 + 16, 'but the address record points to the target')
  const unknown = { ...rrset(name, 'A', 5, '10.0.0.1'), type: 65_400, rdata: [nameRdata(parseName(name))] }
  t.equal(sizeOf(unknown), 12 + 17, 'never an unknown type')
  const rootQuestion = response({ answer: [rrset('.', 'A', 5, '10.0.0.1')] }, { question: hex('00 0001 0001') })
  t.equal(encode(rootQuestion).length, 12 + 5 + 1 + 14 + 11, 'a question for the root')
})

test('encodeResponse counts TTLs down and caps them', async (t) => {
  const ttl = (ttlSeconds: number, ageSeconds: number, maxTtlSeconds: number): number =>
    decode(response({ answer: [rrset(name, 'A', ttlSeconds, '10.0.0.1')] }, { ageSeconds, maxTtlSeconds })).answer[0]!
      .ttlSeconds
  t.equal(ttl(30, 0, 3600), 30)
  t.equal(ttl(30, 7, 3600), 23)
  t.equal(ttl(30, 31, 3600), 0, 'never below 0')
  t.equal(ttl(300, 20, 10), 10, 'the cap is for what is left')
  t.equal(ttl(0x7fff_ffff, 0, 0x7fff_ffff), 0x7fff_ffff)
})

test('encodeResponse after a bug in one response is right again', async (t) => {
  const set = { ...rrset(name, 'CNAME', 5, 'x'), rdata: [hex('3f 61'), hex('3f 61')] }
  t.throws(() => encode(response({ answer: [set] })), { code: 'BAD_RDATA' })
  const fine = response({ answer: [rrset(name, 'A', 5, ...addresses(3))] })
  t.equal(decode(fine).answer.length, 3)
})

test('encodeBareError turns the header round', async (t) => {
  const out = new Uint8Array(64).fill(0xee)
  const query = hex('abcd 7ff5 ffff ffff ffff ffff 03')
  t.equal(encodeBareError(out, query, query.length, RCODE.NOTIMP), 12)
  t.same(out.subarray(0, 13), hex('abcd f904 0000 0000 0000 0000 ee'), 'id, opcode and RD are kept, all else is not')
  t.equal(encodeBareError(out, hex('abcd 01'), 3, RCODE.FORMERR), 0, 'no header to turn round')
})
