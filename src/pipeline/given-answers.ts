/**
 * The answers from peers' data that were given last: when a change is learned, they tell who was still told the old.
 *
 * A ring of fixed size in plain arrays. A name is kept as the string that the answer itself holds, which lives on in a
 * copy or in the cache: nothing is allocated for an answer.
 */
import { filledArray } from '../base/filled-array.ts'
import type { TargetId } from '../policy/policy.ts'
import { rootName, type DomainName } from '../wire/name.ts'

export type GivenAnswer = Readonly<{
  givenAtMs: number
  /** When what was said was known to be right at the latest; -Infinity: when it was first known, which is long ago. */
  knownAtMs: number
  name: DomainName
  type: number
  policy: string
  /** The target that the answer is of. */
  target: TargetId
}>

export class GivenAnswers {
  /** Times may lie so much before that of the answer before. */
  lateMs = 0
  readonly #size: number
  readonly #givenAtMs: Float64Array
  readonly #knownAtMs: Float64Array
  readonly #types: Uint16Array
  readonly #names: DomainName[]
  readonly #policies: string[]
  readonly #targets: TargetId[]
  /** How many there were; the newest one lies before this, modulo the size. */
  #count = 0

  /** @param size how many are remembered */
  constructor(size: number) {
    this.#size = size
    this.#givenAtMs = new Float64Array(size)
    this.#knownAtMs = new Float64Array(size)
    this.#types = new Uint16Array(size)
    this.#names = filledArray(size, rootName)
    this.#policies = filledArray(size, '')
    this.#targets = filledArray(size, '')
  }

  /** Times are monotonic, and `givenAtMs` lies before that of the answer before by `lateMs` at most. */
  add({ givenAtMs, knownAtMs, name, type, policy, target }: GivenAnswer): void {
    const at = this.#count++ % this.#size
    this.#givenAtMs[at] = givenAtMs
    this.#knownAtMs[at] = knownAtMs
    this.#types[at] = type
    this.#names[at] = name
    this.#policies[at] = policy
    this.#targets[at] = target
  }

  /** Those given since a moment, newest first, as far as they are remembered. */
  *since(momentMs: number): IterableIterator<GivenAnswer> {
    const oldest = Math.max(0, this.#count - this.#size)
    for (let number = this.#count - 1; number >= oldest; number--) {
      const at = number % this.#size
      const givenAtMs = this.#givenAtMs[at]!
      if (givenAtMs < momentMs - this.lateMs) return
      if (givenAtMs < momentMs) continue
      yield {
        givenAtMs,
        knownAtMs: this.#knownAtMs[at]!,
        name: this.#names[at]!,
        type: this.#types[at]!,
        policy: this.#policies[at]!,
        target: this.#targets[at]!
      }
    }
  }
}
