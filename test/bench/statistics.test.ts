import { test } from 'tap'
import { medianRatio, percentile, spreadOf } from '../../bench/statistics.ts'

test('spreadOf gives the middle run with the lowest and the highest', async (t) => {
  t.equal(spreadOf([]), null, 'nothing measured')
  t.same(spreadOf([3]), { median: 3, min: 3, max: 3, runs: 1 })
  t.same(spreadOf([30, 1, 2]), { median: 2, min: 1, max: 30, runs: 3 })
  t.same(spreadOf([10, 9, 1, 2]), { median: 5.5, min: 1, max: 10, runs: 4 }, 'between the two middle ones')
})

test('percentile takes the nearest rank', async (t) => {
  const hundred = Float64Array.from({ length: 100 }, (_, index) => index + 1)
  t.equal(percentile(hundred, 0.5), 50)
  t.equal(percentile(hundred, 0.99), 99)
  t.equal(percentile(hundred, 0.999), 100)
  t.equal(percentile(hundred, 0), 1)
  t.equal(percentile(hundred, 1), 100)
  t.equal(percentile(Float64Array.of(7), 0.99), 7)
  t.ok(Number.isNaN(percentile(new Float64Array(0), 0.5)), 'of nothing')
})

test('medianRatio compares round by round', async (t) => {
  t.equal(medianRatio([2, 20, 3], [1, 10, 3]), 2, 'a round in which everything was slow changes nothing')
  t.equal(medianRatio([2, null, 4], [1, 1, null]), 2, 'only rounds that both have')
  t.equal(medianRatio([null], [1]), null)
  t.equal(medianRatio([1], [0]), null, 'nothing is a multiple of zero')
})
