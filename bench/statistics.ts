/** What is made of repeated measurements. */

/** The middle of several runs, with the best and the worst beside it. */
export type Spread = Readonly<{ median: number; min: number; max: number; runs: number }>

/** Null where nothing was measured. */
export function spreadOf(values: readonly number[]): Spread | null {
  if (values.length === 0) return null
  const sorted = Float64Array.from(values).sort()
  return { median: medianOf(sorted), min: sorted[0]!, max: sorted.at(-1)!, runs: sorted.length }
}

function medianOf(sorted: Float64Array): number {
  const upper = sorted.length >> 1
  return sorted.length % 2 === 1 ? sorted[upper]! : (sorted[upper - 1]! + sorted[upper]!) / 2
}

/**
 * The value below or at which `share` (0 to 1) of the values lie (nearest rank), so always one that was measured; NaN
 * of none.
 * @param sorted in ascending order
 */
export function percentile(sorted: Float64Array, share: number): number {
  if (sorted.length === 0) return Number.NaN
  const rank = Math.ceil(share * sorted.length)
  return sorted[Math.min(Math.max(rank, 1), sorted.length) - 1]!
}

/**
 * The median of `ours / theirs`, round by round: what hits the machine in one round hits both, and a ratio of two
 * medians would mix rounds. Rounds that only one of them has are left out; null when none is left.
 */
export function medianRatio(ours: readonly (number | null)[], theirs: readonly (number | null)[]): number | null {
  const ratios: number[] = []
  for (const [round, our] of ours.entries()) {
    const their = theirs[round]
    if (our === null || their === null || their === undefined || their === 0) continue
    ratios.push(our / their)
  }
  return spreadOf(ratios)?.median ?? null
}
