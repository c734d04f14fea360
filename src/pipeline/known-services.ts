/**
 * Which Services some target ever gave us: while all targets are down, a name below any other Service is denied at
 * once instead of making a search list wait. Bounded; the least recently seen is forgotten first.
 */
import { LRUCache } from 'lru-cache'
import { knownNamespaces, knownServiceNames } from '../base/limits.ts'
import { parentOf, type DomainName } from '../wire/name.ts'

export class KnownServices {
  readonly #names = new LRUCache<DomainName, true>({ max: knownServiceNames })
  readonly #namespaces = new LRUCache<DomainName, true>({ max: knownNamespaces })

  add(service: DomainName): void {
    this.#names.set(service, true)
    this.#namespaces.set(parentOf(service)!, true)
  }

  /** Whether any Service of this namespace, `<ns>.svc.<zone>`, was ever given. */
  hasNamespace(namespace: DomainName): boolean {
    return this.#namespaces.get(namespace) === true
  }

  has(service: DomainName): boolean {
    return this.#names.get(service) === true
  }
}
