/**
 * What a zone of many RRsets takes, and whether the cost of one edit depends on its size.
 *
 *     node --expose-gc bench/micro/zone.ts [RRsets, default 100000]
 */
import { systemClock } from '../../src/base/clock.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { parseName, type DomainName } from '../../src/wire/name.ts'
import { aRdata } from '../../src/wire/rdata.ts'
import type { RRset } from '../../src/wire/rr.ts'
import { ZoneStore } from '../../src/zone/zone-store.ts'
import { Zones } from '../../src/zone/zones.ts'
import { microsecondsEach, settledHeapOctets } from './measure.ts'

const apex = parseName('cluster.local')
const nsName = parseName('ns.dns.cluster.local')

const serviceName = (number: number): DomainName =>
  parseName(`service-${number}.namespace-${number % 100}.svc.cluster.local`)

const addressOf = (owner: DomainName, number: number): RRset => ({
  owner,
  type: RRTYPE.A,
  ttlSeconds: 5,
  rdata: [aRdata(`10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`)]
})

function filledStore(rrsets: number): ZoneStore {
  const store = new ZoneStore({
    apex,
    epoch: 'bench',
    soa: {
      mname: nsName,
      rname: nsName,
      refresh: 7200,
      retry: 1800,
      expire: 86_400,
      minimumSeconds: 5,
      ttlSeconds: 5
    },
    ns: { owner: apex, type: RRTYPE.NS, ttlSeconds: 5, rdata: [Buffer.from(nsName, 'latin1')] },
    clock: systemClock
  })
  const sets = Array.from({ length: rrsets }, (_, number) => {
    const after = addressOf(serviceName(number), number)
    return { owner: after.owner, type: after.type, after }
  })
  store.apply({ sets, services: [], names: [], originAtMs: 0 })
  return store
}

function editMicroseconds(store: ZoneStore, rrsets: number): number {
  const owner = serviceName(Math.floor(rrsets / 2))
  return microsecondsEach(20_000, (round) => {
    const after = addressOf(owner, round)
    store.apply({ sets: [{ owner, type: after.type, after }], services: [], names: [], originAtMs: 0 })
  })
}

const rrsets = Number(process.argv[2] ?? 100_000)
const before = await settledHeapOctets()
const startedAtMs = performance.now()
const store = filledStore(rrsets)
const filledAtMs = performance.now()
const octets = (await settledHeapOctets()) - before
console.log(`${rrsets} RRsets in one edit: ${(filledAtMs - startedAtMs).toFixed(0)} ms, names and RDATA made included`)
console.log(`heap: ${(octets / 1e6).toFixed(1)} MB, ${(octets / rrsets).toFixed(0)} octets an RRset, all included`)

for (const size of [1_000, rrsets]) {
  const edited = size === rrsets ? store : filledStore(size)
  console.log(`one RRset exchanged in ${size}: ${editMicroseconds(edited, size).toFixed(2)} us`)
}

const zones = new Zones()
zones.add(store)
const qnames = Array.from({ length: 1_000 }, (_, at) => serviceName(Math.floor((at * rrsets) / 1_000)))
const missing = qnames.map((name) => `\x01x${name}` as DomainName)
let found = 0
const look = (names: readonly DomainName[]): string =>
  microsecondsEach(1_000_000, (round) => {
    const qname = names[round % names.length]!
    if (zones.find(qname)!.lookup(qname, RRTYPE.A).kind === 'answer') found++
  }).toFixed(3)
console.log(`find and look up: ${look(qnames)} us; a name that does not exist: ${look(missing)} us; ${found} found`)
