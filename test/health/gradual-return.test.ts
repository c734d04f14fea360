import { test } from 'tap'
import { returnMs, returnSteps } from '../../src/base/limits.ts'
import { GradualReturn } from '../../src/health/gradual-return.ts'
import { ManualClock } from '../support/manual-clock.ts'

test('GradualReturn gives a peer that was down its share step by step, and ends its timers', async (t) => {
  const clock = new ManualClock()
  let steps = 0
  const back = new GradualReturn(clock, () => steps++)
  back.update('up')
  t.same([back.isReturning, back.share], [false, 1], 'up from the first: nothing to return from')
  back.update('down')
  t.same([back.isReturning, back.share], [false, 1], 'down: the standing tells, not the share')
  back.update('unknown')
  t.equal(back.isReturning, false, 'a new server of it that nobody probed yet proves no return')
  back.update('up')
  t.same([back.isReturning, back.share], [true, 1 / returnSteps], 'the return begins at once')
  clock.advance(returnMs / returnSteps)
  t.equal(back.share, 2 / returnSteps)
  back.update('up')
  t.equal(back.share, 2 / returnSteps, 'another server that comes up does not begin it anew')
  clock.advance(returnMs)
  t.same([back.isReturning, back.share], [false, 1], 'whole after its time')
  t.equal(steps, returnSteps - 1, 'and each step was told')
  back.update('down')
  back.update('up')
  back.update('down')
  t.equal(back.isReturning, false, 'down again ends a return')
  back.update('up')
  back.stop()
  clock.advance(returnMs)
  t.equal(back.share, 1 / returnSteps, 'no step after the stop')
})
