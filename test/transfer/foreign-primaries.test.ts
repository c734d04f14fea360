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

for (const kind of ['bind', 'knot', 'coredns'] as readonly ForeignKind[]) {
  const skip = whyNo(kind)
  void test(`a zone of ${kind} is taken and followed`, { skip: skip ?? false }, async (t) => {
    const primary = await startForeign(t, kind, { zone, records: hosts })
    // A name below the apex: the zone that it lies in is found by asking.
    const mirror = mirrorOf(t, [primary.text], [`backend.${zone}`])
    const copy = (): ZoneStore | null => mirror.find(parseName(`host-1.${zone}`))?.store ?? null
    t.ok(await until(() => copy() !== null), 'the zone has come')
    t.same(recordsOf(copy()), primary.records())

    for (let round = 0; round < 10; round++) {
      const add = Array.from({ length: 5 }, (_, at) => `new-${round}-${at}.${zone}. 30 IN TXT "round ${round}"`)
      primary.update({ add, remove: [hosts[round]!, hosts[100 + round]!] })
    }
    t.ok(
      await until(() => (copy()?.rrset(parseName(`new-9-4.${zone}`), 16) ?? null) !== null, 10_000),
      'the last change has come'
    )
    t.same(recordsOf(copy()), primary.records())
    const { stats } = mirror.status()[0]!
    if (kind !== 'coredns') t.ok(stats.deltaTransfers > 0, 'by deltas')
    t.equal(mirror.status().length, 1)
    t.equal(mirror.status()[0]!.isLive, true)
    t.comment(JSON.stringify(mirror.status()[0]))
  })
}
