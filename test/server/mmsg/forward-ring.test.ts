/** What goes into the ring of one thread comes out for the other, whole and in order, or is said to have no room. */
import fc from 'fast-check'
import { test } from 'tap'
import { forwardedBacklogMs, forwardedQueryOctets, forwardedWaitMs } from '../../../src/base/socket-limits.ts'
import { ForwardPatience } from '../../../src/server/mmsg/forward-patience.ts'
import { ForwardRing, forwardRingOctets } from '../../../src/server/mmsg/forward-ring.ts'
import { MessageBatch } from '../../../src/server/mmsg/message-batch.ts'

/** No kernel is given this address. */
const newBatch = (): MessageBatch => new MessageBatch(4, () => 8)
const upTo = (max: number) => fc.integer({ min: 0, max })
type Step = Readonly<{ kind: number; socket: number; name: number; control: number; octets: number }>
const step: fc.Arbitrary<Step> = fc.record({ kind: upTo(3), socket: upTo(2), name: upTo(28), control: upTo(40), octets: upTo(300) }) // prettier-ignore

void test('ForwardRing: a queue with an end', async (t) => {
  const [written, read] = [newBatch(), newBatch()]
  const filled = (octets: number, seed: number): Uint8Array => Uint8Array.from({ length: octets }, (_, at) => at + seed)
  const run = fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
    const ring = new ForwardRing(new SharedArrayBuffer(forwardRingOctets(1_024)))
    // The numbers begin anew on the way.
    const startMs = 2 ** 31 - 30
    const model: { socket: number; atMs: number; text: string }[] = []
    const textOf = (socket: number, batch: MessageBatch, slot: number): string =>
      [socket, batch.nameOf(slot), batch.controlOf(slot), batch.queries[slot]!.subarray(0, batch.querySize(slot))].map(String).join('|') // prettier-ignore
    let refused = 0
    for (const [at, { kind, socket, name, control, octets }] of steps.entries()) {
      const nowMs = startMs + at
      if (kind > 0) {
        written.prepareReceive()
        written.addReceived(filled(name, at), filled(control, at * 3), filled(octets, at * 7))
        const text = textOf(socket, written, 0)
        if (ring.push(socket, written, 0, nowMs)) model.push({ socket, atMs: nowMs, text })
        else refused++
        // So much always fits.
        if (model.length === 0) throw new Error('refused by an empty ring')
        continue
      }
      const next = ring.nextSocket
      if (next < 0 !== (model.length === 0) || ring.isEmpty !== next < 0) throw new Error('empty or not')
      if (next < 0) continue
      const sinceMs = name > 14 ? null : nowMs - name
      let late = ring.take(read, sinceMs)
      if (sinceMs === null && (late > 0 || read.received === 0)) throw new Error('nothing was taken')
      const texts = Array.from({ length: read.received }, (_, slot) => textOf(next, read, slot))
      while (late > 0 || texts.length > 0) {
        const wanted = model.shift()
        if (wanted?.socket !== next) throw new Error('more was taken')
        if (wanted.atMs < (sinceMs ?? 0)) late -= 1
        else if (texts.shift() !== wanted.text) throw new Error(`not ${wanted.text}`)
      }
      const left = model[0]
      if (read.received < read.slots && left?.socket === next) throw new Error('more could have been taken')
    }
    return refused >= 0
  })
  const report = fc.check(run, { numRuns: 400, seed: 11 })
  t.equal(report.failed ? String(report.errorInstance) : '', '', JSON.stringify(report.counterexample))
})

void test('ForwardRing: who sleeps is woken once', async (t) => {
  const ring = new ForwardRing(new SharedArrayBuffer(forwardRingOctets(1_024)))
  const batch = newBatch()
  batch.prepareReceive()
  batch.addReceived(Uint8Array.of(2), new Uint8Array(0), Uint8Array.of(1, 2, 3))
  t.ok(ring.push(0, batch, 0, 0))
  t.ok(ring.mustWake(), 'at first the reader sleeps')
  t.notOk(ring.mustWake())
  t.notOk(ring.sleep(), 'there is something')
  t.notOk(ring.mustWake(), 'so it stays awake')
  ring.take(newBatch())
  t.ok(ring.sleep())
  t.ok(ring.mustWake())
})

void test('ForwardRing: what is in a full one is counted', async (t) => {
  const ring = new ForwardRing(new SharedArrayBuffer(forwardRingOctets(forwardedQueryOctets)))
  const [written, read] = [newBatch(), newBatch()]
  const fill = (octets: number, nowMs: number): number => {
    written.prepareReceive()
    // As an IPv4 socket gives them.
    written.addReceived(new Uint8Array(16), new Uint8Array(0), new Uint8Array(octets))
    let count = 0
    while (ring.push(0, written, 0, nowMs)) count++
    return count
  }
  const takeAll = (sinceMs: number | null): { taken: number; lost: number } => {
    const counts = { taken: 0, lost: 0 }
    while (!ring.isEmpty) {
      counts.lost += ring.take(read, sinceMs)
      counts.taken += read.received
    }
    return counts
  }
  const smallest = fill(12, 0)
  t.ok(smallest > 4_000 && smallest < 5_000, `${smallest} of the smallest queries`)
  t.same(takeAll(null), { taken: smallest, lost: 0 })
  const usual = fill(60, 0)
  t.ok(usual > 2_000 && usual < 2_600, `${usual} usual ones`)
  t.same(takeAll(1), { taken: 0, lost: usual }, 'and all may be too old')
})

void test('ForwardPatience: only in a lasting overload it matters how long a query has waited', async (t) => {
  const patience = new ForwardPatience()
  t.equal(patience.sinceMs(1_000), null)
  t.equal(patience.sinceMs(1_000 + forwardedBacklogMs - 1), null)
  patience.noteEmptied()
  t.equal(patience.sinceMs(5_000), null, 'it was emptied in time')
  t.equal(patience.sinceMs(5_000 + forwardedBacklogMs), 5_000 + forwardedBacklogMs - forwardedWaitMs)
  patience.noteEmptied()
  t.equal(patience.sinceMs(9_000), null, 'it was emptied')
})

void test('ForwardPatience: what waits in a ring, and for how long, has an end', async (t) => {
  const patience = new ForwardPatience()
  // Two queries come in each millisecond and one is answered.
  const ring = new ForwardRing(new SharedArrayBuffer(forwardRingOctets(forwardedQueryOctets)))
  const [written, read] = [newBatch(), new MessageBatch(1, () => 8)]
  let [answered, lost, longestMs] = [0, 0, 0]
  for (let nowMs = 0; nowMs < 20_000; nowMs++) {
    for (let query = 0; query < 2; query++) {
      written.prepareReceive()
      written.addReceived(new Uint8Array(16), new Uint8Array(0), new Uint8Array(Float64Array.of(nowMs).buffer))
      if (!ring.push(0, written, 0, nowMs)) t.fail('it never becomes full')
    }
    lost += ring.take(read, patience.sinceMs(nowMs))
    if (read.received === 0) continue
    answered += 1
    const cameAtMs = new Float64Array(read.queries[0]!.slice(0, 8).buffer)[0]!
    longestMs = Math.max(longestMs, nowMs - cameAtMs)
  }
  t.equal(answered, 20_000, 'one in each millisecond, all the time')
  t.ok(lost > 19_000, `${lost} were lost`)
  t.ok(longestMs <= forwardedBacklogMs, `${longestMs} ms`)
})
