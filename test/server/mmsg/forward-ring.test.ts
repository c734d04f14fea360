/** What goes into the ring of one thread comes out for the other, whole and in order, or is said to have no room. */
import fc from 'fast-check'
import { test } from 'tap'
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
    const model: string[] = []
    const textOf = (socket: number, batch: MessageBatch, slot: number): string =>
      [socket, batch.nameOf(slot), batch.controlOf(slot), batch.queries[slot]!.subarray(0, batch.querySize(slot))].map(String).join('|') // prettier-ignore
    let refused = 0
    for (const [at, { kind, socket, name, control, octets }] of steps.entries()) {
      if (kind > 0) {
        written.prepareReceive()
        written.addReceived(filled(name, at), filled(control, at * 3), filled(octets, at * 7))
        const text = textOf(socket, written, 0)
        if (ring.push(socket, written, 0)) model.push(text)
        else refused++
        // So much always fits.
        if (model.length === 0) throw new Error('refused by an empty ring')
        continue
      }
      const next = ring.nextSocket
      if (next < 0 !== (model.length === 0) || ring.isEmpty !== next < 0) throw new Error('empty or not')
      if (next < 0) continue
      ring.take(read)
      if (read.received === 0) throw new Error('nothing was taken')
      for (let slot = 0; slot < read.received; slot++) {
        const text = textOf(next, read, slot)
        const wanted = model.shift()
        if (text !== wanted) throw new Error(`${text} and not ${wanted}`)
      }
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
  t.ok(ring.push(0, batch, 0))
  t.ok(ring.mustWake(), 'at first the reader sleeps')
  t.notOk(ring.mustWake())
  t.notOk(ring.sleep(), 'there is something')
  t.notOk(ring.mustWake(), 'so it stays awake')
  ring.take(newBatch())
  t.ok(ring.sleep())
  t.ok(ring.mustWake())
})
