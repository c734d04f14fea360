/** Overrides as values: what an action makes of them, when they end, and how they are written. */
import fc from 'fast-check'
import { test } from 'tap'
import { TextError } from '../../src/base/errors.ts'
import { overrideEntries } from '../../src/base/limits.ts'
import {
  actionsBetween,
  disablingOf,
  holdingAt,
  nextEndEpochMs,
  noOverrides,
  overridesToText,
  parseOverrides,
  withAction,
  type Override,
  type OverrideAction
} from '../../src/operator/overrides.ts'

const at = 1_700_000_000_000
const until = (untilEpochMs: number | null): Override => ({ sinceEpochMs: at, untilEpochMs, reason: '', by: '' })

const names = fc.constantFrom('a', 'b', 'cluster-a', '__proto__', 'constructor')
const override = fc.record({
  sinceEpochMs: fc.integer({ min: 0, max: 2_000_000_000_000 }),
  untilEpochMs: fc.option(fc.integer({ min: 0, max: 2_000_000_000_000 })),
  reason: fc.string({ maxLength: 200 }),
  by: fc.string({ maxLength: 20 })
})
const action: fc.Arbitrary<OverrideAction> = fc.oneof(
  fc.record({ kind: fc.constant('drain' as const), peer: names, override }),
  fc.record({ kind: fc.constant('undrain' as const), peer: names }),
  fc.record({ kind: fc.constant('disable' as const), policy: fc.option(names), override }),
  fc.record({ kind: fc.constant('enable' as const), policy: fc.option(names) })
)
const overrides = fc.array(action, { maxLength: 12 }).map((actions) => actions.reduce(withAction, noOverrides))

test('overrides: what is written is read again', async (t) => {
  fc.assert(fc.property(overrides, (one) => t.same(parseOverrides(overridesToText(one)), one)), { numRuns: 200, seed: 20_261_130 }) // prettier-ignore
  t.end()
})

test('overrides: the actions between two of them lead from one to the other', async (t) => {
  fc.assert(
    fc.property(overrides, overrides, (one, other) => {
      t.same(actionsBetween(one, other).reduce(withAction, one), other)
      t.same(actionsBetween(one, one), [])
    }),
    { numRuns: 200, seed: 20_261_130 }
  )
  t.end()
})

test('holdingAt leaves out what is over, and nextEndEpochMs says when that is', async (t) => {
  const drained = withAction(noOverrides, { kind: 'drain', peer: 'a', override: until(at + 1_000) })
  const both = withAction(drained, { kind: 'disable', policy: null, override: until(at + 500) })
  const all = withAction(both, { kind: 'disable', policy: 'p', override: until(null) })
  t.equal(nextEndEpochMs(all), at + 500)
  t.equal(holdingAt(all, at + 499).allPolicies?.untilEpochMs, at + 500)
  const later = holdingAt(all, at + 500)
  t.equal(later.allPolicies, null)
  t.equal(nextEndEpochMs(later), at + 1_000)
  t.same([...holdingAt(all, at + 1_000).drainedPeers], [])
  t.same([...holdingAt(all, at + 1_000_000).disabledPolicies.keys()], ['p'], 'without an end it stays')
  t.equal(nextEndEpochMs(noOverrides), null)
})

test('enabling all also enables what was disabled one by one', async (t) => {
  const one = withAction(noOverrides, { kind: 'disable', policy: 'p', override: until(null) })
  const all = withAction(one, { kind: 'disable', policy: null, override: until(null) })
  t.same(withAction(all, { kind: 'enable', policy: null }), noOverrides)
})

test('one of all disabled policies is enabled alone, until all end or are disabled anew', async (t) => {
  const all = withAction(noOverrides, { kind: 'disable', policy: null, override: until(at + 500) })
  const one = withAction(all, { kind: 'enable', policy: 'p' })
  t.equal(disablingOf(one, 'p'), null)
  t.same(disablingOf(one, 'q'), until(at + 500))
  t.same(actionsBetween(all, one), [{ kind: 'enable', policy: 'p' }])
  t.same(disablingOf(withAction(one, { kind: 'disable', policy: 'p', override: until(null) }), 'p'), until(null))
  t.same(disablingOf(withAction(one, { kind: 'disable', policy: null, override: until(null) }), 'p'), until(null))
  t.same(withAction(one, { kind: 'enable', policy: null }), noOverrides)
  t.same(holdingAt(one, at + 500), noOverrides)
})

test('parseOverrides refuses what it does not understand, with its place', async (t) => {
  const many = Object.fromEntries(Array.from({ length: overrideEntries + 1 }, (_, at) => [`p${at}`, { since: '2026-01-01T00:00:00Z' }])) // prettier-ignore
  const rows: [name: string, text: string, want: RegExp][] = [
    ['no JSON', '{"drainedPeers": ', /^not JSON: /],
    ['a list', '[]', /^the whole is not a JSON object$/],
    ['an unknown key', '{"drained": {}}', /^the whole: unknown key `drained`; known here: drainedPeers, /],
    ['a list of peers', '{"drainedPeers": ["a"]}', /^drainedPeers is not a JSON object$/],
    ['no time', '{"drainedPeers": {"a": {}}}', /^drainedPeers\.a\.since is not a time like /],
    ['a number', '{"drainedPeers": {"a": {"since": 5}}}', /^drainedPeers\.a\.since is not a time/],
    ['a wrong end', '{"allPolicies": {"since": "2026-01-01T00:00:00Z", "until": "10m"}}', /^allPolicies\.until is not a time/],
    ['a reason that is no text', '{"allPolicies": {"since": "2026-01-01T00:00:00Z", "reason": 5}}', /^allPolicies: reason and by are text$/],
    ['a key too many', '{"allPolicies": {"since": "2026-01-01T00:00:00Z", "for": "5m"}}', /^allPolicies: unknown key `for`/],
    ['names that are no list', '{"enabledPolicies": {"p": true}}', /^enabledPolicies is not a list of names$/],
    ['too many', JSON.stringify({ disabledPolicies: many }), /^more than \d+ entries$/],
    ['too long', `{"drainedPeers": {}}${' '.repeat(2_000_000)}`, /^longer than /]
  ] // prettier-ignore
  for (const [name, text, want] of rows) t.throws(() => parseOverrides(text), { name: 'TextError', message: want }, name) // prettier-ignore
  t.same(parseOverrides(''), noOverrides, 'nothing is nothing')
  fc.assert(
    fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
      try {
        parseOverrides(text)
      } catch (error) {
        if (!(error instanceof TextError)) throw error
      }
    }),
    { seed: 20_261_130 }
  )
})
