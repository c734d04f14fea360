/**
 * The latest changes of one zone, in an unbroken chain of serials.
 *
 * Bounded by what the changes hold, not by their number: the oldest ones go first. A change that is too large on its
 * own leaves the journal empty, and who asks for what came before it takes the whole zone instead.
 */
import { journalRecords, journalRRsets } from '../base/limits.ts'
import { recordsIn } from './packed-rrset.ts'
import type { ZoneChange } from './zone-change.ts'

export class Journal {
  /** The changes by the serial that they start from; each leads to the next by the serial that it ends at. */
  readonly #changes = new Map<number, ZoneChange>()
  #oldestSerial: number
  #newestSerial: number
  #entries = 0
  #records = 0

  /** Begins with no changes, at the zone's serial. */
  constructor(serial: number) {
    this.#oldestSerial = serial
    this.#newestSerial = serial
  }

  /** How many changes it holds. */
  get size(): number {
    return this.#changes.size
  }

  /** Entries (RRsets, Service states and names) in the changes that it holds. */
  get entries(): number {
    return this.#entries
  }

  /** The oldest serial from which it can go on; the zone's own where it holds no change. */
  get oldestSerial(): number {
    return this.#oldestSerial
  }

  /**
   * Appends the change that follows the last one.
   * @throws RangeError when it does not start where the last one ended.
   */
  push(change: ZoneChange): void {
    if (change.fromSerial !== this.#newestSerial) {
      throw new RangeError(`a change from serial ${change.fromSerial} does not follow ${this.#newestSerial}`)
    }
    this.#changes.set(change.fromSerial, change)
    this.#newestSerial = change.toSerial
    this.#entries += entriesOf(change)
    this.#records += recordsOf(change)
    while (this.#entries > journalRRsets || this.#records > journalRecords) this.#dropOldest()
  }

  /** The changes from `serial` to now, oldest first; null unless the chain reaches exactly there. */
  since(serial: number): readonly ZoneChange[] | null {
    const changes: ZoneChange[] = []
    for (let at = serial; at !== this.#newestSerial;) {
      const change = this.#changes.get(at)
      if (change === undefined) return null
      changes.push(change)
      at = change.toSerial
    }
    return changes
  }

  #dropOldest(): void {
    const oldest = this.#changes.get(this.#oldestSerial)!
    this.#changes.delete(this.#oldestSerial)
    this.#oldestSerial = oldest.toSerial
    this.#entries -= entriesOf(oldest)
    this.#records -= recordsOf(oldest)
  }
}

/** At least 1, so that changes without entries are bounded too. */
const entriesOf = (change: ZoneChange): number =>
  Math.max(1, change.sets.length + change.services.length + change.names.length)

/** `before` is mostly the `after` of an earlier change, one object, so it counts only where nothing takes its place. */
function recordsOf(change: ZoneChange): number {
  let records = 0
  for (const { before, after } of change.sets) {
    const set = after ?? before
    if (set !== null) records += recordsIn(set)
  }
  return records
}
