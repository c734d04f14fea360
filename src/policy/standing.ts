/**
 * What is known of a target before it is asked: what probes say, and what the operator has set by hand.
 *
 * Only types and pure functions: health and overrides come in as arguments (`Standings`), built by main.
 */
import type { Target } from './policy.ts'

/**
 * - `up`: probes say that it is well.
 * - `unknown`: nothing is known; it counts as `up`, since a probe that has not run proves nothing.
 * - `doubtful`: it passes its probes, and the questions of clients fail one after the other: it is the last one asked,
 *   and not waited for.
 * - `returning`: it was down and is up again since a moment: a growing share of names and clients is sent to it, and
 *   for the rest it is the last one asked.
 * - `down`: it is not asked while anybody else is left, and where nobody is, not for long (a probe may be wrong).
 * - `drained`: the operator took it out: it is never asked, and what it said before is not given.
 */
export type TargetStanding = 'up' | 'unknown' | 'doubtful' | 'returning' | 'down' | 'drained'

export type Standings = Readonly<{
  of(target: Target): TargetStanding
  /** Of a `returning` target: the share of names and clients that is sent to it again, 0 to 1. */
  returnedShare(target: Target): number
  /**
   * Another number after each change of any standing or share: what was made of them before holds as long as it stays.
   */
  revision(): number
}>

/** Why a target that is left out counts as unreachable, for people. */
export const whyLeftOut = (standing: TargetStanding): string =>
  standing === 'drained' ? 'drained by the operator' : 'it is down'
