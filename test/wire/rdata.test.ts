import * as fc from 'fast-check'
import { test } from 'tap'
import { WireError } from '../../src/base/errors.ts'
import { ipv4ToText, ipv6ToText, parseIpv4, parseIpv6 } from '../../src/wire/address.ts'
import { CLASS, parseType, RRTYPE } from '../../src/wire/iana.ts'
import { parseName } from '../../src/wire/name.ts'
import {
  aaaaRdata,
  aRdata,
  checkRdata,
  hinfoRdata,
  nameRdata,
  rdataKey,
  readNameRdata,
  readRdata,
  readSoa,
  readSrv,
  soaRdata,
  srvRdata,
  txtRdata
} from '../../src/wire/rdata.ts'
import { compressibleNames } from '../../src/wire/rdata-format.ts'
import { rdataOf, recordTypes, seed } from './arbitraries.ts'
import { hex } from './message-text.ts'

/** Where RDATA starts in these tests: behind a header's room and the name "Svc.local". */
const before = '00*12 03 537663 05 6c6f63616c 00'
const start = 23

/** RDATA as a message would have it, read for its type. */
const read = (type: string, rdata: string, rrclass: number = CLASS.IN): Uint8Array => {
  const octets = hex(`${before} ${rdata}`)
  return readRdata(octets, start, octets.length, parseType(type)!, rrclass)
}

const svcLocal = '03 537663 05 6c6f63616c 00'

test('readRdata decompresses the names of every type that has some', async (t) => {
  const rows: [string, string, string][] = [
    ['NS', 'c00c', svcLocal],
    ['CNAME', '01 61 c00c', `01 61 ${svcLocal}`],
    ['PTR', 'c010', '05 6c6f63616c 00'],
    ['DNAME', 'c00c', svcLocal],
    ['MX', '000a c00c', `000a ${svcLocal}`],
    ['SOA', '01 61 c00c c017 00*20', `01 61 ${svcLocal} 01 61 ${svcLocal} 00*20`],
    ['SRV', '0001 0002 0003 c00c', `0001 0002 0003 ${svcLocal}`],
    ['NAPTR', '0001 0002 01 75 00 00 c00c', `0001 0002 01 75 00 00 ${svcLocal}`],
    ['RP', 'c00c c010', `${svcLocal} 05 6c6f63616c 00`],
    ['AFSDB', '0001 c00c', `0001 ${svcLocal}`],
    ['MINFO', 'c00c c00c', `${svcLocal} ${svcLocal}`],
    ['SVCB', '0001 c00c 0003 0002 0035', `0001 ${svcLocal} 0003 0002 0035`],
    ['HTTPS', '0000 c00c', `0000 ${svcLocal}`],
    ['RRSIG', '00*18 c00c aabb', `00*18 ${svcLocal} aabb`],
    ['SIG', '00*18 c00c aabb', `00*18 ${svcLocal} aabb`],
    ['NSEC', 'c00c 0001 40', `${svcLocal} 0001 40`],
    ['TSIG', 'c00c 00*6 012c 0001 aa 1122 0000 0000', `${svcLocal} 00*6 012c 0001 aa 1122 0000 0000`]
  ]
  for (const [type, written, want] of rows) t.same(read(type, written), hex(want), type)
  t.same(read('TYPE65400', 'c00c'), hex('c00c'), 'an unknown type keeps its octets')
  t.same(read('A', '01 61 00 1234', CLASS.CH), hex('01 61 00 1234'), 'an address of class CH is no IPv4 address')
  t.same(read('SOA', '', CLASS.ANY), hex(''), 'a condition of dynamic update has no RDATA')
})

test('readRdata copies: the result shares no memory with the message', async (t) => {
  const octets = Buffer.from(hex(`${before} 0a000001`))
  const rdata = readRdata(octets, start, start + 4, RRTYPE.A, CLASS.IN)
  octets.fill(0)
  t.same(rdata, hex('0a000001'))
  t.equal(rdata.buffer.byteLength, 4, 'its memory is its own, and no larger than it')
  t.equal(Object.getPrototypeOf(rdata), Uint8Array.prototype, 'it is no Buffer, so that all RDATA has one shape')
})

test('readRdata rejects what does not fit its type', async (t) => {
  const rows: [string, string, string][] = [
    ['A', '', 'BAD_RDATA'],
    ['A', '0a0000', 'BAD_RDATA'],
    ['A', '0a00000102', 'BAD_RDATA'],
    ['AAAA', '00*15', 'BAD_RDATA'],
    ['AAAA', '00*17', 'BAD_RDATA'],
    ['CNAME', '', 'BAD_RDATA'],
    ['CNAME', '03 6162', 'BAD_RDATA'],
    ['CNAME', '01 61', 'BAD_RDATA'],
    ['CNAME', 'c0', 'BAD_RDATA'],
    ['CNAME', '01 61 00 ff', 'BAD_RDATA'],
    ['CNAME', 'c00c ff', 'BAD_RDATA'],
    ['CNAME', 'c017', 'BAD_POINTER'],
    ['CNAME', 'c0ff', 'BAD_POINTER'],
    ['CNAME', '40 61*64 00', 'BAD_LABEL'],
    ['CNAME', '3f 61*63 3f 61*63 3f 61*63 3f 61*63 00', 'NAME_TOO_LONG'],
    ['MX', '00', 'BAD_RDATA'],
    ['MX', '000a', 'BAD_RDATA'],
    ['SOA', 'c00c', 'BAD_RDATA'],
    ['SOA', 'c00c c00c 00*19', 'BAD_RDATA'],
    ['SOA', 'c00c c00c 00*21', 'BAD_RDATA'],
    ['TXT', '', 'BAD_RDATA'],
    ['TXT', '05 61626364', 'BAD_RDATA'],
    ['TXT', '01 61 02 61', 'BAD_RDATA'],
    ['HINFO', '01 61', 'BAD_RDATA'],
    ['HINFO', '00 00 00', 'BAD_RDATA'],
    ['SRV', '00*6', 'BAD_RDATA'],
    ['SRV', '00*5', 'BAD_RDATA'],
    ['SRV', '00*6 00 00', 'BAD_RDATA'],
    ['NAPTR', '0001 0002 01', 'BAD_RDATA'],
    ['NAPTR', '0001 0002 00 00 00', 'BAD_RDATA'],
    ['CAA', '00', 'BAD_RDATA'],
    ['CAA', '00 00', 'BAD_RDATA'],
    ['CAA', '00 05 6973', 'BAD_RDATA'],
    ['DS', '0001 05 01', 'BAD_RDATA'],
    ['SVCB', '0001', 'BAD_RDATA'],
    ['SVCB', '0001 00 0001', 'BAD_RDATA'],
    ['SVCB', '0001 00 0001 0003 0268', 'BAD_RDATA'],
    ['SVCB', '0001 00 0003 0000 0001 0000', 'BAD_RDATA'],
    ['SVCB', '0001 00 0003 0000 0003 0000', 'BAD_RDATA'],
    ['RRSIG', '00*18', 'BAD_RDATA'],
    ['NSEC', '', 'BAD_RDATA'],
    ['TSIG', '00 00*6 012c 0005 aa 1122 0000 0000', 'BAD_RDATA']
  ]
  for (const [type, rdata, code] of rows) t.throws(() => read(type, rdata), { code }, `${type} ${rdata}`)
  t.throws(() => read('A', '', CLASS.IN), { code: 'BAD_RDATA' }, 'no RDATA in class IN')
})

test('readRdata never gives more octets than RDLENGTH can say', async (t) => {
  // 65522 octets as written, with a pointer to a name of eleven.
  t.throws(() => read('SVCB', '0001 c00c ff00 ffe8 00*65512 ff01 0010 00*16'), { code: 'BAD_RDATA' })
})

test('checkRdata takes RDATA of its type as it is, and no pointers', async (t) => {
  for (const type of [...recordTypes, RRTYPE.TSIG]) {
    fc.assert(
      fc.property(rdataOf(type), (rdata) => {
        checkRdata(rdata, type)
        t.same(readRdata(rdata, 0, rdata.length, type, CLASS.IN), rdata)
      }),
      { seed, numRuns: 20 }
    )
  }
  t.throws(() => checkRdata(hex('0c 61*12 00 c003 00*20'), RRTYPE.SOA), WireError, 'a pointer')
})

test('compressibleNames names the types of RFC 1035 alone', async (t) => {
  const types = [...recordTypes, RRTYPE.TSIG].filter((type) => compressibleNames(type) !== undefined)
  t.same(types, [RRTYPE.NS, RRTYPE.CNAME, RRTYPE.SOA, RRTYPE.PTR, RRTYPE.MX])
})

test('rdataKey tells equal RDATA, whatever the case of names', async (t) => {
  const same = (type: number, a: string, b: string): boolean => rdataKey(type, hex(a)) === rdataKey(type, hex(b))
  t.ok(same(RRTYPE.CNAME, '01 61 00', '01 41 00'), 'names have no case')
  t.ok(same(RRTYPE.SRV, '00*6 01 61 00', '00*6 01 41 00'), 'nor behind numbers')
  t.notOk(same(RRTYPE.SRV, '41*6 01 61 00', '61*6 01 61 00'), 'numbers are no letters')
  t.notOk(same(RRTYPE.TXT, '01 61', '01 41'), 'strings have a case')
  t.notOk(same(65_400, '01 61 00', '01 41 00'), 'so have unknown octets')
})

test('the builders make RDATA that reads back', async (t) => {
  const target = parseName('api.backend.svc.cluster.local')
  const srv = { priority: 1, weight: 65_535, port: 8080, target }
  const soa = {
    mname: parseName('ns.dns.cluster.local'),
    rname: parseName('host\\.master.cluster.local'),
    serial: 4_294_967_295,
    refreshSeconds: 7200,
    retrySeconds: 1800,
    expireSeconds: 86_400,
    minimumSeconds: 5
  }
  t.same(aRdata('10.0.0.1'), hex('0a000001'))
  t.same(aaaaRdata('2001:db8::1'), hex('20010db8 00*11 01'))
  t.same(readSrv(srvRdata(srv)), srv)
  t.same(readSoa(soaRdata(soa)), soa)
  t.equal(readNameRdata(nameRdata(target)), target)
  t.same(txtRdata(['1.1.0', 'é', '']), hex('05 312e312e30 02 c3a9 00'))
  t.same(hinfoRdata('RFC8482', ''), hex('07 52464338343832 00'))
  checkRdata(srvRdata(srv), RRTYPE.SRV)
  checkRdata(soaRdata(soa), RRTYPE.SOA)
  for (const [row, build] of [
    ['no address', () => aRdata('10.0.0.256')],
    ['the other family', () => aaaaRdata('10.0.0.1')],
    ['no string', () => txtRdata([])],
    ['a string of 256 octets', () => txtRdata(['x'.repeat(256)])]
  ] as const) {
    t.throws(build, { code: 'BAD_TEXT' }, row)
  }
  for (const rdata of [aRdata('10.0.0.1'), nameRdata(target), txtRdata(['x']), srvRdata(srv)]) {
    t.equal(rdata.buffer.byteLength, rdata.length, 'no piece of a shared pool: it is cloned to other threads')
  }
})

test('parseIpv4 and parseIpv6 read addresses, and nothing else', async (t) => {
  for (const text of ['0.0.0.0', '255.255.255.255', '10.1.2.3']) t.equal(ipv4ToText(parseIpv4(text)!), text)
  for (const text of [
    '',
    '1.2.3',
    '1.2.3.4.5',
    '01.2.3.4',
    '1.2.3.256',
    '1.2.3.',
    '1.2.3.4 ',
    '0x1.2.3.4',
    '1e1.2.3.4'
  ]) {
    t.equal(parseIpv4(text), null, `'${text}'`)
  }
  const rows: [string, string][] = [
    ['::', '::'],
    ['::1', '::1'],
    ['1::', '1::'],
    ['2001:DB8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['0:0:1:2:3:4:5:6', '::1:2:3:4:5:6'],
    ['1:2:3:4:5:6:7::', '1:2:3:4:5:6:7:0'],
    ['::ffff:10.0.0.1', '::ffff:10.0.0.1'],
    ['64:ff9b::192.0.2.33', '64:ff9b::c000:221']
  ]
  for (const [text, want] of rows) t.equal(ipv6ToText(parseIpv6(text)!), want, text)
  for (const text of [
    '',
    ':',
    ':::',
    '1',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7:8::',
    '1::2::3',
    '12345::',
    'g::',
    ':1::',
    '1::2:',
    '::1.2.3',
    '1.2.3.4::',
    '::1.2.3.4:5',
    'fe80::1%eth0',
    '::1 '
  ]) {
    t.equal(parseIpv6(text), null, `'${text}'`)
  }
  fc.assert(
    fc.property(rdataOf(RRTYPE.AAAA), (octets) => t.same(parseIpv6(ipv6ToText(octets)), octets)),
    { seed }
  )
})
