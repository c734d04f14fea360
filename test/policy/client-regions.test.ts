import { test } from 'tap'
import { parseNetwork } from '../../src/base/network.ts'
import { ClientRegions } from '../../src/policy/client-regions.ts'

const of = (networks: Record<string, string>, own = 'home'): ClientRegions =>
  new ClientRegions(
    Object.entries(networks).map(([text, region]) => ({ network: parseNetwork(text), region })),
    own
  )

test('ClientRegions finds the longest prefix of both families, else our own region', async (t) => {
  const regions = of({
    '10.8.0.0/14': 'west',
    '10.8.1.0/24': 'lab',
    '10.8.1.7/32': 'desk',
    '0.0.0.0/0': 'world',
    '2001:db8::/32': 'six',
    '2001:db8:0:1::/64': 'six-lab',
    '2001:db8::7/128': 'six-desk'
  })
  const rows = {
    '10.8.1.7': 'desk',
    '10.8.1.8': 'lab',
    '10.11.255.255': 'west',
    '10.12.0.0': 'world',
    '2001:db8::7': 'six-desk',
    '2001:db8::8': 'six',
    '2001:db8:0:1::9': 'six-lab',
    '2001:db9::1': 'home',
    '::ffff:10.8.1.7': 'desk',
    nonsense: 'home'
  }
  for (const [address, region] of Object.entries(rows)) {
    t.equal(regions.regionOf(address), region, address)
    t.equal(regions.regionOf(address), region, `${address} again`)
  }
  t.equal(of({}, '').regionOf('10.0.0.1'), '', 'no region at all')
  t.equal(of({ '10.8.0.0/14': 'a', '10.9.0.0/16': 'b' }).regionOf('10.9.0.1'), 'b')
})
