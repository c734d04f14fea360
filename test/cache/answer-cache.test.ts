import * as fc from 'fast-check'
import { test } from 'tap'
import { AnswerCache, answerKey, type AnswerKey } from '../../src/cache/answer-cache.ts'
import { questionOf, type KeyQuestion } from '../../src/cache/answer-key.ts'
import { entrySizeOctets } from '../../src/cache/answer-size.ts'
import { ExpiryHeap, type Expiring } from '../../src/cache/expiry-heap.ts'
import { RCODE, RRTYPE } from '../../src/wire/iana.ts'
import { isAtOrBelow, nameToText, parseName, type DomainName } from '../../src/wire/name.ts'
import type { Sections } from '../../src/wire/rr.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { rrset, sections, soa } from '../support/records.ts'

const caps = { maxTtlSeconds: 3_600, maxNegativeTtlSeconds: 30 }
const serveStaleMs = 60_000

const newCache = (maxBytes = 1_000_000): AnswerCache => new AnswerCache({ maxBytes, serveStaleMs })

function key(name: string, parts: Partial<Omit<KeyQuestion, 'name'>> = {}): AnswerKey {
  const question = { target: 'a', type: RRTYPE.A, class: 1, dnssecOk: false, checkingDisabled: false, ...parts }
  return answerKey({ ...question, name: parseName(name) })
}

const put = (clock: ManualClock, target = 'a') => ({
  nowMs: clock.nowMs(),
  targetId: target,
  server: '192.0.2.53:53',
  ...caps
})

const address = (owner: string, ttlSeconds = 10, ...records: string[]): Sections =>
  sections({ answer: [rrset(owner, 'A', ttlSeconds, ...(records.length === 0 ? ['192.0.2.1'] : records))] })

const denial = (zone: string, rcode: number = RCODE.NOERROR): Sections =>
  sections({ rcode, authority: [soa(zone, 10, 10)] })

test('answerKey tells any two questions apart, and questionOf reads it back', async (t) => {
  const label = fc.string({
    minLength: 1,
    maxLength: 5,
    unit: fc.integer({ min: 0, max: 255 }).map((code) => String.fromCharCode(code))
  })
  const name = fc
    .array(label, { maxLength: 3 })
    .map((labels) => (labels.map((text) => String.fromCharCode(text.length) + text).join('') + '\0') as DomainName)
  const question: fc.Arbitrary<KeyQuestion> = fc.record({
    target: fc.string(),
    name,
    type: fc.integer({ min: 0, max: 0xffff }),
    class: fc.integer({ min: 0, max: 0xffff }),
    dnssecOk: fc.boolean(),
    checkingDisabled: fc.boolean()
  })
  fc.assert(
    fc.property(question, (one) => JSON.stringify(questionOf(answerKey(one))) === JSON.stringify(one)),
    { seed: 5 }
  )
  t.equal(key('API.example.org'), key('api.EXAMPLE.org'), 'case does not matter')
  const others = [
    { target: 'b' },
    { type: 28 },
    { type: 257 },
    { class: 3 },
    { dnssecOk: true },
    { checkingDisabled: true }
  ]
  const keys = [{}, ...others].map((parts) => key('api.example.org', parts))
  t.equal(new Set(keys).size, keys.length)
})

test('AnswerCache.get goes from fresh through stale to nothing, as time passes', async (t) => {
  const clock = new ManualClock()
  const cache = newCache()
  const entry = cache.put(key('x.test'), address('x.test', 10), { ...put(clock), isEmpty: true })!
  const shape = {
    kind: 'positive',
    ttlSeconds: 10,
    storedAtMs: 0,
    expiresAtMs: 10_000,
    targetId: 'a',
    server: '192.0.2.53:53'
  }
  t.match(entry, { ...shape, isEmpty: true, failure: null, zoneApex: null, hits: 0 })
  const steps: [number, number, number | null][] = [
    [0, 0, 0],
    [4_000, 4_000, 0],
    [9_999, 9_999, 0],
    [10_000, 10_000, 1], // past its TTL from the first instant on
    [10_500, 10_500, 500],
    [69_999, 69_999, 59_999],
    [70_000, 0, null]
  ]
  for (const [nowMs, ageMs, staleForMs] of steps) {
    clock.advance(nowMs - clock.nowMs())
    const want = staleForMs === null ? null : { entry, ageMs, staleForMs }
    t.same(cache.peek(key('x.test'), clock.nowMs()), want, `peek after ${nowMs} ms`)
    t.same(cache.get(key('x.test'), clock.nowMs()), want, `get after ${nowMs} ms`)
  }
  t.match(cache.stats, {
    hits: 3,
    misses: 4,
    insertions: 1,
    expirations: 1,
    evictions: 0,
    octets: 0,
    entries: 0
  })
  t.equal(entry.hits, 3)
  t.equal(cache.ageSeconds.total, 3, 'the ages of what was given out')
  t.equal(clock.pendingTimers, 0)
})

test('AnswerCache.put keeps nothing for ever, and nothing older than what it is told', async (t) => {
  const clock = new ManualClock()
  const cache = newCache()
  const tryPut = (said: Sections) => cache.put(key('x.test'), said, put(clock))
  t.ok(tryPut(address('x.test', 10)))
  t.equal(tryPut(sections({})), null, 'a denial without SOA is not kept')
  t.equal(tryPut(sections({ rcode: RCODE.NXDOMAIN })), null)
  t.equal(tryPut(sections({ rcode: RCODE.SERVFAIL })), null)
  t.ok(cache.peek(key('x.test'), 0), 'and leaves what was held')
  t.equal(tryPut(address('x.test', 0)), null, 'TTL 0 is not kept')
  t.equal(cache.peek(key('x.test'), 0), null, 'and what was held is older')
  t.ok(tryPut(address('x.test', 10)))
  t.match(tryPut(denial('test', RCODE.NXDOMAIN)), { kind: 'nxdomain', ttlSeconds: 10, zoneApex: parseName('test') })
  t.match(cache.get(key('x.test'), 0), { entry: { kind: 'nxdomain' }, staleForMs: 0 })
  t.equal(cache.stats.entries, 1)
  const tooLarge = address('x.test', 10, ...Array.from({ length: 200 }, (_, at) => `192.0.2.${at}`))
  const small = newCache(10_000)
  t.ok(small.put(key('x.test'), address('x.test'), put(clock)))
  t.equal(small.put(key('x.test'), tooLarge, put(clock)), null, 'what is larger than the cache does not empty it')
  t.match(small.stats, { entries: 0, octets: 0, evictions: 0 })
})

test('a NODATA for AAAA never answers A (reports.md 2)', async (t) => {
  const clock = new ManualClock()
  const cache = newCache()
  const aaaa = key('web.south.example', { type: RRTYPE.AAAA })
  t.match(cache.put(aaaa, denial('south.example'), put(clock)), { kind: 'nodata' })
  t.equal(cache.get(key('web.south.example'), clock.nowMs()), null)
  cache.put(key('web.south.example'), address('web.south.example'), put(clock))
  t.match(cache.get(key('web.south.example'), clock.nowMs()), { entry: { kind: 'positive' } })
  t.match(cache.get(aaaa, clock.nowMs()), { entry: { kind: 'nodata' } })
})

test('AnswerCache.putFailure keeps a failure for at most 5 s, and never stale', async (t) => {
  const clock = new ManualClock()
  const cache = newCache()
  const failure = { ...put(clock), failure: 'timeout', ttlSeconds: 300 }
  t.match(cache.putFailure(key('x.test', { target: 'a!' }), failure), {
    kind: 'failure',
    failure: 'timeout',
    ttlSeconds: 5,
    sections: { rcode: RCODE.SERVFAIL }
  })
  t.equal(cache.putFailure(key('y.test'), { ...failure, ttlSeconds: 0 }), null)
  clock.advance(4_999)
  t.match(cache.get(key('x.test', { target: 'a!' }), clock.nowMs()), { entry: { kind: 'failure' }, staleForMs: 0 })
  clock.advance(1)
  t.equal(cache.get(key('x.test', { target: 'a!' }), clock.nowMs()), null)
  t.equal(cache.stats.entries, 0)
})

test('AnswerCache makes room with what is past its stale window, then with the least recently used', async (t) => {
  const clock = new ManualClock()
  const size = entrySizeOctets(key('1.test').length, 1, address('1.test'))
  const cache = newCache(size * 3)
  const add = (host: string, ttlSeconds: number) =>
    cache.put(key(`${host}.test`), address(`${host}.test`, ttlSeconds), put(clock))
  const held = (): string[] => cache.list(10).map(({ question }) => nameToText(question.name)[0]!)
  add('1', 1_000)
  add('2', 1_000)
  add('3', 10)
  cache.get(key('1.test'), clock.nowMs())
  t.same(held(), ['1', '3', '2'], 'used last first')
  add('4', 1_000)
  t.same(held(), ['4', '1', '3'], 'the least recently used one makes room')
  t.match(cache.stats, { evictions: 1, expirations: 0, octets: size * 3 })
  clock.advance(10_000 + serveStaleMs)
  cache.peek(key('3.test'), clock.nowMs())
  add('5', 1_000)
  t.same(held(), ['5', '4', '1'], 'what is past its stale window goes before it')
  t.match(cache.stats, { evictions: 1, expirations: 1 })
  add('6', 1_000)
  t.same(held(), ['6', '5', '4'])
})

test('AnswerCache.sweep drops only what is past its stale window, a slice at a time', async (t) => {
  const clock = new ManualClock()
  const cache = newCache()
  for (let host = 0; host < 10; host++) cache.put(key(`${host}.test`), address(`${host}.test`, 10 + host), put(clock))
  t.equal(cache.sweep(clock.nowMs(), 100), 0)
  clock.advance(15_000 + serveStaleMs)
  t.equal(cache.sweep(clock.nowMs(), 4), 4, 'at most so many')
  t.same(
    cache.list(100).map(({ question }) => nameToText(question.name)[0]),
    ['9', '8', '7', '6', '5', '4'],
    'the oldest first'
  )
  t.equal(cache.sweep(clock.nowMs(), 4), 2)
  t.match(cache.stats, { expirations: 6, evictions: 0, entries: 4 })
})

test('AnswerCache finds entries by every name that they depend on', async (t) => {
  const clock = new ManualClock()
  const fill = (): AnswerCache => {
    const cache = newCache()
    const alias = sections({
      answer: [rrset('alias.test', 'CNAME', 10, 'End.test'), rrset('end.test', 'A', 10, '192.0.2.1')]
    })
    const srv = sections({
      answer: [rrset('_http._tcp.x.test', 'SRV', 10, '0 100 80 host.x.test')],
      additional: [rrset('host.x.test', 'A', 10, '192.0.2.1')]
    })
    const denied = sections({
      rcode: RCODE.NXDOMAIN,
      answer: [rrset('lost.test', 'CNAME', 10, 'gone.test')],
      authority: [soa('test', 10, 10)]
    })
    cache.put(key('alias.test'), alias, put(clock))
    cache.put(key('end.test'), address('end.test'), put(clock))
    cache.put(key('end.test', { target: 'b' }), address('end.test'), put(clock, 'b'))
    cache.put(key('end.test', { type: RRTYPE.AAAA }), denial('test'), put(clock))
    cache.put(key('_http._tcp.x.test', { type: RRTYPE.SRV }), srv, put(clock))
    cache.put(key('lost.test'), denied, put(clock))
    cache.put(key('other.example'), address('other.example'), put(clock))
    return cache
  }
  const rows: [string, (cache: AnswerCache) => number, number][] = [
    [
      'a name: its own answers, of all targets and types, and the aliases to it',
      (c) => c.flushName(parseName('end.test')),
      4
    ],
    ['a name at one target', (c) => c.flushName(parseName('end.test'), 'a'), 3],
    ['an alias alone', (c) => c.flushName(parseName('alias.test')), 1],
    ['an address that came along', (c) => c.flushName(parseName('host.x.test')), 1],
    ['the denied end of an alias', (c) => c.flushName(parseName('gone.test')), 1],
    ['a name that nobody asked for', (c) => c.flushName(parseName('nobody.test')), 0],
    ['a suffix', (c) => c.flushSuffix(parseName('test')), 6],
    ['a suffix at one target', (c) => c.flushSuffix(parseName('test'), 'b'), 1],
    ['a suffix that is a name', (c) => c.flushSuffix(parseName('x.test')), 1],
    ['a suffix with no name below it', (c) => c.flushSuffix(parseName('est')), 0],
    ['the root', (c) => c.flushSuffix(parseName('.')), 7],
    ['all', (c) => c.flush(), 7]
  ]
  for (const [title, flush, want] of rows) {
    const cache = fill()
    t.equal(flush(cache), want, title)
    t.equal(cache.stats.entries, 7 - want, `${title}: the others stay`)
    t.equal(cache.stats.flushed, want)
  }
  const cache = fill()
  const shown = cache.entriesFor(parseName('end.test')).map(({ question }) => `${question.target} ${question.type}`)
  t.same(shown.sort(), ['a 1', 'a 28', 'b 1'], 'entriesFor gives the questions for a name, not what leads to it')
  t.match(cache.entriesFor(parseName('lost.test'))[0], { entry: { kind: 'nxdomain' }, key: key('lost.test') })
  t.ok(cache.delete(key('end.test')))
  t.notOk(cache.delete(key('end.test')))
  const listed = (...parameters: Parameters<AnswerCache['list']>) =>
    cache.list(...parameters).map(({ question }) => `${nameToText(question.name)} ${question.target}`)
  t.same(listed(2), ['other.example. a', 'lost.test. a'])
  t.same(listed(0), [])
  t.same(listed(9, { targetId: 'b' }), ['end.test. b'])
  t.same(listed(9, { kind: 'nodata' }), ['end.test. a'])
  t.same(listed(9, { suffix: parseName('x.test') }), ['_http._tcp.x.test. a'])
})

test('ExpiryHeap gives items in order, whichever are taken out between', async (t) => {
  const step = fc.oneof({ weight: 3, arbitrary: fc.record({ add: fc.nat(50) }) }, fc.record({ remove: fc.nat() }))
  const run = (steps: ({ add: number } | { remove: number })[]): void => {
    const heap = new ExpiryHeap<Expiring>()
    let plain: Expiring[] = []
    for (const one of steps) {
      if ('add' in one) {
        const item = { deadAtMs: one.add, heapIndex: -1 }
        heap.add(item)
        plain.push(item)
      } else if (plain.length > 0) {
        const item = plain[one.remove % plain.length]!
        heap.remove(item)
        plain = plain.filter((other) => other !== item)
      }
      const first = plain.length === 0 ? undefined : Math.min(...plain.map((item) => item.deadAtMs))
      if (heap.first()?.deadAtMs !== first || heap.size !== plain.length) throw new Error(`not ${first}`)
    }
    for (let last = -1; heap.size > 0;) {
      const item = heap.first()!
      if (item.deadAtMs < last) throw new Error('out of order')
      last = item.deadAtMs
      heap.remove(item)
    }
  }
  fc.assert(fc.property(fc.array(step, { minLength: 20, maxLength: 100 }), run), { seed: 11, numRuns: 300 })
  t.pass('in order')
})

// Property: the cache does what a plain list in the order of use would do.

const hosts = ['a', 'b', 'c', 'd', 'e.c', 'f.c']
type Step =
  | { do: 'put'; host: string; target: string; records: number; ttlSeconds: number; alias: string | null }
  | { do: 'deny'; host: string; target: string; ttlSeconds: number }
  | { do: 'fail'; host: string; target: string }
  | { do: 'get' | 'peek' | 'delete'; host: string; target: string }
  | { do: 'flushName' | 'flushSuffix'; host: string }
  | { do: 'sweep'; entries: number }

const host = fc.constantFrom(...hosts)
const target = fc.constantFrom('a', 'b')
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('put' as const),
      host,
      target,
      records: fc.integer({ min: 1, max: 6 }),
      ttlSeconds: fc.integer({ min: 0, max: 8 }),
      alias: fc.option(host)
    })
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('deny' as const), host, target, ttlSeconds: fc.integer({ min: 0, max: 8 }) })
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('fail' as const), host, target }) },
  {
    weight: 4,
    arbitrary: fc.record({ do: fc.constantFrom('get' as const, 'peek' as const, 'delete' as const), host, target })
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constantFrom('flushName' as const, 'flushSuffix' as const), host }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('sweep' as const), entries: fc.nat(3) }) }
)

type Held = {
  key: AnswerKey
  names: DomainName[]
  octets: number
  storedAtMs: number
  expiresAtMs: number
  deadAtMs: number
}

/** The naive cache: one list, the most recently used entry first. */
class PlainCache {
  held: Held[] = []
  readonly stats = { hits: 0, misses: 0, insertions: 0, evictions: 0, expirations: 0, flushed: 0 }
  readonly #maxBytes: number

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  get octets(): number {
    return this.held.reduce((sum, { octets }) => sum + octets, 0)
  }

  drop(which: (held: Held) => boolean): number {
    const before = this.held.length
    this.held = this.held.filter((held) => !which(held))
    return before - this.held.length
  }

  sweep(nowMs: number, entries: number): number {
    const dead = this.held.filter(({ deadAtMs }) => deadAtMs <= nowMs).sort((a, b) => a.deadAtMs - b.deadAtMs)
    const dropped = this.drop((held) => dead.indexOf(held) >= 0 && dead.indexOf(held) < entries)
    this.stats.expirations += dropped
    return dropped
  }

  put(item: Held): void {
    this.drop((held) => held.key === item.key)
    if (item.octets > this.#maxBytes) return
    while (this.octets + item.octets > this.#maxBytes) {
      if (this.sweep(item.storedAtMs, 1) > 0) continue
      this.held.pop()
      this.stats.evictions += 1
    }
    this.held.unshift(item)
    this.stats.insertions += 1
  }

  /** Age and staleness as text; null: nothing of use. */
  look(key: AnswerKey, nowMs: number): string | null {
    const held = this.held.find((one) => one.key === key)
    if (held === undefined || nowMs >= held.deadAtMs) return null
    return `${nowMs - held.storedAtMs} ${nowMs < held.expiresAtMs ? 0 : Math.max(1, nowMs - held.expiresAtMs)}`
  }

  get(key: AnswerKey, nowMs: number): string | null {
    const found = this.look(key, nowMs)
    if (found === null) this.stats.expirations += this.drop((held) => held.key === key)
    if (found?.endsWith(' 0') === true) this.stats.hits += 1
    else this.stats.misses += 1
    const held = this.held.find((one) => one.key === key)
    if (held !== undefined) this.held = [held, ...this.held.filter((one) => one !== held)]
    return found
  }
}

const hitText = (hit: ReturnType<AnswerCache['get']>): string | null =>
  hit === null ? null : `${hit.ageMs} ${hit.staleForMs}`

test('AnswerCache agrees with a plain list after any steps', async (t) => {
  const maxBytes = 5_000
  const run = (steps: [number, Step][]): void => {
    const clock = new ManualClock()
    const staleMs = 3_000
    const cache = new AnswerCache({ maxBytes, serveStaleMs: staleMs })
    const plain = new PlainCache(maxBytes)
    const remember = (
      key: AnswerKey,
      names: string[],
      said: Sections,
      ttlSeconds: number,
      staleWindowMs: number,
      text = 0
    ) => {
      const nowMs = clock.nowMs()
      const unique = [...new Set(names)].map(parseName)
      const octets = entrySizeOctets(key.length + text, unique.length, said)
      const expiresAtMs = nowMs + ttlSeconds * 1000
      plain.put({ key, names: unique, octets, storedAtMs: nowMs, expiresAtMs, deadAtMs: expiresAtMs + staleWindowMs })
    }
    for (const [at, [waitMs, step]] of steps.entries()) {
      // No two entries may die at the same instant, or their order would be anybody's.
      clock.advance(waitMs + (at + 1) / 1024)
      const nowMs = clock.nowMs()
      const options = put(clock, 'target' in step ? step.target : '')
      const name = 'host' in step ? `${step.host}.test` : ''
      const where = 'target' in step ? key(name, { target: step.target }) : ''
      let pair: [unknown, unknown] = [null, null]
      switch (step.do) {
        case 'put': {
          const end = step.alias === null ? name : `${step.alias}.end`
          const set = rrset(
            end,
            'A',
            step.ttlSeconds,
            ...Array.from({ length: step.records }, (_, last) => `192.0.2.${last}`)
          )
          const said = sections({ answer: end === name ? [set] : [rrset(name, 'CNAME', 8, end), set] })
          cache.put(where, said, options)
          if (step.ttlSeconds === 0) plain.drop((held) => held.key === where)
          else remember(where, [name, end], said, step.ttlSeconds, staleMs)
          break
        }
        case 'deny': {
          const said = sections({ authority: [soa('test', step.ttlSeconds, 8)] })
          cache.put(where, said, options)
          if (step.ttlSeconds === 0) plain.drop((held) => held.key === where)
          else remember(where, [name], said, step.ttlSeconds, staleMs)
          break
        }
        case 'fail':
          cache.putFailure(where, { ...options, ttlSeconds: 2, failure: 'x' })
          remember(where, [name], sections({}), 2, 0, 1)
          break
        case 'get':
          pair = [hitText(cache.get(where, nowMs)), plain.get(where, nowMs)]
          break
        case 'peek':
          pair = [hitText(cache.peek(where, nowMs)), plain.look(where, nowMs)]
          break
        case 'delete':
          pair = [cache.delete(where), plain.drop((held) => held.key === where) > 0]
          break
        case 'flushName': {
          const flushed = plain.drop(({ names }) => names.includes(parseName(name)))
          plain.stats.flushed += flushed
          pair = [cache.flushName(parseName(name)), flushed]
          break
        }
        case 'flushSuffix': {
          const flushed = plain.drop(({ names }) => names.some((one) => isAtOrBelow(one, parseName(name))))
          plain.stats.flushed += flushed
          pair = [cache.flushSuffix(parseName(name)), flushed]
          break
        }
        case 'sweep':
          pair = [cache.sweep(nowMs, step.entries), plain.sweep(nowMs, step.entries)]
          break
      }
      if (pair[0] !== pair[1])
        throw new Error(`${JSON.stringify(step)}: ${String(pair[0])} instead of ${String(pair[1])}`)
      const order = JSON.stringify(cache.list(100).map((listing) => listing.key))
      if (order !== JSON.stringify(plain.held.map((held) => held.key)))
        throw new Error(`other entries after ${JSON.stringify(step)}`)
      const want = { ...plain.stats, octets: plain.octets, entries: plain.held.length }
      for (const [field, value] of Object.entries(want)) {
        const counted = cache.stats[field as keyof typeof cache.stats]
        if (counted !== value) throw new Error(`${field} is ${counted} instead of ${value}`)
      }
      if (cache.stats.octets > maxBytes) throw new Error('over its bound')
    }
    cache.flush()
    if (cache.flushSuffix(parseName('.')) !== 0 || cache.stats.octets !== 0) throw new Error('something is left')
  }
  const steps = fc.array(fc.tuple(fc.constantFrom(0, 100, 1_500, 4_000), anyStep), { maxLength: 60 })
  fc.assert(fc.property(steps, run), { seed: 20_260_102, numRuns: 300 })
  t.pass('all agree')
})
