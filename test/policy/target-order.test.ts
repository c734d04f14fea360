import { test, type Test } from 'tap'
import fc from 'fast-check'
import { parseName } from '../../src/wire/name.ts'
import { readKubernetesName } from '../../src/policy/kubernetes-name.ts'
import { choiceWindowMs } from '../../src/policy/rendezvous.ts'
import type { Policy } from '../../src/policy/policy.ts'
import type { Standings, TargetStanding } from '../../src/policy/standing.ts'
import { policyOf, targetOf as target } from './policies.ts'
import { targetOrder, type Choice, type TargetOrder } from '../../src/policy/target-order.ts'

const zone = parseName('cluster.local')

/** Standings by the place of the target in its policy; `up` where the list says nothing. */
const standings = (policy: Policy, list: readonly TargetStanding[] = [], share = 1): Standings => ({
  of: (one) => list[policy.targets.indexOf(one)] ?? 'up',
  returnedShare: () => share,
  revision: () => 0
})

const choiceOf = (text: string, options: Partial<Choice> = {}): Choice => {
  const name = parseName(text)
  const service = readKubernetesName(name, zone)?.service ?? null
  return { name, service, clientAddress: '10.0.0.1', region: '', epochMs: 1_700_000_000_000, ...options }
}

const firstOf = ({ order, excluded }: TargetOrder): number => order.find((one) => !excluded.includes(one))!

test('targetOrder leaves out who is down unless all are, and who is drained in any case', async (t) => {
  const three = policyOf([target('a', { weight: 0 }), target('b'), target('c')])
  const order = (...list: TargetStanding[]): TargetOrder => targetOrder(three, standings(three, list), null)
  const rows: [TargetStanding[], Partial<TargetOrder>][] = [
    [['up', 'up', 'unknown'], { order: [1, 2, 0], excluded: [], allDown: false, reserves: 1 }],
    [['up', 'down', 'up'], { order: [1, 2, 0], excluded: [1], allDown: false }],
    [['down', 'down', 'down'], { order: [1, 2, 0], excluded: [], allDown: true }],
    [['up', 'drained', 'down'], { order: [1, 2, 0], excluded: [1, 2], allDown: false }],
    [['drained', 'down', 'down'], { order: [1, 2, 0], excluded: [0], allDown: true }],
    [['drained', 'drained', 'drained'], { order: [1, 2, 0], excluded: [1, 2, 0], allDown: false }],
    [['returning', 'down', 'down'], { order: [1, 2, 0], excluded: [1, 2], allDown: false }],
    [['doubtful', 'doubtful', 'up'], { order: [2, 1, 0], excluded: [], allDown: false }],
    [['up', 'doubtful', 'doubtful'], { order: [1, 2, 0], excluded: [], allDown: false }]
  ]
  for (const [list, want] of rows) t.match(order(...list), want, list.join(' '))
  t.equal(order().holdsForMs, Number.POSITIVE_INFINITY, 'what is not drawn holds for ever')
})

/** The share of each target over some choices. */
function sharesOf(policy: Policy, choices: Iterable<Choice>, list: TargetStanding[] = [], share = 1): number[] {
  const counts = policy.targets.map(() => 0)
  let total = 0
  for (const choice of choices) {
    counts[firstOf(targetOrder(policy, standings(policy, list, share), choice))]!++
    total++
  }
  return counts.map((count) => count / total)
}

const many = 10_000
const names = (): Choice[] => Array.from({ length: many }, (_, at) => choiceOf(`svc-${at}.backend.svc.cluster.local`))
const clients = (region = ''): Choice[] => Array.from({ length: many }, (_, at) =>
  choiceOf('api.backend.svc.cluster.local', { clientAddress: `10.${at >> 16}.${(at >> 8) & 255}.${at & 255}`, region })
) // prettier-ignore
const windows = (): Choice[] => Array.from({ length: many }, (_, at) =>
  choiceOf('api.backend.svc.cluster.local', { epochMs: 1_700_000_000_000 + at * choiceWindowMs })
) // prettier-ignore

function hasShares(t: Test, found: readonly number[], want: readonly number[], name: string): void {
  for (const [at, share] of want.entries()) {
    t.ok(Math.abs(found[at]! - share) < 0.02, `${name}: ${found[at]!.toFixed(3)} of ${share.toFixed(3)}`)
  }
}

test('targetOrder, weighted: shares hold over names, clients and windows, also among those that are left', async (t) => {
  const weighted = policyOf([target('a', { weight: 70 }), target('b', { weight: 20 }), target('c', { weight: 10 })], {
    select: 'weighted'
  })
  const sets = { names: names(), clients: clients(), windows: windows() }
  for (const [what, choices] of Object.entries(sets)) {
    hasShares(t, sharesOf(weighted, choices), [0.7, 0.2, 0.1], what)
    hasShares(t, sharesOf(weighted, choices, ['down']), [0, 2 / 3, 1 / 3], `${what}, one down`)
    hasShares(t, sharesOf(weighted, choices, ['drained', 'down']), [0, 0, 1], `${what}, one left`)
  }
  for (const choice of sets.names.slice(0, 500)) {
    const all = targetOrder(weighted, standings(weighted), choice)
    const left = targetOrder(weighted, standings(weighted, ['down']), choice)
    if (firstOf(all) !== 0) t.equal(firstOf(left), firstOf(all), 'who was not there stays where he was')
  }
  const idle = policyOf([target('a'), target('b', { weight: 0 })], { select: 'weighted' })
  hasShares(t, sharesOf(idle, sets.names), [1, 0], 'weight 0')
  hasShares(t, sharesOf(idle, sets.names, ['down']), [0, 1], 'weight 0, and nothing else is up')
})

test('targetOrder, weighted: one Service has one choice, which holds for its window and no longer', async (t) => {
  const weighted = policyOf([target('a'), target('b')], { select: 'weighted' })
  const ofOneService = [
    'api.backend.svc.cluster.local',
    'pod-0.api.backend.svc.cluster.local',
    '_http._tcp.api.backend.svc.cluster.local'
  ]
  const firsts = (epochMs: number, client: string): number[] =>
    ofOneService.map((name) =>
      firstOf(targetOrder(weighted, standings(weighted), choiceOf(name, { epochMs, clientAddress: client })))
    )
  for (let client = 0; client < 200; client++) {
    const address = `10.0.0.${client}`
    const epochMs = 1_700_000_000_000 + client * 977
    const { holdsForMs } = targetOrder(
      weighted,
      standings(weighted),
      choiceOf(ofOneService[0]!, { epochMs, clientAddress: address })
    )
    const [first, ...others] = firsts(epochMs, address)
    t.ok(others.every((one) => one === first), 'all names of the Service') // prettier-ignore
    t.ok(holdsForMs > 0 && holdsForMs <= choiceWindowMs, 'within a window')
    t.same(firsts(epochMs + Math.ceil(holdsForMs) - 1, address)[0], first, 'until its last moment')
  }
  const clusterset = parseName('clusterset.local')
  const name = parseName('api.backend.svc.clusterset.local')
  const inSet = { ...choiceOf(ofOneService[0]!), name, service: readKubernetesName(name, clusterset)!.service }
  t.equal(
    firstOf(targetOrder(weighted, standings(weighted), inSet)),
    firstOf(targetOrder(weighted, standings(weighted), choiceOf(ofOneService[0]!))),
    'whatever the zone is called'
  )
})

test('targetOrder, geo: own region by weight, then the others as written', async (t) => {
  const geo = policyOf(
    [
      target('far', { region: 'eu' }),
      target('near-1', { region: 'us', weight: 30 }),
      target('farther', { region: 'asia' }),
      target('near-2', { region: 'us', weight: 10 })
    ],
    { select: 'geo' }
  )
  hasShares(t, sharesOf(geo, clients('us')), [0, 0.75, 0, 0.25], 'two in the region')
  hasShares(t, sharesOf(geo, clients('eu')), [1, 0, 0, 0], 'one in the region')
  hasShares(t, sharesOf(geo, clients('mars')), [1, 0, 0, 0], 'none in the region: as written')
  hasShares(t, sharesOf(geo, clients('us'), ['up', 'down', 'up', 'down']), [1, 0, 0, 0], 'the region is down')
  hasShares(t, sharesOf(geo, clients('us'), ['up', 'down']), [0, 0, 0, 1], 'one of the region is down')
  for (const choice of clients('us').slice(0, 50)) {
    t.same(targetOrder(geo, standings(geo), choice).order.slice(2), [0, 2], 'failover keeps the written order')
  }
  t.equal(
    targetOrder(geo, standings(geo), choiceOf('api.backend.svc.cluster.local', { region: 'eu' })).holdsForMs,
    Number.POSITIVE_INFINITY,
    'one target alone in its region: nothing is drawn'
  )
})

test('targetOrder, trickle: a percentage asks the second target first', async (t) => {
  const trickle = policyOf([target('a'), target('b'), target('c')], { tricklePercent: 5 })
  for (const choices of [names(), clients(), windows()])
    hasShares(t, sharesOf(trickle, choices), [0.95, 0.05, 0], '5 %')
  hasShares(t, sharesOf(trickle, names(), ['up', 'down']), [1, 0, 0], 'not while it is down')
  t.ok(targetOrder(trickle, standings(trickle), choiceOf('a.b.svc.cluster.local')).holdsForMs <= choiceWindowMs)
  const alone = policyOf([target('a'), target('b', { weight: 0 })], { tricklePercent: 100 })
  hasShares(t, sharesOf(alone, names()), [1, 0], 'a reserve gets no trickle')
})

test('targetOrder: who returns gets its share back step by step, and the same names stay with it', async (t) => {
  const two = policyOf([target('a'), target('b')])
  const list: TargetStanding[] = ['returning']
  for (const share of [0.1, 0.5, 0.9]) hasShares(t, sharesOf(two, names(), list, share), [share, 1 - share], `${share}`)
  for (const choice of names().slice(0, 300)) {
    const early = targetOrder(two, standings(two, list, 0.3), choice)
    const later = targetOrder(two, standings(two, list, 0.6), choice)
    if (firstOf(early) === 0) t.equal(firstOf(later), 0)
    t.same(early.excluded, [], 'a name that nobody else has is asked there')
  }
  hasShares(t, sharesOf(two, names(), ['returning', 'down'], 0.1), [1, 0], 'whole where nobody else is up')
  const strict = policyOf([target('a'), target('b')], { nextOn: new Set(['unreachable']) })
  hasShares(t, sharesOf(strict, names(), list, 0.1), [1, 0], 'at once where a denial of the others would be final')
})

test('targetOrder holds every target once, reserves last, whatever the policy', async (t) => {
  const targetArbitrary = fc.record({ weight: fc.nat(3), region: fc.constantFrom('', 'us', 'eu') })
  const standingArbitrary = fc.constantFrom<TargetStanding>('up', 'unknown', 'doubtful', 'returning', 'down', 'drained')
  fc.assert(
    fc.property(
      fc.array(fc.tuple(targetArbitrary, standingArbitrary), { minLength: 1, maxLength: 6 }),
      fc.constantFrom<Policy['select']>('first', 'weighted', 'geo', 'merge'),
      fc.nat(100),
      fc.constantFrom('', 'us', 'eu'),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.nat(),
      (list, select, tricklePercent, region, share, at) => {
        const policy = policyOf(
          list.map(([options], index) => target(`t${index}`, options)),
          { select, tricklePercent }
        )
        const kinds = list.map(([, standing]) => standing)
        const choice = choiceOf('api.backend.svc.cluster.local', { region, epochMs: at * 1_000 })
        const found = targetOrder(policy, standings(policy, kinds, share), choice)
        const places = found.order.map((one) => policy.targets[one]!.weight === 0)
        return (
          found.order.toSorted((one, other) => one - other).every((one, index) => one === index) &&
          found.order.length === list.length &&
          places.filter(Boolean).length === found.reserves &&
          places.slice(places.length - found.reserves).every(Boolean) &&
          kinds.every((kind, one) => (kind === 'drained' ? found.excluded.includes(one) : true)) &&
          kinds.every((kind, one) => (kind === 'down' ? found.excluded.includes(one) !== found.allDown : true))
        )
      }
    ),
    { seed: 6 }
  )
  t.pass('for 100 random policies')
})
