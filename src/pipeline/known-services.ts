/**
 * Which Services some target ever gave us: while all targets are down, a name below any other Service is denied at
 * once instead of making a search list wait. Bounded; the least recently seen is forgotten first.
 */
import { LRUCache } from 'lru-cache'
import { knownServiceNames } from '../base/limits.ts'
import type { DomainName } from '../wire/name.ts'

export class KnownServices {
  readonly #names = new LRUCache<DomainName, true>({ max: knownServiceNames })

  add(service: DomainName): void {
    this.#names.set(service, true)
  }

  has(service: DomainName): boolean {
    return this.#names.get(service) === true
  }
}
