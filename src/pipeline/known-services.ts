/**
 * Which Services some target ever gave us: while all targets are down, a name below any other Service is denied at
 * once instead of making a search list wait. Bounded; the least recently seen is forgotten first.
 */
import { LRUCache } from 'lru-cache'
import { knownNamespaces, knownServiceNames } from '../base/limits.ts'
import { parentOf, type DomainName } from '../wire/name.ts'

/** A Service's place in the order is renewed no oftener than this. */
const renewEveryMs = 1_000

export class KnownServices {
  /** When each one's place in the order was last renewed, in monotonic milliseconds. */
  readonly #names = new LRUCache<DomainName, number>({ max: knownServiceNames })
  readonly #namespaces = new LRUCache<DomainName, true>({ max: knownNamespaces })

  /** @param nowMs monotonic */
  add(service: DomainName, nowMs: number): void {
    const renewedAtMs = this.#names.peek(service)
    if (renewedAtMs !== undefined && nowMs - renewedAtMs < renewEveryMs) return
    this.#names.set(service, nowMs)
    this.#namespaces.set(parentOf(service)!, true)
  }

  /** Whether any Service of this namespace, `<ns>.svc.<zone>`, was ever given. */
  hasNamespace(namespace: DomainName): boolean {
    return this.#namespaces.get(namespace) === true
  }

  has(service: DomainName): boolean {
    return this.#names.get(service) !== undefined
  }
}
