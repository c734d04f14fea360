/**
 * In which order a policy's targets are asked for one name, and which of them are not asked because probes say they
 * are down.
 *
 * `select: first` keeps the written order. `weighted`, `geo` and `merge` get their own functions here: each is a pure
 * function of policy, name, client and health, and gives an order (and later a combination) of the same targets.
 */
import type { Policy } from './policy.ts'

/** What probes say of a target: `unknown` counts as up, since a probe that has not run proves nothing. */
export type TargetHealth = 'up' | 'down' | 'unknown'

export type TargetOrder = Readonly<{
  /** Indices of all targets, in order. */
  order: readonly number[]
  /** Those of them that count as unreachable without being asked: they are down while others are not. */
  excluded: readonly number[]
  /** Every target is down: they are asked all the same, but not for long (a probe may be wrong). */
  allDown: boolean
}>

const noneExcluded: readonly number[] = []

/** The order for `select: first`: as written, those with weight 0 last. */
export function targetOrder(policy: Policy, health: (target: number) => TargetHealth): TargetOrder {
  const order = writtenOrder(policy)
  const down = order.filter((target) => health(target) === 'down')
  const allDown = down.length === order.length
  return { order, excluded: allDown ? noneExcluded : down, allDown }
}

const writtenOrders = new WeakMap<Policy, readonly number[]>()

function writtenOrder(policy: Policy): readonly number[] {
  const known = writtenOrders.get(policy)
  if (known !== undefined) return known
  const all = policy.targets.map((_, target) => target)
  const weightOf = (target: number): number => policy.targets[target]!.weight
  const order = [...all.filter((target) => weightOf(target) > 0), ...all.filter((target) => weightOf(target) === 0)]
  writtenOrders.set(policy, order)
  return order
}
