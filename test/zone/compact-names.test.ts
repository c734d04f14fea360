import * as fc from 'fast-check'
import { test } from 'tap'
import { RRTYPE } from '../../src/wire/iana.ts'
import { nameToText, parseName, type DomainName } from '../../src/wire/name.ts'
import { aRdata, nameRdata } from '../../src/wire/rdata.ts'
import {
  addressText,
  dashedAddress,
  dashedName,
  reversedAddress,
  reversedName,
  textAddress
} from '../../src/zone/address-names.ts'
import { hostPointer, hostRRset, isOfNetworks, type AddressHosts } from '../../src/zone/address-hosts.ts'
import { AddressSet } from '../../src/zone/address-set.ts'
import { SharedTexts } from '../../src/zone/shared-texts.ts'
import { ZoneStore, type ZoneEdit } from '../../src/zone/zone-store.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { rrset } from '../support/records.ts'
import { checkLookup, PlainZone } from './plain-zone.ts'

const fcOptions = { seed: 20_261_130, numRuns: 300 }

test('names that spell an address, and no others', async (t) => {
  const addresses: [name: string, address: number][] = [
    ['10-0-0-7.api.shop', 0x0a000007],
    ['0-0-0-0', 0],
    ['255-255-255-255.x', 0xffffffff],
    ['10-0-0.x', -1],
    ['10-0-0-7-1.x', -1],
    ['10-0-0-256.x', -1],
    ['010-0-0-7.x', -1],
    ['10-0-0-07.x', -1],
    ['10--0-7.x', -1],
    ['-10-0-0-7.x', -1],
    ['10-0-0-7-.x', -1],
    ['10-0-0-a.x', -1],
    ['web.x', -1],
    ['.', -1]
  ]
  for (const [name, address] of addresses) t.equal(dashedAddress(parseName(name)), address, name)
  const reversed: [name: string, address: number][] = [
    ['7.0.0.10.in-addr.arpa', 0x0a000007],
    ['255.255.255.255.in-addr.arpa', 0xffffffff],
    ['0.0.10.in-addr.arpa', -1],
    ['1.7.0.0.10.in-addr.arpa', -1],
    ['07.0.0.10.in-addr.arpa', -1],
    ['256.0.0.10.in-addr.arpa', -1],
    ['7.0.0.10.ip6.arpa', -1],
    ['7.0.0.10', -1],
    ['.', -1]
  ]
  for (const [name, address] of reversed) t.equal(reversedAddress(parseName(name)), address, name)
  const isThere = (address: number): boolean =>
    dashedAddress(dashedName(address, parseName('x'))) === address &&
    reversedAddress(reversedName(address)) === address &&
    textAddress(addressText(address)) === address
  fc.assert(fc.property(fc.integer({ min: 0, max: 2 ** 32 - 1 }), isThere), fcOptions)
})

test('AddressSet holds what a Set would hold, however long it is', async (t) => {
  const address = fc.oneof(fc.integer({ min: 0, max: 90 }), fc.constantFrom(2 ** 31, 2 ** 32 - 1))
  const steps = fc.array(fc.record({ address, isAdded: fc.boolean() }), { maxLength: 400 })
  const agree = (taken: readonly { address: number; isAdded: boolean }[]): boolean => {
    const [set, plain] = [new AddressSet(), new Set<number>()]
    for (const { address, isAdded } of taken) {
      const hasChanged = isAdded !== plain.has(address)
      if (isAdded) plain.add(address)
      else plain.delete(address)
      if ((isAdded ? set.add(address) : set.delete(address)) !== hasChanged) return false
      if (set.has(address) !== isAdded || set.size !== plain.size) return false
    }
    return [...set.all()].every((one) => plain.has(one))
  }
  fc.assert(fc.property(steps, agree), fcOptions)
  t.pass('all agree')
})

test('SharedTexts forgets what nobody has any more', async (t) => {
  const texts = new SharedTexts()
  const [one, again] = [texts.take('a'), texts.take('a')]
  t.equal(one, again)
  texts.giveBack(one)
  t.equal(texts.take('a'), one)
  texts.giveBack(one)
  texts.giveBack(one)
  t.equal(texts.size, 0)
})

// Property: a store of names that spell addresses, and of others that nearly do, does what a plain list of RRsets
// would.

const soa = {
  mname: parseName('ns.test'),
  rname: parseName('hostmaster.test'),
  refresh: 1,
  retry: 1,
  expire: 1,
  minimumSeconds: 1,
  ttlSeconds: 1
}
const hosts = ['10-0-0-1.a', '10-0-0-2.a', '010-0-0-1.a', '10-0-0-1', 'x.10-0-0-1.a', 'a', 'x.a']
const pointers = ['1.0.0', '2.0.0', '01.0.0', 'x.1.0.0', '0.0', '1.0.1', '1.1.0.0']
const addresses = ['10.0.0.1', '10.0.0.2'].map((text) => aRdata(text))
const targets = ['10-0-0-1.a.test', '10-0-0-1.b.test', '10-0-0-2.a.test', 'web.test'].map((name) =>
  nameRdata(parseName(name))
)

function agreement(apex: DomainName, owners: readonly DomainName[]): fc.IPropertyWithHooks<[ZoneEdit[]]> {
  const owner = fc.constantFrom(...owners)
  const ttlSeconds = fc.constantFrom(1, 1, 1, 2)
  const type = fc.constantFrom<number>(RRTYPE.A, RRTYPE.PTR, RRTYPE.A, RRTYPE.PTR, RRTYPE.TXT, RRTYPE.CNAME)
  const set = fc.record({ owner, type, ttlSeconds, places: fc.uniqueArray(fc.nat({ max: 3 }), { maxLength: 2 }) })
  const setEdit = set.map(({ owner, type, ttlSeconds, places }) => {
    const given = type === RRTYPE.A ? addresses : targets
    const rdata = places.map((place) => given[place % given.length]!)
    const hasTwice = rdata.length === 2 && rdata[0] === rdata[1]
    const after = rdata.length === 0 ? null : { owner, type, ttlSeconds, rdata: hasTwice ? rdata.slice(1) : rdata }
    return { owner, type, after }
  })
  const names = fc.array(fc.record({ owner, exists: fc.boolean() }), { maxLength: 1 })
  const edit = fc.record({
    sets: fc.array(setEdit, { maxLength: 5 }),
    services: fc.constant([]),
    names,
    originAtMs: fc.nat()
  })
  const ns = rrset(nameToText(apex), 'NS', 1, 'ns.test')
  const universe = new Set<DomainName>([apex])
  for (const name of owners) {
    for (let at = 0; name.length - at > apex.length; at += name.charCodeAt(at) + 1) {
      universe.add(name.slice(at) as DomainName)
    }
  }
  return fc.property(fc.array(edit, { maxLength: 15 }), (edits) => {
    const store = new ZoneStore({ apex, epoch: 'e', soa, ns, clock: new ManualClock() })
    const copy = new ZoneStore({ apex, epoch: 'e', soa, ns, clock: new ManualClock(), serial: store.serial })
    const plain = new PlainZone(apex)
    plain.set(apex, RRTYPE.NS, ns)
    for (const step of edits) {
      const before = plain.clone()
      const change = store.apply(step)
      plain.apply(step)
      if ((change !== null) !== (before.text() !== plain.text())) throw new Error('a change that is none, or missing')
      if (change !== null && copy.replay(change) !== 'applied') throw new Error('a change that does not follow')
      const whole = new PlainZone(apex)
      for (const set of store.records()) if (set.type !== RRTYPE.SOA) whole.set(set.owner, set.type, set)
      for (const name of store.pseudoNames()) whole.setName({ owner: name, exists: true })
      if (whole.text() !== plain.text()) throw new Error('other records')
      const existence = new Map(change?.existence.map(({ owner, exists }) => [owner, exists]))
      let exist = 0
      for (const name of universe) {
        const exists = plain.exists(name)
        if (exists) exist++
        if (store.exists(name) !== exists) throw new Error(`exists(${nameToText(name)}) is not ${exists}`)
        if (store.isNamed(name) !== (name === apex || plain.names.has(name))) throw new Error('named otherwise')
        if (existence.get(name) !== (before.exists(name) === exists ? undefined : exists)) throw new Error('told wrong')
        for (const type of [RRTYPE.A, RRTYPE.PTR, RRTYPE.TXT, RRTYPE.CNAME]) {
          checkLookup(store, plain, name, type)
          const [is, shall] = [store.rrset(name, type), plain.sets.get(`${type} ${name}`) ?? null]
          if (JSON.stringify(textOf(is)) !== JSON.stringify(textOf(shall))) throw new Error('another RRset')
        }
      }
      const { names, rrsets } = store.sizes
      if (names !== exist || rrsets !== plain.sets.size + 1) throw new Error(`${names} names, ${rrsets} RRsets`)
    }
    const copied = PlainZone.of(copy).text()
    if (copied !== PlainZone.of(store).text()) throw new Error('the copy differs')
  })
}

/** A zone that is filled is what the same things one by one make of it. */
function filled(apex: DomainName, owners: readonly DomainName[]): fc.IPropertyWithHooks<[FillingStep[]]> {
  const [owner, ttlSeconds] = [fc.constantFrom(...owners), fc.constantFrom(1, 1, 1, 2)]
  const set = fc.record({ owner, ttlSeconds, kind: fc.constantFrom('host', 'pointer', 'text', 'gone', 'alias') })
  const someAddresses = fc.array(fc.constantFrom(0x0a000001, 0x0a000002, 0x0a000101, -1), { maxLength: 3 })
  const hosts = fc.array(fc.record({ owner, ttlSeconds, addresses: someAddresses }), { maxLength: 3 })
  const step = fc.record({ sets: fc.array(set, { maxLength: 3 }), hosts, exists: fc.option(owner) })
  const newStore = (): ZoneStore => {
    const ns = rrset(nameToText(apex), 'NS', 1, 'ns.test')
    return new ZoneStore({ apex, epoch: 'e', soa, ns, clock: new ManualClock() })
  }
  return fc.property(fc.array(step, { maxLength: 12 }), (steps) => {
    const [store, single] = [newStore(), newStore()]
    store.beginLoading()
    for (const { sets, hosts: some, exists } of steps) {
      const names = exists === null ? [] : [{ owner: exists, exists: true }]
      const edits = sets.flatMap(({ owner, ttlSeconds, kind }) => editsOf(owner, ttlSeconds, kind))
      const isReverse = isOfNetworks(apex)
      // Addresses that lie outside of a reverse zone have no place in it.
      const own = isReverse ? some.map((one) => ({ ...one, addresses: one.addresses.filter((at) => at >= 0) })) : some
      store.load({ sets: edits, services: [], names, ...(isReverse ? { pointers: own } : { hosts: own }) })
      const made = own.flatMap((of) => of.addresses.map((at) => (isReverse ? hostPointer(at, of) : hostRRset(at, of))))
      const after = made.map((rr) => ({ owner: rr.owner, type: rr.type, after: rr }))
      single.apply({ sets: [...edits, ...after], services: [], names, originAtMs: 0 })
    }
    store.endLoading()
    same(store, single)
    // What came in bulk goes one by one, and leaves nothing.
    for (const zone of [store, single]) {
      const [sets, names] = [[...zone.records()], [...zone.pseudoNames()]]
      zone.apply({
        sets: sets.filter((set) => set.owner !== apex).map(({ owner, type }) => ({ owner, type, after: null })),
        services: [],
        names: names.map((owner) => ({ owner, exists: false })),
        originAtMs: 0
      })
      same(zone, newStore())
    }
  })
}

type FillingStep = Readonly<{
  sets: Readonly<{ owner: DomainName; ttlSeconds: number; kind: string }>[]
  hosts: AddressHosts[]
  exists: DomainName | null
}>

function same(one: ZoneStore, other: ZoneStore): void {
  const [first, second] = [PlainZone.of(one).text(), PlainZone.of(other).text()]
  if (first !== second) throw new Error(`${first}\nis not\n${second}`)
  const [{ names, rrsets }, shall] = [one.sizes, other.sizes]
  if (names !== shall.names || rrsets !== shall.rrsets) throw new Error(`${names} names, ${rrsets} RRsets`)
}

function editsOf(owner: DomainName, ttlSeconds: number, kind: string): ZoneEdit['sets'][number][] {
  const all = [RRTYPE.A, RRTYPE.PTR, RRTYPE.TXT, RRTYPE.CNAME].map((type) => ({ owner, type, after: null }))
  if (kind === 'gone') return all
  const type = { host: RRTYPE.A, pointer: RRTYPE.PTR, text: RRTYPE.TXT, alias: RRTYPE.CNAME }[kind]!
  const rdata = type === RRTYPE.A ? addresses.slice(0, 1) : targets.slice(0, 1)
  return [{ owner, type, after: { owner, type, ttlSeconds, rdata } }]
}

const textOf = (set: ReturnType<ZoneStore['rrset']>): unknown =>
  set === null ? null : [set.owner, set.type, set.ttlSeconds, set.rdata.map((rdata) => rdata.join('.')).sort()]

test('ZoneStore: hosts that come in bulk are those that come one by one', async (t) => {
  const owners = ['a', 'x.a', '10-0-0-1.a', 'x.10-0-0-1.a', '10-0-0-2.x.a'].map((name) => parseName(`${name}.test`))
  fc.assert(filled(parseName('test'), owners), fcOptions)
  const reversed = ['1.0.0', '2.0.0', 'x.1.0.0', '0.0', '1.1.0', '1.0'].map((name) => parseName(`${name}.10.in-addr.arpa`)) // prettier-ignore
  fc.assert(filled(parseName('10.in-addr.arpa'), reversed), fcOptions)
  const zone = new ZoneStore({ apex: parseName('1.0.0.10.in-addr.arpa'), epoch: 'e', soa, ns: null, clock: new ManualClock() }) // prettier-ignore
  zone.beginLoading()
  const nothing = { sets: [], services: [], names: [] }
  const hosts = { owner: parseName('a.test'), ttlSeconds: 1, addresses: [0x0a000001] }
  t.throws(() => zone.load({ ...nothing, pointers: [hosts] }), RangeError, 'a zone of one address')
  t.throws(() => zone.load({ ...nothing, hosts: [hosts] }), RangeError, 'outside of the zone')
  t.throws(() => zone.load({ ...nothing, hosts: [{ ...hosts, owner: zone.apex, ttlSeconds: -1 }] }), RangeError, 'TTL')
})

test('ZoneStore: names of addresses are names like others', async (t) => {
  const [forward, reverse] = [parseName('test'), parseName('10.in-addr.arpa')]
  fc.assert(agreement(forward, hosts.map((name) => parseName(`${name}.test`))), fcOptions) // prettier-ignore
  fc.assert(agreement(reverse, pointers.map((name) => parseName(`${name}.10.in-addr.arpa`))), fcOptions) // prettier-ignore
  t.pass('both agree')
})
