/** Message ids that nobody can guess. RFC 5452 §9.2. */
import { randomFillSync } from 'node:crypto'

const pool = new Uint16Array(2_048)
let next = pool.length

/** A uniform random id, 0 to 65535, from the system's generator; fetched some thousand at a time, since each fetch is a call. */
export function randomId(): number {
  if (next === pool.length) {
    randomFillSync(pool)
    next = 0
  }
  return pool[next++]!
}
