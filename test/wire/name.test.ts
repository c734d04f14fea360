import * as fc from 'fast-check'
import { test } from 'tap'
import { WireError } from '../../src/base/errors.ts'
import {
  expandName,
  isAtOrBelow,
  joinLabels,
  labelCount,
  labelsOf,
  nameFromOctets,
  nameToOctets,
  nameToText,
  parentOf,
  parseName,
  parseNameOctets,
  readName,
  replaceSuffix,
  rootName
} from '../../src/wire/name.ts'
import { domainName, seed } from './arbitraries.ts'
import { hex } from './message-text.ts'

const codeOf = (run: () => unknown): string => {
  try {
    run()
    return 'no error'
  } catch (error) {
    if (error instanceof WireError) return error.code
    throw error
  }
}

const longest = `${'a'.repeat(63)}.${'b'.repeat(63)}.${'c'.repeat(63)}.${'d'.repeat(61)}`

test('parseName reads presentation format', async (t) => {
  const rows: [string, string, string][] = [
    ['a name', 'api.backend.svc', '\x03api\x07backend\x03svc\0'],
    ['a last dot', 'api.backend.', '\x03api\x07backend\0'],
    ['the root', '.', '\0'],
    ['capital letters', 'API.Backend', '\x03api\x07backend\0'],
    ['an escaped dot', 'a\\.b.c', '\x03a.b\x01c\0'],
    ['decimal escapes, also of a capital letter', 'a\\000\\255\\065', '\x04a\x00\xffa\0'],
    ['a letter outside of ASCII is no letter', '\\192.x', '\x01\xc0\x01x\0'],
    ['what hosts may not have', '_http._tcp.*.a b'.replace(' ', '\\032'), '\x05_http\x04_tcp\x01*\x03a b\0'],
    ['63 octets', 'x'.repeat(63), `\x3f${'x'.repeat(63)}\0`]
  ]
  for (const [name, text, want] of rows) t.equal(parseName(text), want, name)
  t.equal(parseName(longest).length, 255, '255 octets')
  t.same(parseNameOctets('Api.X'), hex('03 417069 01 58 00'), 'parseNameOctets keeps the case')
})

test('parseName rejects what is no name', async (t) => {
  const rows: [string, string, string, number][] = [
    ['nothing', '', 'BAD_TEXT', 0],
    ['an empty label', 'a..b', 'BAD_TEXT', 2],
    ['a dot in front', '.a', 'BAD_TEXT', 0],
    ['two dots at the end', 'a..', 'BAD_TEXT', 2],
    ['64 octets', 'x'.repeat(64), 'BAD_LABEL', 64],
    ['256 octets', `${longest}d`, 'NAME_TOO_LONG', 254],
    ['half an escape', 'a\\', 'BAD_TEXT', 1],
    ['two digits', 'a\\12', 'BAD_TEXT', 1],
    ['an escape over 255', 'a\\256', 'BAD_TEXT', 1],
    ['a space', 'a b', 'BAD_TEXT', 1],
    ['a tab', 'a\tb', 'BAD_TEXT', 1],
    ['a letter outside of ASCII', 'bücher.example', 'BAD_TEXT', 1]
  ]
  for (const [name, text, code, offset] of rows) t.throws(() => parseName(text), { code, offset }, name)
})

test('nameToText writes what parseName reads back', async (t) => {
  t.equal(nameToText(rootName), '.')
  t.equal(nameToText(parseName('a\\.b\\000\\\\\\"\\032\\;.C')), 'a\\.b\\000\\\\\\"\\032\\;.c.')
  fc.assert(
    fc.property(
      domainName,
      (name) => parseName(nameToText(name)) === name && nameFromOctets(nameToOctets(name), 0) === name
    ),
    { seed }
  )
  t.pass('round trip')
})

test('readName follows pointers backwards', async (t) => {
  // A header's room, then: 12 "svc", 16 "local", 22 root; 23 "Api" -> 12; 29 -> 23.
  const message = hex('00*12 03 737663 05 6c6f63616c 00 03 417069 c00c c017')
  const rows: [string, number, string, number][] = [
    ['no pointer', 12, 'svc.local.', 23],
    ['the tail of a name', 16, 'local.', 23],
    ['the root', 22, '.', 23],
    ['labels and a pointer, in lower case', 23, 'api.svc.local.', 29],
    ['a pointer to a pointer', 29, 'api.svc.local.', 31]
  ]
  for (const [name, at, want, end] of rows) {
    const read = readName(message, at)
    t.equal(nameToText(read.name), want, name)
    t.equal(read.end, end, `${name}: its end`)
  }
  const kept = new Uint8Array(255)
  t.equal(expandName(message, 23, message.length, kept, 0, 'TRUNCATED'), 29)
  t.equal(Buffer.from(kept).toString('latin1', 0, 15), '\x03Api\x03svc\x05local\0', 'expandName keeps the case')
})

test('readName rejects what leads nowhere', async (t) => {
  const rows: [string, string, number, string][] = [
    ['nothing', '00*12', 12, 'TRUNCATED'],
    ['a label that runs off', '00*12 05 6162', 12, 'TRUNCATED'],
    ['no root behind the label', '00*12 02 6162', 12, 'TRUNCATED'],
    ['half a pointer', '00*12 c0', 12, 'TRUNCATED'],
    ['half a pointer behind a label', '00*12 01 61 c0', 12, 'TRUNCATED'],
    ['a pointer to itself', '00*12 c00c', 12, 'BAD_POINTER'],
    ['a pointer to its own labels', '00*12 01 61 c00c', 12, 'BAD_POINTER'],
    ['a pointer forward', '00*12 c00e 01 61 00', 12, 'BAD_POINTER'],
    ['a pointer into the header', '00*12 c004', 12, 'BAD_POINTER'],
    ['two pointers in a circle', '00*12 01 61 c010 01 62 c00c', 16, 'BAD_POINTER'],
    ['reserved label type 01', '00*12 40 61*64 00', 12, 'BAD_LABEL'],
    ['reserved label type 10', '00*12 80 00', 12, 'BAD_LABEL'],
    ['an extended label type (RFC 2673)', '00*12 41 08 ff 00', 12, 'BAD_LABEL'],
    ['256 octets', '00*12 3f 78*63 3f 78*63 3f 78*63 3e 79*62 00', 12, 'NAME_TOO_LONG'],
    ['256 octets by way of a pointer', '00*12 3f 78*63 3f 78*63 3f 78*63 00 3f 79*63 c00c', 205, 'NAME_TOO_LONG'],
    ['128 labels', `00*12 ${'01 61 '.repeat(127)} 01 61 00`, 12, 'NAME_TOO_LONG']
  ]
  for (const [name, octets, at, want] of rows)
    t.equal(
      codeOf(() => readName(hex(octets), at)),
      want,
      name
    )
  const most = hex(`00*12 ${'01 61 '.repeat(127)} 00`)
  t.equal(labelCount(readName(most, 12).name), 127, '127 labels and 255 octets are right')
  t.equal(
    codeOf(() => readName(most, 12, most.length - 1)),
    'TRUNCATED',
    'the limit counts, not the end of the buffer'
  )
})

test('readName bounds the jumps of one name', async (t) => {
  // 200 pointers, each to the one before; the first leads to a root octet.
  const octets = new Uint8Array(13 + 400)
  for (let i = 0; i < 200; i++) {
    const target = i === 0 ? 12 : 13 + (i - 1) * 2
    octets.set([0xc0 | (target >> 8), target & 0xff], 13 + i * 2)
  }
  t.equal(readName(octets, 13 + 125 * 2).name, rootName, '126 jumps')
  t.equal(
    codeOf(() => readName(octets, 13 + 126 * 2)),
    'TOO_MANY_POINTERS',
    '127 jumps'
  )
})

test('isAtOrBelow and replaceSuffix cut at labels only', async (t) => {
  const local = parseName('cluster.local')
  const rows: [string, boolean][] = [
    ['cluster.local', true],
    ['a.cluster.local', true],
    ['xcluster.local', false],
    ['local', false],
    // The label's octets look like the suffix, length octets included.
    ['x\\007cluster\\005local', false]
  ]
  for (const [text, want] of rows) t.equal(isAtOrBelow(parseName(text), local), want, text)
  t.equal(isAtOrBelow(local, rootName), true, 'all is below the root')
  t.equal(replaceSuffix(parseName('api.cluster.local'), local, parseName('a.example')), parseName('api.a.example'))
  t.equal(replaceSuffix(parseName('api.example'), local, parseName('a.example')), null, 'not below')
  t.equal(
    replaceSuffix(parseName(`${longest.slice(0, 230)}.x`), parseName('x'), parseName('y'.repeat(60))),
    null,
    'too long'
  )
})

test('joinLabels, labelsOf and parentOf take names apart and join them again', async (t) => {
  fc.assert(
    fc.property(domainName, (name) => {
      const labels = labelsOf(name)
      const parent = parentOf(name)
      const isWhole = joinLabels(labels, rootName) === name && labelCount(name) === labels.length
      return isWhole && (parent === null ? name === rootName : joinLabels(labels.slice(0, 1), parent) === name)
    }),
    { seed }
  )
  t.equal(joinLabels(['API', '\xc0'], parseName('x')), '\x03api\x01\xc0\x01x\0', 'only ASCII gets lower case')
  for (const label of ['', 'x'.repeat(64), 'ű'])
    t.throws(() => joinLabels([label], rootName), { code: 'BAD_LABEL' }, label)
  t.throws(() => joinLabels(['x'.repeat(63)], parseName(longest)), { code: 'NAME_TOO_LONG' })
})
