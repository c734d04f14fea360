/** Clients that the configuration makes no difference between: by `allow` and by the `clients` of each policy. */
import { rememberedAudienceClients } from '../../base/limits.ts'
import type { ClientSet } from '../../policy/policy.ts'
import type { Parts } from '../parts.ts'

/** More groups than that are not told apart: their clients get no ready-made answers. */
const maxAudiences = 4_096
export const noAudience = -1

export class Audiences {
  readonly #sets: readonly ClientSet[]
  readonly #byAddress = new Map<string, number>()
  readonly #numbers = new Map<string, number>()

  constructor({ allow, policies, withUnenforced }: Parts) {
    const all = [...policies.policies, ...(withUnenforced?.policies ?? [])]
    this.#sets = [allow, ...all.flatMap(({ clients }) => (clients === null ? [] : [clients]))]
  }

  /** The number of the client's group, or `noAudience`. */
  of(address: string): number {
    return this.#byAddress.get(address) ?? this.#learn(address)
  }

  #learn(address: string): number {
    const key = this.#sets.map((set) => (set.contains(address) ? '1' : '0')).join('')
    let number = this.#numbers.get(key)
    if (number === undefined) {
      number = this.#numbers.size < maxAudiences ? this.#numbers.size : noAudience
      if (number !== noAudience) this.#numbers.set(key, number)
    }
    if (this.#byAddress.size >= rememberedAudienceClients) this.#byAddress.clear()
    this.#byAddress.set(address, number)
    return number
  }
}
