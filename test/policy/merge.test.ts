import { test } from 'tap'
import fc from 'fast-check'
import { decideMerge, type TargetOutcome } from '../../src/policy/decide.ts'
import type { NextReason } from '../../src/policy/policy.ts'
import { isMergedType, mergeSections } from '../../src/policy/merge.ts'
import { RCODE, RRTYPE } from '../../src/wire/iana.ts'
import { parseName } from '../../src/wire/name.ts'
import { aRdata, nameRdata } from '../../src/wire/rdata.ts'
import type { RRset, Sections } from '../../src/wire/rr.ts'

const owner = parseName('api.backend.svc.cluster.local')

const addresses = (ttlSeconds: number, ...list: string[]): RRset => ({
  owner,
  type: RRTYPE.A,
  ttlSeconds,
  rdata: list.map(aRdata)
})
const sections = (...answer: RRset[]): Sections => ({ rcode: RCODE.NOERROR, answer, authority: [], additional: [] })

test('mergeSections joins RRsets: nothing twice, the lowest TTL', async (t) => {
  const merged = mergeSections([
    sections(addresses(30, '192.0.2.1', '192.0.2.2')),
    sections(),
    sections(addresses(5, '192.0.2.2', '192.0.2.3')),
    sections(addresses(60, '192.0.2.1'))
  ])
  t.same(merged.answer, [addresses(5, '192.0.2.1', '192.0.2.2', '192.0.2.3')])
  const alone = sections(addresses(30, '192.0.2.1'))
  t.equal(mergeSections([sections(), alone]), alone, 'one with records: as it is')
  const nodata = sections()
  t.equal(mergeSections([nodata, sections()]), nodata, 'nobody has records: the first')
  const alias = sections({ owner, type: RRTYPE.CNAME, ttlSeconds: 9, rdata: [nameRdata(parseName('example.org'))] })
  t.equal(mergeSections([alias, alone]), alias, 'an alias that is first stands alone')
  t.same(mergeSections([alone, alias, alone]).answer, alone.answer, 'a later one is left out')
  t.equal(isMergedType(RRTYPE.SOA) || isMergedType(RRTYPE.CNAME), false)
})

test('mergeSections of random addresses is their set', async (t) => {
  const list = fc.uniqueArray(fc.ipV4(), { minLength: 1, maxLength: 6 })
  fc.assert(
    fc.property(fc.array(fc.tuple(list, fc.nat(300)), { minLength: 2, maxLength: 4 }), (all) => {
      const [rrset] = mergeSections(all.map(([one, ttl]) => sections(addresses(ttl, ...one)))).answer
      const want = new Set(all.flatMap(([one]) => one))
      return (
        rrset!.ttlSeconds === Math.min(...all.map(([, ttl]) => ttl)) &&
        rrset!.rdata.length === want.size &&
        new Set(rrset!.rdata.map((rdata) => rdata.join('.'))).size === want.size
      )
    }),
    { seed: 6 }
  )
  t.pass('for 100 random answers')
})

const everyReason: ReadonlySet<NextReason> = new Set(['unreachable', 'absent', 'empty'])

test('decideMerge asks everybody, and joins those that have the name', async (t) => {
  const has = (reply: string): TargetOutcome<string> => ({ kind: 'has', reply })
  const absent: TargetOutcome<string> = { kind: 'absent', reply: 'no' }
  const dead: TargetOutcome<string> = { kind: 'unreachable', why: 'timeout', isCached: false, stale: null }
  const order = [2, 0, 1]
  t.match(decideMerge(order, everyReason, [has('a'), null, has('c')]), { kind: 'ask', target: 1 })
  t.same(decideMerge(order, everyReason, [has('a'), absent, has('c')]), {
    kind: 'merge',
    targets: [2, 0],
    replies: ['c', 'a']
  })
  t.same(decideMerge(order, everyReason, [dead, has('b'), absent]), { kind: 'use', target: 1, reply: 'b' })
  t.match(decideMerge(order, everyReason, [absent, absent, absent]), { kind: 'use', target: 2 })
  t.match(decideMerge(order, everyReason, [dead, absent, dead]), {
    kind: 'doubtful-denial',
    target: 1,
    unreachable: [2, 0]
  })
  t.match(decideMerge(order, everyReason, [dead, dead, dead]), { kind: 'failure' })
  t.match(
    decideMerge(order, everyReason, [dead, null, dead], 1),
    { kind: 'ask', target: 1 },
    'a reserve, where nothing else is up'
  )
  t.match(
    decideMerge(order, everyReason, [absent, null, dead], 1),
    { kind: 'doubtful-denial' },
    'and not where something is'
  )
})

test('decideMerge counts nobody behind a target whose outcome is not among nextOn', async (t) => {
  const has = (reply: string): TargetOutcome<string> => ({ kind: 'has', reply })
  const absent: TargetOutcome<string> = { kind: 'absent', reply: 'no' }
  const empty: TargetOutcome<string> = { kind: 'empty', reply: 'idle' }
  const dead: TargetOutcome<string> = { kind: 'unreachable', why: 'timeout', isCached: false, stale: null }
  const order = [0, 1, 2]
  const on = (...reasons: NextReason[]): ReadonlySet<NextReason> => new Set(reasons)
  const rows: [string, NextReason[], (TargetOutcome<string> | null)[], object][] = [
    ['a denial is final', ['unreachable', 'empty'], [absent, has('b'), has('c')], { kind: 'use', reply: 'no' }],
    ['and nobody behind it is waited for', ['unreachable'], [absent, null, null], { kind: 'use', reply: 'no' }],
    ['those before it count', ['unreachable'], [has('a'), absent, has('c')], { kind: 'use', reply: 'a' }],
    ['together', ['unreachable'], [has('a'), has('b'), absent], { kind: 'merge', replies: ['a', 'b'] }],
    ['an empty Service is final', ['absent'], [empty, has('b'), has('c')], { kind: 'use', reply: 'idle' }],
    ['silence is final', ['absent', 'empty'], [dead, has('b'), has('c')], { kind: 'failure', unreachable: [0] }],
    ['silence lets others in', ['unreachable'], [dead, has('b'), has('c')], { kind: 'merge', replies: ['b', 'c'] }],
    ['who has the name ends nothing', [], [has('a'), has('b'), has('c')], { kind: 'merge', targets: [0, 1, 2] }]
  ]
  for (const [name, nextOn, outcomes, want] of rows) t.match(decideMerge(order, on(...nextOn), outcomes), want, name)
  t.match(decideMerge(order, on('absent'), [dead, dead, null], 1), { kind: 'failure' }, 'nor is a reserve asked')
})
