/**
 * When a turn waits for more in the kernel: only while one socket is dense, nobody else needs the loop, and not for
 * long.
 */
import { test } from 'tap'
import { udpDenseBatches, udpDenseGapMs, udpLingerMs } from '../../../src/base/limits.ts'
import { Lingering } from '../../../src/server/mmsg/lingering.ts'
import { ManualClock } from '../../support/manual-clock.ts'

const gapMs = udpDenseGapMs / 2

function made() {
  const clock = new ManualClock()
  const lingering = new Lingering(clock)
  const socket = {}
  const batch = (options: { by?: object; afterMs?: number; isFirst?: boolean; isFree?: boolean } = {}): boolean => {
    clock.advance(options.afterMs ?? gapMs)
    return lingering.mayWait(options.by ?? socket, options.isFirst ?? true, options.isFree ?? true)
  }
  /** Dense batches until a turn may wait. */
  const becomeDense = (): number => {
    let batches = 1
    while (!batch() && batches < 100) batches++
    return batches
  }
  return { lingering, batch, becomeDense }
}

void test('Lingering begins after a number of dense batches', async (t) => {
  const { batch, becomeDense } = made()
  t.equal(becomeDense(), udpDenseBatches + 2, 'the first one had none before it')
  t.equal(batch(), true)
})

void test('Lingering ends, and begins anew', async (t) => {
  const reasons: [name: string, change: Parameters<ReturnType<typeof made>['batch']>[0]][] = [
    ['a pause', { afterMs: udpDenseGapMs * 1.01 }],
    ['another socket', { by: {} }],
    ['somebody needs the loop', { isFree: false }]
  ]
  for (const [name, change] of reasons) {
    const { batch, becomeDense } = made()
    becomeDense()
    t.equal(batch(change), false, name)
    t.equal(becomeDense() >= udpDenseBatches, true, `${name}: dense again`)
  }
  const { lingering, becomeDense } = made()
  becomeDense()
  lingering.waitedForNothing()
  t.equal(becomeDense(), udpDenseBatches + 1, 'a wait for nothing')
})

void test('Lingering gives everybody else a turn in time', async (t) => {
  const { batch, becomeDense } = made()
  becomeDense()
  t.equal(batch({ isFirst: true }), true)
  let waits = 0
  while (batch({ isFirst: false })) waits++
  t.ok(waits > 1 && waits <= udpLingerMs / gapMs, `${waits}`)
  t.equal(batch({ isFirst: true }), true, 'and goes on behind them')
})
