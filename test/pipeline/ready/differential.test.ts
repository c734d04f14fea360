/**
 * Ready-made answers are what would be answered without them: the tables of test/cases, generated zones with changes in
 * between, and policies with caches, health and reloads; and the counters say the same.
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import fc from 'fast-check'
import { test, type Test } from 'tap'
import { silentLog } from '../../../src/base/log.ts'
import type { TargetStanding } from '../../../src/policy/standing.ts'
import { NetworkSet } from '../../../src/base/network.ts'
import { nameToText, parseName, type DomainName } from '../../../src/wire/name.ts'
import { parseType, RRTYPE } from '../../../src/wire/iana.ts'
import { aaaaRdata, aRdata, nameRdata, srvRdata, txtRdata } from '../../../src/wire/rdata.ts'
import type { RRset } from '../../../src/wire/rr.ts'
import { ZoneStore } from '../../../src/zone/zone-store.ts'
import { systemClock } from '../../../src/base/clock.ts'
import type { ServiceState } from '../../../src/zone/zone-change.ts'
import { clusterB, startInProcess } from '../../support/in-process.ts'
import { below, objectsOfB, peer, policy, recordsOf, startB, stub } from '../two-peers.ts'
import { BothWays, query, variants } from './both-ways.ts'

const cases = join(dirname(fileURLToPath(import.meta.url)), '..', '..', 'cases')
const rowsOf = (table: string): string[][] =>
  readFileSync(join(cases, table), 'utf8').split('\n').filter((line) => line.includes('\t') && !/^(#|id\t)/.test(line)).map((line) => line.split('\t')) // prettier-ignore

for (const pods of ['insecure', 'verified', 'disabled']) {
  void test(`the tables of test/cases, pods ${pods}`, async (t) => {
    const config = clusterB('forward: []\n', `, pods: ${pods}`).replace('"{manifests}"', `"${join(cases, 'k8s-dns', 'manifests')}"`).replace('10.0.0.0/8', '10.43.0.0/16, 10.77.0.0/16, "fd43:1:2:1::/64"') // prettier-ignore
    const { server } = await startInProcess(t, config)
    const both = new BothWays(server.dataPlane.parts)
    for (const [id, qname, qtype] of rowsOf('k8s-dns/cases.tsv')) {
      const type = parseType(qtype!)
      if (type === null) continue
      const name = parseName(qname!)
      const differing = variants.flatMap((variant) => {
        const difference = both.difference(query(name, type, variant))
        return difference === null ? [] : [`${variant.name}: ${difference}`]
      })
      t.same(differing, [], id!)
    }
    for (const [id, , hex] of rowsOf('wire/cases.tsv')) {
      if (!/^([0-9a-f]{2})+$/.test(hex!)) continue
      const octets = Uint8Array.from(Buffer.from(hex!, 'hex'))
      for (const transport of ['udp', 'tcp'] as const) t.equal(both.difference({ octets, client: { transport } }), null, `${id} ${transport}`) // prettier-ignore
    }
    t.ok(both.served > 500, `${both.served} were ready`)
    t.ok(both.servedByWorker > 400, `${both.servedByWorker} for a worker`)
    sameCounts(t, both)
  })
}

const byText = (one: string, other: string): number => one.localeCompare(other)

function sameCounts(t: Test, { fast, slow, shared }: BothWays): void {
  shared.ready!.count()
  const countsOf = ({ stats }: typeof fast) => ({
    queries: [stats.queriesUdp, stats.queriesTcp],
    dropped: stats.dropped,
    malformed: stats.malformed,
    truncated: stats.truncated,
    stale: stats.stale,
    bugs: stats.bugs,
    rcodes: [...stats.responsesByRcode],
    sources: [...stats.responsesBySource],
    policies: [...stats.answersByPolicy].map(([name, counts]) => [name, [...counts].map(String).toSorted(byText)]),
    ages: [...stats.answerAgeSeconds.counts]
  })
  t.same(countsOf(fast), countsOf(slow), 'the counters')
  t.same(countsOf(shared), countsOf(slow), 'the counters, with what a worker gave')
}

const zone = 'cluster.local'
/** Few names, nested, so that names come and go above and below one another. */
const names = ['x', 'y.x', 'z.y.x', '_a._tcp.x', 'w', 'v.w'].map((name) => parseName(`${name}.ns.svc.${zone}`))
const types = [RRTYPE.A, RRTYPE.AAAA, RRTYPE.SRV, RRTYPE.TXT, RRTYPE.CNAME]
const upTo = (max: number) => fc.integer({ min: 0, max })

type Change = Readonly<{ name: number; type: number; records: number; ttl: number; state: number; isNamed: boolean; kind: number }> // prettier-ignore
const change: fc.Arbitrary<Change> = fc.record({
  name: upTo(names.length - 1),
  type: upTo(types.length - 1),
  records: fc.oneof(upTo(4), fc.constant(90)),
  ttl: upTo(20),
  state: upTo(3),
  isNamed: fc.boolean(),
  kind: upTo(9)
})

function setOf(owner: DomainName, type: number, records: number, ttlSeconds: number): RRset | null {
  if (records === 0) return null
  const numbers = Array.from({ length: type === RRTYPE.CNAME ? 1 : records }, (_, at) => at + 1)
  const rdata = numbers.map((at) => {
    if (type === RRTYPE.A) return aRdata(`192.0.2.${at}`)
    if (type === RRTYPE.AAAA) return aaaaRdata(`2001:db8::${at}`)
    if (type === RRTYPE.SRV) return srvRdata({ priority: 0, weight: 1, port: at, target: names[at % names.length]! })
    return type === RRTYPE.TXT ? txtRdata([`text ${at}`]) : nameRdata(names[at % names.length]!)
  })
  return { owner, type, ttlSeconds, rdata }
}

void test('generated changes of the zone', async (t) => {
  const { server } = await startB(t, '', policy('own', `x.ns.svc.${zone}`, '[local]', ', maxTtl: 3s'))
  const both = new BothWays(server.dataPlane.parts)
  const store = server.view.zones.zone
  let compared = 0
  const run = fc.property(fc.array(change, { minLength: 1, maxLength: 12 }), (changes) => {
    for (const { name, type, records, ttl, state, isNamed, kind } of changes) {
      const owner = names[name]!
      const after = (['present', 'empty', 'unknown', null] as (ServiceState | null)[])[state]!
      store.apply({
        sets: kind < 7 ? [{ owner, type: types[type]!, after: setOf(owner, types[type]!, records, ttl) }] : [],
        services: kind === 7 ? [{ owner, after }] : [],
        names: kind === 8 ? [{ owner, exists: isNamed }] : [],
        originAtMs: 0
      })
      for (const asked of names) {
        for (const qtype of [...types, RRTYPE.ANY]) {
          const variant = variants[compared++ % variants.length]!
          const difference = both.difference(query(asked, qtype, variant))
          if (difference !== null) throw new Error(`${nameToText(asked)} ${qtype} ${variant.name}: ${difference}`)
        }
      }
      const soa = both.difference(query(parseName(zone), RRTYPE.SOA, variants[0]!))
      if (soa !== null) throw new Error(`SOA: ${soa}`)
    }
  })
  const report = fc.check(run, { numRuns: 60, seed: 7 })
  t.equal(report.failed ? String(report.errorInstance) : '', '', JSON.stringify(report.counterexample))
  t.ok(both.served > compared / 4, `${both.served} of ${compared * 3} were ready`)
  t.ok(both.servedByWorker > compared / 8, `${both.servedByWorker} for a worker`)
  sameCounts(t, both)
})

void test('zones that come, go and are exchanged', async (t) => {
  const { server } = await startB(t, '', '')
  const both = new BothWays(server.dataPlane.parts)
  const { zones } = server.view.zones
  const apex = parseName('10.in-addr.arpa')
  const old = zones.get(apex)!
  const make = (address: string) => {
    const store = new ZoneStore({ apex, epoch: address, clock: systemClock, ns: { owner: apex, type: RRTYPE.NS, ttlSeconds: 5, rdata: [nameRdata(apex)] }, soa: { mname: apex, rname: apex, refresh: 1, retry: 1, expire: 1, minimumSeconds: 5, ttlSeconds: 5 } }) // prettier-ignore
    store.apply({ sets: [{ owner: reverse, type: RRTYPE.PTR, after: { owner: reverse, type: RRTYPE.PTR, ttlSeconds: 5, rdata: [nameRdata(parseName(address))] } }], services: [], names: [], originAtMs: 0 }) // prettier-ignore
    return store
  }
  const reverse = parseName('9.9.9.10.in-addr.arpa')
  const steps: [name: string, step: () => void][] = [
    ['at first', () => {}],
    ['another store', () => zones.add(make('one.example'))],
    ['and another', () => zones.add(make('two.example'))],
    ['none', () => zones.remove(apex)],
    ['the first again', () => zones.add(old)]
  ]
  for (const [name, step] of steps) {
    step()
    for (const variant of variants) t.equal(both.difference(query(reverse, RRTYPE.PTR, variant)), null, name)
  }
  t.ok(both.served > 30)
  t.ok(both.servedByWorker > 20)
})

const suffix = `backend.svc.${zone}`
const asked = [
  'api', 'a-only', 'b-only', 'idle', 'nobody', 'pod-0.api', 'pod-9.api', 'web', '_grpc._tcp.api', '_http._tcp.api'
].map((label) => parseName(below(label))) // prettier-ignore

const patterns: readonly [targets: string, more: string][] = [
  ['[a]', ''],
  ['[a]', ', maxTtl: 3s, maxNegativeTtl: 2s'],
  ['[local, a]', ''],
  ['[a, local]', ''],
  ['[a, c]', ', nextOn: [unreachable]'],
  ['[a, c, local]', ', maxTtl: 4s'],
  ['[{peer: a, weight: 70}, {local: true, weight: 30}]', ', select: weighted'],
  ['[a, c]', ', select: merge'],
  ['[a, local]', ', trickle: 20'],
  ['[a, local]', ', clients: [10.8.0.0/14]'],
  ['[a, local]', ', transit: true'],
  ['[{addresses: [10.9.0.7]}, local]', ''],
  ['[{peer: a, weight: 0}, c]', '']
]

for (const [targets, more] of patterns) {
  void test(`policies: ${targets}${more}`, async (t) => {
    const [a, c] = [await stub(t, recordsOf('172.30.1')), await stub(t, recordsOf('172.30.2', zone, 4))]
    const { server } = await startB(t, peer('a', a) + peer('c', c), policy('p', suffix, targets, more))
    const both = new BothWays(server.dataPlane.parts)
    const standings = new Map<string, TargetStanding>()
    let revision = 0
    both.use({
      standings: {
        of: ({ peer: name }) => (name === null ? 'up' : (standings.get(name) ?? 'up')),
        returnedShare: () => 0.5,
        revision: () => revision
      }
    })
    const clients = ['127.0.0.1', '10.8.0.1', '10.9.0.1', '10.10.0.1']
    const compare = async (when: string) => {
      const differing: string[] = []
      for (const name of asked) {
        for (const type of [RRTYPE.A, RRTYPE.AAAA, RRTYPE.SRV]) {
          for (const address of clients) {
            for (const variant of [0, 1, 6, 10, 12, 16].map((at) => variants[at]!)) {
              const one = query(name, type, variant)
              const difference = await both.differenceWhenKnown({ ...one, client: { ...one.client, address } })
              if (difference !== null) differing.push(`${name} ${type} ${address} ${variant.name}: ${difference}`)
            }
          }
        }
      }
      t.same(differing.slice(0, 3), [], when)
    }
    await compare('at first')
    for (const ms of [400, 700, 1_000, 2_500, 6_000]) {
      both.clock.move(ms)
      await compare(`${ms} ms later`)
    }
    for (const [name, standing] of [['a', 'down'], ['c', 'down'], ['a', 'returning'], ['a', 'up'], ['c', 'up']] as const) {
      standings.set(name, standing)
      revision++
      await compare(`${name} is ${standing}`)
    } // prettier-ignore
    both.fast.parts.cache.flushName(asked[0]!)
    await compare('after a flush of a name')
    both.fast.parts.cache.flush()
    await compare('after a flush of all')
    server.view.zones.zone.apply({
      sets: [{ owner: asked[0]!, type: RRTYPE.A, after: null }, { owner: asked[4]!, type: RRTYPE.A, after: setOf(asked[4]!, RRTYPE.A, 2, 5) }],
      services: [{ owner: asked[2]!, after: 'empty' }],
      names: [],
      originAtMs: 0
    }) // prettier-ignore
    await compare('after a change of our zone')
    // What a target further down the order has may come and go, without a sign to us.
    a.records = a.records.map((record) => ({
      ...record,
      name: record.name.replace(/^a-only\./, 'pod-9.api.').replace(/^idle\./, 'b-only.')
    }))
    c.records = [...c.records, ...recordsOf('172.30.3').map((record) => ({ ...record, name: record.name.replace(/^a-only\./, 'nobody.') }))] // prettier-ignore
    for (const when of ['once their names have changed', 'and again']) {
      both.clock.move(60_000)
      await compare(when)
    }
    both.use({ allow: new NetworkSet([]) })
    await compare('nobody is allowed')
    sameCounts(t, both)
    t.equal(both.fast.stats.bugs, 0)
  })
}

void test('what is logged is logged as often, and policies that only count see every query', async (t) => {
  const a = await stub(t, recordsOf('172.30.1'))
  const { server } = await startB(t, peer('a', a), policy('p', suffix, '[a]'))
  const both = new BothWays(server.dataPlane.parts)
  let logged = 0
  const log = Object.assign(Object.create(silentLog) as typeof silentLog, { info: () => void logged++ })
  both.use({ log, logQueriesEvery: 5 })
  const one = query(parseName(below('api')), RRTYPE.A, variants[0]!)
  await both.differenceWhenKnown(one)
  logged = 0
  for (let time = 0; time < 100; time++) t.equal(both.difference(one), null)
  t.ok(both.served > 200, 'most were ready')
  t.ok(Math.abs(logged - (300 / 5) * 3) <= 3, `one in five on all sides: ${logged}`)
  both.shared.ready!.count()
  const { hits } = both.fast.parts.cache.stats
  both.difference(one)
  both.shared.ready!.count()
  t.equal(both.fast.parts.cache.stats.hits, hits + 9, 'the cache counts them all')
  const before = both.served
  both.use({ withUnenforced: both.fast.parts.policies })
  both.difference(one)
  t.equal(both.served, before, 'none is ready where somebody looks at each')
})

void test('addresses come in fair random order, and a truncated set is a fair part', async (t) => {
  const { server } = await startInProcess(t, clusterB('forward: []\n'), { objects: objectsOfB })
  const both = new BothWays(server.dataPlane.parts)
  const owner = parseName(`many.ns.svc.${zone}`)
  const records = 60
  server.view.zones.zone.apply({ sets: [{ owner, type: RRTYPE.A, after: setOf(owner, RRTYPE.A, records, 5) }], services: [], names: [], originAtMs: 0 }) // prettier-ignore
  const ways = [variants[0]!, variants[3]!, variants[4]!].flatMap((variant) => [{ variant, isShared: false }, { variant, isShared: true }]) // prettier-ignore
  for (const { variant, isShared } of ways) {
    const { octets } = query(owner, RRTYPE.A, variant)
    const out = new Uint8Array(65_535)
    const first = new Map<number, number>()
    const given = new Map<number, number>()
    const rounds = 6_000
    let written = 0
    for (let round = 0; round < rounds; round++) {
      const by = { address: '127.0.0.1', port: 1, transport: 'udp' } as const
      const size = isShared ? both.askShared(octets, by, out) : both.fast.answer(octets, octets.length, by, out)
      written = (out[6]! << 8) | out[7]!
      const questionEnd = 12 + owner.length + 4
      const seen = new Set<number>()
      for (let at = 0; at < written; at++) seen.add(out[questionEnd + at * 16 + 15]!)
      if (size <= 0 || seen.size !== written) t.fail('an address came twice, or none')
      first.set(out[questionEnd + 15]!, (first.get(out[questionEnd + 15]!) ?? 0) + 1)
      for (const one of seen) given.set(one, (given.get(one) ?? 0) + 1)
    }
    const [each, part] = [rounds / records, (rounds * written) / records]
    t.equal(first.size, records, `${variant.name}: each came first`)
    // Six standard deviations.
    t.ok(
      [...first.values()].every((count) => Math.abs(count - each) < 6 * Math.sqrt(each)),
      'each as often'
    )
    t.ok([...given.values()].every((count) => Math.abs(count - part) < 6 * Math.sqrt(part)), `${written} of ${records} each as often`) // prettier-ignore
  }
  t.ok(both.served > 17_900)
  t.ok(both.servedByWorker > 17_900)
})
