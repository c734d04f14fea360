/** The ring of events: bounded, in order, and health cannot push out the rest. */
import { test } from 'tap'
import { eventRingEntries, eventTextCharacters, healthEventRingEntries } from '../../src/base/limits.ts'
import { EventRing } from '../../src/operator/event-ring.ts'
import { ManualClock } from '../support/manual-clock.ts'

test('EventRing gives what happened since a moment, oldest first', async (t) => {
  const clock = new ManualClock()
  const ring = new EventRing(clock)
  ring.add({ kind: 'start', text: 'began' })
  clock.advance(1_000)
  ring.add({ kind: 'health', peer: 'a', text: 'down' })
  ring.add({ kind: 'drain', peer: 'a', text: 'drained' })
  clock.advance(1_000)
  ring.add({ kind: 'disable', policy: 'p', text: 'disabled' })
  const kinds = (sinceMs: number): string[] => ring.since(clock.epochMs() - sinceMs).map(({ kind }) => kind)
  t.same(kinds(60_000), ['start', 'health', 'drain', 'disable'])
  t.same(kinds(1_000), ['health', 'drain', 'disable'], 'a moment counts')
  t.same(kinds(999), ['disable'])
  t.match(
    ring.lastAbout(({ peer }) => peer === 'a'),
    { kind: 'drain', peer: 'a', policy: null }
  )
  t.equal(
    ring.lastAbout(({ peer }) => peer === 'b'),
    null
  )
})

test('EventRing puts what is told late where it happened', async (t) => {
  const clock = new ManualClock()
  const ring = new EventRing(clock)
  const startedAtEpochMs = clock.epochMs()
  ring.add({ kind: 'start', text: 'began' })
  clock.advance(1_000)
  ring.add({ kind: 'drain', peer: 'a', text: 'drained', atEpochMs: startedAtEpochMs - 60_000 })
  t.same(ring.since(0).map(({ kind, atEpochMs }) => [kind, atEpochMs - startedAtEpochMs]), [['drain', -60_000], ['start', 0]]) // prettier-ignore
  t.same(ring.since(startedAtEpochMs).map(({ kind }) => kind), ['start']) // prettier-ignore
})

test('EventRing is bounded, and flapping does not push out what an operator did', async (t) => {
  const ring = new EventRing(new ManualClock())
  ring.add({ kind: 'drain', peer: 'a', text: 'drained' })
  for (let count = 0; count < 3 * healthEventRingEntries; count++) {
    ring.add({ kind: 'health', peer: 'a', text: 'x'.repeat(5_000) })
  }
  const events = ring.since(0)
  t.equal(events.length, healthEventRingEntries + 1)
  t.equal(events[0]?.kind, 'drain')
  t.equal(events.at(-1)?.sequence, 3 * healthEventRingEntries + 1)
  t.ok(events.every(({ text }) => text.length <= eventTextCharacters))
  for (let count = 0; count < 2 * eventRingEntries; count++) ring.add({ kind: 'reload', text: '' })
  t.equal(ring.since(0).length, healthEventRingEntries + eventRingEntries)
  t.equal(ring.counts.get('health'), 3 * healthEventRingEntries)
})
