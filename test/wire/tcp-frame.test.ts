import * as fc from 'fast-check'
import { test } from 'tap'
import { frameMessage, TcpFrameReader } from '../../src/wire/tcp-frame.ts'
import { concat } from '../../src/wire/octets.ts'
import { seed } from './arbitraries.ts'
import { hex } from './message-text.ts'

/** Everything the reader has, copied, since each message is only valid until the next push. */
function readAll(reader: TcpFrameReader): Uint8Array[] {
  const messages: Uint8Array[] = []
  for (let message = reader.next(); message !== null; message = reader.next()) messages.push(Uint8Array.from(message))
  return messages
}

const messages = [hex('01 02 03'), new Uint8Array(0), hex('04'), new Uint8Array(300).fill(7), hex('05 06')]
const stream = concat(messages.map(frameMessage))

test('TcpFrameReader finds the messages at every place where a stream can be cut', async (t) => {
  for (let first = 0; first <= stream.length; first++) {
    const reader = new TcpFrameReader()
    reader.push(stream.subarray(0, first))
    const found = readAll(reader)
    reader.push(stream.subarray(first))
    found.push(...readAll(reader))
    if (!found.every((message, i) => Buffer.compare(message, messages[i]!) === 0)) t.fail(`cut at ${first}`)
    if (found.length !== messages.length || reader.isMidMessage) t.fail(`cut at ${first}: ${found.length} messages`)
  }
  const byOctets = new TcpFrameReader()
  const found = Array.from(stream, (octet) => {
    byOctets.push(Uint8Array.of(octet))
    return readAll(byOctets)
  })
  t.same(found.flat(), messages, 'one octet at a time')
  const joined = new TcpFrameReader()
  joined.push(stream)
  t.same(readAll(joined), messages, 'all in one read')
})

test('TcpFrameReader finds the messages however reads are split and joined', async (t) => {
  const sizes = fc.array(fc.oneof(fc.nat(20), fc.nat(5000), fc.constant(65_535)), { maxLength: 12 })
  const cuts = fc.array(fc.integer({ min: 1, max: 9000 }), { minLength: 1, maxLength: 8 })
  fc.assert(
    fc.property(sizes, cuts, fc.boolean(), (lengths, pieces, readsLate) => {
      const sent = lengths.map((length, i) => new Uint8Array(length).fill(i + 1))
      const octets = concat(sent.map(frameMessage))
      const reader = new TcpFrameReader()
      const found: Uint8Array[] = []
      for (let at = 0, i = 0; at < octets.length; i++) {
        const piece = octets.slice(at, at + pieces[i % pieces.length]!)
        at += piece.length
        reader.push(piece)
        piece.fill(0xee)
        if (!readsLate) found.push(...readAll(reader))
      }
      found.push(...readAll(reader))
      t.equal(found.length, sent.length)
      t.ok(found.every((message, i) => Buffer.compare(message, sent[i]!) === 0))
      t.equal(reader.bufferedOctets, 0)
    }),
    { seed, numRuns: 60 }
  )
})

test('TcpFrameReader holds what came, not what was announced', async (t) => {
  const reader = new TcpFrameReader()
  reader.push(hex('ffff 00 00 00'))
  t.equal(reader.next(), null)
  t.equal(reader.bufferedOctets, 5)
  t.equal(reader.isMidMessage, true)
  reader.push(new Uint8Array(65_532))
  t.equal(reader.next()?.length, 65_535, 'the longest message')
  t.equal(reader.next(), null)
  t.equal(reader.isMidMessage, false)
  reader.push(hex('00'))
  t.equal(reader.isMidMessage, true, 'half a length')
  reader.push(hex('01 aa'))
  const message = reader.next()!
  t.same(message, hex('aa'))
  t.ok(message.buffer.byteLength < 10_000, 'room for a large message is given back')
})

test('frameMessage puts the length in front', async (t) => {
  t.same(frameMessage(hex('aabb')), hex('0002 aabb'))
  t.same(frameMessage(new Uint8Array(0)), hex('0000'))
  t.equal(frameMessage(new Uint8Array(65_535)).length, 65_537)
  t.throws(() => frameMessage(new Uint8Array(65_536)), { code: 'TOO_LARGE' })
})
