import * as fc from 'fast-check'
import { test } from 'tap'
import { TextError } from '../../src/base/errors.ts'
import { NetworkSet, parseNetwork } from '../../src/base/network.ts'
import { Contributions } from '../../src/cluster/contributions.ts'
import { reverseName, reverseZones } from '../../src/cluster/reverse.ts'
import { ipv4ToText } from '../../src/wire/address.ts'
import { isAtOrBelow, nameToText, parseName } from '../../src/wire/name.ts'
import { rrset } from '../support/records.ts'
import { reverseNameOf } from './fixture.ts'

const zonesOf = (...networks: string[]): string[] => reverseZones(networks.map(parseNetwork)).map(nameToText).sort()

test('reverseZones covers networks with the fewest octet or nibble zones', async (t) => {
  // prettier-ignore
  const rows: { name: string; networks: string[]; want: string[] }[] = [
    { name: 'no network', networks: [], want: [] },
    { name: 'octets', networks: ['10.0.0.0/8', '172.20.0.0/16', '192.168.3.0/24', '192.0.2.9/32'], want: ['10.in-addr.arpa.', '20.172.in-addr.arpa.', '3.168.192.in-addr.arpa.', '9.2.0.192.in-addr.arpa.'] },
    { name: 'between octets', networks: ['10.96.0.0/14'], want: ['96', '97', '98', '99'].map((octet) => `${octet}.10.in-addr.arpa.`) },
    { name: 'the whole of IPv4', networks: ['0.0.0.0/0'], want: ['in-addr.arpa.'] },
    { name: 'nibbles', networks: ['fd00::/8', '2001:db8::/32'], want: ['8.b.d.0.1.0.0.2.ip6.arpa.', 'd.f.ip6.arpa.'] },
    { name: 'between nibbles', networks: ['fd43:1:2:4::/63'], want: ['4.0.0.0.2.0.0.0.1.0.0.0.3.4.d.f.ip6.arpa.', '5.0.0.0.2.0.0.0.1.0.0.0.3.4.d.f.ip6.arpa.'] },
    { name: 'one within another', networks: ['10.43.0.0/16', '10.0.0.0/8', '10.43.7.0/24'], want: ['10.in-addr.arpa.'] },
    { name: 'the same twice', networks: ['10.0.0.0/8', '10.0.0.0/8'], want: ['10.in-addr.arpa.'] },
    { name: 'halves that make a whole', networks: ['10.0.0.0/9', '10.128.0.0/9'], want: ['10.in-addr.arpa.'] },
    { name: 'wholes that make a whole in turn', networks: ['10.5.0.0/17', '10.5.128.0/17', ...Array.from({ length: 256 }, (_, at) => `10.${at}.0.0/16`).filter((text) => text !== '10.5.0.0/16')], want: ['10.in-addr.arpa.'] },
    { name: 'neighbours of two lengths', networks: ['fd00::/9', 'fd80::/10', 'fdc0::/10'], want: ['d.f.ip6.arpa.'] }
  ]
  for (const { name, networks, want } of rows) t.same(zonesOf(...networks), want.sort(), name)
  t.equal(zonesOf('10.0.0.0/9').length, 128)
  t.throws(() => zonesOf(...Array.from({ length: 33 }, (_, at) => `10.0.${at}.0/25`)), TextError)
})

test('reverseZones covers exactly the networks', async (t) => {
  const octets = fc.array(fc.nat(3), { minLength: 4, maxLength: 4 })
  const network = fc.tuple(octets, fc.integer({ min: 8, max: 32 })).map(([parts, length]) => {
    const word = parts.reduce((sum, part) => sum * 256 + part, 0)
    const first = Math.floor(word / 2 ** (32 - length)) * 2 ** (32 - length)
    const text = [24, 16, 8, 0].map((shift) => Math.floor(first / 2 ** shift) % 256).join('.')
    return parseNetwork(`${text}/${length}`)
  })
  fc.assert(
    fc.property(fc.array(network, { maxLength: 5 }), fc.array(octets, { maxLength: 20 }), (networks, addresses) => {
      const zones = reverseZones(networks)
      const set = new NetworkSet(networks)
      return addresses.every((parts) => {
        const address = ipv4ToText(Uint8Array.from(parts))
        const owner = reverseName(address)
        return zones.filter((zone) => isAtOrBelow(owner, zone)).length === (set.contains(address) ? 1 : 0)
      })
    }),
    { numRuns: 500, seed: 11 }
  )
  t.pass('500 sets of networks')
})

test('reverseName turns an address round', async (t) => {
  for (const address of ['10.0.3.200', '0.0.0.0', 'fd00::1', '2001:db8:1:2:3:4:5:6', '::']) {
    t.equal(nameToText(reverseName(address)), reverseNameOf(address))
  }
})

test('Contributions merges the lowest rank and forgets what was taken back', async (t) => {
  const contributions = new Contributions()
  const owner = parseName('a.example.org')
  const addresses = (...texts: string[]) => rrset('a.example.org', 'A', texts.length, ...texts)
  t.equal(contributions.merged(owner, 1), null)
  const one = addresses('192.0.2.2', '192.0.2.1')
  const two = addresses('192.0.2.1', '192.0.2.3', '192.0.2.0')
  const far = addresses('192.0.2.9')
  contributions.add(0, one)
  contributions.add(0, two)
  contributions.add(1, far)
  t.same(contributions.merged(owner, 1), {
    ...addresses('192.0.2.0', '192.0.2.1', '192.0.2.2', '192.0.2.3'),
    ttlSeconds: 2
  })
  const later = addresses('192.0.2.7')
  contributions.remove(two)
  contributions.add(0, later)
  t.same(contributions.merged(owner, 1), { ...addresses('192.0.2.1', '192.0.2.2', '192.0.2.7'), ttlSeconds: 1 })
  contributions.remove(two)
  t.equal(contributions.merged(owner, 1)!.rdata.length, 3, 'that one was gone already')
  contributions.remove(one)
  contributions.remove(later)
  t.same(contributions.merged(owner, 1), addresses('192.0.2.9'), 'the higher rank speaks when it is alone')
  contributions.remove({ ...far, type: 28 })
  t.equal(contributions.size, 1)
  contributions.remove(far)
  t.equal(contributions.size, 0)
  t.equal(contributions.merged(owner, 1), null)
})
