/**
 * Whatever a server sends, a copy stays whole at its last good version, a full transfer follows, and limits hold. The
 * server is scripted and the clock is moved by hand.
 */
import fc from 'fast-check'
import { test } from 'tap'
import {
  incomingRRsetRecords,
  incomingTransferIdleMs,
  mirrorHeartbeatMs,
  mirrorPollMs,
  mirrorQueryTimeoutMs,
  mirrorReconnectMaxMs,
  mirrorRetryMaxMs,
  serialSecondMs,
  strayTransferMessages
} from '../../src/base/transfer-limits.ts'
import type { MirroredZone } from '../../src/transfer/mirrored-zone.ts'
import { PeerMirror, type PeerMirrorOptions } from '../../src/transfer/peer-mirror.ts'
import { privateType } from '../../src/transfer/private-records.ts'
import { CLASS, RCODE, RRTYPE } from '../../src/wire/iana.ts'
import { parseName } from '../../src/wire/name.ts'
import type { ResourceRecord } from '../../src/wire/rr.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { apex, keyOf, nsOf, recordAt, ScriptedPrimary, soaOf, type Reply, type Version } from './scripted-primary.ts'

type Setup = Readonly<{ clock: ManualClock; primary: ScriptedPrimary; mirror: PeerMirror; zone: () => MirroredZone }>

function setUp(options: Partial<PeerMirrorOptions> = {}): Setup {
  const clock = new ManualClock()
  const primary = new ScriptedPrimary(clock)
  const mirror = new PeerMirror({
    servers: () => ['192.0.2.1:53'],
    open: primary.open,
    signer: null,
    instanceId: '010203040506',
    leaseMs: 5_000,
    clock,
    random: () => 0.5,
    names: [apex],
    mayAscend: false,
    onSwap: () => {},
    onChange: () => {},
    onFault: () => {},
    onLink: () => {},
    ...options
  })
  return { clock, primary, mirror, zone: () => mirror.get(apex) as MirroredZone }
}

/** The records of the copy but the SOA, and its serial; null: there is none. */
function held(zone: MirroredZone): { serial: number; records: string[] } | null {
  const { store } = zone
  if (store === null) return null
  const records = [...store.records()]
    .filter(({ type }) => type !== RRTYPE.SOA)
    .flatMap(({ owner, type, ttlSeconds, rdata }) =>
      rdata.map((each) => keyOf({ owner, type, class: CLASS.IN, ttlSeconds, rdata: each }))
    )
  return { serial: store.serial, records: records.sort() }
}

const asHeld = ({ serial, records }: Version): ReturnType<typeof held> => ({
  serial,
  records: records.map(keyOf).sort()
})

const one = [recordAt('a', '10.0.0.1'), recordAt('b', '10.0.0.2'), recordAt('c', '10.0.0.3'), recordAt('d', '10.0.0.4')]
const two = [recordAt('a', '10.0.0.1'), recordAt('b', '10.0.9.2'), recordAt('c', '10.0.0.3'), recordAt('e', '10.0.0.5')]

type Tamper = ScriptedPrimary['tamper']

const flat = (reply: Reply): ResourceRecord[] => reply.messages.flat()
const asOne = (records: readonly ResourceRecord[]): Reply => ({ messages: [records] })
const edited =
  (edit: (records: ResourceRecord[]) => ResourceRecord[]): Tamper =>
  (_asked, proper) =>
    asOne(edit(flat(proper)))

/** Deltas that no honest server sends; each is one step from the first version to the second. */
const badDeltas: readonly { name: string; tamper: Tamper }[] = [
  { name: 'takes away what is not there', tamper: edited((all) => all.toSpliced(2, 0, recordAt('z', '10.9.9.9'))) },
  { name: 'takes away another address', tamper: edited((all) => all.with(2, recordAt('b', '10.7.7.7'))) },
  { name: 'adds what is there', tamper: edited((all) => all.toSpliced(-1, 0, recordAt('a', '10.0.0.1'))) },
  { name: 'begins at another serial', tamper: edited((all) => all.with(1, soaOf(0))) },
  {
    name: 'goes back',
    tamper: edited((all) => all.map((it) => (it.type === RRTYPE.SOA && all.indexOf(it) > 1 ? soaOf(0) : it)))
  },
  { name: 'ends at another serial', tamper: edited((all) => [...all.slice(0, -1), soaOf(77)]) },
  { name: 'leaves out a step', tamper: edited((all) => [soaOf(9), ...all.slice(1, -1), soaOf(8), soaOf(9), soaOf(9)]) },
  {
    name: 'changes the timers of the SOA',
    tamper: edited((all) => all.map((it) => (it.type === RRTYPE.SOA ? { ...it, ttlSeconds: 61 } : it)))
  },
  { name: 'takes away all NS', tamper: edited((all) => all.toSpliced(2, 0, nsOf())) },
  { name: 'goes on behind its end', tamper: (_asked, proper) => asOne([...flat(proper), recordAt('z', '10.9.9.9')]) },
  { name: 'is cut', tamper: (_asked, proper) => ({ messages: proper.messages.slice(0, -1), thenClose: true }) },
  { name: 'stalls', tamper: (_asked, proper) => ({ messages: proper.messages.slice(0, -1) }) },
  { name: 'says it is current', tamper: () => asOne([soaOf(1)]) },
  { name: 'is not understood', tamper: () => ({ messages: [[]], rcode: RCODE.NOTIMP }) },
  { name: 'is refused', tamper: () => ({ messages: [[]], rcode: RCODE.REFUSED }) },
  { name: 'fails', tamper: () => ({ messages: [[]], rcode: RCODE.SERVFAIL }) },
  { name: 'is empty', tamper: () => ({ messages: [[]] }) },
  { name: 'has no SOA at its beginning', tamper: edited((all) => all.slice(2)) },
  {
    name: 'has a record of class CH',
    tamper: edited((all) => all.toSpliced(-1, 0, { ...recordAt('z', '10.9.9.9'), class: CLASS.CH }))
  },
  {
    name: 'has a record that is none',
    tamper: edited((all) => all.toSpliced(-1, 0, { ...nsOf(), type: RRTYPE.AXFR, rdata: new Uint8Array() }))
  },
  {
    name: 'has the SOA of another zone',
    tamper: edited((all) => all.toSpliced(-1, 0, soaOf(3, parseName('sub.shop.example.org'))))
  }
]

for (const { name, tamper } of badDeltas) {
  void test(`a delta that ${name}: the last good version stays, and the whole zone follows`, async (t) => {
    const { clock, primary, mirror, zone } = setUp()
    primary.set(1, ...one)
    mirror.start()
    clock.advance(100)
    t.same(held(zone()), asHeld(primary.version))
    primary.set(2, ...two)
    let lies = 0
    primary.tamper = (asked, proper) => {
      if (asked.kind === 'SOA') return null
      // Until the lie has ended everything else is lied about too: what stays is then seen at leisure.
      t.same(held(zone()), asHeld(primary.versions[0]!), 'the old version is there')
      if (asked.kind === 'AXFR') return null
      lies++
      return tamper(asked, proper)
    }
    clock.advance(mirrorPollMs + incomingTransferIdleMs + mirrorReconnectMaxMs + 2_000)
    t.equal(lies, 1)
    t.same(held(zone()), asHeld(primary.version), 'the whole zone has come')
    t.equal(zone().isLive(), true)
    t.ok(primary.asked.some(({ kind }, at) => kind === 'AXFR' && at > 1))
    mirror.stop()
    t.equal(clock.pendingTimers, 0)
  })
}

const badZones: readonly { name: string; tamper: Tamper }[] = [
  {
    name: 'is cut in the middle',
    tamper: (_asked, proper) => ({ messages: proper.messages.slice(0, 1), thenClose: true })
  },
  { name: 'stalls', tamper: (_asked, proper) => ({ messages: proper.messages.slice(0, 1) }) },
  { name: 'ends with another serial', tamper: edited((all) => [...all.slice(0, -1), soaOf(5)]) },
  { name: 'is of another name', tamper: edited(([, ...all]) => [soaOf(2, parseName('other.example.org')), ...all]) },
  { name: 'begins without SOA', tamper: edited((all) => all.slice(1)) },
  { name: 'has octets behind its end', tamper: edited((all) => [...all, recordAt('z', '10.9.9.9')]) },
  {
    name: 'has a SOA of another zone in it',
    tamper: edited((all) => all.toSpliced(2, 0, soaOf(2, parseName('sub.shop.example.org'))))
  },
  { name: 'has no NS', tamper: edited((all) => all.filter(({ type }) => type !== RRTYPE.NS)) },
  { name: 'fails', tamper: () => ({ messages: [[]], rcode: RCODE.SERVFAIL }) }
]

for (const { name, tamper } of badZones) {
  void test(`a whole zone that ${name}: the last good version stays, and it is tried again`, async (t) => {
    const { clock, primary, mirror, zone } = setUp()
    primary.set(1, ...one)
    mirror.start()
    clock.advance(100)
    primary.set(2, ...two)
    let lies = 3
    primary.tamper = (asked, proper) => {
      if (asked.kind === 'SOA') return null
      t.same(held(zone()), asHeld(primary.versions[0]!))
      if (asked.kind === 'IXFR') return { messages: [[]], rcode: RCODE.NOTIMP }
      return lies-- > 0 ? tamper(asked, proper) : null
    }
    clock.advance(3 * (incomingTransferIdleMs + mirrorReconnectMaxMs + mirrorRetryMaxMs))
    t.same(held(zone()), asHeld(primary.version))
    t.equal(zone().isLive(), true)
    mirror.stop()
    t.equal(clock.pendingTimers, 0)
  })
}

void test('a zone that never had NS is taken unless it is empty', async (t) => {
  const { clock, primary, mirror, zone } = setUp()
  primary.set(1)
  primary.tamper = ({ kind }) => {
    const { serial, records } = primary.version
    const others = records.filter(({ type }) => type !== RRTYPE.NS)
    return kind === 'SOA' ? null : asOne([soaOf(serial), ...others, soaOf(serial)])
  }
  mirror.start()
  clock.advance(100)
  t.equal(held(zone()), null, 'nothing but its SOA')
  primary.set(2, ...one)
  clock.advance(mirrorRetryMaxMs)
  t.equal(held(zone())?.records.length, one.length)
  primary.set(3)
  clock.advance(mirrorRetryMaxMs)
  t.equal(held(zone())?.serial, 2, 'what is there is not wiped')
  mirror.stop()
})

void test('what lies outside of the zone is left out, the rest is taken', async (t) => {
  const { clock, primary, mirror, zone } = setUp()
  primary.set(1, ...one)
  const stranger = { ...recordAt('a', '10.6.6.6'), owner: parseName('www.example.org') }
  primary.tamper = (asked, proper) => (asked.kind === 'SOA' ? null : asOne(flat(proper).toSpliced(2, 0, stranger)))
  mirror.start()
  clock.advance(100)
  t.same(held(zone()), asHeld(primary.version))
  mirror.stop()
})

void test('serials wrap', async (t) => {
  const { clock, primary, mirror, zone } = setUp()
  primary.set(0xffff_fffe, ...one)
  mirror.start()
  clock.advance(100)
  primary.set(0xffff_ffff, ...two)
  primary.set(0, ...one)
  primary.set(1, ...two)
  clock.advance(2 * mirrorPollMs)
  t.same(held(zone()), asHeld(primary.version))
  t.same(
    primary.asked.map(({ kind }) => kind).filter((kind) => kind !== 'SOA'),
    ['AXFR', 'IXFR']
  )
  mirror.stop()
})

void test('a serial that goes back is another history: the whole zone is taken', async (t) => {
  const { clock, primary, mirror, zone } = setUp()
  primary.set(500, ...one)
  mirror.start()
  clock.advance(100)
  primary.set(20, ...two)
  clock.advance(2 * mirrorPollMs)
  t.same(held(zone()), asHeld(primary.version))
  t.same(
    primary.asked.map(({ kind }) => kind).filter((kind) => kind !== 'SOA'),
    ['AXFR', 'AXFR']
  )
  mirror.stop()
})

/** As CoreDNS does: whatever is asked for, the zone comes whole. */
const knowsNoDeltas =
  (primary: ScriptedPrimary): Tamper =>
  (asked) => {
    const { serial, records } = primary.version
    return asked.kind === 'SOA' ? null : asOne([soaOf(serial), ...records, soaOf(serial)])
  }

void test('a serial that counts seconds: what changes later in the same one comes too', async (t) => {
  for (const hasTime of [true, false]) {
    const { clock, primary, mirror, zone } = setUp()
    primary.tamper = knowsNoDeltas(primary)
    const first = hasTime ? Math.floor(clock.epochMs() / 1000) : 7
    primary.set(first, ...one)
    mirror.start()
    clock.advance(5_000)
    primary.set(first + 5, ...two)
    clock.advance(2 * mirrorPollMs)
    const version = primary.version
    t.same(held(zone()), asHeld(version))
    primary.set(first + 5, ...one)
    clock.advance(serialSecondMs + mirrorPollMs)
    t.same(held(zone()), asHeld(hasTime ? primary.version : version))
    const { wholeTransfers } = zone().stats
    clock.advance(60_000)
    t.equal(zone().stats.wholeTransfers, wholeTransfers, 'once is enough')
    t.equal(zone().isLive(), true)
    mirror.stop()
  }
})

void test('a serial that counts seconds: where no copy is kept, all of the zone is told twice', async (t) => {
  let told = 0
  const { clock, primary, mirror } = setUp({ onTold: (_, steps) => (told += steps === 'anything' ? 1 : 0) })
  primary.tamper = knowsNoDeltas(primary)
  const first = Math.floor(clock.epochMs() / 1000)
  primary.set(first, ...one)
  mirror.start()
  clock.advance(5_000)
  told = 0
  primary.set(first + 5, ...two)
  clock.advance(2 * mirrorPollMs)
  t.equal(told, 1)
  clock.advance(60_000)
  t.equal(told, 2, 'what was asked for since may be from before a change of the same second')
  mirror.stop()
})

void test('an endless transfer ends at its limits', async (t) => {
  for (const limits of [{ records: 50 }, { octets: 3_000 }]) {
    const { clock, primary, mirror, zone } = setUp({ limits })
    primary.set(1, ...one)
    mirror.start()
    clock.advance(100)
    primary.set(2, ...two)
    let transfers = 0
    primary.tamper = (asked, proper) => {
      if (asked.kind === 'SOA') return null
      transfers++
      const more = Array.from({ length: 1_000 }, (_, at) => [recordAt(`more-${at}`, '10.1.1.1')])
      return { messages: [...proper.messages.slice(0, -1), ...more] }
    }
    clock.advance(60_000)
    t.same(held(zone()), asHeld(primary.versions[0]!))
    t.ok(zone().stats.faults.limit > 0)
    t.ok(transfers < 100, `${transfers} transfers in a minute`)
    t.equal(zone().isLive(), false, 'what cannot be brought up to date is not passed off as right')
    primary.tamper = () => null
    clock.advance(30_000)
    t.same(held(zone()), asHeld(primary.version))
    mirror.stop()
    t.equal(clock.pendingTimers, 0)
  }
})

void test('an RRset that no answer could carry ends the transfer, whole or by deltas', async (t) => {
  const { clock, primary, mirror, zone } = setUp()
  primary.set(1, ...one)
  mirror.start()
  clock.advance(1_000)
  const many = Array.from({ length: incomingRRsetRecords + 1 }, (_, at) =>
    recordAt('a', `10.${at >> 16}.${(at >> 8) & 0xff}.${at & 0xff}`)
  )
  primary.perMessage = 1_000
  primary.set(2, ...many)
  clock.advance(20_000)
  t.same(held(zone()), asHeld(primary.versions[0]!), 'the last good version stays')
  t.ok(zone().stats.faults.limit > 1, 'neither the deltas nor the whole zone is taken')
  t.match(zone().status().lastFault, /more than 4096 records of a\.shop\.example\.org\. A/)
  primary.set(3, ...many.slice(1))
  clock.advance(2 * mirrorRetryMaxMs)
  t.same(held(zone()), asHeld(primary.version), 'as many as the limit says are')
  mirror.stop()
})

void test('a server that cuts off every transfer is asked for one ever less often', async (t) => {
  const { clock, primary, mirror, zone } = setUp()
  primary.set(1, ...one)
  let isCutting = true
  primary.tamper = ({ kind }, proper) =>
    isCutting && kind !== 'SOA' ? { messages: proper.messages.slice(0, 1), thenClose: true } : null
  mirror.start()
  clock.advance(600_000)
  const tries = primary.asked.filter(({ kind }) => kind !== 'SOA').length
  t.ok(tries >= 10 && tries < 30, `${tries} in ten minutes`)
  isCutting = false
  clock.advance(2 * mirrorRetryMaxMs)
  t.same(held(zone()), asHeld(primary.version), 'it is not forgotten')
  mirror.stop()
})

void test('deltas of more records than the limit: the whole zone is taken instead', async (t) => {
  const { clock, primary, mirror, zone } = setUp({ limits: { deltaRecords: 10 } })
  primary.set(1, ...one)
  mirror.start()
  clock.advance(100)
  primary.set(2, ...Array.from({ length: 50 }, (_, at) => recordAt(`n-${at}`, '10.1.1.1')))
  clock.advance(5_000)
  t.same(held(zone()), asHeld(primary.version))
  mirror.stop()
})

void test('a flood of NOTIFY costs one look at a time', async (t) => {
  const { clock, primary, mirror, zone } = setUp()
  primary.epoch = 'aaaa'
  primary.set(1, ...one)
  mirror.start()
  clock.advance(100)
  const before = primary.asked.length
  for (let at = 0; at < 5_000; at++) primary.notify(at % 2 === 0 ? 1 : 2 ** 31 - at)
  t.equal(primary.answers.length, 5_000, 'each is answered')
  clock.advance(5)
  t.ok(primary.asked.length - before <= 4, `${primary.asked.length - before} questions`)
  clock.advance(2_000)
  t.same(held(zone()), asHeld(primary.version))
  t.equal(zone().isLive(), true)
  mirror.stop()
})

void test('messages that nobody asked for end the connection', async (t) => {
  const { clock, primary, mirror, zone } = setUp()
  primary.set(1, ...one)
  mirror.start()
  clock.advance(100)
  const stray = new Uint8Array(12)
  stray[2] = 0x80
  for (let at = 0; at < strayTransferMessages; at++) primary.sendRaw(stray)
  clock.advance(1_000)
  t.equal(primary.connections, 2)
  t.same(held(zone()), asHeld(primary.version))
  for (const octets of [new Uint8Array(3), Uint8Array.from({ length: 40 }, () => 0x55)]) {
    primary.sendRaw(octets)
    clock.advance(2_000)
  }
  t.equal(primary.connections, 4)
  t.equal(zone().isLive(), true)
  mirror.stop()
})

void test('a server that falls silent is left, and the copy says that it is not live', async (t) => {
  const { clock, primary, mirror, zone } = setUp()
  primary.set(1, ...one)
  mirror.start()
  clock.advance(1_000)
  primary.isSilent = true
  clock.advance(4_000)
  t.equal(zone().isLive(), true, 'within the lease')
  clock.advance(2_000)
  t.equal(zone().isLive(), false)
  t.same(held(zone()), asHeld(primary.version))
  t.ok(primary.connections > 1)
  clock.advance(86_400_000)
  t.equal(zone().isExpired(), true)
  t.ok(primary.connections < 86_400 / 2, 'the pauses between attempts have grown')
  primary.isSilent = false
  clock.advance(mirrorQueryTimeoutMs + 2 * mirrorReconnectMaxMs)
  t.equal(zone().isLive(), true)
  mirror.stop()
})

void test('another epoch is another history, whatever its serial', async (t) => {
  for (const serial of [1, 2, 0]) {
    const { clock, primary, mirror, zone } = setUp()
    primary.epoch = 'first'
    primary.set(1, ...one)
    mirror.start()
    clock.advance(100)
    t.equal(zone().store!.epoch, 'first')
    primary.end()
    primary.epoch = 'second'
    primary.set(serial, ...two)
    clock.advance(2_000)
    t.same(held(zone()), asHeld(primary.version), `serial ${serial}`)
    t.equal(zone().store!.epoch, 'second')
    t.same(
      primary.asked.map(({ kind }) => kind).filter((kind) => kind !== 'SOA'),
      ['AXFR', 'AXFR']
    )
    mirror.stop()
  }
})

void test('the same epoch goes on by deltas over another connection; a foreign server is taken whole', async (t) => {
  for (const epoch of ['first', null]) {
    const { clock, primary, mirror, zone } = setUp()
    primary.epoch = epoch
    primary.set(1, ...one)
    mirror.start()
    clock.advance(100)
    primary.end()
    primary.set(2, ...two)
    clock.advance(2_000)
    t.same(held(zone()), asHeld(primary.version))
    const transfers = primary.asked.map(({ kind }) => kind).filter((kind) => kind !== 'SOA')
    t.same(transfers, epoch === null ? ['AXFR', 'AXFR'] : ['AXFR', 'IXFR'])
    mirror.stop()
  }
})

void test('clocks that differ: the difference is measured, and what is answered does not depend on it', async (t) => {
  for (const skewMs of [-86_400_000, 3_600_000]) {
    const { clock, primary, mirror, zone } = setUp()
    primary.epoch = 'first'
    primary.clockSkewMs = skewMs
    primary.set(1, ...one)
    mirror.start()
    clock.advance(100)
    primary.set(2, ...two)
    primary.notify()
    clock.advance(100)
    t.same(held(zone()), asHeld(primary.version))
    t.ok(Math.abs(zone().clockOffsetMs! - skewMs) <= 1, `${zone().clockOffsetMs} ms`)
    t.ok(zone().ageMs()! < 200)
    clock.setEpochMs(clock.epochMs() - 7_200_000)
    clock.advance(mirrorHeartbeatMs + 100)
    t.equal(zone().isLive(), true, 'our own clock may step too')
    mirror.stop()
  }
})

void test('records of private types that do not hold together are no transfer', async (t) => {
  const wrong: Tamper[] = [
    edited((all) => all.map((it) => (it.type === privateType.meta ? { ...it, rdata: Uint8Array.of(1, 2, 3) } : it))),
    edited((all) =>
      all.map((it) => (it.type === privateType.meta ? { ...it, owner: recordAt('x', '10.0.0.1').owner } : it))
    ),
    edited((all) =>
      all.toSpliced(2, 0, { ...recordAt('x', '10.0.0.1'), type: privateType.state, rdata: Uint8Array.of(9) })
    )
  ]
  for (const tamper of wrong) {
    const { clock, primary, mirror, zone } = setUp()
    primary.epoch = 'first'
    primary.set(1, ...one)
    mirror.start()
    clock.advance(100)
    primary.set(2, ...two)
    let lies = 2
    primary.tamper = (asked, proper) => (asked.kind === 'SOA' || lies-- <= 0 ? null : tamper(asked, proper))
    clock.advance(20_000)
    t.same(held(zone()), asHeld(primary.version))
    t.ok(zone().stats.faults.malformed + zone().stats.faults.delta > 0)
    mirror.stop()
  }
})

void test('a peerdns that pushes is asked once a second, and told changes are fetched at once', async (t) => {
  const { clock, primary, mirror, zone } = setUp()
  primary.epoch = 'first'
  primary.set(1, ...one)
  mirror.start()
  clock.advance(100)
  const before = primary.asked.length
  clock.advance(5_000)
  t.equal(primary.asked.length - before, 5)
  primary.set(2, ...two)
  primary.notify()
  clock.advance(2)
  t.same(held(zone()), asHeld(primary.version))
  // One that forgets to tell is asked like any other.
  for (let serial = 3; serial < 10; serial++) {
    primary.set(serial, ...(serial % 2 === 0 ? two : one))
    clock.advance(1_100)
  }
  t.equal(zone().status().pushes, false)
  const then = primary.asked.length
  clock.advance(1_000)
  t.ok(primary.asked.length - then >= 4)
  mirror.stop()
})

void test('a name that is no zone: its ancestors are asked for, and again later', async (t) => {
  const deep = parseName('x.backend.shop.example.org')
  const { clock, primary, mirror } = setUp({ names: [deep], mayAscend: true })
  primary.set(1, ...one)
  let isAllowed = false
  primary.tamper = () => (isAllowed ? null : { messages: [[]], rcode: RCODE.REFUSED })
  mirror.start()
  clock.advance(2_000)
  t.equal(mirror.find(deep), null)
  const asked = primary.asked.length
  t.ok(asked <= 5, `${asked} questions`)
  isAllowed = true
  clock.advance(10_000)
  t.equal(mirror.find(deep)?.apex, apex)
  isAllowed = false
  clock.advance(20_000)
  t.equal(mirror.find(deep)?.isLive(), false, 'what is refused afterwards is not live')
  mirror.stop()
  t.equal(clock.pendingTimers, 0)
})

/** Those of the lies that show whatever the zone holds. */
const seenThrough = badDeltas.filter(
  ({ name }) => !/^(adds what|takes away another|takes away all NS|goes back)/.test(name)
)

type Move = Readonly<{ kind: 'change' | 'wait' | 'lie' | 'end' | 'garbage' | 'notify'; seed: number }>

void test('whatever is done to transfers, the copy is always one version as it was, and in the end the last', async (t) => {
  const move = fc.record({
    kind: fc.constantFrom<Move['kind']>('change', 'change', 'wait', 'lie', 'end', 'garbage', 'notify'),
    seed: fc.nat(1_000_000)
  })
  const property = fc.property(fc.array(move, { maxLength: 60 }), fc.boolean(), (moves, isPeerdns) => {
    const { clock, primary, mirror, zone } = setUp({ limits: { records: 500, octets: 100_000, deltaRecords: 100 } })
    primary.epoch = isPeerdns ? 'first' : null
    let serial = 0xffff_fff0
    const records = new Map<string, ResourceRecord>()
    primary.set(serial)
    const isGood = (): boolean => {
      const now = held(zone())
      if (now === null) return true
      const version = primary.versions.findLast((it) => it.serial === now.serial)
      return version !== undefined && JSON.stringify(asHeld(version)) === JSON.stringify(now)
    }
    mirror.start()
    clock.advance(50)
    for (const { kind, seed } of moves) {
      if (kind === 'change') {
        const label = `n${seed % 7}`
        if (seed % 3 === 0) records.delete(label)
        else records.set(label, recordAt(label, `10.0.0.${seed % 5}`, 60))
        serial = (serial + 1 + (seed % 4)) % 2 ** 32
        primary.set(serial, ...records.values())
      } else if (kind === 'lie') {
        let lies = 1 + (seed % 3)
        primary.tamper = (asked, proper) => {
          if (asked.kind === 'SOA' || lies-- <= 0) return null
          const isDelta = flat(proper)[1]?.type === RRTYPE.SOA && flat(proper).length > 3
          const all = isDelta ? seenThrough : badZones
          return all[seed % all.length]!.tamper(asked, proper)
        }
      } else if (kind === 'end' && zone().status().server !== null) primary.end()
      else if (kind === 'garbage' && zone().status().server !== null) primary.sendRaw(new Uint8Array(seed % 30))
      else if (kind === 'notify' && zone().status().server !== null) primary.notify()
      clock.advance(seed % 700)
      if (!isGood()) return false
    }
    primary.tamper = () => null
    clock.advance(120_000)
    const isLast = JSON.stringify(held(zone())) === JSON.stringify(asHeld(primary.version))
    mirror.stop()
    // What the server had still to answer.
    clock.advance(10)
    return isLast && isGood() && clock.pendingTimers === 0
  })
  fc.assert(property, { numRuns: 300, seed: 20_261_130 })
  t.pass()
})
