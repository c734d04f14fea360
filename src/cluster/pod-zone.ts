/**
 * The records of all Pods in the cluster zone (`pods: verified`), by Pod, so that one of them can be exchanged alone.
 */
import type { RRset } from '../wire/rr.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import { Contributions } from './contributions.ts'
import type { EditBatch } from './edit-batch.ts'
import { replaceSets } from './record-sets.ts'
import type { DraftSet } from './record-sets.ts'

export class PodZone {
  readonly #store: ZoneStore
  readonly #contributions = new Contributions()
  /** The RRsets that each Pod contributes, by its key. */
  readonly #sets = new Map<string, readonly RRset[]>()

  constructor(store: ZoneStore) {
    this.#store = store
  }

  /** Puts a Pod's records in the place of those it had, and writes the differences. */
  replace(key: string, drafts: readonly DraftSet[], batch: EditBatch): void {
    const { sets, changed, replaced, gone } = replaceSets(this.#sets.get(key) ?? [], drafts)
    if (sets.length === 0) this.#sets.delete(key)
    else this.#sets.set(key, sets)
    for (const set of [...gone, ...replaced]) this.#contributions.remove(set)
    for (const set of changed) this.#contributions.add(0, set)
    for (const { owner, type } of [...gone, ...changed]) {
      batch.set(this.#store, owner, type, this.#contributions.merged(owner, type))
    }
  }
}
