/** TTL caps by what was seen to change, for servers that tell nobody of their changes. */
import { test } from 'tap'
import { adaptiveTtlNames } from '../../src/base/transfer-limits.ts'
import { AdaptiveTtl } from '../../src/cache/adaptive-ttl.ts'
import { RCODE, RRTYPE } from '../../src/wire/iana.ts'
import { parseName, type DomainName } from '../../src/wire/name.ts'
import type { Sections } from '../../src/wire/rr.ts'

const web = parseName('web.backend.svc.cluster.local')

const sections = (owner: DomainName, addresses: readonly number[], ttlSeconds = 30): Sections => ({
  rcode: addresses.length === 0 ? RCODE.NXDOMAIN : RCODE.NOERROR,
  answer:
    addresses.length === 0
      ? []
      : [{ owner, type: RRTYPE.A, ttlSeconds, rdata: addresses.map((last) => Uint8Array.of(10, 0, 1, last)) }],
  authority: [],
  additional: []
})

const second = 1_000

test('AdaptiveTtl: a tenth of the time since the last change, never before one was seen', async (t) => {
  const adaptive = new AdaptiveTtl()
  const note = (addresses: readonly number[], atSeconds: number, ttlSeconds = 30): number =>
    adaptive.note('web', web, sections(web, addresses, ttlSeconds), atSeconds * second)
  t.equal(note([1, 2], 0), Infinity, 'the first answer')
  t.equal(note([2, 1], 30), Infinity, 'in another order')
  t.equal(note([1, 2], 60, 5), Infinity, 'with another TTL')
  t.equal(note([1, 3], 90), 1, 'changed just now')
  t.equal(note([1, 3], 99), 1, 'at least a second')
  t.equal(note([1, 3], 190), 10)
  t.equal(note([1, 3], 1_090), 100, 'what is the same for long has a long TTL')
  t.equal(note([], 1_100), 1, 'a denial is a change')
  t.equal(note([1, 3], 1_101), 1, 'and so is its end')
  t.same(adaptive.stats, { changes: 3, capped: 0 })
  t.equal(adaptive.names, 1)
})

test('AdaptiveTtl: a change goes for the names below, and for no other', async (t) => {
  const adaptive = new AdaptiveTtl()
  const names = ['web-0.web', '_http._tcp.web', 'api', '_x._tcp.web-0.web'].map((name) =>
    parseName(`${name}.backend.svc.cluster.local`)
  )
  for (const name of names) adaptive.note(name, name, sections(name, [1]), 0)
  adaptive.note(web, web, sections(web, [1]), 0)
  adaptive.note(web, web, sections(web, [2]), 100 * second)
  t.same(
    names.map((name) => adaptive.note(name, name, sections(name, [1]), 150 * second)),
    [5, 5, Infinity, Infinity]
  )
})

test('AdaptiveTtl: bounded, what was seen last is kept', async (t) => {
  const adaptive = new AdaptiveTtl()
  const name = (at: number): DomainName => parseName(`s${at}.backend.svc.cluster.local`)
  for (const address of [1, 2]) {
    for (let at = 0; at < adaptiveTtlNames + 10; at++) {
      // Each one twice in a row, or the first ones would be forgotten before they are seen again.
      adaptive.note(name(at), name(at), sections(name(at), [address]), 0)
      adaptive.note(name(at), name(at), sections(name(at), [address + 7]), 0)
    }
  }
  t.equal(adaptive.names, adaptiveTtlNames)
  t.equal(adaptive.note(name(0), name(0), sections(name(0), [99]), 0), Infinity, 'the first one is forgotten')
})
