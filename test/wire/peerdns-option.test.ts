import * as fc from 'fast-check'
import { test } from 'tap'
import { encodePeerdnsOption, findPeerdnsOption, type PeerdnsOption } from '../../src/wire/peerdns-option.ts'
import { seed } from './arbitraries.ts'

const option: fc.Arbitrary<PeerdnsOption> = fc.record(
  {
    instances: fc.array(fc.stringMatching(/^[0-9a-f]{12}$/), { maxLength: 8 }),
    state: fc.constantFrom('empty' as const, null),
    subscribe: fc.boolean(),
    epoch: fc.option(fc.stringMatching(/^[!-~]{1,32}$/)),
    clockMs: fc.option(fc.nat(2 ** 31).map((ms) => ms * 1_000)),
    ageMs: fc.option(fc.nat(0xffff_ffff)),
    copyOf: fc.option(fc.stringMatching(/^[!-~]{1,80}$/)),
    silentMs: fc.option(fc.nat(0xffff_ffff))
  },
  { noNullPrototype: true }
)

test('encodePeerdnsOption then findPeerdnsOption gives the same', async (t) => {
  fc.assert(
    fc.property(option, (given) => t.same(findPeerdnsOption([encodePeerdnsOption(given)]), given)),
    { seed }
  )
  const none = {
    instances: [],
    state: null,
    subscribe: false,
    epoch: null,
    clockMs: null,
    ageMs: null,
    copyOf: null,
    silentMs: null
  }
  t.same(findPeerdnsOption([encodePeerdnsOption({})]), none, 'what is not given is not there')
  t.equal(findPeerdnsOption([]), null)
  t.equal(findPeerdnsOption([encodePeerdnsOption({ ageMs: 1e12 })])?.ageMs, 0xffff_ffff, 'an age has its ceiling')
})

test('findPeerdnsOption: any octets give an option or null; unknown fields are passed over', async (t) => {
  const { code, data } = encodePeerdnsOption({})
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 60 }), (more) => {
      const found = findPeerdnsOption([{ code, data: Uint8Array.from([...data, ...more]) }])
      t.ok(found === null || found.epoch === null || /^[!-~]{1,32}$/.test(found.epoch))
    }),
    { seed, numRuns: 2_000 }
  )
  const later = Uint8Array.from([...data, 200, 2, 9, 9, 3, 1, 1])
  t.equal(findPeerdnsOption([{ code, data: later }])?.subscribe, true)
  t.equal(findPeerdnsOption([{ code, data: Uint8Array.of(1, 2, 3) }]), null, "somebody else's use of the code")
})
