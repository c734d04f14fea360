import * as fc from 'fast-check'
import { test } from 'tap'
import { WireError } from '../../src/base/errors.ts'
import {
  decodeLater,
  decodeMeta,
  decodeName,
  decodeState,
  encodeLater,
  encodeMeta,
  encodeName,
  encodeState,
  isPrivateType,
  metaRecord,
  nameRecord,
  privateType,
  stateRecord,
  type TransferMeta
} from '../../src/transfer/private-records.ts'
import { decodeMessage, encodeMessage } from '../../src/wire/message.ts'
import { parseName } from '../../src/wire/name.ts'
import { seed } from '../wire/arbitraries.ts'

const time = fc.nat(2 ** 31).map((ms) => ms * 1_000)
const epoch = fc.stringMatching(/^[!-~]{1,32}$/)
const meta: fc.Arbitrary<TransferMeta> = fc.record(
  {
    epoch,
    originAtMs: time,
    learnedAtMs: time,
    sentAtMs: time,
    pods: fc.record(
      {
        mode: fc.constantFrom<TransferMeta['pods']['mode'][]>('disabled', 'insecure', 'verified'),
        ttlSeconds: fc.nat(0x7fff_ffff)
      },
      { noNullPrototype: true }
    )
  },
  { noNullPrototype: true }
)

test('encodeMeta then decodeMeta gives the same, whatever a later version appends', async (t) => {
  fc.assert(
    fc.property(meta, fc.uint8Array({ maxLength: 8 }), (given, more) => {
      t.same(decodeMeta(encodeMeta(given)), given)
      t.same(decodeMeta(Uint8Array.from([...encodeMeta(given), ...more])), given)
    }),
    { seed }
  )
  const rows: [string, string][] = [
    ['empty', ''],
    ['with a space', 'a b'],
    ['too long', 'x'.repeat(33)],
    ['not ASCII', 'ä']
  ]
  const any = { originAtMs: 0, learnedAtMs: 0, sentAtMs: 0, pods: { mode: 'disabled', ttlSeconds: 5 } } as const
  for (const [name, bad] of rows) t.throws(() => encodeMeta({ ...any, epoch: bad }), RangeError, name)
})

test('encodeLater then decodeLater gives the same, within what two octets hold', async (t) => {
  for (const [given, want] of [
    [0, 0],
    [49.6, 50],
    [65_535, 65_535],
    [70_000, 65_535],
    [-3, 0]
  ] as const)
    // prettier-ignore
    t.equal(decodeLater(encodeLater(given)), want)
  t.throws(() => decodeLater(Uint8Array.of(1, 0)), WireError)
  t.throws(() => decodeLater(Uint8Array.of(2, 0, 1)), WireError)
})

test('encodeState then decodeState gives the same', async (t) => {
  for (const state of ['present', 'empty', 'unknown'] as const) t.equal(decodeState(encodeState(state)), state)
  t.doesNotThrow(() => decodeName(encodeName()))
})

test('private records: random octets decode, or are a WireError', async (t) => {
  const decoders = [decodeMeta, decodeState, decodeName]
  // Mostly with the right version, or nothing behind it would be looked at.
  const rdata = fc
    .tuple(fc.constantFrom(1, 1, 1, 0, 2), fc.uint8Array({ maxLength: 70 }))
    .map(([version, rest]) => Uint8Array.from([version, ...rest]))
  fc.assert(
    fc.property(fc.oneof(rdata, fc.constant(new Uint8Array(0))), fc.constantFrom(...decoders), (octets, decode) => {
      try {
        decode(octets)
      } catch (error) {
        if (!(error instanceof WireError) || error.code !== 'BAD_RDATA') throw error
      }
    }),
    { seed, numRuns: 2_000 }
  )
  t.throws(() => decodeMeta(encodeState('empty')), WireError, 'half a record')
  t.throws(() => decodeState(Uint8Array.of(1, 9)), WireError, 'an unknown state')
})

test('private records go through a message as records of unknown types', async (t) => {
  const apex = parseName('cluster.local')
  const given: TransferMeta = {
    epoch: '00ff00ff00ff00ff',
    originAtMs: 1_700_000_000_123,
    learnedAtMs: 1_700_000_000_125,
    sentAtMs: 1_700_000_000_130,
    pods: { mode: 'insecure', ttlSeconds: 5 }
  }
  const answer = [
    metaRecord(apex, given),
    stateRecord(parseName('api.backend.svc.cluster.local'), 'empty'),
    nameRecord(parseName('backend.svc.cluster.local'))
  ]
  const flags = { qr: true, opcode: 0, aa: true, tc: false, rd: false, ra: false, ad: false, cd: false, rcode: 0 }
  const sections = { questions: [], answer, authority: [], additional: [] }
  const read = decodeMessage(encodeMessage({ id: 1, ...flags, ...sections, edns: null }))
  t.same(read.answer, answer)
  t.same(decodeMeta(read.answer[0]!.rdata), given)
  t.same(
    read.answer.map(({ type }) => [type, isPrivateType(type)]),
    [
      [privateType.meta, true],
      [privateType.state, true],
      [privateType.name, true]
    ]
  )
  t.notOk(isPrivateType(1))
})
