/** PTR records in the reverse zones: one RRset for each address, from all the Services that have a say in it. */
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import { nameRdata } from '../wire/rdata.ts'
import type { RRset } from '../wire/rr.ts'
import { Zones } from '../zone/zones.ts'
import { addressRdata } from './address.ts'
import { Contributions } from './contributions.ts'
import type { EditBatch } from './edit-batch.ts'
import { RecordSets } from './record-sets.ts'
import { reverseName } from './reverse.ts'
import type { Pointer } from './service-records.ts'

export class PointerRecords {
  /** The reverse zones; an address outside of them gets no PTR. */
  readonly zones = new Zones()
  readonly #contributions = new Contributions()
  readonly #touched = new Set<DomainName>()

  /** The PTR RRsets of some addresses, as far as they lie in the reverse zones. */
  build(pointers: readonly Pointer[], ttlSeconds: number): readonly RRset[] {
    const sets = new RecordSets(ttlSeconds)
    for (const { address, target } of pointers) {
      const owner = reverseName(addressRdata(address))
      if (this.zones.find(owner) !== null) sets.add(owner, RRTYPE.PTR, nameRdata(target))
    }
    return sets.finish()
  }

  /** Puts what a source says now in the place of what it said before. Of several ranks the lowest one speaks. */
  replace(source: string, rank: number, before: readonly RRset[], after: readonly RRset[]): void {
    for (const { owner } of before) {
      this.#contributions.remove(source, rank, owner, RRTYPE.PTR)
      this.#touched.add(owner)
    }
    for (const rrset of after) {
      this.#contributions.put(source, rank, rrset)
      this.#touched.add(rrset.owner)
    }
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
