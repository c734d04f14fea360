import { test } from 'tap'
import { learnedChanges } from '../../src/main/learned-change.ts'
import { answerOf, type Answer } from '../../src/pipeline/answer.ts'
import { Freshness, type LearnedChange, type TouchedName } from '../../src/pipeline/freshness.ts'
import type { Query } from '../../src/pipeline/query.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { parseName } from '../../src/wire/name.ts'
import type { ZoneChange } from '../../src/zone/zone-change.ts'
import { firstAnswerWithinMs, givenAnswersKept } from '../../src/base/limits.ts'
import { ManualClock } from '../support/manual-clock.ts'

const zone = parseName('cluster.local')
const api = parseName('api.backend.svc.cluster.local')
const web = parseName('web.backend.svc.cluster.local')
const target = 'peer:cluster-a'
const policy = 'from-a'
const noSections = { rcode: 0, answer: [], authority: [], additional: [] }

const query = (qname = api, qtype: number = RRTYPE.A): Query => ({
  message: null,
  qname,
  qtype,
  recursionDesired: true,
  dnssecOk: false,
  checkingDisabled: false,
  client: { address: '127.0.0.1', port: 0, transport: 'udp' },
  peerdns: null,
  signature: null,
  receivedAtMs: 0,
  trace: null
})

const answer = (origin: Answer['origin']): Answer => answerOf(noSections, { origin, policy })
const mirrored = (of = target): Answer =>
  answer({ from: 'mirror', zone, target: of, server: 'a:53', ageMs: 3, staleForMs: 0 })
const cached = (ageMs: number): Answer =>
  answer({ from: 'cache', target, server: 'a:53', ageMs, sourceAgeMs: 0, staleForMs: 0 })
const asked = (): Answer => answer({ from: 'peer', target, server: 'a:53', tookMs: 2, sourceAgeMs: 0 })

const change = (originAtMs: number, touched: readonly TouchedName[], clockOffsetMs = 0): LearnedChange => ({
  peer: 'cluster-a',
  target,
  zone,
  serial: 7,
  originAtMs,
  primaryAtMs: originAtMs,
  clockOffsetMs,
  cameWhole: false,
  touched
})

/** A clock, and answers given as time passes. */
function followed() {
  const clock = new ManualClock()
  const freshness = new Freshness(clock)
  freshness.follow(true)
  const gave = (given: Answer, asWhat = query()): void => freshness.gave(asWhat, given, clock.nowMs())
  return { clock, freshness, gave }
}

const ofA: TouchedName = { name: api, types: [RRTYPE.A] }

test('Freshness counts the answers between a change and our learning of it', async (t) => {
  const { clock, freshness, gave } = followed()
  gave(mirrored())
  clock.advance(100)
  const happenedAtMs = clock.epochMs()
  clock.advance(10)
  gave(mirrored())
  clock.advance(10)
  gave(mirrored())
  gave(mirrored(), query(web))
  gave(mirrored(), query(api, RRTYPE.AAAA))
  gave(mirrored('peer:cluster-c'))
  clock.advance(30)
  freshness.learned(change(happenedAtMs, [ofA]))
  clock.advance(5)
  gave(mirrored())
  t.match(freshness.changesOf(api), [
    { happenedAtMs: 100, hereAtMs: 150, staleAnswers: 2, lastStaleAtMs: 120, firstFreshAtMs: 155 }
  ])
  const { stale, peerSeconds, answerSeconds } = freshness.stats
  const [count] = stale.values()
  t.match(count, { peer: 'cluster-a', policy, answers: 2 })
  t.match([count!.seconds.total, count!.seconds.sum], [1, 0.02])
  t.match(peerSeconds.get('cluster-a'), { total: 1, sum: 0.05 })
  t.match(answerSeconds.get('cluster-a'), { total: 1, sum: 0.055 })
})

test('Freshness tells a cached answer that was asked for after the change from an older one', async (t) => {
  const { clock, freshness, gave } = followed()
  clock.advance(100)
  const happenedAtMs = clock.epochMs()
  clock.advance(20)
  gave(cached(50))
  clock.advance(5)
  gave(cached(5))
  gave(asked())
  freshness.learned(change(happenedAtMs, [ofA]))
  t.match(freshness.changesOf(api), [{ staleAnswers: 1, lastStaleAtMs: 120, firstFreshAtMs: null }])
  gave(cached(60))
  t.match(freshness.changesOf(api), [{ firstFreshAtMs: null }], 'that one was old still')
  clock.advance(1)
  gave(asked())
  t.match(freshness.changesOf(api), [{ firstFreshAtMs: 126 }])
})

test('Freshness corrects times by the difference of the clocks', async (t) => {
  const { clock, freshness, gave } = followed()
  clock.advance(100)
  const theirs = clock.epochMs() + 5_000
  clock.advance(40)
  gave(mirrored())
  freshness.learned(change(theirs, [ofA], 5_000))
  t.match(freshness.changesOf(api), [{ happenedAtMs: 100, hereAtMs: 140, staleAnswers: 1 }])
})

test('Freshness of a name as a whole concerns every type', async (t) => {
  const { clock, freshness, gave } = followed()
  const happenedAtMs = clock.epochMs()
  clock.advance(10)
  gave(mirrored(), query(api, RRTYPE.AAAA))
  gave(mirrored(), query(api, RRTYPE.SRV))
  freshness.learned(change(happenedAtMs, [{ name: api, types: null }]))
  t.match(freshness.changesOf(api), [{ staleAnswers: 2 }])
})

test('Freshness takes no first answer that comes when nobody waits for it any more', async (t) => {
  const { clock, freshness, gave } = followed()
  freshness.learned(change(clock.epochMs(), [ofA]))
  clock.advance(firstAnswerWithinMs + 1)
  gave(mirrored())
  t.match(freshness.changesOf(api), [{ firstFreshAtMs: null }])
  t.equal(freshness.stats.answerSeconds.size, 0)
})

test('Freshness remembers nothing where no peer tells of changes, nor of answers that no policy decided', async (t) => {
  const { clock, freshness, gave } = followed()
  const happenedAtMs = clock.epochMs()
  freshness.follow(false)
  clock.advance(10)
  gave(mirrored())
  freshness.follow(true)
  gave({ ...mirrored(), policy: null })
  freshness.learned(change(happenedAtMs, [ofA]))
  t.match(freshness.changesOf(api), [{ staleAnswers: 0 }])
})

test('Freshness remembers so many answers, the newest ones', async (t) => {
  const { clock, freshness, gave } = followed()
  const happenedAtMs = clock.epochMs()
  clock.advance(10)
  for (let count = 0; count < givenAnswersKept + 100; count++) gave(mirrored())
  freshness.learned(change(happenedAtMs, [ofA]))
  t.match(freshness.changesOf(api), [{ staleAnswers: givenAnswersKept }])
})

test('Freshness keeps the last changes of a name, newest first', async (t) => {
  const { clock, freshness } = followed()
  for (let serial = 1; serial <= 10; serial++) {
    freshness.learned({ ...change(clock.epochMs(), [ofA]), serial })
    clock.advance(1_000)
  }
  t.same(
    freshness.changesOf(api).map(({ serial }) => serial),
    [10, 9, 8, 7, 6, 5, 4, 3]
  )
  t.same(freshness.changesOf(web), [])
})

test('learnedChanges gives each moment its names, as our clients call them', async (t) => {
  const theirs = (name: string) => parseName(`${name}.backend.svc.cluster.local`)
  const [first, later, gone] = [theirs('first'), theirs('later'), theirs('gone')]
  const set = (owner: typeof first, type: number) => ({ owner, type, before: null, after: null })
  const merged: ZoneChange = {
    zone,
    epoch: 'e1',
    fromSerial: 6,
    toSerial: 7,
    originAtMs: 1_000,
    learnedAtMs: 1_100,
    sets: [set(first, RRTYPE.A), set(first, RRTYPE.SRV), set(later, RRTYPE.A)],
    services: [],
    names: [],
    existence: [{ owner: later, exists: true }]
  }
  const times = { originAtMs: 1_000, learnedAtMs: 1_002, sentAtMs: 1_050 }
  const steps = [
    { owners: [first, later, gone], serial: 7, times, laterMs: new Map([[later, 30]]) },
    { owners: [first], serial: 7, times: null, laterMs: new Map() }
  ]
  const mapping = { ours: parseName('east.local'), theirs: parseName('cluster.local') }
  const from = { peer: 'cluster-a', mappings: [null, mapping], clockOffsetMs: 5, holds: () => true }
  const learned = learnedChanges(from, merged, steps)
  const common = { peer: 'cluster-a', target, zone, serial: 7, clockOffsetMs: 5, cameWhole: false }
  const named = (name: string, types: readonly number[] | null): TouchedName[] =>
    ['cluster.local', 'east.local'].map((of) => ({ name: parseName(`${name}.backend.svc.${of}`), types }))
  t.same(learned, [
    { ...common, originAtMs: 1_000, primaryAtMs: 1_002, touched: named('first', [RRTYPE.A, RRTYPE.SRV]) },
    { ...common, originAtMs: 1_030, primaryAtMs: 1_030, touched: named('later', null) }
  ])

  const elsewhere = (held: readonly (typeof first)[]) =>
    learnedChanges({ ...from, holds: (owner) => held.includes(owner) }, merged, steps)
  t.same(
    elsewhere([later]).flatMap(({ touched }) => touched),
    named('later', null),
    'names of another copy do not count'
  )
  t.same(elsewhere([]), [], 'nor does a change of such names alone')
})
