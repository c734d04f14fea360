/** Memory that threads share: what one writes the others read whole, or leave. */
import fc from 'fast-check'
import { test } from 'tap'
import { ClientGroups, clientGroupsOctets, noGroup } from '../../../src/pipeline/ready/client-groups.ts'
import { ReadyReader } from '../../../src/pipeline/ready/ready-reader.ts'
import { field } from '../../../src/pipeline/ready/ready-table.ts'
import { ReadyUses, readyUsesOctets } from '../../../src/pipeline/ready/ready-uses.ts'
import { shared, SharedReady, sharedReadyBuffers } from '../../../src/pipeline/ready/shared-ready.ts'
import { parseName } from '../../../src/wire/name.ts'
import { query, variants } from './both-ways.ts'

void test('ReadyUses: every use is counted once, whenever it is looked', async (t) => {
  const slots = 8
  const run = fc.property(fc.array(fc.integer({ min: -1, max: slots - 1 }), { maxLength: 200 }), (steps) => {
    const buffer = new SharedArrayBuffer(readyUsesOctets(slots))
    const [worker, reader] = [new ReadyUses(buffer), new ReadyUses(buffer)]
    const counted = Array.from({ length: slots }, () => 0)
    const lastAtMs = Array.from({ length: slots }, () => 0)
    const take = (): void =>
      reader.take((slot, times, atMs) => {
        counted[slot]! += times
        if (atMs !== lastAtMs[slot]) throw new Error('another time')
      })
    for (const [at, slot] of steps.entries()) {
      if (slot < 0) take()
      else worker.note(slot, (lastAtMs[slot] = at))
    }
    take()
    const wanted = Array.from({ length: slots }, (_, slot) => steps.filter((step) => step === slot).length)
    if (counted.join() !== wanted.join()) throw new Error(`${counted.join()} and not ${wanted.join()}`)
  })
  const report = fc.check(run, { numRuns: 200, seed: 3 })
  t.equal(report.failed ? String(report.errorInstance) : '', '', JSON.stringify(report.counterexample))
})

void test('ClientGroups: a group of this generation, or none', async (t) => {
  const groups = new ClientGroups(new SharedArrayBuffer(clientGroupsOctets(64)))
  const client = (d: number) => ({ a: 0, b: 0, c: 0xffff_0000, d })
  t.equal(groups.find(client(1), 1), noGroup)
  groups.put(client(1), 1, 5)
  groups.put(client(0x8000_0001), 1, 6)
  t.equal(groups.find(client(1), 1), 5)
  t.equal(groups.find(client(0x8000_0001), 1), 6, 'words have no sign')
  t.equal(groups.find(client(1), 2), noGroup)
  groups.put(client(1), 2, 7)
  t.equal(groups.find(client(1), 2), 7)
  for (let d = 2; d < 2_000; d++) groups.put(client(d), 2, d)
  const found = Array.from({ length: 2_000 }, (_, d) => groups.find(client(d), 2)).map((group, d) => [group, d])
  t.ok(found.every(([group, d]) => group === noGroup || group === d || (d === 1 && group === 7)))
  t.ok(found.filter(([group]) => group !== noGroup).length > 50, 'most places are used')
})

void test('ReadyReader: whatever lies in the memory, it gives nothing that is being written, and never fails', async (t) => {
  const buffers = sharedReadyBuffers(1)
  const memory = new SharedReady(buffers)
  const reader = new ReadyReader(memory, 0, () => 0.5)
  const client = { a: 0, b: 0, c: 0xffff_0000, d: 1 }
  memory.words[shared.isOpen] = 1
  memory.words[shared.generation] = 1
  memory.liveUntilMs.fill(Number.POSITIVE_INFINITY)
  memory.clients.put(client, 1, 0)
  const { octets } = query(parseName('api.backend.svc.cluster.local'), 1, variants[0]!)
  const out = new Uint8Array(65_535)
  const words = new Int32Array(buffers.octets, 0, 256)
  const index = new Int32Array(buffers.index)
  const hash = hashOf(octets)
  const first = (hash & (index.length / 16 - 1)) * 16
  index[first] = hash
  index[first + 8] = 1
  let given = 0
  const number = fc.oneof(fc.integer({ min: -2, max: 200 }), fc.integer())
  const run = fc.property(fc.array(number, { minLength: 33, maxLength: 120 }), (values) => {
    words.fill(0)
    words.set(values)
    // What lets it go on to the octets, most of the time.
    words[field.flags] = 1
    words[field.questionOctets] = octets.length - 12
    words[field.minLimit] = 0
    words[field.maxLimit] = 65_535
    words[field.responseAt] = 512
    words[field.generation] = 1
    words[field.dependencies] = 0
    new Uint8Array(buffers.octets).set(octets.subarray(12), 512 + 12)
    const size = reader.answer(octets, octets.length, client, out, 1)
    if (size !== 0) given++
    if (!(size >= 0 && size <= out.length)) throw new Error(`${size} octets`)
    memory.write(() => {
      if (reader.answer(octets, octets.length, client, out, 1) !== 0) throw new Error('given while it is written')
    })
  })
  const report = fc.check(run, { numRuns: 2_000, seed: 5 })
  t.equal(report.failed ? String(report.errorInstance) : '', '', JSON.stringify(report.counterexample))
  t.ok(given > 0, `${given} were given`)
})

/** As ReadyQuestion has it. */
function hashOf(octets: Uint8Array): number {
  let hash = 0x811c9dc5
  const end = octets.length - 4
  for (let at = 12; at < end - 1; at++) hash = Math.imul(hash ^ octets[at]!, 0x01000193)
  for (const at of [end, end + 2]) hash = Math.imul(hash ^ ((octets[at]! << 8) | octets[at + 1]!), 0x01000193)
  return hash ^ (hash >>> 15)
}
