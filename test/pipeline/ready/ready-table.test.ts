/** The memory of ready-made answers: what is found is what was put in, however often it is overwritten. */
import fc from 'fast-check'
import { test } from 'tap'
import { ReadyTable, field } from '../../../src/pipeline/ready/ready-table.ts'
import type { ReadyTemplate } from '../../../src/pipeline/ready/ready-template.ts'
import { query, variants } from './both-ways.ts'
import { parseName } from '../../../src/wire/name.ts'
import { ReadyQuestion } from '../../../src/pipeline/ready/ready-question.ts'

const name = (number: number) => parseName(`n${number}.example`)

function templateFor(number: number, filler: number, more: Partial<ReadyTemplate> = {}) {
  const { octets } = query(name(number), 1, variants[0]!)
  const tail = new Uint8Array(filler).fill((number % 250) + 1)
  const response = new Uint8Array([...octets, ...tail])
  response[2] = 0x80
  const template: ReadyTemplate = {
    response,
    questionEnd: octets.length,
    minLimit: response.length,
    maxLimit: 65_535,
    ttlOffsets: [],
    ageSeconds: 0,
    serialAt: 0,
    isCaseExact: false,
    pool: null,
    ...more
  }
  return { octets, template }
}

function readQuestion(octets: Uint8Array): ReadyQuestion {
  const question = new ReadyQuestion()
  question.read(octets, octets.length, true)
  return question
}

const find = (table: ReadyTable, octets: Uint8Array, limit = 512): number => {
  const { hash, flags, end } = readQuestion(octets)
  return table.find(hash, flags, octets, end, limit)
}
const put = (table: ReadyTable, number: number, filler: number, more: Partial<ReadyTemplate> = {}): number => {
  const { octets, template } = templateFor(number, filler, more)
  const { hash, flags } = readQuestion(octets)
  return table.put(hash, flags, more.maxLimit ?? 512, template, { number, filler })
}

void test('ReadyTable gives what was put in last under a key, or nothing', async (t) => {
  const step = fc.record({ number: fc.integer({ min: 0, max: 40 }), filler: fc.integer({ min: 0, max: 400 }) })
  const run = fc.property(fc.array(step, { minLength: 1, maxLength: 300 }), (steps) => {
    const table = new ReadyTable(8 * 1024, 64)
    const last = new Map<number, number>()
    const out = new Uint8Array(65_535)
    for (const [at, { number, filler }] of steps.entries()) {
      put(table, number, filler)
      last.set(number, filler)
      if (find(table, templateFor(number, 0).octets) < 0) throw new Error(`step ${at}: what was just put in is gone`)
      for (const [other, wanted] of last) {
        const { octets, template } = templateFor(other, wanted)
        const block = find(table, octets)
        if (block < 0) continue
        const size = table.write(block, octets, octets.length, out, Math.random)
        const isSame =
          size === template.response.length && Buffer.compare(out.subarray(0, size), template.response) === 0
        const source = table.sources[table.words[block + field.number]!] as { number: number; filler: number }
        if (!isSame || source.number !== other || source.filler !== wanted) throw new Error(`step ${at}: ${other}`)
      }
    }
    if (table.usedOctets > 8 * 1024) throw new Error('more memory than allowed')
  })
  t.doesNotThrow(() => fc.assert(run, { numRuns: 200, seed: 11 }))
})

void test('ReadyTable keeps its bound and gives up the oldest', async (t) => {
  const table = new ReadyTable(64 * 1024, 1024)
  for (let number = 0; number < 5_000; number++) put(table, number, 100)
  t.ok(table.usedOctets <= 64 * 1024)
  const found = Array.from({ length: 5_000 }, (_, number) => find(table, templateFor(number, 0).octets) >= 0)
  const held = found.filter(Boolean).length
  t.ok(held > 150, `${held} are held`)
  t.ok(found.slice(-100).every(Boolean), 'the last ones are')
  t.ok(table.sources.filter((source) => source !== null).length <= held, 'nothing is kept of the others')
  t.equal(put(table, 1, 65_500), -1, 'what is larger than all of it')
})

void test('ReadyTable holds nearly as many answers as it has slots, under numbers without gaps', async (t) => {
  const slots = 1024
  const table = new ReadyTable(1024 * 1024, slots)
  const count = Math.floor(slots * 0.8)
  for (let number = 0; number < count; number++) put(table, number, 100)
  const lost = Array.from({ length: count }, (_, number) => find(table, templateFor(number, 0).octets)).filter((block) => block < 0) // prettier-ignore
  t.ok(lost.length < count / 50, `${lost.length} of ${count} gave way`)
  t.equal(table.sources.length, count - lost.length)
})

void test('ReadyTable makes an answer anew in its place', async (t) => {
  const table = new ReadyTable(64 * 1024, 1024)
  const block = put(table, 1, 100)
  const used = table.usedOctets
  for (let time = 0; time < 1_000; time++) t.equal(put(table, 1, 90 + (time % 10)), block)
  t.equal(table.usedOctets, used)
})

void test('ReadyTable heeds limits, case and flags', async (t) => {
  const table = new ReadyTable(64 * 1024, 1024)
  const { octets } = templateFor(1, 100)
  put(table, 1, 100)
  t.ok(find(table, octets, octets.length + 100) >= 0)
  t.equal(find(table, octets, octets.length + 99), -1, 'too long for this client')
  const upper = query(name(1), 1, { name: '', isUpper: true }).octets
  t.ok(find(table, upper) >= 0, 'case has no meaning')
  put(table, 1, 100, { isCaseExact: true })
  t.equal(find(table, upper), -1, 'but where names in the answer point at the question')
  t.ok(find(table, octets) >= 0)
  t.equal(find(table, query(name(1), 28, variants[0]!).octets), -1, 'another type')
  t.equal(find(table, query(name(1), 1, variants[1]!).octets), -1, 'other flags')
  put(table, 1, 100, { minLimit: 600, maxLimit: 600 })
  t.ok(find(table, octets, 600) >= 0, 'a truncated one')
  t.equal(find(table, octets, 512), -1, 'in the place of the one that was given to that client')
})

void test('ReadyTable counts TTLs down, not below 0, and up again', async (t) => {
  const table = new ReadyTable(64 * 1024, 1024)
  const { octets } = templateFor(1, 100)
  const at = octets.length + 8
  const block = put(table, 1, 100, { ttlOffsets: [at], ageSeconds: 5 })
  const view = (): number => {
    const out = new Uint8Array(512)
    table.write(block, octets, octets.length, out, Math.random)
    return new DataView(out.buffer).getUint32(at)
  }
  const first = view()
  table.setAge(block, 9)
  t.equal(view(), first - 4)
  table.setAge(block, 5 + first + 10)
  t.equal(view(), 0)
})

void test('ReadyQuestion leaves everything that is not plain to the parser', async (t) => {
  const plain = query(name(1), 1, { name: '', opt: { payload: 1232 } }).octets
  const bare = query(name(1), 1, variants[0]!).octets
  const at = (octets: Uint8Array, index: number, value: number) => {
    const changed = octets.slice()
    changed[index < 0 ? octets.length + index : index] = value
    return changed
  }
  const queryOf = (variant: string) =>
    query(
      name(1),
      1,
      variants.find(({ name }) => name === variant)!
    ).octets
  const rows: [name: string, octets: Uint8Array, isPlain: boolean][] = [
    ['plain', bare, true],
    ['with an OPT', plain, true],
    ['nothing', new Uint8Array(0), false],
    ['a header', bare.slice(0, 12), false],
    ['a response', at(bare, 2, 0x81), false],
    ['another opcode', at(bare, 2, 0x09), false],
    ['no question', at(bare, 5, 0), false],
    ['two questions', at(bare, 5, 2), false],
    ['256 questions more', at(bare, 4, 1), false],
    ['an answer', at(bare, 7, 1), false],
    ['an authority record', at(bare, 9, 1), false],
    ['an OPT that is missing', at(bare, 11, 1), false],
    ['two additional records', at(plain, 11, 2), false],
    ['an octet behind', Uint8Array.from([...bare, 0]), false],
    ['an octet behind the OPT', Uint8Array.from([...plain, 0]), false],
    ['half a question', bare.slice(0, -1), false],
    ['half an OPT', plain.slice(0, -1), false],
    ['a pointer', at(bare, 12, 0xc0), false],
    ['a label that leads behind the end', at(bare, 12, 63), false],
    ['an OPT with an owner', at(plain, bare.length, 1), false],
    ['no OPT', at(plain, bare.length + 2, 42), false],
    ['another version', at(plain, bare.length + 6, 1), false],
    ['an OPT that is longer than the message', at(plain, -1, 4), false],
    ['a cookie', queryOf('a cookie'), true],
    ['several options', queryOf('a cookie and padding'), true],
    ['an octet behind the options', Uint8Array.from([...queryOf('a cookie'), 0]), false],
    ['half an option', queryOf('half an option'), false],
    ['half the head of an option', queryOf('half the head of an option'), false],
    ['an option of our own', queryOf('what a peerdns asks with'), false],
    ['a name that is too long', query(`${'\x3f'.padEnd(64, 'x').repeat(4)}\0`, 1, variants[0]!).octets, false]
  ]
  const question = new ReadyQuestion()
  for (const [row, octets, isPlain] of rows) t.equal(question.read(octets, octets.length, true), isPlain, row)
  // Behind the message there may be octets of another one.
  const slot = new Uint8Array(512).fill(7)
  slot.set(bare)
  t.equal(question.read(slot, bare.length, true), true)
  t.equal(question.end, bare.length)
  t.equal(question.read(slot, bare.length - 2, true), false)
})
