/** The objects that are not served, or not quite as they ask, and why: for logs, `check` and the status page. */
import { listedLeftOutObjects } from '../base/limits.ts'
import { objectKey } from './object-event.ts'
import type { Identity } from './objects.ts'

export type LeftOutObject = Identity &
  Readonly<{
    /** The field, such as `spec.ports[1].port`; '' where the warning says it all. */
    path: string
    reason: string
    /** True where only a value was passed over and the object is served. */
    isServed: boolean
  }>

export class LeftOutObjects {
  readonly #listed = new Map<string, LeftOutObject>()
  readonly #onNew: (object: LeftOutObject) => void

  /** @param onNew called once for each object and reason, so it may log. */
  constructor(onNew: (object: LeftOutObject) => void) {
    this.#onNew = onNew
  }

  /** At most `listedLeftOutObjects`, in the order they came. */
  get list(): readonly LeftOutObject[] {
    return [...this.#listed.values()]
  }

  note(object: LeftOutObject): void {
    const key = objectKey(object.kind, object.namespace, object.name)
    const known = this.#listed.get(key)
    if (known !== undefined && known.path === object.path && known.reason === object.reason) return
    if (known === undefined && this.#listed.size >= listedLeftOutObjects) return
    this.#listed.set(key, object)
    this.#onNew(object)
  }

  forget(kind: string, namespace: string, name: string): void {
    if (this.#listed.size > 0) this.#listed.delete(objectKey(kind, namespace, name))
  }
}
