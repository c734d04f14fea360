import { BlockList, isIP, SocketAddress } from 'node:net'
import * as fc from 'fast-check'
import { test } from 'tap'
import { TextError } from '../../src/base/errors.ts'
import { canonicalAddress } from '../../src/base/ip-address.ts'
import { NetworkSet, networksOverlap, parseNetwork } from '../../src/base/network.ts'

void test('parseNetwork reads CIDR notation and single addresses, in one canonical form', async (t) => {
  const rows: [text: string, want: string][] = [
    ['10.0.0.0/8', '10.0.0.0/8'],
    ['10.8.0.0/14', '10.8.0.0/14'],
    ['0.0.0.0/0', '0.0.0.0/0'],
    ['192.0.2.7', '192.0.2.7/32'],
    ['255.255.255.255/32', '255.255.255.255/32'],
    ['FD43:1:2:1::/64', 'fd43:1:2:1::/64'],
    ['2001:db8::1', '2001:db8::1/128'],
    ['::/0', '::/0'],
    ['::ffff:10.0.0.0/104', '10.0.0.0/8'],
    ['::ffff:192.0.2.7', '192.0.2.7/32'],
    ['::ffff:0:0/96', '0.0.0.0/0'],
    ['2001:db8:0:0:1:0:0:0/80', '2001:db8:0:0:1::/80']
  ]
  for (const [text, want] of rows) t.equal(parseNetwork(text).text, want, text)
})

void test('parseNetwork refuses what other parsers guess at', async (t) => {
  const rows: [text: string, want: RegExp][] = [
    ['010.0.0.0/8', /not a network/],
    ['10/8', /not a network/],
    ['10.1', /not a network/],
    ['0x7f.0.0.1/8', /not a network/],
    ['10.0.0.0/', /0 to 32/],
    ['10.0.0.0/33', /0 to 32/],
    ['10.0.0.0/08', /0 to 32/],
    ['10.0.0.0/+8', /0 to 32/],
    ['::/129', /0 to 128/],
    ['10.0.0.0/8/8', /0 to 32/],
    ['10.1.0.0/8', /bits set behind its prefix: write 10\.0\.0\.0\/8/],
    ['fd00::1/64', /write fd00::\/64/],
    ['::ffff:1.2.3.4/64', /write ::\/64/],
    ['fe80::1%eth0', /not a network/],
    ['private', /not a network/],
    ['', /not a network/]
  ]
  for (const [text, want] of rows) t.throws(() => parseNetwork(text), want, JSON.stringify(text))
  for (const [text] of rows) t.throws(() => parseNetwork(text), TextError)
})

void test('NetworkSet.contains knows both families, mapped addresses and the word private', async (t) => {
  const inPrivate = NetworkSet.parse(['private'])
  const inside = [
    '10.0.0.1',
    '172.31.255.255',
    '192.168.1.1',
    '127.0.0.1',
    '169.254.20.10',
    '100.127.255.255',
    '::1'
  ].concat([
    'fd00::1',
    'fc00::',
    'fe80::1%eth0',
    'febf::1',
    '::ffff:10.0.0.1',
    '::ffff:7f00:1',
    '0:0:0:0:0:ffff:10.0.0.1'
  ])
  const outside = [
    '9.255.255.255',
    '11.0.0.0',
    '172.32.0.0',
    '192.169.0.1',
    '100.128.0.0',
    '8.8.8.8',
    '2001:db8::1',
    'fec0::1'
  ].concat([
    '::2',
    '::',
    '::ffff:8.8.8.8',
    '',
    'x',
    '10.0.0',
    '10.0.0.0.1',
    '10..0.1',
    '256.0.0.1',
    '1:2:3:4:5:6:7:8:9',
    '1::2::3',
    'g::'
  ])
  for (const address of inside) t.equal(inPrivate.contains(address), true, address)
  for (const address of outside) t.equal(inPrivate.contains(address), false, JSON.stringify(address))
  const any = NetworkSet.parse(['any'])
  for (const address of ['8.8.8.8', '::', '2001:db8::1', '::ffff:8.8.8.8', '0.0.0.0']) t.ok(any.contains(address))
  t.notOk(any.contains('nonsense'))
  const none = new NetworkSet([])
  t.notOk(none.contains('10.0.0.1'))
  const pair = NetworkSet.parse(['10.0.0.7', '2001:db8:1::/48'])
  for (const round of [1, 2]) {
    t.ok(pair.contains('10.0.0.7'), `round ${round}`)
    t.notOk(pair.contains('10.0.0.8'))
    t.ok(pair.contains('2001:db8:1:ffff::1'))
    t.notOk(pair.contains('2001:db8:2::1'))
  }
  t.equal(String(pair), '10.0.0.7/32, 2001:db8:1::/48')
})

void test('networks overlap exactly where one lies in the other', async (t) => {
  const rows: [one: string, other: string, want: boolean][] = [
    ['10.0.0.0/8', '10.8.0.0/14', true],
    ['10.8.0.0/14', '10.0.0.0/8', true],
    ['10.0.0.0/9', '10.128.0.0/9', false],
    ['0.0.0.0/0', '::/0', false],
    ['::/0', 'fd00::/8', true],
    ['2001:db8::/33', '2001:db8:8000::/33', false],
    ['2001:db8:0:0:8000::/65', '2001:db8::/64', true]
  ]
  for (const [one, other, want] of rows) {
    t.equal(networksOverlap(parseNetwork(one), parseNetwork(other)), want, `${one} and ${other}`)
    t.equal(NetworkSet.parse([one, '192.0.2.0/24']).overlaps(NetworkSet.parse([other])), want || other === '0.0.0.0/0')
  }
})

/** Addresses of both families in canonical and other forms. */
const addressText = fc.oneof(
  fc.ipV4(),
  fc.ipV6(),
  fc.ipV4().map((address) => `::ffff:${address}`),
  fc.ipV4().map((address) => `64:ff9b::${address}`)
)

void test('NetworkSet and canonicalAddress agree with Node', async (t) => {
  const property = fc.property(addressText, addressText, fc.nat(128), (address, base, length) => {
    const family = isIP(base) === 4 ? 'ipv4' : 'ipv6'
    const prefixLength = Math.min(length, family === 'ipv4' ? 32 : 128)
    let network: string
    try {
      network = parseNetwork(`${base}/${prefixLength}`).text
    } catch (error) {
      network = / write (\S+)$/.exec((error as Error).message)![1]!
    }
    const blockList = new BlockList()
    const [first, bits] = network.split('/') as [string, string]
    blockList.addSubnet(first, Number(bits), isIP(first) === 4 ? 'ipv4' : 'ipv6')
    const canonical = canonicalAddress(address)!
    const isFour = isIP(canonical) === 4
    const want = blockList.check(canonical, isFour ? 'ipv4' : 'ipv6') && isFour === (isIP(first) === 4)
    const sameFamily = isIP(address) === 4 ? 'ipv4' : 'ipv6'
    const nodes = new SocketAddress({ address, family: sameFamily }).address.replace(/^::ffff:(\d+\.)/, '$1')
    // Node writes the deprecated IPv4-compatible form (::192.0.2.1) with dots.
    const isSame = nodes === canonical || (nodes.startsWith('::') && nodes.includes('.'))
    return NetworkSet.parse([network]).contains(address) === want && isSame
  })
  t.doesNotThrow(() => fc.assert(property, { seed: 20261130, numRuns: 5_000 }))
  const canonicalRows: [text: string, want: string | null][] = [
    ['2001:DB8:0:0:0:0:0:1', '2001:db8::1'],
    ['2001:db8:0:1:1:1:1:1', '2001:db8:0:1:1:1:1:1'],
    ['2001:0:0:1:0:0:0:1', '2001:0:0:1::1'],
    ['2001:db8:0:0:1:0:0:1', '2001:db8::1:0:0:1'],
    ['0:0:0:0:0:0:0:0', '::'],
    ['fe80::1%eth0', 'fe80::1'],
    ['::ffff:a00:1', '10.0.0.1'],
    ['010.0.0.1', null],
    ['10.1', null],
    ['', null]
  ]
  for (const [text, want] of canonicalRows) t.equal(canonicalAddress(text), want, text)
})
