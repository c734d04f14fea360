/** PTR records in the reverse zones: one RRset for each address, from all the Services that have a say in it. */
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import { Zones } from '../zone/zones.ts'
import { Contributions } from './contributions.ts'
import type { EditBatch } from './edit-batch.ts'
import { RecordSets, replaceSets } from './record-sets.ts'
import { reverseName } from './reverse.ts'
import type { Pointer } from './service-records.ts'

export class PointerRecords {
  /** The reverse zones; an address outside of them gets no PTR. */
  readonly zones = new Zones()
  readonly #contributions = new Contributions()
  readonly #touched = new Set<DomainName>()

  /**
   * Puts what a source says now in the place of what it said before. Of several ranks the lowest one speaks.
   * @returns the source's PTR RRsets, to be given as `before` next time.
   */
  replace(rank: number, before: readonly RRset[], pointers: readonly Pointer[], ttlSeconds: number): readonly RRset[] {
    const drafts = new RecordSets(ttlSeconds)
    for (const { address, target } of pointers) {
      const owner = reverseName(address)
      if (this.zones.find(owner) !== null) drafts.add(owner, RRTYPE.PTR, target)
    }
    const { sets, changed, replaced, gone } = replaceSets(before, drafts.finish())
    for (const rrset of [...gone, ...replaced]) {
      this.#contributions.remove(rrset)
      this.#touched.add(rrset.owner)
    }
    for (const rrset of changed) {
      this.#contributions.add(rank, rrset)
      this.#touched.add(rrset.owner)
    }
    return sets
  }

  /** Makes the next `flush` say again what these owners have. */
  touch(owners: Iterable<DomainName>): void {
    for (const owner of owners) if (this.zones.find(owner) !== null) this.#touched.add(owner)
  }

  /** Writes what was touched since the last time. */
  flush(batch: EditBatch): void {
    for (const owner of this.#touched) {
      batch.set(this.zones.find(owner)!, owner, RRTYPE.PTR, this.#contributions.merged(owner, RRTYPE.PTR))
    }
    this.#touched.clear()
  }
}
