/** FNV-1a, 32 bits: a hash for tables and choices, not against people who want it to collide. */

export const fnvOffset = 0x811c_9dc5
export const fnvPrime = 0x0100_0193

/** Goes on from `seed` over a piece of a text whose characters are octets. */
export function fnv1a(seed: number, text: string, from: number, to: number): number {
  let hash = seed
  for (let at = from; at < to; at++) hash = Math.imul(hash ^ text.charCodeAt(at), fnvPrime)
  return hash
}
