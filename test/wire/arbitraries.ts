/**
 * Random names, RDATA, records and messages for property tests: every type that has a layout, and some that have none.
 */
import * as fc from 'fast-check'
import type { Edns } from '../../src/wire/edns.ts'
import { CLASS, RRTYPE } from '../../src/wire/iana.ts'
import type { Message } from '../../src/wire/message.ts'
import { type DomainName, joinLabels, rootName } from '../../src/wire/name.ts'
import { concat, octetsOf, u16Octets } from '../../src/wire/octets.ts'
import { formatOf, type RdataField } from '../../src/wire/rdata-format.ts'
import type { Rdata, ResourceRecord } from '../../src/wire/rr.ts'

/** A fixed seed: a failure is the same failure everywhere. */
export const seed = 20_261_130

const octets = (minLength: number, maxLength: number): fc.Arbitrary<Uint8Array> =>
  fc.uint8Array({ minLength, maxLength })

/** Objects as the codec makes them, never with a null prototype. */
const plainRecord = <T>(model: { [K in keyof T]: fc.Arbitrary<T[K]> }): fc.Arbitrary<T> =>
  fc.record<T>(model, { noNullPrototype: true })

/** Few labels that come again and again, so that names share suffixes. */
const usualLabel = fc.constantFrom('svc', 'cluster', 'local', 'Backend', 'api', '_http', '_tcp', 'example', 'ORG')

const svcParams = fc
  .uniqueArray(fc.oneof(fc.nat(12), fc.nat(65_534)), { maxLength: 5 })
  .chain((keys) =>
    fc.tuple(
      fc.constant(keys.toSorted((a, b) => a - b)),
      fc.array(octets(0, 20), { minLength: keys.length, maxLength: keys.length })
    )
  )
  .map(([keys, values]) => concat(keys.flatMap((key, i) => [u16Octets(key), u16Octets(values[i]!.length), values[i]!])))

/** All types with a layout but TSIG, which has a place of its own, and types without. */
export const recordTypes: readonly number[] = [
  ...Object.values(RRTYPE).filter((type) => formatOf(type) !== undefined && type !== RRTYPE.TSIG),
  RRTYPE.NULL,
  RRTYPE.DNSKEY,
  RRTYPE.URI,
  65_400
]

const ttlSeconds = fc.oneof(fc.nat(600), fc.nat(0x7fff_ffff))

type Text = (minLength: number, maxLength: number) => fc.Arbitrary<Uint8Array>

/** Names, RDATA and records from labels and texts of one kind. */
function recordsFrom(label: fc.Arbitrary<string>, text: Text) {
  /** Labels in the case they have. */
  const labels = fc.array(label, { maxLength: 6 }).filter((all) => all.join('').length + all.length < 255)
  const domainName: fc.Arbitrary<DomainName> = labels.map((all) => joinLabels(all, rootName))
  const nameOctets = labels.map((all) =>
    octetsOf(all.map((each) => String.fromCharCode(each.length) + each).join('') + '\0')
  )
  const withLength = (each: Uint8Array): Uint8Array => concat([Uint8Array.of(each.length), each])
  const string = text(0, 255).map(withLength)
  const fieldOctets: Record<RdataField, fc.Arbitrary<Uint8Array>> = {
    u8: octets(1, 1),
    u16: octets(2, 2),
    u32: octets(4, 4),
    u48: octets(6, 6),
    rcode: fc.oneof(fc.constantFrom(0, 16, 17, 18, 22), fc.nat(0xffff)).map(u16Octets),
    ipv4: octets(4, 4),
    ipv6: fc.oneof(
      octets(16, 16),
      fc.array(fc.constantFrom(0, 0, 0, 1), { minLength: 16, maxLength: 16 }).map((all) => Uint8Array.from(all))
    ),
    name: nameOctets,
    string,
    strings: fc.array(string, { minLength: 1, maxLength: 4 }).map(concat),
    sized: octets(0, 64).map((data) => concat([u16Octets(data.length), data])),
    tag: text(1, 15).map(withLength),
    value: text(0, 300),
    digest: octets(1, 48),
    params: svcParams,
    rest: octets(0, 64)
  }
  /** RDATA that fits the type; any octets for a type without a layout. */
  const rdataOf = (type: number): fc.Arbitrary<Rdata> => {
    const format = formatOf(type)
    if (format === undefined) return octets(0, 64)
    return fc.tuple(...format.fields.map((field) => fieldOctets[field])).map(concat)
  }
  const recordOf = (type: number): fc.Arbitrary<ResourceRecord> =>
    plainRecord({
      owner: domainName,
      type: fc.constant(type),
      class: fc.constant(CLASS.IN),
      ttlSeconds,
      rdata: rdataOf(type)
    })
  return { domainName, rdataOf, recordOf }
}

const anything = recordsFrom(
  fc.oneof(
    { weight: 5, arbitrary: usualLabel },
    { weight: 1, arbitrary: octets(1, 63).map((label) => Buffer.from(label).toString('latin1')) }
  ),
  octets
)
export const { domainName, rdataOf } = anything

/** Records without what other codecs cannot say: names of host characters only, texts of letters and digits only. */
export const plain = recordsFrom(
  fc.oneof(usualLabel, fc.stringMatching(/^[A-Za-z0-9_-]{1,20}$/)),
  (minLength, maxLength) =>
    fc.array(fc.integer({ min: 0x61, max: 0x7a }), { minLength, maxLength }).map((all) => Uint8Array.from(all))
)

export const resourceRecord: fc.Arbitrary<ResourceRecord> = fc
  .constantFrom(...recordTypes)
  .chain((type) => anything.recordOf(type))

const tsigRecord: fc.Arbitrary<ResourceRecord> = plainRecord({
  owner: domainName,
  type: fc.constant(RRTYPE.TSIG),
  class: fc.constant(CLASS.ANY),
  ttlSeconds: fc.constant(0),
  rdata: rdataOf(RRTYPE.TSIG)
})

export const edns: fc.Arbitrary<Edns> = plainRecord({
  version: fc.constant(0),
  udpPayloadOctets: fc.nat(0xffff),
  dnssecOk: fc.boolean(),
  options: fc.array(plainRecord({ code: fc.nat(0xffff), data: octets(0, 40) }), { maxLength: 4 })
})

const records = fc.array(resourceRecord, { maxLength: 6 })

export const message: fc.Arbitrary<Message> = plainRecord({
  id: fc.nat(0xffff),
  qr: fc.boolean(),
  opcode: fc.nat(15),
  aa: fc.boolean(),
  tc: fc.boolean(),
  rd: fc.boolean(),
  ra: fc.boolean(),
  ad: fc.boolean(),
  cd: fc.boolean(),
  rcode: fc.nat(15),
  upperRcode: fc.nat(255),
  questions: fc.array(plainRecord({ name: domainName, type: fc.nat(0xffff), class: fc.nat(0xffff) }), { maxLength: 2 }),
  answer: records,
  authority: records,
  additional: records,
  tsig: fc.option(tsigRecord, { freq: 4 }),
  edns: fc.option(edns)
}).map(({ upperRcode, tsig, ...rest }) => {
  const rcode = rest.edns === null ? rest.rcode : (upperRcode << 4) | rest.rcode
  return Object.assign(rest, { rcode, additional: tsig === null ? rest.additional : [...rest.additional, tsig] })
})
