/**
 * What of one of our zones is given away as a zone: all of it, or what lies below a suffix, as far as the export policy
 * shows it.
 *
 * A part is a view of the zone's store and journal and holds no records of its own. Its serial is the zone's at the
 * last batch that changed something in it, so serials of a part are serials of the zone and the zone's journal tells
 * the way between two of them.
 */
import { RRTYPE } from '../wire/iana.ts'
import { isAtOrBelow, type DomainName } from '../wire/name.ts'
import { equalOctets } from '../wire/octets.ts'
import type { ResourceRecord, RRset } from '../wire/rr.ts'
import type { BatchTimes, ZoneStore } from '../zone/zone-store.ts'
import type { LateChange, ServiceState, ZoneChange } from '../zone/zone-change.ts'
import type { ExportRule } from './export-rule.ts'
import { topicOf, type PassedOn } from './passed-on.ts'
import { nameRecord, stateRecord } from './private-records.ts'

/** A record to be sent; the class is IN. */
export type SentRecord = Omit<ResourceRecord, 'class'>

/** What one batch takes from the part and brings to it. */
export type PartDifference = Readonly<{
  toSerial: number
  times: BatchTimes
  gone: readonly SentRecord[]
  come: readonly SentRecord[]
  /** Names that were touched later than `times` says. */
  late: readonly LateChange[]
}>

/** Names and Services of a part at one moment. */
export type PartContent = Readonly<{
  rrsets: readonly RRset[]
  services: readonly (readonly [DomainName, ServiceState])[]
  names: readonly DomainName[]
}>

export class ZonePart {
  readonly store: ZoneStore
  readonly apex: DomainName
  /** Where the zone is a copy of another cluster's; null: it is ours. */
  readonly passedOn: PassedOn | null
  readonly #rule: ExportRule
  readonly #ns: RRset
  #serial: number

  /** @param apex the zone's own, or a name below it. */
  constructor(store: ZoneStore, apex: DomainName, rule: ExportRule, passedOn: PassedOn | null = null) {
    this.store = store
    this.passedOn = passedOn
    this.apex = apex
    this.#rule = rule
    this.#ns = { ...store.ns, owner: apex }
    this.#serial = store.serial
    // What was told of it before may be older: the last batch in the journal that touches it.
    const batches = this.isWhole ? [] : (store.changesSince(store.oldestSerial) ?? [])
    const last = batches.findLast((batch) => this.isTouchedBy(batch))
    if (last !== undefined) this.#serial = last.toSerial
  }

  /** Whether it is the zone itself, with all that is in it. */
  get isWhole(): boolean {
    return this.apex === this.store.apex && this.#rule.isOpen
  }

  /** The history that its serials belong to, as others are told it. */
  get epoch(): string {
    return this.passedOn?.epoch ?? this.store.epoch
  }

  /** Names it among all that connections are told of. */
  get topic(): string {
    return topicOf(this.passedOn?.copyOf ?? null, this.apex)
  }

  get serial(): number {
    return this.isWhole ? this.store.serial : this.#serial
  }

  get soa(): RRset {
    return this.soaAt(this.serial)
  }

  get ns(): RRset {
    return this.#ns
  }

  soaAt(serial: number): RRset {
    return this.store.soaAt(serial, this.apex)
  }

  /** Takes note of a batch of its store; whether it changed something here, so that the serial is another one now. */
  note(batch: ZoneChange): boolean {
    if (!this.isTouchedBy(batch)) return false
    this.#serial = batch.toSerial
    return true
  }

  isTouchedBy(batch: ZoneChange): boolean {
    if (this.isWhole || batch.isWhole === true) return true
    return (
      batch.sets.some((set) => this.#hasSet(set.owner, set.type)) ||
      batch.services.some(({ owner }) => this.#has(owner)) ||
      batch.names.some(({ owner }) => this.#has(owner)) ||
      batch.existence.some(({ owner }) => owner === this.apex)
    )
  }

  /** What of an RRset of the zone is in the part, SOA and NS left out; null: nothing. */
  visible(rrset: RRset): RRset | null {
    return this.#hasSet(rrset.owner, rrset.type) ? this.#rule.visible(rrset) : null
  }

  /** Whether what is said of a name is in the part. */
  shows(name: DomainName): boolean {
    return this.#has(name)
  }

  /** Whether the apex is told to exist: the name is one of the zone that the suffix lies in. */
  get apexIsNamed(): boolean {
    return this.apex !== this.store.apex && this.store.exists(this.apex)
  }

  /**
   * The differences that lead from a serial to now, oldest first; empty where nothing has changed; null where the
   * journal does not reach there.
   * @param withPrivate whether what is no RRset is wanted.
   */
  differencesSince(serial: number, withPrivate: boolean): PartDifference[] | null {
    if (serial === this.serial) return []
    const batches = this.store.changesSince(serial)
    if (batches === null) return null
    return batches.filter((batch) => this.isTouchedBy(batch)).map((batch) => this.#difference(batch, withPrivate))
  }

  #difference(batch: ZoneChange, withPrivate: boolean): PartDifference {
    const gone: SentRecord[] = []
    const come: SentRecord[] = []
    for (const { owner, type, before, after } of batch.sets) {
      if (!this.#hasSet(owner, type) && !this.#isApexNs(owner, type)) continue
      const was = before === null ? null : this.#rule.visible(before)
      const is = after === null ? null : this.#rule.visible(after)
      addMissing(gone, was, is)
      addMissing(come, is, was)
    }
    if (withPrivate) {
      for (const { owner, before, after } of batch.services) {
        if (!this.#has(owner)) continue
        if (before !== null) gone.push(stateRecord(owner, before))
        if (after !== null) come.push(stateRecord(owner, after))
      }
      const names = batch.names.filter(({ owner }) => owner !== this.apex && this.#has(owner))
      const apex = batch.existence.filter(({ owner }) => owner === this.apex)
      for (const { owner, exists } of [...names, ...apex]) (exists ? come : gone).push(nameRecord(owner))
    }
    const times = { originAtMs: batch.originAtMs, learnedAtMs: batch.learnedAtMs }
    const late = batch.late?.filter(({ owner }) => this.#has(owner)) ?? []
    return { toSerial: batch.toSerial, times, gone, come, late }
  }

  #has(name: DomainName): boolean {
    return isAtOrBelow(name, this.apex) && this.#rule.shows(name)
  }

  /**
   * Whether the part has that RRset of the zone as it is. SOA and NS are its own, and beside them no CNAME can stand.
   */
  #hasSet(owner: DomainName, type: number): boolean {
    if (owner === this.apex) {
      if (type === RRTYPE.SOA || type === RRTYPE.NS) return false
      if (type === RRTYPE.CNAME) return false
    }
    return this.#has(owner)
  }

  #isApexNs(owner: DomainName, type: number): boolean {
    return type === RRTYPE.NS && owner === this.apex && this.apex === this.store.apex
  }
}

/** Adds the records of one set that the other has not; all of them where the TTL is another. */
function addMissing(out: SentRecord[], of: RRset | null, other: RRset | null): void {
  if (of === null) return
  const { owner, type, ttlSeconds } = of
  const isSameTtl = other !== null && other.ttlSeconds === ttlSeconds
  for (const rdata of of.rdata) {
    if (isSameTtl && other.rdata.some((octets) => equalOctets(octets, rdata))) continue
    out.push({ owner, type, ttlSeconds, rdata })
  }
}
