/**
 * Leases that source clusters renew, reduced to what tells whether they do; and which Lease belongs to which cluster.
 */
import { fieldsAt, numberAt, ObjectError, textAt } from './object-fields.ts'
import type { Fields } from './object-fields.ts'

export type Lease = Readonly<{
  kind: 'Lease'
  namespace: string
  name: string
  /** By the clock of whoever renewed it, as written: it is compared, never reckoned with. '' before the first time. */
  renewTime: string
  durationSeconds: number
}>

/** @throws ObjectError for a Lease that does not say how long it holds. */
export function reduceLease(object: Fields, namespace: string, name: string): Lease {
  const spec = fieldsAt(object, 'spec', '')
  const durationSeconds = numberAt(spec, 'leaseDurationSeconds', 0x7fff_ffff, 'spec.') ?? 0
  if (durationSeconds === 0) throw new ObjectError('spec.leaseDurationSeconds', 'expected a whole number above 0')
  return { kind: 'Lease', namespace, name, renewTime: textAt(spec, 'renewTime', 'spec.'), durationSeconds }
}

const placeholder = '{cluster}'

/** Where the Leases are, and how a cluster's id stands in them: exactly one of the parts holds `{cluster}`. */
export class LeasePattern {
  /** As in the configuration. */
  readonly text: string
  /** The one namespace that they are in; null: in any. */
  readonly namespace: string | null
  /** The one name that they have; null: it differs from cluster to cluster. */
  readonly name: string | null
  readonly #part: 'namespace' | 'name'
  readonly #head: string
  readonly #tail: string

  /** @param text `NAME` or `NAMESPACE/NAME`, one of them with `{cluster}` in it. */
  constructor(text: string) {
    this.text = text
    const slash = text.indexOf('/')
    const namespace = slash === -1 ? null : text.slice(0, slash)
    const name = text.slice(slash + 1)
    const isInName = name.includes(placeholder)
    this.namespace = isInName ? namespace : null
    this.name = isInName ? null : name
    this.#part = isInName ? 'name' : 'namespace'
    const [head = '', tail = ''] = (isInName ? name : (namespace ?? '')).split(placeholder)
    this.#head = head
    this.#tail = tail
  }

  /** The cluster that renews this Lease; null: none that the pattern speaks of. */
  clusterOf(lease: Readonly<{ namespace: string; name: string }>): string | null {
    if (this.namespace !== null && lease.namespace !== this.namespace) return null
    if (this.name !== null && lease.name !== this.name) return null
    const text = lease[this.#part]
    const isLongEnough = text.length > this.#head.length + this.#tail.length
    if (!isLongEnough || !text.startsWith(this.#head) || !text.endsWith(this.#tail)) return null
    return text.slice(this.#head.length, text.length - this.#tail.length)
  }
}
