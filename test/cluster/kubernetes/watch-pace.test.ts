/** When a watch is read on. */
import { test } from 'tap'
import { watchDenseEvents, watchEventsPerSecond, watchGatherEvents, watchGatherMs } from '../../../src/base/limits.ts'
import { silentLog } from '../../../src/base/log.ts'
import { EventQueue, type OnEvents } from '../../../src/cluster/sources/kubernetes/event-queue.ts'
import { HeldObjects } from '../../../src/cluster/sources/kubernetes/held-objects.ts'
import { Turns } from '../../../src/cluster/sources/kubernetes/turns.ts'
import { WatchPace } from '../../../src/cluster/sources/kubernetes/watch-pace.ts'
import { readWatch } from '../../../src/cluster/sources/kubernetes/watch-reader.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { service } from './fixture.ts'

test('WatchPace: changes that come singly are read at once, dense ones some together', (t) => {
  const clock = new ManualClock()
  const pace = new WatchPace(clock)
  const singlyMs = 1_000 / watchEventsPerSecond
  /** How many of so many reads are waited behind, each of them so many milliseconds after the one before. */
  const waits = (reads: number, everyMs: number, events = 1): number => {
    let waited = 0
    for (let read = 0; read < reads; read++) {
      clock.advance(everyMs)
      const waitMs = pace.waitMs(events)
      t.ok(waitMs === 0 || waitMs === watchGatherMs)
      if (waitMs > 0) waited++
    }
    return waited
  }
  t.equal(waits(1_000, singlyMs), 0, 'the rate that still counts as singly')
  t.equal(waits(watchDenseEvents - 1, 0), 0, 'so many at once are none too many')
  t.equal(waits(100, singlyMs / 2), 100, 'then twice the rate')
  t.equal(waits(10, singlyMs / 2, watchGatherEvents), 0, 'reads that give several')
  t.ok(waits(1, 0) === 1)
  clock.advance((watchDenseEvents + 1) * singlyMs)
  t.equal(waits(1, 0), 0, 'soon after, however many there were')
  t.equal(waits(1_000, 1_000), 0)
  t.end()
})

test('readWatch: what is left unread for a moment comes together, and nothing is lost', async (t) => {
  const clock = new ManualClock()
  const batches: string[][] = []
  const onEvents: OnEvents = (events) =>
    void batches.push(events.map((event) => (event.type === 'put' ? event.object.name : event.type)))
  const held = new HeldObjects('Service')
  const queue = new EventQueue('Service', clock, silentLog, onEvents)
  const line = (at: number): Buffer => {
    const metadata = { name: `s${at}`, namespace: 'shop', uid: `u${at}`, resourceVersion: String(at + 1) }
    return Buffer.from(`${JSON.stringify({ type: 'ADDED', object: { ...service(`s${at}`), metadata } })}\n`)
  }
  const waiting: Buffer[] = []
  const slept: number[] = []
  const total = watchDenseEvents + 10
  let sent = 0
  /** As a socket: everything that has come since it was read last. */
  async function* body(): AsyncGenerator<Buffer> {
    while (sent < total || waiting.length > 0) {
      if (waiting.length === 0) waiting.push(line(sent++))
      yield Buffer.concat(waiting.splice(0))
    }
  }
  await readWatch({
    body: body(),
    contentType: 'application/json',
    message: null,
    held,
    queue,
    turns: new Turns(clock),
    pace: new WatchPace(clock),
    sleep: async (ms) => {
      slept.push(ms)
      for (let come = 0; come < 3 && sent < total; come++) waiting.push(line(sent++))
    },
    resourceVersion: '1',
    onResourceVersion: () => {},
    onErrorEvent: () => {},
    onSignOfLife: () => {}
  })
  t.same(
    batches.flat(),
    Array.from({ length: total }, (_, at) => `s${at}`),
    'each once, in order'
  )
  t.ok(
    batches.slice(0, watchDenseEvents).every(({ length }) => length === 1),
    'the first ones alone'
  )
  t.same(
    batches.slice(watchDenseEvents + 1).map(({ length }) => length),
    [3, 3, 3],
    'then those of a wait in one batch'
  )
  t.ok(slept.length >= 3 && slept.every((ms) => ms === watchGatherMs))
})
