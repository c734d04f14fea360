/** Zones of real servers, taken over by transfer and followed: equal to what the server holds after many changes. */
import { test } from 'tap'
import { openMessageStream } from '../../src/peer/message-stream.ts'
import { PeerMirror, type PeerMirrorOptions } from '../../src/transfer/peer-mirror.ts'
import { nameToText, parseName } from '../../src/wire/name.ts'
import { typeToText } from '../../src/wire/iana.ts'
import { rdataToText } from '../../src/wire/record-text.ts'
import type { ZoneStore } from '../../src/zone/zone-store.ts'
import { startForeign, whyNo, type ForeignKind } from '../support/foreign-primary.ts'
import { until } from '../support/in-process.ts'
import { loopClock } from '../support/loop-clock.ts'

const zone = 'shop.example.org'

function mirrorOf(
  t: { teardown: (done: () => void) => void },
  servers: readonly string[],
  names: readonly string[],
  options: Partial<PeerMirrorOptions> = {}
): PeerMirror {
  const mirror = new PeerMirror({
    servers: () => servers,
    open: openMessageStream,
    signer: null,
    instanceId: '010203040506',
    leaseMs: 5_000,
    clock: loopClock,
    random: Math.random,
    names: names.map(parseName),
    mayAscend: true,
    onSwap: () => {},
    onChange: () => {},
    onFault: () => {},
    onLink: () => {},
    ...options
  })
  t.teardown(() => mirror.stop())
  mirror.start()
  return mirror
}

/** Every record of a store but the SOA, as dig writes it. */
function recordsOf(store: ZoneStore | null): string[] {
  const lines = [...(store?.records() ?? [])].flatMap(({ owner, type, ttlSeconds, rdata }) =>
    rdata.map((each) => `${nameToText(owner)} ${ttlSeconds} IN ${typeToText(type)} ${rdataToText(type, each)}`)
  )
  return lines.filter((line) => !/ IN SOA /.test(line)).sort()
}

const hosts = Array.from({ length: 300 }, (_, at) => `host-${at}.${zone}. 60 IN A 10.0.${at >> 8}.${at & 255}`)

/** A hundred records that go or come, of few names, so that the same ones change again and again. */
function randomChange(here: Set<string>, draw: (below: number) => number): { remove: string[]; add: string[] } {
  const remove = new Set<string>()
  const add = new Set<string>()
  const held = [...here]
  while (remove.size + add.size < 100) {
    const number = draw(150)
    const [owner, last] = [`host-${number}.${zone}.`, draw(250)]
    const all = [
      `${owner} 60 IN A 10.9.${number}.${last}`,
      `${owner} 60 IN AAAA fd00::1${number}:1${last}`,
      `${owner} 60 IN TXT "text ${last}"`,
      `_http._tcp.${owner} 60 IN SRV 0 ${last} 8080 ${owner}`
    ]
    const goes = held[draw(held.length)]!
    const comes = all[draw(all.length)]!
    if (draw(2) === 0) remove.add(goes)
    else if (!here.has(comes)) add.add(comes)
  }
  for (const record of remove) here.delete(record)
  for (const record of add) here.add(record)
  return { remove: [...remove], add: [...add] }
}

for (const kind of ['bind', 'knot', 'coredns'] as readonly ForeignKind[]) {
  const skip = whyNo(kind)
  void test(`a zone of ${kind} is taken and followed`, { skip: skip ?? false }, async (t) => {
    const primary = await startForeign(t, kind, { zone, records: hosts })
    // A name below the apex: the zone that it lies in is found by asking.
    const mirror = mirrorOf(t, [primary.text], [`backend.${zone}`])
    const copy = (): ZoneStore | null => mirror.find(parseName(`host-1.${zone}`))?.store ?? null
    t.ok(await until(() => copy() !== null), 'the zone has come')
    t.same(recordsOf(copy()), primary.records())

    const here = new Set(hosts)
    let random = 20_261_130
    const draw = (below: number): number => (random = (random * 48_271) % 0x7fff_ffff) % below
    const has = (marker: string): boolean => (copy()?.rrset(parseName(`${marker}.${zone}`), 16) ?? null) !== null
    for (let round = 0; round < 10; round++) {
      const { remove, add } = randomChange(here, draw)
      primary.update({ remove, add: [...add, `round-${round}.${zone}. 30 IN TXT "round"`] })
      // All in one go are more than the zone, and would be sent as such.
      if (kind !== 'coredns') await until(() => has(`round-${round}`), 20_000)
    }
    primary.update({ add: [`last.${zone}. 30 IN TXT "last"`] })
    t.ok(await until(() => has('last'), 20_000), 'the last change has come')
    t.same(recordsOf(copy()), primary.records())
    const { stats } = mirror.status()[0]!
    if (kind !== 'coredns') t.ok(stats.deltaTransfers > 0, 'by deltas')
    t.equal(mirror.status().length, 1)
    t.equal(mirror.status()[0]!.isLive, true)
    t.comment(JSON.stringify(mirror.status()[0]))
  })
}
