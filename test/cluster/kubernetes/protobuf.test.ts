/**
 * Protobuf from an API server: it says the same as JSON, however it arrives, and what is no such thing is one error.
 */
import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { test } from 'tap'
import { apiObjectOctets } from '../../../src/base/limits.ts'
import { reduceObject } from '../../../src/cluster/objects.ts'
import type { ObjectKind } from '../../../src/cluster/objects.ts'
import { ApiError, errorOfStatus } from '../../../src/cluster/sources/kubernetes/api-error.ts'
import { metadataOf } from '../../../src/cluster/sources/kubernetes/held-objects.ts'
import { originOf } from '../../../src/cluster/sources/kubernetes/origin-time.ts'
import { readEnveloped } from '../../../src/cluster/sources/kubernetes/protobuf/envelope.ts'
import {
  endpointSliceMessage,
  metadataMessage,
  podMessage,
  serviceMessage,
  statusMessage
} from '../../../src/cluster/sources/kubernetes/protobuf/kubernetes-messages.ts'
import type { MessageType } from '../../../src/cluster/sources/kubernetes/protobuf/message.ts'
import { ProtobufListScanner } from '../../../src/cluster/sources/kubernetes/protobuf/protobuf-list-scanner.ts'
import { WatchFrames } from '../../../src/cluster/sources/kubernetes/protobuf/watch-frames.ts'
import { delimited, encodeEvent, encodeList, encodeMessage, enveloped, varint } from '../../support/protobuf-objects.ts'
import { paths, service, setUp } from './fixture.ts'

/**
 * What kube-apiserver 1.34 answered in JSON (`.json`, a watch `.jsonl`) and in protobuf (`.pb`) to the same questions.
 */
const recorded = (name: string): Buffer => readFileSync(new URL(`../../data/api-server/${name}`, import.meta.url))

type Item = Readonly<Record<string, unknown>>
type ListText = Readonly<{ metadata: Readonly<{ resourceVersion: string; continue?: string }>; items: Item[] }>

/** The octets in chunks that end at these offsets, wherever they fall. */
function chunksOf(whole: Buffer, cuts: readonly number[]): Buffer[] {
  const ends = [...cuts.map((cut) => cut % (whole.length + 1)), whole.length].sort((a, b) => a - b)
  return ends.map((end, index) => whole.subarray(index === 0 ? 0 : ends[index - 1], end))
}

const cutPlaces = fc.array(fc.nat(100_000), { maxLength: 12 })

function readList(type: MessageType, chunks: readonly Buffer[]) {
  const scanner = new ProtobufListScanner(type)
  const items = chunks.flatMap((chunk) => [...scanner.push(chunk)])
  return { items, ...scanner.end() }
}

/** All that is read of an object. */
const readingOf = (raw: unknown, kind: ObjectKind) => ({
  reduced: reduceObject(raw, kind),
  metadata: metadataOf(raw),
  originAtMs: originOf(raw, kind, Date.parse('2026-11-30T12:00:30Z'))
})

const kinds: readonly [file: string, kind: ObjectKind, type: MessageType][] = [
  ['services', 'Service', serviceMessage],
  ['endpointslices', 'EndpointSlice', endpointSliceMessage],
  ['namespaces', 'Namespace', metadataMessage],
  ['pods', 'Pod', podMessage]
]

for (const [file, kind, type] of kinds) {
  test(`a real list of ${file} says the same in protobuf and in JSON, however it arrives`, async (t) => {
    const { metadata, items } = JSON.parse(recorded(`${file}.json`).toString()) as ListText
    const wanted = items.map((item) => readingOf(item, kind))
    const octets = recorded(`${file}.pb`)
    const whole = readList(type, [octets])
    t.same(whole.items.map((item) => readingOf(item, kind)), wanted) // prettier-ignore
    t.equal(whole.resourceVersion, metadata.resourceVersion)
    t.equal(whole.continueToken, '')
    fc.assert(
      fc.property(
        cutPlaces,
        (cuts) => JSON.stringify(readList(type, chunksOf(octets, cuts))) === JSON.stringify(whole)
      ),
      { seed: 20_261_130 }
    )
    t.same(
      readList(
        type,
        chunksOf(
          octets,
          Array.from({ length: octets.length }, (_, at) => at)
        )
      ),
      whole,
      'one by one'
    )
  })
}

test('a real page of metadata alone, a watch and an error say the same in protobuf and in JSON', async (t) => {
  const page = JSON.parse(recorded('metadata-page.json').toString()) as ListText
  const { items, continueToken, resourceVersion } = readList(metadataMessage, [recorded('metadata-page.pb')])
  t.same(items.map(metadataOf), page.items.map(metadataOf)) // prettier-ignore
  t.equal(continueToken, page.metadata.continue)
  t.equal(resourceVersion, page.metadata.resourceVersion)

  for (const file of ['watch', 'watch-expired']) {
    const lines = recorded(`${file}.jsonl`).toString().trim().split('\n')
    const wanted = lines.map((line) => JSON.parse(line) as { type: string; object: unknown })
    const octets = recorded(`${file}.pb`)
    const frames = new WatchFrames(serviceMessage)
    const events = [...frames.push(octets)]
    t.equal(frames.pendingOctets, 0)
    t.same(events.map(({ type }) => type), wanted.map(({ type }) => type)) // prettier-ignore
    for (const [at, { type, object }] of events.entries()) {
      const other = wanted[at]!.object
      if (type === 'ERROR') t.same(errorOfStatus(object, 0), errorOfStatus(other, 0))
      else t.same(readingOf(object, 'Service'), readingOf(other, 'Service'))
    }
    fc.assert(
      fc.property(cutPlaces, (cuts) => {
        const inPieces = new WatchFrames(serviceMessage)
        const got = chunksOf(octets, cuts).flatMap((chunk) => [...inPieces.push(chunk)])
        return JSON.stringify(got) === JSON.stringify(events)
      }),
      { seed: 20_261_130 }
    )
  }
  const status = readEnveloped(recorded('error.pb'), statusMessage)
  t.same(errorOfStatus(status, 400), errorOfStatus(JSON.parse(recorded('error.json').toString()), 400))
})

/** Whatever is in them, it is read or refused; a bug would be another error, or none and no end. */
function isReadOrRefused(read: () => unknown): boolean {
  try {
    read()
    return true
  } catch (error) {
    return error instanceof ApiError && error.kind === 'format'
  }
}

/** Octets that were changed, taken away or put in. */
const mutation = fc.record({ at: fc.nat(100_000), remove: fc.nat(6), insert: fc.uint8Array({ maxLength: 6 }) })

function mutated(whole: Buffer, mutations: readonly { at: number; remove: number; insert: Uint8Array }[]): Buffer {
  let octets = whole
  for (const { at, remove, insert } of mutations) {
    const from = at % (octets.length + 1)
    octets = Buffer.concat([octets.subarray(0, from), insert, octets.subarray(from + remove)])
  }
  return octets
}

test('random and mutated octets are read or refused as a format, by lists, watches and single messages', async () => {
  const sources = kinds.map(([file, , type]) => [recorded(`${file}.pb`), type] as const)
  const octets = fc.oneof(
    fc.uint8Array({ maxLength: 200 }).map((random) => [Buffer.from(random), serviceMessage] as const),
    fc
      .uint8Array({ maxLength: 200 })
      .map((random) => [Buffer.concat([Buffer.from('k8s\0'), random]), podMessage] as const),
    fc
      .tuple(fc.constantFrom(...sources), fc.array(mutation, { minLength: 1, maxLength: 5 }))
      .map(([[whole, type], mutations]) => [mutated(whole, mutations), type] as const)
  )
  fc.assert(
    fc.property(octets, cutPlaces, ([octets, type], cuts) => {
      return (
        isReadOrRefused(() =>
          readList(type, chunksOf(octets, cuts)).items.map((item) => reduceObject(item, 'Service'))
        ) && isReadOrRefused(() => readEnveloped(octets, type))
      )
    }),
    { numRuns: 2_000, seed: 20_261_130 }
  )
  const watch = recorded('watch.pb')
  fc.assert(
    fc.property(fc.array(mutation, { maxLength: 5 }), cutPlaces, (mutations, cuts) =>
      isReadOrRefused(() => {
        const frames = new WatchFrames(serviceMessage)
        return chunksOf(mutated(watch, mutations), cuts).flatMap((chunk) => [...frames.push(chunk)])
      })
    ),
    { numRuns: 1_000, seed: 20_261_130 }
  )
})

test('what is written by the same tables is read back, among fields that nobody knows', async () => {
  const texts = fc.string({ unit: 'grapheme', maxLength: 80 })
  const metadata = fc.record({
    name: texts,
    namespace: texts,
    uid: texts,
    resourceVersion: texts,
    labels: fc.record({ 'kubernetes.io/service-name': texts }, { requiredKeys: [] }),
    annotations: fc.record({ 'peerdns.io/ttl': texts }, { requiredKeys: [] })
  })
  const port = fc.record({ name: texts, protocol: texts, port: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }) })
  const slice = fc.record({
    metadata,
    endpoints: fc.array(
      fc.record(
        {
          addresses: fc.array(texts, { minLength: 1, maxLength: 3 }),
          conditions: fc.record({ ready: fc.boolean(), serving: fc.boolean() }, { requiredKeys: [] }),
          hostname: texts
        },
        { requiredKeys: ['addresses', 'conditions'] }
      ),
      { minLength: 1, maxLength: 4 }
    ),
    ports: fc.array(port, { minLength: 1, maxLength: 3 }),
    addressType: texts
  })
  const withEntries = ({ metadata, ...rest }: { metadata: { labels: object; annotations: object } }) => {
    const { labels, annotations, ...others } = metadata
    // A map without entries is not written.
    const kept = Object.entries({ labels, annotations }).filter(([, entries]) => Object.keys(entries).length > 0)
    return { metadata: { ...others, ...Object.fromEntries(kept) }, ...rest }
  }
  const sorted = (value: unknown): unknown =>
    JSON.stringify(value, (_, one: unknown) =>
      typeof one === 'object' && one !== null && !Array.isArray(one)
        ? Object.fromEntries(Object.entries(one).sort(([a], [b]) => (a < b ? -1 : 1)))
        : one
    )
  fc.assert(
    fc.property(fc.array(slice, { maxLength: 3 }), cutPlaces, (slices, cuts) => {
      const octets = encodeList(
        endpointSliceMessage,
        'EndpointSliceList',
        { resourceVersion: '7', continue: 'x' },
        slices
      )
      const { items, resourceVersion, continueToken } = readList(endpointSliceMessage, chunksOf(octets, cuts))
      return sorted(items) === sorted(slices.map(withEntries)) && resourceVersion === '7' && continueToken === 'x'
    }),
    { seed: 20_261_130 }
  )
})

test('ProtobufListScanner and WatchFrames: what is refused', async (t) => {
  const item = encodeMessage(serviceMessage, { metadata: { name: 'web' } })
  const list = (...parts: Buffer[]): Buffer => enveloped('ServiceList', Buffer.concat(parts))
  const head = delimited(1, delimited(2, '7'))
  const rows: readonly { name: string; octets: Buffer; want: RegExp }[] = [
    { name: 'nothing', octets: Buffer.alloc(0), want: /breaks off/ },
    { name: 'JSON', octets: Buffer.from('{"kind":"ServiceList"}'), want: /no Kubernetes message/ },
    { name: 'no list', octets: enveloped('Service', Buffer.concat([head, delimited(2, item)])), want: /no list/ },
    { name: 'no resourceVersion', octets: list(delimited(2, item)), want: /without resourceVersion/ },
    { name: 'broken off', octets: list(head, delimited(2, item)).subarray(0, 60), want: /breaks off/ },
    { name: 'a field beyond the list', octets: Buffer.concat([Buffer.from('k8s\0'), varint(18), varint(2), head]), want: /longer than it says/ },
    { name: 'a number in the list', octets: list(head, Buffer.from([8, 1])), want: /wire type 0/ },
    { name: 'a large item', octets: list(head, varint(18), varint(apiObjectOctets + 1)), want: /of more than/ },
    { name: 'an endless number', octets: Buffer.concat([Buffer.from('k8s\0'), Buffer.alloc(30, 0xff)]), want: /64 bits/ },
    { name: 'text for a number', octets: list(head, delimited(2, delimited(2, delimited(1, delimited(3, 'x'))))), want: /wire type 2 for port/ },
    { name: 'a field beyond its message', octets: list(head, delimited(2, Buffer.concat([varint(10), varint(9), varint(10), varint(1)]))), want: /longer than its message/ }
  ] // prettier-ignore
  for (const { name, octets, want } of rows) t.throws(() => readList(serviceMessage, [octets]), want, name)
  t.same(readList(serviceMessage, [list(head)]).items, [], 'an empty list is none of these')

  const frames = (...chunks: Buffer[]) => chunks.flatMap((chunk) => [...new WatchFrames(serviceMessage).push(chunk)])
  t.throws(() => frames(Buffer.from('{"type":"ADDED"}')), /a watch event of more than/)
  t.throws(() => frames(Buffer.from([0, 0, 0, 2, 0x0a, 0])), /without type or object/)
  t.same(frames(encodeEvent(serviceMessage, { type: 'ADDED', object: service('web') })).length, 1)
})

test('an API server that speaks protobuf is listed, watched and audited in it', async (t) => {
  const { server, model, settled, until, source } = await setUp(t, {
    knowsProtobuf: true,
    prepare: (server) => {
      for (const name of ['web', 'api']) server.put(paths.services, service(name))
    }
  })
  server.put(paths.services, service('web', '10.0.0.9'))
  server.delete(paths.services, 'shop', 'api')
  await settled()
  t.match(JSON.parse(model.objects.get('Service/shop/web')!), { clusterIPs: ['10.0.0.9'] })
  const ofServices = server.requests.filter(({ path }) => path === paths.services)
  t.ok(ofServices.every(({ headers }) => headers.accept === 'application/vnd.kubernetes.protobuf,application/json'))
  await until(() => source.status().audits.finished >= 3, 'audits', 500)
  t.equal(source.status().resources.reduce((sum, { drift, unreadable }) => sum + drift + unreadable, 0), 0) // prettier-ignore
  const audit = server.requests.find(({ headers }) => headers.accept?.includes('PartialObjectMetadataList'))!
  t.ok(audit.headers.accept!.startsWith('application/vnd.kubernetes.protobuf;as='))
  server.compact()
  server.put(paths.services, service('late'))
  server.cutWatches()
  await settled(200)
  t.ok(model.objects.has('Service/shop/late'))
})

test('protobuf that cannot be read is asked for as JSON from then on', async (t) => {
  const { server, model, lines, settled, resource } = await setUp(t, { knowsProtobuf: true })
  server.sendToWatches(paths.services, 'this is no frame')
  server.put(paths.services, service('web'))
  await settled(500)
  t.ok(model.objects.has('Service/shop/web'))
  t.equal(resource('services').unreadable, 1)
  const last = server.requests.findLast(({ path }) => path === paths.services)!
  t.equal(last.headers.accept, 'application/json')
  t.ok(lines.some(({ text }) => text === 'the API server cannot be understood'))
})
