import { test } from 'tap'
import { BlackHole } from '../../bench/staleness/black-hole.ts'
import { figuresOf, type PartFigures } from '../../bench/staleness/figures.ts'
import { parseOptions } from '../../bench/staleness/options.ts'
import { plotOf } from '../../bench/staleness/plot.ts'
import { durationText, markdownOf } from '../../bench/staleness/report.ts'

test('BlackHole counts answers with the endpoint after its death alone', async (t) => {
  const hole = new BlackHole()
  for (const atMs of [0, 5, 10, 15, 20]) hole.answered(atMs, true)
  hole.answered(25, false)
  hole.killed(12)
  t.match(hole.result(), { blackHoleMs: 8, staleAnswers: 2, answers: 3, isOver: true, lastStaleAtMs: 20 })
})

test('BlackHole of an endpoint that nobody was told any more is 0', async (t) => {
  const hole = new BlackHole()
  hole.answered(0, true)
  hole.answered(5, false)
  hole.killed(2)
  t.match(hole.result(), { blackHoleMs: 0, staleAnswers: 0, answers: 1, isOver: true, lastStaleAtMs: null })
})

test('BlackHole is done when the last stale answer is long gone and a fresh one came', async (t) => {
  const hole = new BlackHole()
  hole.answered(0, true)
  t.notOk(hole.isDone(100_000), 'the endpoint lives')
  hole.killed(100)
  t.notOk(hole.isDone(5_000), 'nobody answered since')
  hole.answered(5_000, true)
  hole.answered(5_005, false)
  t.notOk(hole.isDone(6_000), 'too soon')
  t.ok(hole.isDone(6_600))
  t.ok(new BlackHole().result().staleAnswers === 0)
})

test('BlackHole that never ends is given up, and says so', async (t) => {
  const hole = new BlackHole()
  hole.killed(0)
  hole.answered(74_000, true)
  t.notOk(hole.isDone(74_000))
  t.ok(hole.isDone(75_001))
  t.equal(hole.result().isOver, false)
})

test('parseOptions names what is wrong', async (t) => {
  t.match(parseOptions(['--trials', '0']), /--trials/)
  t.match(parseOptions(['--only', 'told,nothing']), /--only/)
  t.match(parseOptions(['--trials', '20', '--no-files']), { trials: 20, resultsFolder: null })
})

test('durationText has three digits at most', async (t) => {
  t.same([0, 1.23, 99.6, 1_234, 30_000].map(durationText), ['0.0 ms', '1.2 ms', '100 ms', '1.2 s', '30.0 s'])
})

const part: PartFigures = {
  date: '2026-01-01',
  commit: 'abc',
  trials: 2,
  background: { perMinute: 1000, failures: 0 },
  api: figuresOf([5, 6]),
  slice: figuresOf([7, 8]),
  setUps: [
    {
      id: 'mirror',
      title: 'peerdns & a mirror',
      blackHole: figuresOf([0, 20]),
      blackHolesMs: [0, 20],
      staleAnswers: 4,
      answers: 600,
      unanswered: 1,
      errors: 0,
      unfinished: 0,
      latency: { answers: 600, medianMs: 0.1, p99Ms: 1 }
    }
  ],
  java: [{ title: 'behind', blackHole: figuresOf([15_000]) }],
  sweep: [{ title: 'TTL 0 s', questionsToPeer: 10, queries: 20, hitShare: 0.5 }],
  own: [
    {
      title: 'own',
      difference: figuresOf([2]),
      within10Ms: 1,
      missing: 0,
      own: figuresOf([40]),
      observed: figuresOf([42])
    }
  ],
  lag: { polls: 600, medianMs: 0.5, p99Ms: 1, maxMs: 2, skipped: 0 },
  load: 1
}

test('plotOf has one dot for each death, and is well formed', async (t) => {
  const svg = plotOf([part])
  t.equal(svg.match(/<circle /g)?.length, 2)
  t.match(svg, 'peerdns &amp; a mirror')
  t.equal(svg.match(/<g /g)?.length, svg.match(/<\/g>/g)?.length)
  t.notMatch(svg, 'NaN')
})

test('markdownOf has a table for each part that was measured', async (t) => {
  const text = markdownOf({ told: part, sweep: part })
  t.match(text, /\n\| peerdns & a mirror +\| +2 \|/, 'all of them in one')
  t.match(text, /\| a Java client behind behind +\| +1 \| 15.0 s \|/)
  t.match(text, /\| peerdns & a mirror \| +\d/)
  t.match(text, '50.0 %')
  t.equal(markdownOf({}).includes('##'), false)
})
