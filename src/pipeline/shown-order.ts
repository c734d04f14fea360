/**
 * Who a policy's answers come from now, as people are shown it: the order of targets without those that are left out.
 */
import type { Policy } from '../policy/policy.ts'
import type { TargetOrder } from '../policy/target-order.ts'
import type { Parts } from './parts.ts'
import { healthyAddresses } from './target-outcome.ts'

/** Indices of targets. */
export type ShownOrder = Readonly<{
  /** Those that answer, first one first. */
  asked: readonly number[]
  leftOut: readonly number[]
  /** Every target that is not drained is down: they are asked all the same. */
  allDown: boolean
}>

/**
 * Beside those that count as unreachable, targets whose fixed addresses are all down are left out, as long as the
 * policy goes on to another one then (`allDown: next`, and `empty` in `nextOn`).
 */
export function shownOrder(parts: Parts, policy: Policy, { order, excluded, allDown }: TargetOrder): ShownOrder {
  const open = order.filter((target) => !excluded.includes(target))
  const isPassedOver = (target: number): boolean => {
    const { kind } = policy.targets[target]!
    return kind === 'addresses' && healthyAddresses(parts, policy.targets[target]!).length === 0
  }
  const goesOn = policy.allDown === 'next' && policy.nextOn.has('empty')
  const healthy = goesOn ? open.filter((target) => !isPassedOver(target)) : open
  // Where nobody has better, they are given all the same; reserves are asked only where nobody can be reached.
  const asked = healthy.some((target) => policy.targets[target]!.weight > 0) ? healthy : open
  return { asked, leftOut: order.filter((target) => !asked.includes(target)), allDown }
}
