/** The parts of list and watch that need no connection. */
import * as fc from 'fast-check'
import { test } from 'tap'
import type { ObjectEvent } from '../../../src/cluster/object-event.ts'
import { ApiError, errorOfStatus } from '../../../src/cluster/sources/kubernetes/api-error.ts'
import { BackOff } from '../../../src/cluster/sources/kubernetes/back-off.ts'
import { HeldObjects } from '../../../src/cluster/sources/kubernetes/held-objects.ts'
import { LineSplitter } from '../../../src/cluster/sources/kubernetes/line-splitter.ts'
import { ListScanner } from '../../../src/cluster/sources/kubernetes/list-scanner.ts'
import { originOf } from '../../../src/cluster/sources/kubernetes/origin-time.ts'
import { compareResourceVersions } from '../../../src/cluster/sources/kubernetes/resource-version.ts'
import { LossLog } from '../../../src/cluster/sources/kubernetes/loss-log.ts'
import { Turns } from '../../../src/cluster/sources/kubernetes/turns.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { silentLog, type Logger } from '../../../src/base/log.ts'
import { ManualClock } from '../../support/manual-clock.ts'
import { service } from './fixture.ts'

/** The text in chunks that end at these offsets, wherever they fall. */
function chunksOf(text: string, cuts: readonly number[]): Buffer[] {
  const whole = Buffer.from(text)
  const ends = [...cuts.map((cut) => cut % (whole.length + 1)), whole.length].sort((a, b) => a - b)
  return ends.map((end, index) => whole.subarray(index === 0 ? 0 : ends[index - 1], end))
}

const cuts = fc.array(fc.nat(100_000), { maxLength: 12 })

test('LineSplitter: the same lines however they arrive', async (t) => {
  const lines = fc.array(
    fc.string({ unit: 'grapheme' }).map((line) => line.replaceAll('\n', '')),
    { maxLength: 8 }
  )
  fc.assert(
    fc.property(lines, cuts, (lines, cuts) => {
      const splitter = new LineSplitter(10_000)
      const got = chunksOf(lines.map((line) => `${line}\n`).join(''), cuts).flatMap((chunk) => [
        ...splitter.push(chunk)
      ])
      return splitter.pendingOctets === 0 && JSON.stringify(got) === JSON.stringify(lines.filter((line) => line !== ''))
    }),
    { seed: 20_261_130 }
  )
  const splitter = new LineSplitter(10)
  t.same([...splitter.push(Buffer.from('0123456789\nrest'))], ['0123456789'])
  t.equal(splitter.pendingOctets, 4, 'a line that has not ended')
  t.throws(() => [...splitter.push(Buffer.from('1234567'))], /a line of more/, 'a line over the limit, before it ends')
})

test('ListScanner: the same items however they arrive', async (t) => {
  const anyMetadata = fc.dictionary(fc.string(), fc.constantFrom<unknown>('},{"metadata":{', '\\', 'é', 1, null))
  /** As API servers write them; some hold a list of what looks like items. */
  const usualItem = fc.record(
    { metadata: anyMetadata, spec: fc.jsonValue(), templates: fc.array(fc.record({ metadata: anyMetadata })) },
    { requiredKeys: ['metadata'] }
  )
  const list = fc.record({
    kind: fc.constant('ServiceList'),
    metadata: fc.record({ resourceVersion: fc.constant('7'), continue: fc.string() }),
    items: fc.array(fc.oneof(usualItem, fc.dictionary(fc.string(), fc.jsonValue())), { maxLength: 6 }),
    other: fc.record({ items: fc.array(fc.jsonValue()) })
  })
  fc.assert(
    fc.property(list, cuts, fc.boolean(), (list, cuts, isIndented) => {
      const scanner = new ListScanner()
      const text = JSON.stringify(list, null, isIndented ? 2 : 0)
      const items = chunksOf(text, cuts).flatMap((chunk) => [...scanner.push(chunk)])
      items.push(...scanner.rest())
      const head = scanner.end()
      return (
        JSON.stringify(items) === JSON.stringify(JSON.parse(text).items) &&
        head.continueToken === list.metadata.continue
      )
    }),
    { numRuns: 300, seed: 20_261_130 }
  )
  const metadata = '"metadata":{"resourceVersion":"7"}'
  const rows = [
    { name: 'no items', text: `{"kind":"AList",${metadata},"items":null}`, want: [] },
    { name: 'items last', text: `{"kind":"AList",${metadata},"items":[{"a":"]}"},{"b":"\\\\\\""}]}`, want: [{ a: ']}' }, { b: '\\"' }] },
    { name: 'items first', text: `{"items":[{}],"kind":"AList",${metadata}}`, want: [{}] },
    { name: 'broken off in an item', text: `{"kind":"AList",${metadata},"items":[{"a":1}`, want: /breaks off/ },
    { name: 'broken off in the head', text: '{"kind":"AList"', want: /breaks off/ },
    { name: 'empty', text: '', want: /not JSON/ },
    { name: 'HTML', text: '<html>', want: /not JSON/ },
    { name: 'no JSON between borders', text: `{"kind":"AList",${metadata},"items":[{"metadata":{x}},{"metadata":{}}]}`, want: /an item of a list that is not JSON/ },
    { name: 'an object', text: `{"kind":"Service",${metadata}}`, want: /no list/ },
    { name: 'a list of lists', text: `{"kind":"AList",${metadata},"items":[5]}`, want: /not objects/ },
    { name: 'no comma', text: `{"kind":"AList",${metadata},"items":[{}{}]}`, want: /not objects/ },
    { name: 'items twice', text: `{"kind":"AList",${metadata},"items":[{}],"items":[{}]}`, want: /twice/ },
    { name: 'no resourceVersion', text: '{"kind":"AList","metadata":{},"items":[]}', want: /without resourceVersion/ },
    { name: 'a text for items', text: `{"kind":"AList",${metadata},"items":"a"}`, want: /no list/ }
  ] // prettier-ignore
  for (const { name, text, want } of rows) {
    const scanner = new ListScanner()
    const read = () => {
      const items = [...scanner.push(Buffer.from(text)), ...scanner.rest()]
      return { items, head: scanner.end() }
    }
    if (want instanceof RegExp) t.throws(read, { kind: 'format', message: want }, name)
    else t.same(read(), { items: want, head: { resourceVersion: '7', continueToken: '' } }, name)
  }
  const long = { metadata: { name: 'x'.repeat(100_000) } }
  const scanner = new ListScanner()
  const text = JSON.stringify({ kind: 'AList', metadata: { resourceVersion: '7' }, items: [long, long, {}] })
  const chunks = Array.from({ length: Math.ceil(text.length / 4_096) }, (_, at) =>
    text.slice(at * 4_096, (at + 1) * 4_096)
  )
  t.same([...chunks.flatMap((chunk) => [...scanner.push(Buffer.from(chunk))]), ...scanner.rest()], [long, long, {}])
  const endless = new ListScanner()
  const filler = Buffer.alloc(1 << 20, 0x61)
  t.throws(
    () => {
      for (const chunk of [Buffer.from('{"kind":"'), filler, filler]) Array.from(endless.push(chunk))
    },
    /a list without its items of more than/,
    'an endless head'
  )
})

test('BackOff: doubles, within limits, for ever', async (t) => {
  const error = (status: number, retryAfter?: string) =>
    new ApiError('status', 'x', { status, ...(retryAfter === undefined ? {} : { retryAfter }) })
  const waits = (count: number, of: ApiError | null, random = 1) => {
    const backOff = new BackOff(() => random)
    return Array.from({ length: count }, () => backOff.nextMs(of))
  }
  t.same(waits(8, error(500)), [200, 400, 800, 1600, 3200, 5000, 5000, 5000])
  t.same(waits(3, error(500), 0), [100, 200, 400], 'jitter takes up to half')
  t.same(waits(9, error(403)).slice(-3), [12_800, 25_600, 30_000], 'refused')
  t.same(waits(3, error(410)), [0, 400, 800], 'the remedy is tried at once, the first time')
  t.same(waits(2, error(401)), [0, 400])
  t.same(waits(2, null), [200, 400], 'a watch that ended politely at once')
  t.same(waits(2, error(429, '7')), [7000, 7000], 'Retry-After')
  t.same(waits(1, error(429, '86400')), [60_000], 'which is kept up to a limit')
  t.ok(
    waits(5_000, error(500)).every((ms) => ms <= 5000),
    'thousands of failures'
  )
  const backOff = new BackOff(() => 1)
  backOff.nextMs(error(500))
  backOff.nextMs(error(500))
  backOff.reset()
  t.equal(backOff.nextMs(error(500)), 200)
  for (let times = 0; times < 20; times++) backOff.nextMs(error(500))
  t.same([backOff.nextMs(error(403)), backOff.nextMs(error(403))], [200, 400], 'refusals are counted by themselves')
  t.equal(backOff.nextMs(error(500)), 5000)
})

test('BackOff: an API server that is back is not waited for as long as one that is away', async (t) => {
  const away = new ApiError('network', 'connection refused')
  const failing = new ApiError('status', 'x', { status: 503 })
  const expired = new ApiError('status', 'x', { status: 410 })
  const backOff = new BackOff(() => 1)
  const waits = (...errors: readonly ApiError[]) => errors.map((error) => backOff.nextMs(error))
  t.same(waits(expired, away, away, away, away, away, away), [0, 400, 800, 1600, 3200, 5000, 5000])
  t.same(waits(expired), [0], 'it was away since: what was done about the history before says nothing')
  t.same(waits(expired, expired), [400, 800], 'but in a row only once')
  t.same(waits(away, away), [5000, 5000])
  t.same(waits(failing, failing, failing), [200, 400, 800], 'it answers, if only to say that it has just begun')
  t.same(waits(away, failing, away, failing), [5000, 200, 5000, 200], 'away again: no haste')
})

test('LossLog: silence is said at once, a short break never, and each loss once', async (t) => {
  const clock = new ManualClock()
  const lines: string[] = []
  const log = Object.assign(silentLog.child({}), {
    warn: () => lines.push('lost'),
    info: () => lines.push('back')
  }) as Logger
  const lossLog = new LossLog('services', clock, log, () => {})
  lossLog.lost({ message: 'cut' })
  lossLog.began()
  clock.advance(20_000)
  t.same(lines, [], 'a short break')
  lossLog.ended()
  lossLog.lost({ kind: 'network', message: 'cut' })
  clock.advance(2_000)
  t.same(lines, [])
  lossLog.lost({ kind: 'timeout', message: 'silent' })
  t.same(lines, ['lost'], 'silence')
  lossLog.lost({ kind: 'timeout', message: 'silent' })
  clock.advance(20_000)
  t.same(lines, ['lost'])
  lossLog.began()
  clock.advance(20_000)
  t.same(lines, ['lost', 'back'])
  lossLog.close()
})

test('errorOfStatus: from whatever came', async (t) => {
  const rows = [
    { name: 'HTTP', error: errorOfStatus({ message: 'gone', reason: 'Expired', code: 410 }, 410), want: { status: 410, isExpired: true } },
    { name: 'an ERROR event', error: errorOfStatus({ message: 'gone', code: 410 }, 0), want: { status: 410, isExpired: true } },
    { name: 'the reason alone', error: errorOfStatus({ reason: 'Expired' }, 0), want: { status: 0, isExpired: true } },
    { name: 'no Status at all', error: errorOfStatus(null, 502), want: { status: 502, isExpired: false, message: '502' } },
    { name: 'wait in the body', error: errorOfStatus({ details: { retryAfterSeconds: 3 } }, 429), want: { retryAfterSeconds: 3 } },
    { name: 'wait in a date', error: errorOfStatus(null, 429, 'Fri, 31 Dec 1999 23:59:59 GMT'), want: { retryAfterSeconds: null } },
    { name: 'from the future', error: errorOfStatus({ message: 'Timeout: Too large resource version: 9, current: 2' }, 504), want: { isFromTheFuture: true } }
  ] // prettier-ignore
  for (const { name, error, want } of rows) t.match(error, want, name)
})

test('compareResourceVersions: as numbers of any length', async (t) => {
  const rows = [
    ['9', '10', -1], ['10', '9', 1], ['10', '10', 0], ['18446744073709551615', '18446744073709551616', -1], ['a', '9', 0], ['', '9', 0]
  ] as const // prettier-ignore
  for (const [one, other, want] of rows) t.equal(compareResourceVersions(one, other), want, `${one} and ${other}`)
})

test('originOf: the latest moment that the API can mean', async (t) => {
  const at = Date.parse('2026-11-30T12:00:10.500Z')
  const slice = (text: unknown) => ({
    metadata: { annotations: { 'endpoints.kubernetes.io/last-change-trigger-time': text } }
  })
  const rows = [
    { name: 'no annotation', raw: { metadata: {} }, want: at },
    { name: 'no object', raw: null, want: at },
    { name: 'the same second', raw: slice('2026-11-30T12:00:10Z'), want: at },
    { name: 'three seconds ago', raw: slice('2026-11-30T12:00:07Z'), want: at - 2_501 },
    { name: 'with fractions', raw: slice('2026-11-30T12:00:10.25Z'), want: at - 250 },
    { name: 'over a minute ago', raw: slice('2026-11-30T11:59:00Z'), want: at },
    { name: 'from a clock that is ahead', raw: slice('2026-11-30T12:05:00Z'), want: at },
    { name: 'no time', raw: slice('yesterday'), want: at },
    { name: 'no text', raw: slice(5), want: at }
  ] // prettier-ignore
  for (const { name, raw, want } of rows) t.equal(originOf(raw, 'EndpointSlice', at), want, name)
  t.equal(originOf(slice('2026-11-30T12:00:07Z'), 'Service', at), at, 'other kinds')
})

test('HeldObjects: the exact difference', async (t) => {
  const version = (name: string, uid: string, resourceVersion: string, address = '10.0.0.1') => {
    const { metadata, ...rest } = service(name, address)
    return { ...rest, metadata: { ...metadata, uid, resourceVersion } }
  }
  const held = new HeldObjects('Service')
  const words = (change: (events: ObjectEvent[]) => void) => {
    const events: ObjectEvent[] = []
    change(events)
    return events.map((event) => `${event.type} ${event.type === 'put' ? event.object.name : event.type === 'delete' ? event.name : event.identity.name}`)
  } // prettier-ignore
  const put = (raw: object) => words((events) => held.put(raw, events))
  t.same(put(version('web', 'u1', '1')), ['put web'])
  t.same(put(version('web', 'u1', '1')), [], 'known')
  t.same(put(version('web', 'u1', '2')), ['put web'], 'changed')
  t.same(put(version('web', 'u2', '3')), ['delete web', 'put web'], 'made anew')
  t.same(put(version('web', 'u2', '3', '10.0.0.2')), ['put web'], 'the same version with other content')
  t.same(put({ ...version('web', 'u2', '4'), spec: { clusterIP: 'nonsense', ports: 5 } }), ['reject web'])
  t.same(put(version('api', 'u3', '5')), ['put api'])
  held.beginList()
  t.same(put(version('api', 'u3', '5')), [])
  const vanished = words((events) => [...held.vanished()].forEach((key) => held.drop(key, events)))
  t.same(vanished, ['delete web'], 'what a list does not have')
  t.same(
    words((events) => held.remove(version('web', 'u2', '6'), events)),
    [],
    'deleted already'
  )
  t.same(
    words((events) => held.remove(version('api', 'u3', '6'), events)),
    ['delete api']
  )
  t.throws(() => held.put({ metadata: {} }, []), /without a name/, 'without a name')
  t.equal(held.size, 0)
})

test('Turns: one slice in a turn, whoever waits', async (t) => {
  const turns = new Turns(systemClock)
  let turn = 0
  let isDone = false
  const tick = (): void => {
    turn++
    if (!isDone) setImmediate(tick)
  }
  tick()
  const resumedIn: number[] = []
  const work = async () => {
    for (let item = 0; item < 2_000; item++) {
      if (turns.hasRoom()) continue
      await turns.next()
      resumedIn.push(turn)
    }
  }
  await Promise.all([work(), work(), work()])
  isDone = true
  const most = Math.max(...resumedIn.map((one) => resumedIn.filter((other) => other === one).length))
  t.ok(resumedIn.length > 10)
  // Two may share a number where the counter and the turns changed their order.
  t.ok(most <= 2, `${most} slices in one turn`)
})
