/** What the tests of policies share: cluster b with its own Services, and stub servers in place of other clusters. */
import type { Test } from 'tap'
import { clusterB, startInProcess, type InProcessServer } from '../support/in-process.ts'
import { externalName, namespace, service } from '../support/objects.ts'
import { startStubPeer, type StubPeer, type StubRecord } from '../support/stub-peer.ts'

export const below = (label: string): string => `${label}.backend.svc.cluster.local`

/**
 * What cluster b has in `backend`: `api` and `web` (IPv4 only), `idle` whose slices have no ready endpoint, and
 * `b-only`. `shop` holds aliases.
 */
export const objectsOfB = [
  namespace('backend'),
  ...service('api.backend', '10.1.1.20', { ready: ['10.0.0.1', '10.0.0.2'] }),
  ...service('web.backend', '10.1.2.20', { ready: null }),
  ...service('idle.backend', '10.1.3.20', { ready: [] }),
  ...service('b-only.backend', '10.1.4.20'),
  externalName('to-peer.shop', below('api')),
  externalName('to-own.shop', 'cart.shop.svc.cluster.local'),
  externalName('to-out.shop', 'www.example.org'),
  externalName('to-none.shop', 'none.shop.svc.cluster.local'),
  externalName('loop-1.shop', 'loop-2.shop.svc.cluster.local'),
  externalName('loop-2.shop', 'loop-1.shop.svc.cluster.local'),
  externalName('loop-self.shop', 'loop-self.shop.svc.cluster.local'),
  ...service('cart.shop', '10.1.5.20')
]

/** What another cluster has, with addresses that begin with `net`: `api` with a port `grpc`, `idle`, `a-only`. */
export const recordsOf = (net: string, zone = 'cluster.local', ttl = 10): StubRecord[] => [
  { type: 'A', name: `api.backend.svc.${zone}`, ttl, data: `${net}.1` },
  { type: 'A', name: `pod-0.api.backend.svc.${zone}`, ttl, data: `${net}.11` },
  {
    type: 'SRV',
    name: `_grpc._tcp.api.backend.svc.${zone}`,
    ttl,
    data: { priority: 0, weight: 100, port: 9090, target: `api.backend.svc.${zone}` }
  },
  { type: 'A', name: `idle.backend.svc.${zone}`, ttl, data: `${net}.3` },
  { type: 'A', name: `a-only.backend.svc.${zone}`, ttl, data: `${net}.4` }
]

export async function stub(t: Test, records: StubRecord[], zone = 'cluster.local'): Promise<StubPeer> {
  const peer = await startStubPeer({ records, zone })
  t.teardown(() => peer.stop())
  return peer
}

/** Probes so seldom that they don't mix with what a test counts, and no verdict from what queries meet. */
export const rareProbes = '{every: 1h, timeout: 1s, fall: 100, rise: 1}'
/** Probes that find out soon. */
export const quickProbes = '{every: 100ms, timeout: 100ms, fall: 2, rise: 1}'

export const peer = (name: string, ...servers: { text: string }[]): string =>
  `  ${name}: {servers: [${servers.map(({ text }) => `"${text}"`).join(', ')}], probe: ${rareProbes}}\n`

export const policy = (name: string, dnsName: string, targets: string, more = ''): string =>
  `  - {name: ${name}, dnsName: ${dnsName}, targets: ${targets}${more}}\n`

/** Cluster b with these peers and policies (lines as `peer` and `policy` give them). */
export const startB = (t: Test, peers: string, policies: string, more = 'forward: []\n'): Promise<InProcessServer> =>
  startInProcess(
    t,
    clusterB(
      `peers:${peers === '' ? ' {}\n' : `\n${peers}`}policies:${policies === '' ? ' []\n' : `\n${policies}`}${more}`
    ),
    {
      objects: objectsOfB
    }
  )

/** Questions that a stub was asked, without probes: `NAME TYPE`. */
export const askedOf = (stub: StubPeer): string[] =>
  stub.queries.filter(({ type }) => type !== 'SOA').map(({ name, type }) => `${name} ${type}`)
