/**
 * Random order without repetition, drawn one index at a time: the cost is that of the indexes drawn, not of how many
 * there are, so a small response from a set of thousands stays cheap. (Fisher and Yates, in Durstenfeld's form.)
 *
 * One draw at a time: what was drawn is put back before the next one begins.
 */

/** `order[i]` is i, except for what is drawn at the moment. */
let order = new Uint32Array(0)
let swappedWith = new Uint32Array(0)

/**
 * The next of `total` indexes, each of those left with the same probability.
 * @param drawn how many were drawn before, less than `total`.
 */
export function drawIndex(drawn: number, total: number, random: () => number): number {
  if (order.length < total) grow(total)
  const from = drawn + Math.floor(random() * (total - drawn))
  const index = order[from]!
  order[from] = order[drawn]!
  order[drawn] = index
  swappedWith[drawn] = from
  return index
}

/** Puts the order right again after `drawn` indexes. */
export function putBackIndexes(drawn: number): void {
  for (let i = 0; i < drawn; i++) {
    const from = swappedWith[i]!
    order[from] = from
    order[i] = i
  }
}

function grow(total: number): void {
  const size = Math.max(64, 2 ** Math.ceil(Math.log2(total)))
  const grown = new Uint32Array(size)
  for (let i = 0; i < size; i++) grown[i] = i < order.length ? order[i]! : i
  order = grown
  const swaps = new Uint32Array(size)
  swaps.set(swappedWith)
  swappedWith = swaps
}
