import * as fc from 'fast-check'
import { test } from 'tap'
import { RRTYPE } from '../../src/wire/iana.ts'
import { nameToText, parseName, type DomainName } from '../../src/wire/name.ts'
import { readSoa } from '../../src/wire/rdata.ts'
import type { RRset } from '../../src/wire/rr.ts'
import type { NameChange, ServiceState, ZoneChange } from '../../src/zone/zone-change.ts'
import { ZoneStore, type Synthesize, type ZoneEdit } from '../../src/zone/zone-store.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { rrset } from '../support/records.ts'
import { apex, ns, soa } from './apex.ts'
import { checkLookup, PlainZone } from './plain-zone.ts'

type StoreOptions = { clock?: ManualClock; epoch?: string; synthesize?: Synthesize; serial?: number }

const newStore = ({ clock = new ManualClock(), epoch = 'e1', ...rest }: StoreOptions = {}): ZoneStore =>
  new ZoneStore({ apex, epoch, soa, ns, clock, ...rest })

const edit = (parts: Partial<ZoneEdit>): ZoneEdit => ({ sets: [], services: [], names: [], originAtMs: 0, ...parts })

const put = (set: RRset) => ({ owner: set.owner, type: set.type, after: set })
const drop = (owner: string, type: number) => ({ owner: parseName(owner), type, after: null })

/** Text as `kind` or `kind data-TTL`: what a lookup says, in a form that tables can hold. */
function lookupText(store: ZoneStore, qname: string, qtype: number): string {
  const found = store.lookup(parseName(qname), qtype)
  return 'rrset' in found ? `${found.kind} ${found.rrset.type}` : found.kind
}

const existenceText = (changes: readonly NameChange[]): string[] =>
  changes.map(({ owner, exists }) => (exists ? '+' : '-') + nameToText(owner)).sort()

test('ZoneStore.lookup tells answer, alias, NODATA and NXDOMAIN apart', async (t) => {
  const store = newStore()
  store.apply(
    edit({
      sets: [
        put(rrset('api.backend.svc.cluster.local', 'A', 5, '192.0.2.1')),
        put(rrset('_http._tcp.api.backend.svc.cluster.local', 'SRV', 5, '0 100 80 api.backend.svc.cluster.local')),
        put(rrset('ext.backend.svc.cluster.local', 'CNAME', 5, 'example.org')),
        put(rrset('two.backend.svc.cluster.local', 'TXT', 5, 'x')),
        put(rrset('two.backend.svc.cluster.local', 'A', 5, '192.0.2.2'))
      ],
      names: [{ owner: parseName('empty.svc.cluster.local'), exists: true }]
    })
  )
  const rows: [string, string, number, string][] = [
    ['the asked type', 'api.backend.svc.cluster.local', RRTYPE.A, 'answer 1'],
    ['case does not matter', 'API.Backend.svc.CLUSTER.local', RRTYPE.A, 'answer 1'],
    ['another type', 'api.backend.svc.cluster.local', RRTYPE.AAAA, 'nodata'],
    ['a sibling', 'web.backend.svc.cluster.local', RRTYPE.A, 'nxdomain'],
    ['below a name with records', 'x.api.backend.svc.cluster.local', RRTYPE.A, 'nxdomain'],
    ['an empty non-terminal below a name', '_tcp.api.backend.svc.cluster.local', RRTYPE.SRV, 'nodata'],
    ['an empty non-terminal above', 'svc.cluster.local', RRTYPE.A, 'nodata'],
    ['a name without records', 'empty.svc.cluster.local', RRTYPE.A, 'nodata'],
    ['an alias for any other type', 'ext.backend.svc.cluster.local', RRTYPE.A, 'alias 5'],
    ['the alias itself', 'ext.backend.svc.cluster.local', RRTYPE.CNAME, 'answer 5'],
    ['ANY gives one RRset', 'two.backend.svc.cluster.local', RRTYPE.ANY, 'answer 16'],
    ['ANY at an alias', 'ext.backend.svc.cluster.local', RRTYPE.ANY, 'answer 5'],
    ['ANY without records', 'svc.cluster.local', RRTYPE.ANY, 'nodata'],
    ['SOA at the apex', 'cluster.local', RRTYPE.SOA, 'answer 6'],
    ['NS at the apex', 'cluster.local', RRTYPE.NS, 'answer 2'],
    ['another type at the apex', 'cluster.local', RRTYPE.MX, 'nodata']
  ]
  for (const [title, qname, qtype, want] of rows) t.equal(lookupText(store, qname, qtype), want, title)
  const twice = [1, 2].map(() => store.lookup(parseName('api.backend.svc.cluster.local'), RRTYPE.A))
  t.equal(twice[0], twice[1], 'a lookup allocates no answer of its own')
})

test('ZoneStore.exists is exact for empty non-terminals, and a change names those that came or went', async (t) => {
  const store = newStore()
  const steps: { title: string; sets?: ZoneEdit['sets']; names?: NameChange[]; want: string[] }[] = [
    {
      title: 'a name brings its ancestors',
      sets: [put(rrset('a.b.c.cluster.local', 'A', 5, '192.0.2.1'))],
      want: ['+a.b.c.cluster.local.', '+b.c.cluster.local.', '+c.cluster.local.']
    },
    {
      title: 'a second type brings nothing',
      sets: [put(rrset('a.b.c.cluster.local', 'TXT', 5, 'x'))],
      want: []
    },
    { title: 'one of two types goes', sets: [drop('a.b.c.cluster.local', RRTYPE.A)], want: [] },
    {
      title: 'a sibling',
      sets: [put(rrset('z.c.cluster.local', 'A', 5, '192.0.2.1'))],
      want: ['+z.c.cluster.local.']
    },
    {
      title: 'the last record below takes the ancestors with it, up to one with another child',
      sets: [drop('a.b.c.cluster.local', RRTYPE.TXT)],
      want: ['-a.b.c.cluster.local.', '-b.c.cluster.local.']
    },
    {
      title: 'a name held without records outlives its children',
      sets: [drop('z.c.cluster.local', RRTYPE.A)],
      names: [{ owner: parseName('c.cluster.local'), exists: true }],
      want: ['-z.c.cluster.local.']
    },
    {
      title: 'and goes when it is let go',
      names: [{ owner: parseName('c.cluster.local'), exists: false }],
      want: ['-c.cluster.local.']
    },
    {
      title: 'moved within one edit, the common ancestor neither comes nor goes',
      sets: [put(rrset('a.x.cluster.local', 'A', 5, '192.0.2.1'))],
      want: ['+a.x.cluster.local.', '+x.cluster.local.']
    },
    {
      title: 'moved within one edit',
      sets: [drop('a.x.cluster.local', RRTYPE.A), put(rrset('b.x.cluster.local', 'A', 5, '192.0.2.1'))],
      want: ['+b.x.cluster.local.', '-a.x.cluster.local.']
    }
  ]
  for (const { title, sets = [], names = [], want } of steps) {
    const change = store.apply(edit({ sets, names }))
    t.same(existenceText(change!.existence), want, title)
    for (const { owner, exists } of change!.existence) t.equal(store.exists(owner), exists, `${title}: exists`)
  }
  t.ok(store.exists(apex), 'the apex always exists')
  t.notOk(store.exists(parseName('local')), 'nothing above the apex does')
})

test('ZoneStore asks synthesis only where it holds no records', async (t) => {
  const pod = rrset('10-0-0-1.ns.pod.cluster.local', 'A', 5, '10.0.0.1')
  const asked: string[] = []
  const synthesize: Synthesize = (qname, qtype) => {
    asked.push(nameToText(qname))
    if (qname !== pod.owner) return nameToText(qname).startsWith('denied') ? { kind: 'nxdomain' } : null
    return qtype === RRTYPE.A || qtype === RRTYPE.ANY ? { kind: 'answer', rrset: pod } : { kind: 'nodata' }
  }
  const store = newStore({ synthesize })
  store.apply(
    edit({
      sets: [put(rrset('api.cluster.local', 'A', 5, '192.0.2.1')), put(rrset('x.denied.cluster.local', 'TXT', 5, 'x'))],
      names: [{ owner: parseName('ns.pod.cluster.local'), exists: true }]
    })
  )
  t.equal(lookupText(store, 'api.cluster.local', RRTYPE.AAAA), 'nodata')
  t.same(asked, [], 'not asked where there are records')
  t.equal(lookupText(store, '10-0-0-1.ns.pod.cluster.local', RRTYPE.A), 'answer 1')
  t.equal(lookupText(store, '10-0-0-1.ns.pod.cluster.local', RRTYPE.AAAA), 'nodata')
  t.equal(lookupText(store, 'x.ns.pod.cluster.local', RRTYPE.A), 'nxdomain')
  t.equal(lookupText(store, 'denied-2.cluster.local', RRTYPE.A), 'nxdomain')
  t.equal(lookupText(store, 'denied.cluster.local', RRTYPE.A), 'nodata', 'what exists cannot be denied')
  t.ok(store.exists(pod.owner))
  t.notOk(store.exists(parseName('x.ns.pod.cluster.local')))
})

test('ZoneStore.apply raises the serial with each change, and only then', async (t) => {
  const clock = new ManualClock()
  const store = newStore({ clock })
  const started = store.serial
  t.equal(started, Math.floor(clock.epochMs() / 50) % 2 ** 32, 'begins at the clock')
  const set = (text: string, ttlSeconds = 5) =>
    edit({ sets: [put(rrset('a.cluster.local', 'A', ttlSeconds, ...text.split(' ')))] })

  const first = store.apply(set('192.0.2.1 192.0.2.2'))
  t.match(first, { zone: apex, epoch: 'e1', fromSerial: started, toSerial: started + 1, learnedAtMs: clock.epochMs() })
  t.equal(store.apply(set('192.0.2.2 192.0.2.1')), null, 'the same records in another order change nothing')
  t.equal(
    store.apply(edit({ sets: [drop('b.cluster.local', RRTYPE.A)] })),
    null,
    'nor does taking away what is not there'
  )
  t.equal(store.apply(edit({})), null, 'nor an empty edit')
  t.equal(store.serial, started + 1)
  t.equal(store.apply(set('192.0.2.1 192.0.2.2', 6))!.toSerial, started + 2, 'another TTL is a change')
  t.equal(store.apply(set('192.0.2.1 192.0.2.3', 6))!.toSerial, started + 3, 'another record is a change')

  clock.advance(60_000)
  t.equal(store.apply(set('192.0.2.9'))!.toSerial, started + 1200, 'after a pause the clock leads again')
  t.equal(store.lastChangeAtMs, clock.epochMs())
  clock.setEpochMs(clock.epochMs() - 3_600_000)
  t.equal(store.apply(set('192.0.2.8'))!.toSerial, started + 1201, 'a clock that is set back does not lower it')

  t.equal(readSoa(store.soa.rdata[0]!).serial, store.serial, 'the SOA carries it')
  t.match(store.lookup(apex, RRTYPE.SOA), { kind: 'answer', rrset: store.soa })
  t.same(readSoa(store.soaAt(started).rdata[0]!), { ...readSoa(store.soa.rdata[0]!), serial: started })
  t.equal(store.soa.ttlSeconds, 30)
  t.equal(store.negativeSoa.ttlSeconds, 5, 'a denial lives no longer than MINIMUM')
  t.same(store.negativeSoa.rdata, store.soa.rdata)
})

test('ZoneStore.apply reduces an edit to its differences', async (t) => {
  const store = newStore()
  const one = rrset('a.cluster.local', 'A', 5, '192.0.2.1')
  const two = rrset('a.cluster.local', 'A', 5, '192.0.2.2')
  const service = parseName('s.cluster.local')
  store.apply(edit({ sets: [put(one)], services: [{ owner: service, after: 'present' }] }))
  const change = store.apply(
    edit({
      sets: [put(two), put(rrset('b.cluster.local', 'A', 5, '192.0.2.3')), drop('a.cluster.local', 1), put(two)],
      services: [
        { owner: service, after: 'empty' },
        { owner: parseName('t.cluster.local'), after: null }
      ],
      names: [{ owner: parseName('n.cluster.local'), exists: false }]
    })
  )
  t.equal(change!.sets.length, 2, 'of several entries for one RRset the last one counts')
  t.match(change!.sets[0], { owner: one.owner, before: one, after: two })
  t.same(change!.services, [{ owner: service, before: 'present', after: 'empty' }])
  t.same(change!.names, [])
  t.equal(store.serviceState(service), 'empty')
  t.equal(store.serviceState(one.owner), null)
  t.equal(store.apply(edit({ sets: [drop('a.cluster.local', 1), put(two)] })), null, 'away and back is no change')
  t.same(structuredClone(change), change, 'a change can be sent to another thread')
})

test('ZoneStore.apply is whole or not at all', async (t) => {
  const store = newStore()
  const good = put(rrset('a.cluster.local', 'A', 5, '192.0.2.1'))
  const outside = rrset('a.example.org', 'A', 5, '192.0.2.1')
  const rows: [string, Partial<ZoneEdit>][] = [
    ['an owner outside', { sets: [good, put(outside)] }],
    ['an owner that only ends alike', { sets: [good, put(rrset('xcluster.local', 'A', 5, '192.0.2.1'))] }],
    ['a Service outside', { sets: [good], services: [{ owner: outside.owner, after: 'empty' }] }],
    ['a name outside', { sets: [good], names: [{ owner: outside.owner, exists: true }] }],
    ['the apex no longer existing', { sets: [good], names: [{ owner: apex, exists: false }] }],
    ['the SOA', { sets: [good, put(store.soa)] }],
    ['no NS', { sets: [good, drop('cluster.local', RRTYPE.NS)] }],
    ['an RRset of another owner', { sets: [good, { owner: apex, type: 1, after: outside }] }],
    ['an RRset of another type', { sets: [good, { ...good, type: RRTYPE.AAAA }] }],
    ['an RRset without records', { sets: [good, put({ ...good.after, rdata: [] })] }],
    ['a TTL of over 31 bits', { sets: [good, put({ ...good.after, ttlSeconds: 2 ** 31 })] }]
  ]
  const before = { serial: store.serial, records: [...store.records()] }
  for (const [title, parts] of rows) t.throws(() => store.apply(edit(parts)), RangeError, title)
  t.same({ serial: store.serial, records: [...store.records()] }, before, 'nothing has changed')
  t.ok(store.apply(edit({ sets: [put(rrset('cluster.local', 'NS', 5, 'ns.example.org'))] })), 'NS may be exchanged')
  t.throws(() => new ZoneStore({ apex, epoch: 'e', soa, ns: outside, clock: new ManualClock() }), RangeError)
})

test('ZoneStore.subscribe tells each change once, in order, whatever listeners do', async (t) => {
  const store = newStore()
  const seen: number[] = []
  const stop = store.subscribe((change) => seen.push(change.toSerial))
  const stopThrowing = store.subscribe(() => {
    throw new Error('a bug in a listener')
  })
  const last: number[] = []
  store.subscribe((change) => last.push(change.toSerial))
  const add = (host: string) => store.apply(edit({ sets: [put(rrset(`${host}.cluster.local`, 'A', 5, '192.0.2.1'))] }))
  t.throws(() => add('a'), { message: 'a bug in a listener' })
  t.same([seen, last], [[store.serial], [store.serial]], 'the others were told all the same')
  stopThrowing()
  const stopEditing = store.subscribe(() => void add('c'))
  t.throws(() => add('b'), { message: 'a listener edits the zone that it listens to' })
  stopEditing()
  stop()
  add('d')
  t.equal(seen.length, 2)
  t.equal(last.length, 3)
  t.notOk(store.exists(parseName('c.cluster.local')))
})

test('ZoneStore.replay keeps a copy equal, and refuses what does not follow', async (t) => {
  const store = newStore()
  const copy = newStore({ serial: store.serial })
  const one = rrset('a.b.cluster.local', 'A', 5, '192.0.2.1')
  const first = store.apply(edit({ sets: [put(one)], names: [{ owner: parseName('n.cluster.local'), exists: true }] }))!
  const lying = { ...first, sets: [{ ...first.sets[0]!, before: rrset('a.b.cluster.local', 'A', 5, '192.0.2.7') }] }
  const rows: [string, ZoneChange, string][] = [
    ['another epoch', { ...first, epoch: 'e2' }, 'other-history'],
    ['another serial', { ...first, fromSerial: first.fromSerial - 1 }, 'other-history'],
    ['another zone', { ...first, zone: parseName('example.org') }, 'mismatch'],
    ['a change of what is not there', lying, 'mismatch'],
    ['a name that is gone already', { ...first, names: [{ owner: one.owner, exists: false }] }, 'mismatch'],
    [
      'a Service that is not there',
      { ...first, services: [{ owner: apex, before: 'empty', after: null }] },
      'mismatch'
    ],
    ['an owner outside', { ...first, names: [{ owner: parseName('x.example.org'), exists: true }] }, 'mismatch'],
    ['what follows', first, 'applied'],
    ['the same again', first, 'other-history']
  ]
  for (const [title, change, want] of rows) t.equal(copy.replay(change), want, title)
  t.same([...copy.records()], [...store.records()], 'the SOA included')
  t.same([...copy.pseudoNames()], [...store.pseudoNames()])
  t.same(copy.changesSince(first.fromSerial)![0]!.sets, first.sets, 'and it can hand the change on')
})

// Property: a store does what a plain list of RRsets would do, and its journal tells the difference exactly.

const labels = ['a', 'b', 'c']
const universe: DomainName[] = [apex]
for (const one of labels) {
  universe.push(parseName(`${one}.cluster.local`))
  for (const two of labels) {
    universe.push(parseName(`${two}.${one}.cluster.local`))
    for (const three of labels) universe.push(parseName(`${three}.${two}.${one}.cluster.local`))
  }
}
const owners = universe.slice(1)
const types = [RRTYPE.A, RRTYPE.TXT, RRTYPE.CNAME]
const states: (ServiceState | null)[] = ['present', 'empty', 'unknown', null]

const anySet = fc
  .record({
    owner: fc.constantFrom(...owners),
    type: fc.constantFrom(...types),
    ttlSeconds: fc.constantFrom(1, 2),
    octets: fc.uniqueArray(fc.integer({ min: 1, max: 4 }), { maxLength: 3 })
  })
  .map(({ owner, type, ttlSeconds, octets }) => {
    // An RRset without records stands for taking it away.
    const rdata = octets.map((octet) => Uint8Array.of(octet, type))
    return { owner, type, after: rdata.length === 0 ? null : { owner, type, ttlSeconds, rdata } }
  })
const anyEdit: fc.Arbitrary<ZoneEdit> = fc.record({
  sets: fc.array(anySet, { maxLength: 6 }),
  services: fc.array(fc.record({ owner: fc.constantFrom(...owners), after: fc.constantFrom(...states) }), {
    maxLength: 2
  }),
  names: fc.array(fc.record({ owner: fc.constantFrom(...owners), exists: fc.boolean() }), { maxLength: 2 }),
  originAtMs: fc.nat()
})

const fcOptions = { seed: 20_260_101, numRuns: 200 }

test('ZoneStore agrees with a plain list of RRsets after any edits', async (t) => {
  const agree = (edits: ZoneEdit[]): void => {
    const store = newStore()
    const plain = new PlainZone(apex)
    for (const step of edits) {
      const before = plain.clone()
      const serial = store.serial
      const change = store.apply(step)
      plain.apply(step)
      const changed = before.text() !== plain.text()
      if ((change !== null) !== changed) throw new Error(`a change of ${changed} gave ${JSON.stringify(change)}`)
      if (changed === (store.serial === serial)) throw new Error('the serial does not go with the change')
      if (PlainZone.of(store).text() !== plain.text()) throw new Error('other content')
      const existence = new Map(change?.existence.map(({ owner, exists }) => [owner, exists]))
      for (const name of universe) {
        const exists = plain.exists(name)
        if (store.exists(name) !== exists) throw new Error(`exists(${nameToText(name)}) is not ${exists}`)
        const told = existence.get(name)
        if (told !== (before.exists(name) === exists ? undefined : exists)) {
          throw new Error(`${nameToText(name)}: existence was told as ${told}`)
        }
        for (const type of types) checkLookup(store, plain, name, type)
      }
    }
  }
  fc.assert(fc.property(fc.array(anyEdit, { maxLength: 12 }), agree), fcOptions)
  t.pass('all agree')
})

test('ZoneStore.changesSince leads from any older state to now, and back', async (t) => {
  const leads = (edits: ZoneEdit[], clockStepMs: number): void => {
    const clock = new ManualClock()
    const store = newStore({ clock })
    const states = [{ serial: store.serial, plain: PlainZone.of(store) }]
    for (const step of edits) {
      clock.advance(clockStepMs)
      if (store.apply(step) !== null) states.push({ serial: store.serial, plain: PlainZone.of(store) })
    }
    const now = PlainZone.of(store)
    for (const { serial, plain } of states) {
      const changes = store.changesSince(serial)
      if (changes === null) throw new Error(`nothing since ${serial}`)
      const copy = copyOf(plain, serial)
      for (const change of changes) if (copy.replay(change) !== 'applied') throw new Error('a change does not follow')
      if (PlainZone.of(copy).text() !== now.text() || copy.serial !== store.serial) throw new Error('forward differs')
      const back = now.clone()
      for (const change of [...changes].reverse()) back.undo(change)
      if (back.text() !== plain.text()) throw new Error('backward differs')
    }
    if (store.changesSince(store.serial)?.length !== 0) throw new Error('nothing follows now')
    if (store.changesSince(store.serial + 1) !== null) throw new Error('a serial to come is not known')
  }
  fc.assert(fc.property(fc.array(anyEdit, { maxLength: 12 }), fc.constantFrom(0, 20, 50, 170), leads), fcOptions)
  t.pass('all lead there')
})

/** A store of the same epoch that holds what a plain zone holds, at its serial. */
function copyOf(plain: PlainZone, serial: number): ZoneStore {
  const before = (serial - 1 + 2 ** 32) % 2 ** 32
  const copy = newStore({ serial: before })
  const outcome = copy.replay({
    zone: apex,
    epoch: 'e1',
    fromSerial: before,
    toSerial: serial,
    originAtMs: 0,
    learnedAtMs: 0,
    sets: [...plain.sets.values()].map((after) => ({ owner: after.owner, type: after.type, before: null, after })),
    services: [...plain.services].map(([owner, after]) => ({ owner, before: null, after })),
    names: [...plain.names].map((owner) => ({ owner, exists: true })),
    existence: []
  })
  if (outcome !== 'applied') throw new Error(outcome)
  return copy
}

test('ZoneStore: what is loaded is looked up at once, and told with one serial at the end', async (t) => {
  const clock = new ManualClock()
  const store = newStore({ clock })
  const { serial } = store
  const told: ZoneChange[] = []
  const batches: ZoneChange[] = []
  store.subscribe((change) => told.push(change))
  store.subscribeBatches((batch) => batches.push(batch))
  store.beginLoading()
  for (const name of ['one', 'two']) {
    clock.advance(60)
    const sets = [put(rrset(`${name}.svc.cluster.local`, 'A', 5, '192.0.2.1'))]
    t.equal(store.apply(edit({ sets, originAtMs: 7 })), null)
  }
  store.apply(edit({ sets: [drop('one.svc.cluster.local', RRTYPE.A)] }))
  t.throws(() => store.apply(edit({ sets: [drop('one.other.test', RRTYPE.A)] })), RangeError)
  t.equal(lookupText(store, 'two.svc.cluster.local', RRTYPE.A), 'answer 1')
  t.notOk(store.exists(parseName('one.svc.cluster.local')))
  t.same(told, [])
  t.same([store.serial, batches.length, store.sizes.journalChanges], [serial, 0, 0], 'nobody may go on from here')
  store.endLoading()
  t.ok(store.serial > serial)
  t.equal(store.changesSince(serial), null, 'no way leads here from before')
  t.same(store.changesSince(store.serial), [])
  t.match(batches, [{ isWhole: true, fromSerial: serial, toSerial: store.serial, sets: [] }])
  t.strictSame(told, batches)
  t.equal(store.lastBatch.learnedAtMs, store.lastChangeAtMs)
  store.endLoading()
  t.equal(batches.length, 1, 'only once')
  const change = store.apply(edit({ names: [{ owner: parseName('a.svc.cluster.local'), exists: true }] }))!
  t.same(store.changesSince(change.fromSerial), [change], 'and then as always')
  t.same(change.existence, [{ owner: parseName('a.svc.cluster.local'), exists: true }])
  t.same(told, [batches[0], change])
})

test('ZoneStore: names that come and go below one parent leave no trace', async () => {
  const owner = fc.constantFrom('a.s', 'b.s', 's', 'a.t', 'b.a.s', 't').map((name) => `${name}.svc.cluster.local`)
  const step = fc.record({ owner, exists: fc.boolean() })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 30 }), (steps) => {
      const store = newStore()
      const has = new Set<string>()
      for (const { owner, exists } of steps) {
        store.apply(edit({ sets: [exists ? put(rrset(owner, 'A', 5, '192.0.2.1')) : drop(owner, RRTYPE.A)] }))
        if (exists) has.add(owner)
        else has.delete(owner)
      }
      const all = ['a.s', 'b.s', 's', 'a.t', 'b.a.s', 't', 'x'].map((name) => `${name}.svc.cluster.local`)
      return all.every((name) => {
        const isThere = [...has].some((owner) => owner === name || owner.endsWith(`.${name}`))
        return store.exists(parseName(name)) === isThere
      })
    })
  )
})
