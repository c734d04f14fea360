/**
 * What strangers may send: any octets give a message or a WireError, soon, and cost no more memory than they have
 * octets.
 */
import * as fc from 'fast-check'
import { test } from 'tap'
import { WireError } from '../../src/base/errors.ts'
import { decodeMessage, encodeMessage, groupRRsets, type Message } from '../../src/wire/message.ts'
import { parseQuery } from '../../src/wire/query.ts'
import { cpuMsOf } from '../support/cpu-time.ts'
import { message as anyMessage, seed } from './arbitraries.ts'
import { hex, messageToLines, readCrashers, readVectors } from './message-text.ts'
import { randomFrom } from './response-fixture.ts'

const mutatedPackets = 20_000
/** The tests give up their number of packets, not their time, on a slow machine. */
const timeBoxMs = 20_000
/** One packet never takes as long; most of it is room for a machine that does other things as well. */
const longestMs = 250

/** Null for what is no message. */
function tryDecode(octets: Uint8Array): Message | null {
  try {
    return decodeMessage(octets)
  } catch (error) {
    if (error instanceof WireError) return null
    throw error
  }
}

function tryParseQuery(octets: Uint8Array): boolean {
  try {
    parseQuery(octets, octets.length)
    return true
  } catch (error) {
    if (error instanceof WireError) return false
    throw error
  }
}

/** Null where names that were compressed do not fit a message any more. */
function tryEncode(message: Message): Uint8Array | null {
  try {
    return encodeMessage(message)
  } catch (error) {
    if (error instanceof WireError && error.code === 'TOO_LARGE') return null
    throw error
  }
}

/** Everything that may be done with octets from outside; throws on anything but a WireError. */
function exercise(octets: Uint8Array): boolean {
  const isQuery = tryParseQuery(octets)
  const message = tryDecode(octets)
  if (message === null) return isQuery
  messageToLines(message)
  groupRRsets([message.answer, message.authority, message.additional].flat())
  const again = tryEncode(message)
  if (again !== null && JSON.stringify(decodeMessage(again)) !== JSON.stringify(message)) {
    throw new Error('it does not encode to an equal message')
  }
  return true
}

type Random = (below: number) => number

/** Ways in which a packet is spoilt. */
const mutations: Readonly<Record<string, (octets: Uint8Array, random: Random) => Uint8Array>> = {
  'a bit flipped': (octets, random) => {
    octets[random(octets.length)]! ^= 1 << random(8)
    return octets
  },
  'an octet replaced': (octets, random) => {
    octets[random(octets.length)] = random(256)
    return octets
  },
  'an edge value': (octets, random) => {
    octets[random(octets.length)] = [0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xbf, 0xc0, 0xff][random(9)]!
    return octets
  },
  'a count inflated': (octets, random) => {
    octets.set([random(256), random(256)], 4 + 2 * random(4))
    return octets
  },
  'a pointer put in': (octets, random) => {
    octets.set([0xc0 | random(2), random(256)], 12 + random(Math.max(1, octets.length - 14)))
    return octets
  },
  'the end cut off': (octets, random) => octets.slice(0, random(octets.length)),
  'octets put behind': (octets, random) => Uint8Array.from([...octets, ...octets.subarray(0, random(40))]),
  'a piece taken out': (octets, random) => {
    const at = random(octets.length)
    return Uint8Array.from([...octets.subarray(0, at), ...octets.subarray(at + 1 + random(8))])
  },
  'two octets swapped': (octets, random) => {
    const [a, b] = [random(octets.length), random(octets.length)]
    ;[octets[a], octets[b]] = [octets[b]!, octets[a]!]
    return octets
  }
}

function timed(octets: Uint8Array): { isMessage: boolean; tookMs: number } {
  let isMessage = false
  const tookMs = cpuMsOf(() => (isMessage = exercise(octets)))
  return { isMessage, tookMs }
}

/** Two more times for a packet that took too long. */
const again = (tookMs: number, octets: Uint8Array): number[] =>
  tookMs < longestMs ? [] : [timed(octets).tookMs, timed(octets).tookMs]

test('mutated packets give a message or a WireError, and soon', async (t) => {
  const uniform = randomFrom(seed)
  const random: Random = (below) => Math.floor(uniform() * below)
  const originals = [
    ...readVectors().map(({ octets }) => octets),
    ...fc.sample(anyMessage, { seed, numRuns: 60 }).map(encodeMessage)
  ]
  const ways = Object.values(mutations)
  const startedMs = performance.now()
  let packets = 0
  let messages = 0
  let slowestMs = 0
  for (; packets < mutatedPackets && performance.now() - startedMs < timeBoxMs; packets++) {
    let octets: Uint8Array = Uint8Array.from(originals[random(originals.length)]!)
    for (let changes = 1 + random(3); changes > 0 && octets.length > 14; changes--)
      octets = ways[random(ways.length)]!(octets, random)
    try {
      const { isMessage, tookMs } = timed(octets)
      if (isMessage) messages++
      // The collector may have had the thread meanwhile: what is slow by itself is slow each time.
      slowestMs = Math.max(slowestMs, Math.min(tookMs, ...again(tookMs, octets)))
    } catch (error) {
      t.error(error, `seed ${seed}, packet ${packets}: ${Buffer.from(octets).toString('hex')}`)
      return
    }
  }
  t.ok(slowestMs < longestMs, `the slowest of ${packets} took ${slowestMs.toFixed(1)} ms`)
  t.ok(messages > packets / 20, `${messages} were still messages, so more than the header was tried`)
})

test('random octets give a message or a WireError', async (t) => {
  const header = fc.tuple(fc.nat(0xffff), fc.nat(3), fc.nat(3), fc.nat(3), fc.nat(3))
  const body = fc.array(fc.oneof(fc.constantFrom(0, 1, 2, 0x0c, 0x29, 0xc0, 0xff), fc.nat(255)), { maxLength: 200 })
  fc.assert(
    fc.property(header, body, ([flags, ...counts], octets) => {
      const head = [0x12, 0x34, flags >> 8, flags & 0xff, ...counts.flatMap((count) => [0, count])]
      exercise(Uint8Array.from([...head, ...octets]))
      exercise(Uint8Array.from(octets))
    }),
    { seed, numRuns: 3000 }
  )
  t.pass('nothing else')
})

test('every prefix of a golden message gives a WireError', async (t) => {
  for (const { name, octets } of readVectors()) {
    for (let size = 0; size < octets.length; size++) {
      if (exercise(octets.slice(0, size))) t.fail(`${name}: its first ${size} octets`)
    }
    t.pass(name)
  }
})

test('what once broke a codec gives a WireError at once', async (t) => {
  for (const { name, octets } of readCrashers()) {
    // 1000 times: one that takes 2 ms or allocates 64 Ki entries shows.
    const tookMs = cpuMsOf(() => {
      for (let round = 0; round < 1000; round++) if (exercise(octets)) t.fail(`${name} is taken for a message`)
    })
    t.ok(tookMs < 2000, name)
  }
})

/** A message of 64 KiB: a head with so many answers, and as many equal records as fit. */
function filled(head: string, record: string, answersInHead = 0): Uint8Array {
  const parts = [hex(head), hex(record)] as const
  const count = Math.floor((65_535 - parts[0].length) / parts[1].length)
  const octets = Buffer.concat([parts[0], ...Array.from({ length: count }, () => parts[1])])
  octets.writeUInt16BE(answersInHead + count, 6)
  return octets
}

test('the largest messages that cost most stay cheap', async (t) => {
  const longName = `${'01 61 '.repeat(127)} 00`
  // A root octet at 23 and 125 pointers behind it, each to the one before; the last one is at 272.
  const pointers = Array.from({ length: 125 }, (_, i) => (0xc000 | (i === 0 ? 23 : 22 + i * 2)).toString(16))
  const chain = `1234 8180 0000 0000 0000 0000 00 000a 0001 00000000 00fb 00 ${pointers.join(' ')}`
  const worst: [string, Uint8Array][] = [
    ['owners at the end of 125 pointers', filled(chain, 'c110 0001 0001 00000000 0004 0a000001', 1)],
    [
      'owners that point to 255 octets',
      filled(`1234 8180 0001 0000 0000 0000 ${longName} 0001 0001`, 'c00c 0001 0001 00000000 0004 0a000001')
    ],
    [
      'RDATA that points to 255 octets twice',
      filled(`1234 8180 0001 0000 0000 0000 ${longName} 0001 0001`, 'c00c 000e 0001 00000000 0004 c00c c00c')
    ],
    [
      'SVCB of nothing but keys',
      filled(
        '1234 8180 0000 0000 0000 0000',
        '00 0040 0001 00000000 0013 0001 00 0000 0000 0001 0000 0002 0000 0003 0000'
      )
    ],
    ['empty TXT strings', filled('1234 8180 0000 0000 0000 0000', '00 0010 0001 00000000 0010 00*16')],
    ['names of 127 labels', filled('1234 8180 0000 0000 0000 0000', `${longName} 0001 0001 00000000 0004 0a000001`)]
  ]
  for (const [name, octets] of worst) {
    let message = decodeMessage(octets)
    const tookMs = cpuMsOf(() => (message = decodeMessage(octets)))
    t.ok(tookMs < longestMs, `${name}: ${message.answer.length} records in ${tookMs.toFixed(1)} ms`)
    t.ok(cpuMsOf(() => tryEncode(message)) < longestMs, `${name}: encoding`)
  }
})

test('names that collide in the compression table cost no more than others', async (t) => {
  // 5000 owners below one another in one table of 256 labels.
  const answer = Array.from({ length: 2500 }, (_, i) => `${i}`.padStart(4, '0'))
    .map((label) => `04 ${Buffer.from(label).toString('hex')} 00 0001 0001 00000000 0004 0a000001`)
    .join(' ')
  const octets = Buffer.from(hex(`1234 8180 0000 09c4 0000 0000 ${answer}`))
  const message = decodeMessage(octets)
  const tookMs = cpuMsOf(() => {
    for (let round = 0; round < 20; round++) encodeMessage(message)
  })
  t.ok(tookMs < 20 * 50, '2500 names in under 50 ms')
})
