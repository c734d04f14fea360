import { test } from 'tap'
import { Histogram } from '../../src/base/histogram.ts'

test('Histogram.observe counts a value in the first bucket whose bound it does not exceed', async (t) => {
  const histogram = new Histogram([1, 2.5, 10])
  for (const value of [0, 1, 1.01, 2.5, 9, 10, 10.1, 1e9]) histogram.observe(value)
  t.same([...histogram.counts], [2, 2, 2, 2])
  t.same([...histogram.bounds], [1, 2.5, 10])
  t.equal(histogram.total, 8)
  t.equal(histogram.sum, 0 + 1 + 1.01 + 2.5 + 9 + 10 + 10.1 + 1e9)
})

test('Histogram takes bounds that ascend, and no others', async (t) => {
  for (const bounds of [[1, 1], [2, 1], [Number.NaN], [1, Infinity]]) t.throws(() => new Histogram(bounds), RangeError)
  const one = new Histogram([])
  one.observe(5)
  t.same([...one.counts], [1], 'without bounds there is one bucket')
})
