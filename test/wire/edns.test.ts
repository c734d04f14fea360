import * as fc from 'fast-check'
import { test } from 'tap'
import {
  decodeEde,
  ednsOctets,
  encodeEde,
  findOption,
  readEdns,
  withoutOptions,
  writeEdns
} from '../../src/wire/edns.ts'
import { EDE, OPTION } from '../../src/wire/iana.ts'
import { edns as anyEdns, seed } from './arbitraries.ts'
import { hex } from './message-text.ts'

test('writeEdns then readEdns gives the same, of the octets that were counted', async (t) => {
  fc.assert(
    fc.property(anyEdns, fc.nat(0xfff), (edns, rcode) => {
      const out = new Uint8Array(ednsOctets(edns) + 6).fill(0xee)
      t.equal(writeEdns(out, 3, edns, rcode), out.length - 3)
      t.same(readEdns(out, 6), edns)
      t.equal(out[8], rcode >> 4, 'the upper bits of the RCODE')
      t.equal(out.at(-3), 0xee)
    }),
    { seed }
  )
})

test('readEdns keeps options as they are, but for another version', async (t) => {
  // NSID, ECS, EXPIRE and COOKIE, as in RFC 8906 §8.2.10.
  const options = '0003 0000 0008 0007 00011800c00002 0009 0000 000a 0008 0102030405060708'
  const edns = readEdns(hex(`04d0 00 00 8000 001f ${options}`), 0)
  t.same(
    edns.options.map(({ code, data }) => [code, Buffer.from(data).toString('hex')]),
    [
      [OPTION.NSID, ''],
      [OPTION.ECS, '00011800c00002'],
      [9, ''],
      [OPTION.COOKIE, '0102030405060708']
    ]
  )
  t.equal(edns.dnssecOk, true)
  t.equal(findOption(edns, OPTION.COOKIE)?.data.length, 8)
  t.equal(findOption(edns, OPTION.PADDING), null)
  t.same(withoutOptions(edns), { version: 0, udpPayloadOctets: 1232, dnssecOk: true, options: [] })
  t.same(readEdns(hex('04d0 00 01 0000 0003 000a00'), 0).options, [], 'nobody knows what is in a version 1')
  for (const rdata of ['0001 00', '0003 000a00', '0005 000a0002 00', '0008 000a0000 0003ffff']) {
    t.throws(() => readEdns(hex(`04d0 00000000 ${rdata}`), 0), { code: 'BAD_EDNS' }, rdata)
  }
})

test('encodeEde and decodeEde carry code and text', async (t) => {
  for (const text of ['', 'no rule for example.org', 'größer', '\u{feff}x']) {
    t.same(decodeEde(encodeEde(EDE.NOT_READY, text)), { code: EDE.NOT_READY, text }, text)
  }
  t.same(encodeEde(22, 'ab'), { code: OPTION.EDE, data: hex('0016 6162') })
  t.same(decodeEde({ code: OPTION.EDE, data: hex('0016 616200') }), { code: 22, text: 'ab' }, 'a last NUL is no text')
  t.same(
    decodeEde({ code: OPTION.EDE, data: hex('0016 ff') }),
    { code: 22, text: '\u{fffd}' },
    'octets that are no UTF-8'
  )
  t.equal(decodeEde({ code: OPTION.EDE, data: hex('00') }), null, 'too short')
  t.equal(decodeEde({ code: OPTION.COOKIE, data: hex('0016') }), null, 'another option')
})
