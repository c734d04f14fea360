import * as fc from 'fast-check'
import { test } from 'tap'
import { WireError } from '../../src/base/errors.ts'
import { classToText, parseType, RRTYPE, typeToText } from '../../src/wire/iana.ts'
import { nameToText, parseName } from '../../src/wire/name.ts'
import { parseRdata } from '../../src/wire/rdata-from-text.ts'
import { parseRecordLine, rdataToText, recordToText } from '../../src/wire/record-text.ts'
import { rdataOf, recordTypes, resourceRecord, seed } from './arbitraries.ts'
import { hex } from './message-text.ts'

const defaults = { defaultTtlSeconds: 7 }

test('parseRdata and rdataToText agree on every type', async (t) => {
  const fooExample = '03 666f6f 07 6578616d706c65 03 636f6d 00'
  // Type, text as it is written out, octets. SVCB and HTTPS: the examples of RFC 9460 appendix D; DS: RFC 4034 §5.4.
  const rows: [string, string, string][] = [
    ['A', '192.0.2.1', 'c0000201'],
    ['AAAA', '2001:db8::1', '20010db8 00*11 01'],
    ['NS', 'Foo.example.com.', '03 466f6f 07 6578616d706c65 03 636f6d 00'],
    ['CNAME', 'a\\.b\\000.', '04 612e6200 00'],
    ['PTR', '.', '00'],
    [
      'SOA',
      'ns.x. h\\.m.x. 4294967295 7200 1800 86400 5',
      '02 6e73 01 78 00 03 682e6d 01 78 00 ffffffff 00001c20 00000708 00015180 00000005'
    ],
    ['MX', '10 foo.example.com.', `000a ${fooExample}`],
    ['TXT', '"a b" "" "\\"\\\\;" "\\000\\255"', '03 612062 00 03 225c3b 02 00ff'],
    ['SRV', '0 100 8080 foo.example.com.', `0000 0064 1f90 ${fooExample}`],
    [
      'NAPTR',
      '100 10 "u" "E2U+sip" "!^.*$!sip:i@x!" .',
      '0064 000a 01 75 07 4532552b736970 0e 215e2e2a24217369703a69407821 00'
    ],
    [
      'CAA',
      '0 issue "ca.example.net; account=\\"7\\""',
      '00 05 6973737565 63612e6578616d706c652e6e65743b206163636f756e743d223722'
    ],
    ['CAA', '128 iodef ""', '80 05 696f646566'],
    ['DS', '60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118', 'ec45 05 01 2bb183af5f22588179a53b0a98631fad1a292118'],
    ['HTTPS', '0 foo.example.com.', `0000 ${fooExample}`],
    ['SVCB', '1 .', '0001 00'],
    ['SVCB', '16 foo.example.com. port=53', `0010 ${fooExample} 0003 0002 0035`],
    ['SVCB', '1 foo.example.com. key667="hello"', `0001 ${fooExample} 029b 0005 68656c6c6f`],
    ['SVCB', '1 foo.example.com. key667="hello\\210qoo"', `0001 ${fooExample} 029b 0009 68656c6c6fd2716f6f`],
    [
      'SVCB',
      '1 foo.example.com. ipv6hint=2001:db8::1,2001:db8::53:1',
      `0001 ${fooExample} 0006 0020 20010db8 00*11 01 20010db8 00*8 00530001`
    ],
    ['SVCB', '1 . ipv6hint=2001:db8:122:344::c000:221', '0001 00 0006 0010 20010db8 01220344 00*4 c0000221'],
    [
      'SVCB',
      '16 foo.example.com. mandatory=alpn,ipv4hint alpn="h2,h3-19" ipv4hint=192.0.2.1',
      `0010 ${fooExample} 0000 0004 0001 0004 0001 0009 02 6832 05 68332d3139 0004 0004 c0000201`
    ],
    [
      'SVCB',
      '16 foo.example.com. alpn="f\\\\\\\\oo\\\\,bar,h2"',
      `0010 ${fooExample} 0001 000c 08 665c6f6f2c626172 02 6832`
    ],
    [
      'HTTPS',
      '1 . alpn="h2" no-default-alpn port=8443 ech="AAEC" dohpath="/q{?dns}" ohttp key9',
      '0001 00 0001 0003 02 6832 0002 0000 0003 0002 20fb 0005 0003 000102 0007 0008 2f717b3f646e737d 0008 0000 0009 0000'
    ],
    [
      'TSIG',
      'hmac-sha256. 1700000000 300 4 AAECAw== 4386 BADTIME 6 AABlU/EB',
      '0b 686d61632d736861323536 00 00006553f100 012c 0004 00010203 1122 0012 0006 00006553f101'
    ],
    ['TSIG', 'x. 281474976710655 0 0 0 BADSIG 0', '01 78 00 ffffffffffff 0000 0000 0000 0010 0000'],
    ['HINFO', '"RFC8482" ""', '07 52464338343832 00'],
    ['TLSA', '3 1 1 00FF', '03 01 01 00ff'],
    ['NULL', '\\# 0', ''],
    ['TYPE65400', '\\# 4 0A0B0C0D', '0a0b0c0d']
  ]
  for (const [type, text, octets] of rows) {
    const number = parseType(type)!
    t.equal(rdataToText(number, hex(octets)), text, `${type} ${text}`)
    t.same(parseRdata(number, text), hex(octets), `${type} ${text}: back`)
    t.same(
      parseRdata(number, `\\# ${hex(octets).length} ${Buffer.from(hex(octets)).toString('hex')}`),
      hex(octets),
      'as unknown'
    )
  }
})

test('parseRdata takes other ways to write the same', async (t) => {
  const rows: [string, string, string][] = [
    ['TXT', 'plain "quoted" \\;x', '"plain" "quoted" ";x"'],
    ['TXT', '"é"', '"\\195\\169"'],
    ['MX', '10 Mail', '10 Mail.'],
    ['DS', '60485 5 1 ( 2bb1 ; the digest\n 83af )', '60485 5 1 2BB183AF'],
    ['SVCB', '16 x port=53 alpn=h2,h3', '16 x. alpn="h2,h3" port=53'],
    ['SVCB', '1 . key667=hello', '1 . key667="hello"'],
    ['SVCB', '1 . key3="\\000\\053"', '1 . port=53'],
    ['SVCB', '1 . key3', '1 . key3'],
    ['SVCB', '1 . ipv6hint="2001:db8:122:344::192.0.2.33"', '1 . ipv6hint=2001:db8:122:344::c000:221'],
    [
      'SVCB',
      '16 x alpn=h2 ipv4hint="192.0.2.1,192.0.2.2" mandatory=ipv4hint,alpn',
      '16 x. mandatory=alpn,ipv4hint alpn="h2" ipv4hint=192.0.2.1,192.0.2.2'
    ],
    ['CAA', '0 issue ca.example', '0 issue "ca.example"'],
    ['TYPE65400', '\\# 4 0a0b 0C0D', '\\# 4 0A0B0C0D'],
    ['AAAA', '2001:0DB8:0:0:0:0:0:1', '2001:db8::1']
  ]
  for (const [type, text, want] of rows) {
    t.equal(rdataToText(parseType(type)!, parseRdata(parseType(type)!, text)), want, `${type} ${text}`)
  }
})

test('parseRdata says where text is wrong', async (t) => {
  const rows: [string, string, number][] = [
    ['A', '', 0],
    ['A', '1.2.3', 0],
    ['A', '192.0.2.1 192.0.2.2', 10],
    ['A', '2001:db8::1', 0],
    ['AAAA', '192.0.2.1', 0],
    ['MX', 'ten mail', 0],
    ['MX', '65536 mail', 0],
    ['MX', '-1 mail', 0],
    ['MX', '10', 2],
    ['MX', '10 a..b', 5],
    ['CNAME', 'a b', 2],
    ['SOA', 'a b 1 2 3 4', 11],
    ['SOA', 'a b 1 2 3 4 4294967296', 12],
    ['TXT', '', 0],
    ['TXT', '"open', 0],
    ['TXT', '"a"b', 3],
    ['TXT', 'a"b"', 1],
    ['TXT', '"\\300"', 1],
    ['TXT', '( "a"', 0],
    ['TXT', '"a" )', 4],
    ['TXT', `"${'x'.repeat(256)}"`, 0],
    ['CAA', '0 is-sue "x"', 2],
    ['CAA', '256 issue "x"', 0],
    ['DS', '1 5 1', 5],
    ['DS', '1 5 1 abc', 6],
    ['DS', '1 5 1 xx', 6],
    ['TSIG', 'x 0 0 3 AAECAw== 0 NOERROR 0', 8],
    ['TSIG', 'x 0 0 4 AAEC!w== 0 NOERROR 0', 8],
    ['TSIG', 'x 0 0 0 0 NOSUCH 0', 10],
    ['A', '\\# 3 010203', 0],
    ['A', '\\# 4 0102', 3],
    ['A', '\\# x 01', 3],
    ['A', '\\#', 2],
    ['CNAME', '\\# 2 c00c', 0],
    ['TYPE65400', 'text', 0],
    ['TYPE65400', '\\# 2 0g0g', 5],
    // RFC 9460 appendix D.3.
    ['SVCB', '1 x key123=abc key123=def', 15],
    ['SVCB', '1 x mandatory', 4],
    ['SVCB', '1 x alpn', 4],
    ['SVCB', '1 x port', 4],
    ['SVCB', '1 x ipv4hint=', 4],
    ['SVCB', '1 x ipv6hint=""', 4],
    ['SVCB', '1 x no-default-alpn=abc', 20],
    ['SVCB', '1 x mandatory=key123', 4],
    ['SVCB', '1 x mandatory=mandatory', 4],
    ['SVCB', '1 x mandatory=key123,key123 key123=abc', 4],
    ['SVCB', '1 x no-default-alpn', 4],
    ['SVCB', '1 x port=65536', 9],
    ['SVCB', '1 x ipv4hint=::1', 13],
    ['SVCB', '1 x ech=!', 8],
    ['SVCB', '1 x alpn=a,,b', 9],
    ['SVCB', '1 x alpn=a\\\\b', 9],
    ['SVCB', '1 x nosuch=1', 4],
    ['SVCB', '1 x key65535=1', 4],
    ['SVCB', '1 x key01=1', 4]
  ]
  for (const [type, text, offset] of rows) {
    t.throws(() => parseRdata(parseType(type)!, text), { code: 'BAD_TEXT', offset }, `${type} ${text.slice(0, 40)}`)
  }
})

test('rdataToText writes any octets, and they read back', async (t) => {
  for (const type of [...recordTypes, RRTYPE.TSIG]) {
    fc.assert(
      fc.property(rdataOf(type), (rdata) => {
        t.same(parseRdata(type, rdataToText(type, rdata)), rdata)
      }),
      { seed, numRuns: 50 }
    )
  }
  t.equal(rdataToText(RRTYPE.A, hex('0a0000')), '\\# 3 0A0000', 'octets that do not fit the type')
  t.equal(rdataToText(RRTYPE.CAA, hex('00 03 612d62 63')), '\\# 6 0003612D6263', 'a tag that no text can have')
  t.equal(
    rdataToText(RRTYPE.SVCB, hex('0001 00 0002 0000')),
    '\\# 7 00010000020000',
    'SvcParams that contradict one another'
  )
  t.equal(
    rdataToText(RRTYPE.SVCB, hex('0001 00 0001 0002 0268')),
    '1 . key1="\\002h"',
    'a value that its key cannot have'
  )
})

test('parseRecordLine reads one record', async (t) => {
  const rows: [string, string][] = [
    ['db.backend.svc.cluster.local. 10 A 172.30.9.9', 'db.backend.svc.cluster.local. 10 IN A 172.30.9.9'],
    ['db A 172.30.9.9', 'db. 7 IN A 172.30.9.9'],
    ['DB IN A 172.30.9.9', 'db. 7 IN A 172.30.9.9'],
    ['db 10 IN A 172.30.9.9', 'db. 10 IN A 172.30.9.9'],
    ['db in 10 a 172.30.9.9', 'db. 10 IN A 172.30.9.9'],
    ['\tdb\t1h30m   a\t172.30.9.9 ; our database', 'db. 5400 IN A 172.30.9.9'],
    ['db 0 TYPE1 \\# 4 ac1e0909', 'db. 0 IN A 172.30.9.9'],
    ['10 10 TXT 10', '10. 10 IN TXT "10"'],
    ['x 2147483647 TYPE65400 \\# 0', 'x. 2147483647 IN TYPE65400 \\# 0'],
    ['a\\032b 5 CNAME C.d', 'a\\032b. 5 IN CNAME C.d.']
  ]
  for (const [line, want] of rows) t.equal(recordToText({ ...parseRecordLine(line, defaults), class: 1 }), want, line)
  t.equal(parseRecordLine('DB A 192.0.2.1', defaults).owner, parseName('db'))
})

test('parseRecordLine says where a line is wrong', async (t) => {
  const rows: [string, string, number][] = [
    ['nothing', '', 0],
    ['a comment alone', '; x', 3],
    ['an owner alone', 'db', 2],
    ['no type', 'db 10 IN', 8],
    ['no RDATA', 'db 10 A', 7],
    ['an owner that is none', 'a..b A 192.0.2.1', 2],
    ['the origin, which there is none of', '@ 10 A 192.0.2.1', 0],
    ['another class', 'db CH A 192.0.2.1', 3],
    ['two TTLs', 'db 10 20 A 192.0.2.1', 6],
    ['a TTL over 2^31-1', 'db 2147483648 A 192.0.2.1', 3],
    ['no type of that name', 'db 10 AA 192.0.2.1', 6],
    ['OPT', 'db OPT \\# 0', 3],
    ['ANY', 'db ANY \\# 0', 3],
    ['TSIG', 'db TSIG \\# 0', 3],
    ['type 0', 'db TYPE0 \\# 0', 3],
    ['type 65536', 'db TYPE65536 \\# 0', 3],
    ['a bad address', 'db 10 A 172.30.9', 8]
  ]
  for (const [row, line, offset] of rows) {
    t.throws(() => parseRecordLine(line, defaults), { code: 'BAD_TEXT', offset }, `${row}: ${line}`)
  }
})

test('recordToText writes what parseRecordLine reads back', async (t) => {
  fc.assert(
    fc.property(resourceRecord, (record) => {
      const { owner, type, ttlSeconds, rdata } = record
      t.same(parseRecordLine(recordToText(record), defaults), { owner, type, ttlSeconds, rdata })
    }),
    { seed, numRuns: 300 }
  )
})

test('parseRecordLine gives a record or a WireError for any text', async (t) => {
  const word = fc.constantFrom(
    'a.b',
    '10',
    'IN',
    'A',
    'TXT',
    'SVCB',
    'TSIG',
    '\\#',
    '"',
    '"x"',
    '(',
    ')',
    ';',
    '=',
    'alpn=',
    '\\',
    '1.2.3.4',
    '.',
    ' '
  )
  const text = fc.oneof(
    fc.array(word).map((words) => words.join(' ')),
    fc.array(word).map((words) => words.join('')),
    fc.string()
  )
  fc.assert(
    fc.property(text, (line) => {
      try {
        nameToText(parseRecordLine(line, defaults).owner)
      } catch (error) {
        if (!(error instanceof WireError) || error.code !== 'BAD_TEXT') throw error
        if (error.offset < 0 || error.offset > line.length) throw new Error(line, { cause: error })
      }
    }),
    { seed, numRuns: 3000 }
  )
  t.pass('nothing else')
})

test('types and classes have names both ways', async (t) => {
  for (const [name, number] of Object.entries(RRTYPE)) {
    t.equal(typeToText(number), name)
    t.equal(parseType(name.toLowerCase()), number)
  }
  t.equal(typeToText(65_400), 'TYPE65400')
  t.equal(parseType('type65400'), 65_400)
  t.equal(parseType('TYPE65536'), null)
  t.equal(parseType('toString'), null, 'what objects have anyway is no type')
  t.equal(classToText(1), 'IN')
  t.equal(classToText(65_280), 'CLASS65280')
})
