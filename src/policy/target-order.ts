/**
 * In which order a policy's targets are asked for one name and client, and which of them are not asked at all.
 *
 * Pure functions of the policy, of the choice (name, client, moment) and of what stands for or against each target.
 *
 * - `first` and `merge`: as written.
 * - `weighted`: by weighted rendezvous hash.
 * - `geo`: those of the client's region by weighted rendezvous hash, then the others as written.
 * - `trickle` then exchanges the first two for its share of names and clients.
 * - Those that return after they were down come behind the others, until their share has grown.
 * - Those that are doubtful come behind the others that are in use.
 * - Those with weight 0 come last, and are asked only when nothing else is up.
 */
import type { DomainName } from '../wire/name.ts'
import type { Policy } from './policy.ts'
import { choiceHash, distance, hashInWindow, hashText, uniformOf, windowRestMs } from './rendezvous.ts'
import type { Standings } from './standing.ts'

/** For what and whom a choice among targets is made. */
export type Choice = Readonly<{
  name: DomainName
  /** `<svc>.<ns>.svc.<zone>` that the name belongs to; null where the schema tells none. */
  service: DomainName | null
  clientAddress: string
  /** Of the client; '' where none is known. */
  region: string
  /** Wall time. */
  epochMs: number
}>

export type TargetOrder = Readonly<{
  /** Indices of all targets, in order. */
  order: readonly number[]
  /** How many at the end of the order have weight 0: they are asked only when nothing else is up. */
  reserves: number
  /** Those that count as unreachable without being asked: drained, or down while others are not. */
  excluded: readonly number[]
  /** Those that others are asked before because they are doubtful. */
  doubtful: readonly number[]
  /** Every target that is not drained is down: they are asked all the same, but not for long (a probe may be wrong). */
  allDown: boolean
  /** How long the choice holds in milliseconds; infinite where nothing was drawn. */
  holdsForMs: number
}>

/** What is the same for each choice of one policy. */
type Plan = Readonly<{
  /** Targets with a weight above 0, then the reserves, both as written. */
  written: readonly number[]
  reserves: number
  targetHashes: readonly number[]
  /** The order where nothing stands against anybody and nothing is drawn. */
  undisturbed: TargetOrder
}>

const none: readonly number[] = []
const plans = new WeakMap<Policy, Plan>()

function planOf(policy: Policy): Plan {
  const known = plans.get(policy)
  if (known !== undefined) return known
  const all = policy.targets.map((_, target) => target)
  const isReserve = (target: number): boolean => policy.targets[target]!.weight === 0
  const written = [...all.filter((target) => !isReserve(target)), ...all.filter(isReserve)]
  const reserves = all.filter(isReserve).length
  const plan = {
    written,
    reserves,
    targetHashes: policy.targets.map(({ id }) => hashText(id)),
    undisturbed: {
      order: written,
      reserves,
      excluded: none,
      doubtful: none,
      allDown: false,
      holdsForMs: Number.POSITIVE_INFINITY
    }
  }
  plans.set(policy, plan)
  return plan
}

/** Salts of draws that have nothing to do with each other. */
const salt = { trickle: 0x7472_696b, returning: 0x7265_7475 }

/** @param choice null: nothing is drawn, the order is the written one (to show it without a name and client). */
export function targetOrder(policy: Policy, standings: Standings, choice: Choice | null): TargetOrder {
  const plan = planOf(policy)
  const { select, tricklePercent } = policy
  const isDrawn = choice !== null && (select === 'weighted' || select === 'geo' || tricklePercent > 0)
  const drawn = isDrawn ? drawnOrder(policy, plan, choice) : plan.undisturbed
  return withStandings(policy, plan, standings, choice, drawn)
}

function drawnOrder(policy: Policy, plan: Plan, choice: Choice): TargetOrder {
  const { targets, select, tricklePercent } = policy
  const hash = choiceHash(choice.name, choice.service, choice.clientAddress)
  const drawHash = hashInWindow(hash, choice.epochMs)
  const inUse = plan.written.length - plan.reserves
  const order = [...plan.written]
  /** Those before it are ordered by weight. */
  let weighted = 0
  if (select === 'weighted') {
    weighted = inUse
  } else if (select === 'geo' && choice.region !== '') {
    for (let at = 0; at < inUse; at++) {
      const target = order[at]!
      if (targets[target]!.region !== choice.region) continue
      // Behind those of the region that were found before; the others move up and keep their order.
      order.copyWithin(weighted + 1, weighted, at)
      order[weighted++] = target
    }
  }
  if (weighted > 1) sortByDistance(order, weighted, (target) =>
    distance(drawHash, plan.targetHashes[target]!, targets[target]!.weight)
  ) // prettier-ignore
  const mayTrickle = tricklePercent > 0 && inUse > 1
  if (mayTrickle && uniformOf(drawHash, salt.trickle) * 100 < tricklePercent) {
    const first = order[0]!
    order[0] = order[1]!
    order[1] = first
  }
  const isDrawn = weighted > 1 || mayTrickle
  const holdsForMs = isDrawn ? windowRestMs(hash, choice.epochMs) : Number.POSITIVE_INFINITY
  return { order, reserves: plan.reserves, excluded: none, doubtful: none, allDown: false, holdsForMs }
}

/** Sorts the first `count` of a short list by distance. */
function sortByDistance(order: number[], count: number, distanceOf: (target: number) => number): void {
  for (let at = 1; at < count; at++) {
    const target = order[at]!
    const far = distanceOf(target)
    let to = at
    while (to > 0 && distanceOf(order[to - 1]!) > far) {
      order[to] = order[to - 1]!
      to--
    }
    order[to] = target
  }
}

function withStandings(
  policy: Policy,
  plan: Plan,
  standings: Standings,
  choice: Choice | null,
  drawn: TargetOrder
): TargetOrder {
  const { targets } = policy
  let drained = 0
  let down = 0
  let returning = 0
  let doubtful = 0
  for (const target of targets) {
    const standing = standings.of(target)
    if (standing === 'drained') drained++
    else if (standing === 'down') down++
    else if (standing === 'returning') returning++
    else if (standing === 'doubtful') doubtful++
  }
  if (drained + down + returning + doubtful === 0) return drawn
  const allDown = down > 0 && drained + down === targets.length
  const excluded = drawn.order.filter((target) => {
    const standing = standings.of(targets[target]!)
    return standing === 'drained' || (standing === 'down' && !allDown)
  })
  const gradual =
    returning > 0 && choice !== null ? returningLast(policy, plan, standings, choice, drawn.order) : drawn.order
  if (doubtful === 0) return { ...drawn, order: gradual, excluded, allDown }
  const isDoubtful = (target: number): boolean => standings.of(targets[target]!) === 'doubtful'
  const order = doubtfulLast(policy, plan, isDoubtful, gradual)
  return { ...drawn, order, excluded, doubtful: order.filter(isDoubtful), allDown }
}

/**
 * Moves those that return, and whose share does not hold this choice yet, behind the others that are in use. Names that
 * nobody else has are asked there all the same, which takes `nextOn: absent`: without it nothing is moved.
 */
function returningLast(
  { targets, nextOn, select }: Policy,
  { targetHashes, reserves }: Plan,
  standings: Standings,
  choice: Choice,
  order: readonly number[]
): readonly number[] {
  if (select === 'merge' || !nextOn.has('absent')) return order
  const hash = choiceHash(choice.name, choice.service, choice.clientAddress)
  const mustWait = (target: number): boolean =>
    standings.of(targets[target]!) === 'returning' &&
    uniformOf(hash, targetHashes[target]! ^ salt.returning) >= standings.returnedShare(targets[target]!)
  const inUse = order.slice(0, order.length - reserves)
  const waiting = inUse.filter(mustWait)
  if (waiting.length === 0) return order
  return [...inUse.filter((target) => !mustWait(target)), ...waiting, ...order.slice(inUse.length)]
}

/**
 * A doubtful target would most likely be unreachable: where that is no reason to ask the next one, nothing is moved.
 */
function doubtfulLast(
  { nextOn, select }: Policy,
  { reserves }: Plan,
  isDoubtful: (target: number) => boolean,
  order: readonly number[]
): readonly number[] {
  if (select === 'merge' || !nextOn.has('unreachable')) return order
  const inUse = order.slice(0, order.length - reserves)
  const trusted = inUse.filter((target) => !isDoubtful(target))
  return [...trusted, ...inUse.filter(isDoubtful), ...order.slice(inUse.length)]
}
