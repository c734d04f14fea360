/** Who is told of a zone's changes, in order, within the call that made them. */
import type { ZoneChange } from './zone-change.ts'

export type ZoneListener = (change: ZoneChange) => void

export class ZoneListeners {
  readonly #listeners = new Set<ZoneListener>()
  #isTelling = false

  get size(): number {
    return this.#listeners.size
  }

  /** Whether a listener is being told right now. */
  get isTelling(): boolean {
    return this.#isTelling
  }

  /** The function returned ends it. */
  add(listener: ZoneListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** When listeners throw, the others are still told, and then the first error is thrown. */
  tell(change: ZoneChange): void {
    const errors: unknown[] = []
    this.#isTelling = true
    for (const listener of this.#listeners) {
      try {
        listener(change)
      } catch (error) {
        errors.push(error)
      }
    }
    this.#isTelling = false
    if (errors.length > 0) throw errors[0]
  }
}
