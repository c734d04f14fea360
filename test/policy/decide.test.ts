import { test } from 'tap'
import fc from 'fast-check'
import { decide, heedingOtherTypes, type Decision, type TargetOutcome } from '../../src/policy/decide.ts'
import type { NextReason } from '../../src/policy/policy.ts'

type Outcome = TargetOutcome<string>

const has = (reply: string): Outcome => ({ kind: 'has', reply })
const absent = (reply: string): Outcome => ({ kind: 'absent', reply })
const empty = (reply: string): Outcome => ({ kind: 'empty', reply })
const bare = (reply: string): Outcome => ({ kind: 'bare', reply })
const unreachable = (stale: string | null = null): Outcome => ({
  kind: 'unreachable',
  why: 'timeout',
  isCached: false,
  stale
})

const everyReason: NextReason[] = ['unreachable', 'absent', 'empty']

/** Runs a decision to its end: each target answers what the row says when it is asked. */
function play(outcomes: readonly Outcome[], nextOn: readonly NextReason[]): { asked: number[]; end: Decision<string> } {
  const known: (Outcome | null)[] = outcomes.map(() => null)
  const asked: number[] = []
  for (;;) {
    const decision = decide(
      outcomes.map((_, target) => target),
      new Set(nextOn),
      known
    )
    if (decision.kind !== 'ask') return { asked, end: decision }
    asked.push(decision.target)
    known[decision.target] = outcomes[decision.target]!
  }
}

type Row = {
  name: string
  outcomes: Outcome[]
  nextOn?: NextReason[]
  asked: number[]
  end: Partial<{ kind: string; target: number; reply: string; unreachable: number[] }>
}

const rows: Row[] = [
  { name: 'the first target has it', outcomes: [has('a'), has('b')], asked: [0], end: { kind: 'use', reply: 'a' } },
  { name: 'absent, then the second has it', outcomes: [absent('a'), has('b')], asked: [0, 1], end: { kind: 'use', reply: 'b' } },
  { name: 'empty, then the second has it', outcomes: [empty('a'), has('b')], asked: [0, 1], end: { kind: 'use', reply: 'b' } },
  { name: 'unreachable, then the second has it', outcomes: [unreachable('old'), has('b')], asked: [0, 1], end: { kind: 'use', reply: 'b' } },
  { name: 'bare, then the second has it', outcomes: [bare('a'), has('b')], asked: [0, 1], end: { kind: 'use', reply: 'b' } },
  { name: 'absent everywhere: the first denial as it came', outcomes: [absent('a'), absent('b')], asked: [0, 1], end: { kind: 'use', target: 0, reply: 'a' } },
  { name: 'empty before absent: the empty target’s own address', outcomes: [absent('a'), empty('b')], asked: [0, 1], end: { kind: 'use', target: 1, reply: 'b' } },
  { name: 'empty before unreachable with a stale answer', outcomes: [unreachable('old'), empty('b')], asked: [0, 1], end: { kind: 'use', target: 1, reply: 'b' } },
  { name: 'unreachable with a stale answer, the other denies: stale', outcomes: [unreachable('old'), absent('b')], asked: [0, 1], end: { kind: 'stale', target: 0, reply: 'old', unreachable: [0] } },
  { name: 'a fresh denial of the target itself is never covered by its stale answer', outcomes: [absent('a'), unreachable(null)], asked: [0, 1], end: { kind: 'doubtful-denial', target: 0, unreachable: [1] } },
  { name: 'unreachable without a stale answer, the other denies: a doubtful denial', outcomes: [unreachable(), absent('b')], asked: [0, 1], end: { kind: 'doubtful-denial', target: 1, reply: 'b', unreachable: [0] } },
  { name: 'nobody can be reached', outcomes: [unreachable(), unreachable()], asked: [0, 1], end: { kind: 'failure', unreachable: [0, 1] } },
  { name: 'nobody can be reached, the second has a stale answer', outcomes: [unreachable(), unreachable('old')], asked: [0, 1], end: { kind: 'stale', target: 1, reply: 'old' } },
  { name: 'bare is used if nobody has better', outcomes: [bare('a'), bare('b')], asked: [0, 1], end: { kind: 'use', target: 0, reply: 'a' } },
  { name: 'a real denial is better than a bare answer', outcomes: [bare('a'), absent('b')], asked: [0, 1], end: { kind: 'use', target: 1, reply: 'b' } },
  { name: 'nextOn without absent: the first denial is final', outcomes: [absent('a'), has('b')], nextOn: ['unreachable'], asked: [0], end: { kind: 'use', target: 0 } },
  { name: 'nextOn without empty: the empty address is final', outcomes: [empty('a'), has('b')], nextOn: ['unreachable', 'absent'], asked: [0], end: { kind: 'use', target: 0 } },
  { name: 'nextOn without unreachable: stale, else failure', outcomes: [unreachable('old'), has('b')], nextOn: ['absent'], asked: [0], end: { kind: 'stale', reply: 'old' } },
  { name: 'delegation: the only target’s failure', outcomes: [unreachable()], asked: [0], end: { kind: 'failure', unreachable: [0] } }
] // prettier-ignore

test('decide follows the order of design', async (t) => {
  for (const row of rows) {
    const { asked, end } = play(row.outcomes, row.nextOn ?? everyReason)
    t.same(asked, row.asked, `${row.name}: who is asked`)
    t.match(end, row.end, row.name)
  }
})

test('decide asks a reserve only when none of the others can be reached', async (t) => {
  const reasons = new Set(everyReason)
  const rows: [Outcome, string][] = [
    [unreachable(), 'ask'],
    [unreachable('old'), 'ask'],
    [absent('a'), 'use'],
    [empty('a'), 'use'],
    [has('a'), 'use']
  ]
  for (const [outcome, kind] of rows) {
    t.equal(decide([0, 1], reasons, [outcome, null], 1).kind, kind, `the first is ${outcome.kind}`)
  }
  t.match(decide([1, 0], reasons, [null, unreachable()], 1), { kind: 'ask', target: 0 })
  t.match(decide([0], reasons, [null], 1), { kind: 'ask', target: 0 }, 'nothing but a reserve')
})

const outcomeArbitrary: fc.Arbitrary<Outcome> = fc.oneof(
  fc.constantFrom(has('has'), absent('absent'), empty('empty'), bare('bare'), unreachable(), unreachable('stale'))
)

test('decide, whatever the targets say', async (t) => {
  fc.assert(
    fc.property(fc.array(outcomeArbitrary, { minLength: 1, maxLength: 5 }), (outcomes) => {
      const { asked, end } = play(outcomes, everyReason)
      const firstHas = outcomes.findIndex((outcome) => outcome.kind === 'has')
      // Nobody is asked twice, in order, and nobody behind the first that has the name.
      const expected = firstHas < 0 ? outcomes.map((_, at) => at) : outcomes.slice(0, firstHas + 1).map((_, at) => at)
      if (asked.join() !== expected.join()) return false
      if (firstHas >= 0) return end.kind === 'use' && end.target === firstHas
      if (outcomes.some((outcome) => outcome.kind === 'empty')) return end.kind === 'use' && end.reply === 'empty'
      if (outcomes.every((outcome) => outcome.kind !== 'unreachable')) return end.kind === 'use'
      if (outcomes.some((outcome) => outcome.kind === 'unreachable' && outcome.stale !== null))
        return end.kind === 'stale'
      const denies = outcomes.some((outcome) => outcome.kind === 'absent' || outcome.kind === 'bare')
      return end.kind === (denies ? 'doubtful-denial' : 'failure')
    }),
    { seed: 20_261_130 }
  )
  t.pass('the rules hold for 100 random tables')
})

test('heedingOtherTypes gives nobody’s denial where a target that can’t be reached has the name', (t) => {
  const want = { kind: 'unknown-type', target: 1, unreachable: [0, 1] } as const
  const cases: { name: string; decision: Decision<string>; known: number[]; end?: Decision<string> }[] = [
    { name: 'another one denies it', decision: { kind: 'doubtful-denial', target: 2, reply: 'b', unreachable: [0, 1] }, known: [1], end: want },
    { name: 'nobody said anything', decision: { kind: 'failure', unreachable: [0, 1] }, known: [1], end: want },
    { name: 'an older denial', decision: { kind: 'stale', target: 0, reply: 'NXDOMAIN', unreachable: [0, 1] }, known: [1], end: want },
    { name: 'an older answer', decision: { kind: 'stale', target: 0, reply: 'old', unreachable: [0, 1] }, known: [1] },
    { name: 'one that was reached', decision: { kind: 'failure', unreachable: [0] }, known: [1] },
    { name: 'somebody has it', decision: { kind: 'use', target: 2, reply: 'b' }, known: [0, 1, 2] },
    { name: 'nobody is known to have it', decision: { kind: 'failure', unreachable: [0, 1] }, known: [] }
  ] // prettier-ignore
  for (const { name, decision, known, end = decision } of cases) {
    const isKnown = (target: number): boolean => known.includes(target)
    t.same(
      heedingOtherTypes(decision, isKnown, (reply) => reply === 'NXDOMAIN'),
      end,
      name
    )
  }
  t.end()
})
