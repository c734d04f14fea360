/** What a ZoneStore is made of. */
import type { Clock } from '../base/clock.ts'
import type { DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import type { SoaFields } from './soa.ts'
import type { Synthesize } from './zone-lookup.ts'

/**
 * By wall clocks: when the earliest change of a batch happened where it happened, and when this store learned of it.
 */
export type BatchTimes = Readonly<{ originAtMs: number; learnedAtMs: number }>

export type ZoneStoreOptions = {
  apex: DomainName
  /** Names this history of serials; another instance, or the same one after a restart, has another. */
  epoch: string
  soa: SoaFields
  /** null: it comes with the rest, for a copy that is being filled. */
  ns: RRset | null
  clock: Clock
  synthesize?: Synthesize
  /** The serial to begin with, for a copy of another store; the clock's by default. */
  serial?: number
  /** The times of the batch that led to that serial, for such a copy; those of the construction by default. */
  lastBatch?: BatchTimes
  /**
   * Changes that follow one another faster than this, in milliseconds, are gathered: look-ups and listeners get each at
   * once, serial and journal one batch of them. 0, the default: each change is a batch.
   */
  gatherMs?: number
}
