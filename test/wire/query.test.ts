import * as fc from 'fast-check'
import { test } from 'tap'
import { WireError } from '../../src/base/errors.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { encodeMessage } from '../../src/wire/message.ts'
import { nameToText } from '../../src/wire/name.ts'
import { type ParsedQuery, parseQuery } from '../../src/wire/query.ts'
import { domainName, edns, seed } from './arbitraries.ts'
import { hex, readVectors } from './message-text.ts'

const name = '05 6369646572 07 6f726368617264 03 737663 07 636c7573746572 05 6c6f63616c 00'
const question = `${name} 0001 0001`
const longest = '3f 78*63 3f 78*63 3f 78*63'
const opt = '00 0029 04d0 00000000 0000'
const address = 'c00c 0001 0001 0000003c 0004 0a000001'
const tsig =
  '05 6e6f6b6579 00 00fa 00ff 00000000 003d 0b 686d61632d736861323536 00 00006553f100 012c 0020 00*32 1122 0000 0000'

/** Flags and counts stand between the id and what follows. */
const packet = (flags: string, counts: string, body: string): Uint8Array => hex(`1234 ${flags} ${counts} ${body}`)

const parse = (octets: Uint8Array): ParsedQuery => parseQuery(octets, octets.length)

const codeOf = (octets: Uint8Array): string => {
  try {
    parse(octets)
    return 'parsed'
  } catch (error) {
    if (error instanceof WireError) return error.code
    throw error
  }
}

test('parseQuery reads header, question, OPT and TSIG', async (t) => {
  const plain = parse(packet('0100', '0001 0000 0000 0000', question))
  t.same(plain, {
    id: 0x1234,
    opcode: 0,
    recursionDesired: true,
    checkingDisabled: false,
    authenticData: false,
    qname: '\x05cider\x07orchard\x03svc\x07cluster\x05local\0',
    qtype: 1,
    qclass: 1,
    questionEnd: 49,
    edns: null,
    tsig: null,
    records: 0
  })
  const flags = parse(packet('7ff0', '0001 0000 0000 0000', question))
  t.equal(flags.opcode, 15, 'the opcode')
  t.ok(flags.recursionDesired && flags.checkingDisabled && flags.authenticData, 'RD, CD and AD')
  const withOpt = parse(
    packet('0000', '0001 0000 0000 0001', `${question} 00 0029 04d0 00 00 8000 0008 0064 0004 00010203`)
  )
  t.same(withOpt.edns, {
    version: 0,
    udpPayloadOctets: 1232,
    dnssecOk: true,
    options: [{ code: 100, data: hex('00010203') }]
  })
  const signed = parse(packet('0000', '0001 0000 0000 0002', `${question} ${opt} ${tsig}`))
  t.same(signed.tsig, {
    keyName: '\x05nokey\0',
    algorithm: '\x0bhmac-sha256\0',
    timeSignedSeconds: 1_700_000_000,
    fudgeSeconds: 300,
    mac: new Uint8Array(32),
    originalId: 0x1122,
    error: 0,
    other: new Uint8Array(0),
    start: 60
  })
  t.equal(signed.records, 0, 'OPT and TSIG are no records')
})

test('parseQuery looks at the octets up to the size only, and keeps none of them', async (t) => {
  const octets = packet('0000', '0001 0000 0000 0001', `${question} 00 0029 04d0 00000000 0006 0064 0002 aabb`)
  const reused = new Uint8Array(512).fill(0xee)
  reused.set(octets)
  const query = parseQuery(reused, octets.length)
  const before = structuredClone(query)
  reused.fill(0xff)
  t.same(query, before)
  t.throws(() => parseQuery(octets, octets.length - 1), { code: 'TRUNCATED' }, 'one octet less')
})

test('parseQuery takes what a query may be', async (t) => {
  const rows: [string, Uint8Array][] = [
    ['AA in a query (dns-aa)', packet('0500', '0001 0000 0000 0000', question)],
    ['the reserved bit (dns-z)', packet('0140', '0001 0000 0000 0000', question)],
    ['an RCODE (dns-rcode)', packet('0105', '0001 0000 0000 0000', question)],
    ['type 0 (dns-type0)', packet('0100', '0001 0000 0000 0000', `${name} 0000 0001`)],
    ['ANY for the root (dns-root-any)', packet('0100', '0001 0000 0000 0000', '00 00ff 0001')],
    ['class 65535 (dns-class-65535)', packet('0100', '0001 0000 0000 0000', `${name} 0001 ffff`)],
    ['octets that are no UTF-8 (nam-8bit)', packet('0100', '0001 0000 0000 0000', '06 fffec32880e9 00 0001 0001')],
    ['a name of 255 octets', packet('0100', '0001 0000 0000 0000', `${longest} 3d 79*61 00 0001 0001`)],
    [
      'EDNS version 1 with what may be its options',
      packet('0100', '0001 0000 0000 0001', `${question} 00 0029 04d0 00010000 0003 000a00`)
    ],
    [
      'a payload size of 65535 (edns-size65535)',
      packet('0100', '0001 0000 0000 0001', `${question} 00 0029 ffff 00000000 0000`)
    ],
    [
      'a client subnet with too many octets (edns-ecs-bits)',
      packet('0100', '0001 0000 0000 0001', `${question} 00 0029 04d0 00000000 000c 0008 0008 00011800 c0000205`)
    ],
    [
      'OPT, then another record (edns-before-a)',
      packet('0100', '0001 0000 0000 0002', `${question} ${opt} ${address}`)
    ],
    [
      'SIG(0) (sig-sig0)',
      packet(
        '0100',
        '0001 0000 0000 0001',
        `${question} 00 0018 00ff 00000000 0053 0000 08 00 00000000 6553f100 6553f000 1122 00 00*64`
      )
    ],
    [
      'IXFR with its SOA',
      packet('0000', '0001 0000 0001 0000', `${name} 00fb 0001 c00c 0006 0001 00000000 0016 00 00 00*20`)
    ],
    [
      'NOTIFY with its SOA',
      packet('2400', '0001 0001 0000 0000', `${name} 0006 0001 c00c 0006 0001 00000000 0016 00 00 00*20`)
    ]
  ]
  for (const [row, octets] of rows) t.equal(codeOf(octets), 'parsed', row)
  const [, , , , , , , , version1] = rows
  t.same(parse(version1![1]).edns, { version: 1, udpPayloadOctets: 1232, dnssecOk: false, options: [] }, 'BADVERS')
  t.equal(parse(rows[11]![1]).records, 1, 'the other record is counted')
})

test('parseQuery rejects what is malformed', async (t) => {
  const one = '0001 0000 0000 0000'
  const rows: [string, Uint8Array, string][] = [
    ['nothing (hdr-0)', new Uint8Array(0), 'TRUNCATED'],
    ['eleven octets (hdr-11)', hex('114d 0100 0001 0000 0000 00'), 'TRUNCATED'],
    ['a header and nothing more (cnt-none)', packet('0100', '0000 0000 0000 0000', ''), 'BAD_COUNT'],
    ['zeros (hdr-zero512)', hex('00*512'), 'BAD_COUNT'],
    ['two questions, one there (cnt-qd2-one)', packet('0100', '0002 0000 0000 0000', question), 'BAD_COUNT'],
    ['two questions', packet('0100', '0002 0000 0000 0000', `${question} ${question}`), 'BAD_COUNT'],
    ['a question promised', packet('0100', one, ''), 'TRUNCATED'],
    ['no type (nam-notype)', packet('0100', one, name), 'TRUNCATED'],
    ['half a class', packet('0100', one, `${name} 0001 00`), 'TRUNCATED'],
    ['a header, then ff (hdr-ff1400)', packet('0100', one, 'ff*1400'), 'BAD_POINTER'],
    ['a pointer to itself (nam-self)', packet('0100', one, 'c00c 0001 0001'), 'BAD_POINTER'],
    ['a pointer forward (nam-forward)', packet('0100', one, `c012 0001 0001 ${name}`), 'BAD_POINTER'],
    ['a pointer into the header', packet('0100', one, '01 61 c004 0001 0001'), 'BAD_POINTER'],
    ['half a pointer (nam-halfptr)', packet('0100', one, 'c0'), 'TRUNCATED'],
    ['label type 01 (nam-label64)', packet('0100', one, `40 61*64 ${question}`), 'BAD_LABEL'],
    ['label type 10', packet('0100', one, '80 61 00 0001 0001'), 'BAD_LABEL'],
    [
      '256 octets (nam-256)',
      packet('0100', one, `${longest} 30 79*48 07 636c7573746572 05 6c6f63616c 00 0001 0001`),
      'NAME_TOO_LONG'
    ],
    ['TSIG as a question (dns-qtype-tsig)', packet('0100', one, `${name} 00fa 0001`), 'BAD_QTYPE'],
    ['OPT as a question', packet('0100', one, `${name} 0029 0001`), 'BAD_QTYPE'],
    ['octets behind it (cnt-trailing-zero)', packet('0100', one, `${question} 00*300`), 'TRAILING_OCTETS'],
    ['one octet behind it', packet('0100', one, `${question} 00`), 'TRAILING_OCTETS'],
    ['a record that no count names', packet('0100', one, `${question} ${address}`), 'TRAILING_OCTETS'],
    ['an answer in a query (cnt-an1)', packet('0100', '0001 0001 0000 0000', `${question} ${address}`), 'BAD_COUNT'],
    ['an authority record in a query', packet('0100', '0001 0000 0001 0000', `${question} ${address}`), 'BAD_COUNT'],
    ['a record promised (cnt-ar1-none)', packet('0100', '0001 0000 0000 0001', question), 'BAD_COUNT'],
    ['65535 records promised', packet('0100', '0001 0000 0000 ffff', `${question} ${opt}`), 'BAD_COUNT'],
    [
      'RDLENGTH behind the end',
      packet('0100', '0001 0000 0000 0001', `${question} 00 0001 0001 00000000 0005 0a000001`),
      'TRUNCATED'
    ],
    [
      'RDLENGTH before the end',
      packet('0100', '0001 0000 0000 0001', `${question} 00 0001 0001 00000000 0003 0a000001`),
      'TRAILING_OCTETS'
    ],
    ['half a record', packet('0100', '0001 0000 0000 0001', `${question} 00 0001 0001 0000`), 'TRUNCATED'],
    [
      'an owner that leads nowhere',
      packet('0100', '0001 0000 0000 0001', `${question} c0ff 0001 0001 00000000 0000`),
      'BAD_POINTER'
    ],
    ['a second OPT', packet('0100', '0001 0000 0000 0002', `${question} ${opt} ${opt}`), 'BAD_EDNS'],
    [
      'OPT of a name (edns-owner)',
      packet('0100', '0001 0000 0000 0001', `${question} 07 636c7573746572 00 0029 04d0 00000000 0000`),
      'BAD_EDNS'
    ],
    [
      'OPT whose owner is a pointer to the root',
      packet('0100', '0001 0000 0000 0001', `${question} c02c 0029 04d0 00000000 0000`),
      'BAD_EDNS'
    ],
    ['OPT as an answer', packet('2400', '0001 0001 0000 0000', `${question} ${opt}`), 'BAD_EDNS'],
    ['OPT as authority', packet('0000', '0001 0000 0001 0000', `${name} 00fb 0001 ${opt}`), 'BAD_EDNS'],
    [
      'half the head of an option (edns-opthalf)',
      packet('0100', '0001 0000 0000 0001', `${question} 00 0029 04d0 00000000 0003 000a00`),
      'BAD_EDNS'
    ],
    [
      'an option longer than OPT',
      packet('0100', '0001 0000 0000 0001', `${question} 00 0029 04d0 00000000 0006 000a 0003 0102`),
      'BAD_EDNS'
    ],
    [
      'a whole option and half of one',
      packet('0100', '0001 0000 0000 0001', `${question} 00 0029 04d0 00000000 0006 000a 0000 0003`),
      'BAD_EDNS'
    ],
    [
      'TSIG not last (sig-tsig-notlast)',
      packet('0100', '0001 0000 0000 0002', `${question} ${tsig} ${opt}`),
      'BAD_TSIG'
    ],
    ['two TSIG', packet('0100', '0001 0000 0000 0002', `${question} ${tsig} ${tsig}`), 'BAD_TSIG'],
    ['TSIG in another section', packet('0000', '0001 0000 0001 0000', `${name} 00fb 0001 ${tsig}`), 'BAD_TSIG'],
    [
      'TSIG of class IN',
      packet('0100', '0001 0000 0000 0001', `${question} ${tsig.replace('00fa 00ff', '00fa 0001')}`),
      'BAD_TSIG'
    ],
    [
      'TSIG with a TTL',
      packet('0100', '0001 0000 0000 0001', `${question} ${tsig.replace('00000000', '00000001')}`),
      'BAD_TSIG'
    ],
    [
      'a MAC longer than TSIG',
      packet('0100', '0001 0000 0000 0001', `${question} ${tsig.replace('0020 00*32', '0021 00*32')}`),
      'BAD_RDATA'
    ],
    [
      'a MAC shorter than TSIG',
      packet('0100', '0001 0000 0000 0001', `${question} ${tsig.replace('0020 00*32', '001f 00*32')}`),
      'BAD_RDATA'
    ],
    [
      'TSIG that ends in its algorithm',
      packet('0100', '0001 0000 0000 0001', `${question} 00 00fa 00ff 00000000 0002 05 61`),
      'TRUNCATED'
    ],
    [
      'TSIG without anything',
      packet('0100', '0001 0000 0000 0001', `${question} 00 00fa 00ff 00000000 0001 00`),
      'BAD_RDATA'
    ]
  ]
  for (const [row, octets, want] of rows) t.equal(codeOf(octets), want, row)
})

test('parseQuery reads what other programs send', async (t) => {
  for (const { name: vector, octets, lines } of readVectors().filter((each) => each.name.startsWith('query-'))) {
    const query = parse(octets)
    const asked = /^question (\S+) IN/.exec(lines[1]!)![1]
    t.equal(nameToText(query.qname), asked, vector)
    t.equal(query.edns !== null, lines.at(-1)!.startsWith('edns'), `${vector}: EDNS`)
    t.equal(query.tsig !== null, vector.includes('tsig'), `${vector}: TSIG`)
  }
})

test('parseQuery reads each query that encodeMessage writes', async (t) => {
  const message = { qr: false, aa: false, tc: false, ra: false, ad: false, opcode: 0, rcode: 0 } as const
  const none = { answer: [], authority: [], additional: [] }
  const type = fc.nat(0xffff).filter((number) => number !== RRTYPE.OPT && number !== RRTYPE.TSIG)
  fc.assert(
    fc.property(domainName, type, fc.option(edns), fc.boolean(), fc.boolean(), (qname, qtype, edns, rd, cd) => {
      const questions = [{ name: qname, type: qtype, class: 1 }]
      const query = parse(encodeMessage({ ...message, ...none, id: 7, rd, cd, questions, edns }))
      t.match(query, { id: 7, qname, qtype, qclass: 1, recursionDesired: rd, checkingDisabled: cd, records: 0 })
      t.same(query.edns, edns)
    }),
    { seed, numRuns: 200 }
  )
})
