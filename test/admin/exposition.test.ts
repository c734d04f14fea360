import { test } from 'tap'
import { counter, expose, gauge, histogram } from '../../src/admin/exposition.ts'
import { Histogram } from '../../src/base/histogram.ts'
import { parseExposition } from './strict-exposition.ts'

test('expose writes what a strict reader takes', async (t) => {
  const lag = new Histogram([0.1, 1])
  for (const seconds of [0.05, 0.1, 0.5, 7]) lag.observe(seconds)
  const odd = 'a "quoted" \\ back\nslash'
  const text = expose([
    counter('a_total', 'With\na line break and a \\.', [{ labels: { name: odd, other: '' }, value: 3 }]),
    gauge('b', 'Empty.', []),
    gauge('c', 'Extremes.', [
      { labels: { which: 'inf' }, value: Infinity },
      { labels: { which: 'minus' }, value: -1.5e-9 }
    ]),
    histogram('d_seconds', 'Lag.', lag)
  ])
  const metrics = parseExposition(text)
  t.same([...metrics.keys()], ['a_total', 'b', 'c', 'd_seconds'])
  t.same(metrics.get('a_total')?.samples, [{ name: 'a_total', labels: { name: odd, other: '' }, value: 3 }])
  t.same(metrics.get('a_total')?.help, String.raw`With\na line break and a \\.`)
  t.same(metrics.get('b'), { type: 'gauge', help: 'Empty.', samples: [] })
  t.same(metrics.get('c')?.samples.map(({ value }) => value), [Infinity, -1.5e-9]) // prettier-ignore
  t.same(
    metrics.get('d_seconds')?.samples.map(({ name, labels, value }) => `${name} ${labels['le'] ?? ''} ${value}`),
    ['d_seconds_bucket 0.1 2', 'd_seconds_bucket 1 3', 'd_seconds_bucket +Inf 4', 'd_seconds_sum  7.65', 'd_seconds_count  4']
  ) // prettier-ignore
})

test('parseExposition sees what it forbids', async (t) => {
  const head = '# HELP a_total x\n# TYPE a_total counter\n'
  const rows: { name: string; text: string }[] = [
    { name: 'no end of line', text: `${head}a_total 1` },
    { name: 'no HELP', text: '# TYPE a gauge\na 1\n' },
    { name: 'no TYPE', text: '# HELP a x\na 1\n' },
    { name: 'twice the same series', text: `${head}a_total{b="1",c="2"} 1\na_total{c="2",b="1"} 1\n` },
    { name: 'HELP again', text: `${head}a_total 1\n${head}` },
    { name: 'a sample below another metric', text: `${head}b_total 1\n` },
    { name: 'a counter without _total', text: '# HELP a x\n# TYPE a counter\na 1\n' },
    { name: 'a negative counter', text: `${head}a_total -1\n` },
    { name: 'a bare quote', text: `${head}a_total{b="x"y"} 1\n` },
    { name: 'other labels', text: `${head}a_total{b="1"} 1\na_total{c="1"} 1\n` },
    { name: 'no number', text: `${head}a_total one\n` },
    { name: 'buckets that fall', text: '# HELP a x\n# TYPE a histogram\na_bucket{le="1"} 3\na_bucket{le="+Inf"} 2\na_sum 1\na_count 2\n' },
    { name: 'no last bucket', text: '# HELP a x\n# TYPE a histogram\na_bucket{le="1"} 3\na_sum 1\na_count 3\n' },
    { name: 'another count', text: '# HELP a x\n# TYPE a histogram\na_bucket{le="+Inf"} 3\na_sum 1\na_count 2\n' }
  ] // prettier-ignore
  for (const { name, text } of rows) t.throws(() => parseExposition(text), { name: 'AssertionError' }, name)
})
