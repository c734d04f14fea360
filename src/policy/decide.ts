/**
 * How a policy decides one name: given what is known of each target so far, what happens next.
 *
 * Pure: it neither asks nor waits. The pipeline asks the target that is named, adds its outcome, and calls again.
 * `Reply` is whatever the pipeline keeps for an answer; it is only handed through.
 */
import type { NextReason } from './policy.ts'

/**
 * What one target said.
 *
 * - `has`: it has the name, be it without records of the asked type (NODATA).
 * - `absent`: NXDOMAIN.
 * - `empty`: it has the Service, but no endpoint of it is ready or serving.
 * - `bare`: NOERROR without a record and without SOA: proves nothing, is used if nobody has better.
 * - `unreachable`: no usable answer; `stale` is its own last answer where one is still young enough.
 */
export type TargetOutcome<Reply> =
  | Readonly<{ kind: 'has' | 'absent' | 'empty' | 'bare'; reply: Reply }>
  | Readonly<{ kind: 'unreachable'; why: string; isCached: boolean; stale: Reply | null }>

export type Decision<Reply> =
  | Readonly<{ kind: 'ask'; target: number }>
  /** The target's answer or denial as it came. */
  | Readonly<{ kind: 'use'; target: number; reply: Reply }>
  /** The answers of several targets that have the name, joined; at least two. */
  | Readonly<{ kind: 'merge'; targets: readonly number[]; replies: readonly Reply[] }>
  /** The last answer of a target that can't be reached. */
  | Readonly<{ kind: 'stale'; target: number; reply: Reply; unreachable: readonly number[] }>
  /** One target's denial while another one could not be reached: short-lived. */
  | Readonly<{ kind: 'doubtful-denial'; target: number; reply: Reply; unreachable: readonly number[] }>
  /** A target that can't be reached has the name, by what it said of other types; nothing is known of this one. */
  | Readonly<{ kind: 'unknown-type'; target: number; unreachable: readonly number[] }>
  /** Nobody said anything usable. */
  | Readonly<{ kind: 'failure'; unreachable: readonly number[] }>

const reasonOf = (kind: TargetOutcome<unknown>['kind']): NextReason | null =>
  kind === 'has' || kind === 'bare' ? null : kind

/**
 * The next step for one query.
 *
 * @param order indices of the policy's targets in the order in which they are to be asked (at least one).
 * @param nextOn which outcomes let the next target be asked.
 * @param outcomes by target index; null: not asked yet.
 * @param reserves how many targets at the end of the order are asked only when none of the others can be reached.
 */
export function decide<Reply>(
  order: readonly number[],
  nextOn: ReadonlySet<NextReason>,
  outcomes: readonly (TargetOutcome<Reply> | null)[],
  reserves = 0
): Decision<Reply> {
  const asked: number[] = []
  let isSomebodyUp = false
  for (const [at, target] of order.entries()) {
    if (isSomebodyUp && at >= order.length - reserves) break
    const outcome = outcomes[target] ?? null
    if (outcome === null) return { kind: 'ask', target }
    if (outcome.kind === 'has') return { kind: 'use', target, reply: outcome.reply }
    asked.push(target)
    isSomebodyUp ||= outcome.kind !== 'unreachable'
    const reason = reasonOf(outcome.kind)
    if (reason !== null && !nextOn.has(reason)) break
  }
  return nobodyHasIt(asked, outcomes)
}

/**
 * The next step for one query whose targets are merged: all of them are asked (in any order, also together), and those
 * that have the name give the answer. One whose outcome is not among `nextOn` is the last one that counts, as above;
 * so is what nobody has.
 */
export function decideMerge<Reply>(
  order: readonly number[],
  nextOn: ReadonlySet<NextReason>,
  outcomes: readonly (TargetOutcome<Reply> | null)[],
  reserves = 0
): Decision<Reply> {
  const counted: number[] = []
  for (const target of order.slice(0, order.length - reserves)) {
    const outcome = outcomes[target] ?? null
    if (outcome === null) return { kind: 'ask', target }
    counted.push(target)
    const reason = reasonOf(outcome.kind)
    if (reason !== null && !nextOn.has(reason)) break
  }
  const targets = counted.filter((target) => outcomes[target]!.kind === 'has')
  if (targets.length === 0) {
    return counted.some((target) => outcomes[target]!.kind !== 'unreachable')
      ? nobodyHasIt(counted, outcomes)
      : decide(order, nextOn, outcomes, reserves)
  }
  const replies = targets.flatMap((target) => {
    const outcome = outcomes[target]!
    return outcome.kind === 'unreachable' ? [] : [outcome.reply]
  })
  if (targets.length === 1) return { kind: 'use', target: targets[0]!, reply: replies[0]! }
  return { kind: 'merge', targets, replies }
}

/** The order of design for a name that no target has; each rule stands above those that follow. */
function nobodyHasIt<Reply>(
  asked: readonly number[],
  outcomes: readonly (TargetOutcome<Reply> | null)[]
): Decision<Reply> {
  const first = (kind: TargetOutcome<Reply>['kind']): number | undefined =>
    asked.find((target) => outcomes[target]!.kind === kind)
  const use = (target: number): Decision<Reply> => {
    const outcome = outcomes[target]!
    if (outcome.kind === 'unreachable') throw new Error('an unreachable target has no reply')
    return { kind: 'use', target, reply: outcome.reply }
  }

  const empty = first('empty')
  if (empty !== undefined) return use(empty)

  const unreachable = asked.filter((target) => outcomes[target]!.kind === 'unreachable')
  const denial = first('absent') ?? first('bare')
  if (unreachable.length === 0 && denial !== undefined) return use(denial)

  for (const target of unreachable) {
    const outcome = outcomes[target]!
    if (outcome.kind === 'unreachable' && outcome.stale !== null) {
      return { kind: 'stale', target, reply: outcome.stale, unreachable }
    }
  }
  if (denial !== undefined) {
    const outcome = outcomes[denial]!
    if (outcome.kind !== 'unreachable') {
      return { kind: 'doubtful-denial', target: denial, reply: outcome.reply, unreachable }
    }
  }
  return { kind: 'failure', unreachable }
}

/**
 * A target *has* a name if any type exists there. So where one that can't be reached has it by what it said of other
 * types, nobody else's denial is given, nor one that is older.
 *
 * @param isKnownToHave whether the last word of a target on the name, of whatever type, was that it exists.
 * @param isNameError whether a stale reply denies the name as a whole.
 */
export function heedingOtherTypes<Reply>(
  decision: Decision<Reply>,
  isKnownToHave: (target: number) => boolean,
  isNameError: (reply: Reply) => boolean
): Decision<Reply> {
  if (decision.kind === 'ask' || decision.kind === 'use' || decision.kind === 'merge') return decision
  if (decision.kind === 'stale' && !isNameError(decision.reply)) return decision
  const { unreachable } = decision
  const target = unreachable.find(isKnownToHave)
  return target === undefined ? decision : { kind: 'unknown-type', target, unreachable }
}
