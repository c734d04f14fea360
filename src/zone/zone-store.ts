/**
 * One zone: its RRsets, serial, epoch and journal, and the authoritative lookup.
 *
 * The cluster zone, a mirrored zone and a node's copy are all such stores; who feeds them knows where the records
 * come from. A lookup is one map access for names with records. An edit costs what it touches, however large the
 * zone is.
 */
import type { Cancel, Clock } from '../base/clock.ts'
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import { Journal } from './journal.ts'
import { ChangeBatch, type GatheredChange } from './change-batch.ts'
import { findAnswer, NameTree } from './name-tree.ts'
import { isLaterSerial, nextSerial, serialFromTime } from './serial.ts'
import { negativeSoaOf, soaRRset, type SoaFields } from './soa.ts'
import type { ServiceState, ZoneChange } from './zone-change.ts'
import { ZoneListeners, type ZoneListener } from './zone-listeners.ts'
import { nodata, nxdomain, type Synthesize, type ZoneLookup } from './zone-lookup.ts'
import { differences, startsFrom, type ZoneDifference, type ZoneEdit, type ZoneState } from './zone-edit.ts'
import { fill, type ZoneFilling } from './zone-filling.ts'
import type { BatchTimes, ZoneStoreOptions } from './zone-store-options.ts'

export type { ZoneEdit } from './zone-edit.ts'
export type { BatchTimes, ZoneStoreOptions } from './zone-store-options.ts'
export type { ZoneListener } from './zone-listeners.ts'
export type { Synthesize, ZoneLookup } from './zone-lookup.ts'

/**
 * What came of a change made by another store. `other-history`: it belongs to another epoch, or does not start at our
 * serial. `mismatch`: it changes what is not here, or lies outside of the zone.
 */
export type ReplayOutcome = 'applied' | 'other-history' | 'mismatch'

export class ZoneStore {
  readonly apex: DomainName
  readonly epoch: string
  readonly #clock: Clock
  readonly #soaFields: SoaFields
  readonly #synthesize: Synthesize | null
  readonly #tree: NameTree
  readonly #services = new Map<DomainName, ServiceState>()
  readonly #listeners = new ZoneListeners()
  readonly #batchListeners = new ZoneListeners()
  readonly #batch = new ChangeBatch()
  readonly #gatherMs: number
  readonly #state: ZoneState = {
    rrset: (owner, type) => this.#tree.rrset(owner, type),
    serviceState: (owner) => this.serviceState(owner),
    isNamed: (name) => this.#tree.isNamed(name)
  }
  #serial: number
  #soa: RRset
  #negativeSoa: RRset
  #journal: Journal
  #lastChangeAtMs: number
  #lastBatch: BatchTimes
  /** Monotonic time of the last batch. */
  #batchedAtMs = Number.NEGATIVE_INFINITY
  #cancelBatch: Cancel | null = null
  #afterBatch: (() => void)[] = []
  #isLoading = false

  constructor(options: ZoneStoreOptions) {
    if (options.ns !== null && (options.ns.owner !== options.apex || options.ns.type !== RRTYPE.NS))
      throw new RangeError('ns must be NS at the apex')
    this.apex = options.apex
    this.epoch = options.epoch
    this.#clock = options.clock
    this.#soaFields = options.soa
    this.#synthesize = options.synthesize ?? null
    this.#lastChangeAtMs = options.clock.epochMs()
    this.#lastBatch = options.lastBatch ?? { originAtMs: this.#lastChangeAtMs, learnedAtMs: this.#lastChangeAtMs }
    this.#gatherMs = options.gatherMs ?? 0
    this.#serial = options.serial ?? serialFromTime(this.#lastChangeAtMs)
    this.#journal = new Journal(this.#serial)
    this.#soa = this.soaAt(this.#serial)
    this.#negativeSoa = negativeSoaOf(this.#soa, this.#soaFields)
    this.#tree = new NameTree(this.apex)
    this.#tree.put(this.#soa)
    if (options.ns !== null) this.#tree.put(options.ns)
  }

  /** Rises with each batch of changes (RFC 1982), also across restarts while batches are 50 ms apart. */
  get serial(): number {
    return this.#serial
  }

  get soa(): RRset {
    return this.#soa
  }

  /** The NS records at the apex. */
  get ns(): RRset {
    return this.#tree.rrset(this.apex, RRTYPE.NS)!
  }

  /** The oldest serial that the journal can go on from. */
  get oldestSerial(): number {
    return this.#journal.oldestSerial
  }

  /** The SOA as a denial carries it. RFC 2308 §3. */
  get negativeSoa(): RRset {
    return this.#negativeSoa
  }

  /**
   * The SOA at a serial, which each end of a change has. @param apex that of a part given away as a zone of its own.
   */
  soaAt(serial: number, apex: DomainName = this.apex): RRset {
    return soaRRset(apex, this.#soaFields, serial)
  }

  /** The times of the last batch, in milliseconds since 1970; of the construction where there was none. */
  get lastBatch(): BatchTimes {
    return this.#lastBatch
  }

  /** Wall time of the last change in milliseconds since 1970; of the construction where there was none. */
  get lastChangeAtMs(): number {
    return this.#lastChangeAtMs
  }

  /** For the status page: names that exist; RRsets, SOA included; changes in the journal, and what they hold. */
  get sizes(): Readonly<{ names: number; rrsets: number; journalChanges: number; journalEntries: number }> {
    return {
      names: this.#tree.names,
      rrsets: this.#tree.rrsets,
      journalChanges: this.#journal.size,
      journalEntries: this.#journal.entries
    }
  }

  /**
   * What the zone says of a name and type. The name must be at or below the apex (`Zones.find` saw to that).
   *
   * Synthesis is asked only where the zone holds no records of the name. Wildcards and zone cuts are not known here.
   */
  lookup(qname: DomainName, qtype: number): ZoneLookup {
    const entry = this.#tree.entry(qname)
    if (entry !== undefined) {
      if (entry.kind === 'answer') return entry.rrset.type === qtype || qtype === RRTYPE.ANY ? entry : nodata
      if (entry.answers.length > 0) {
        if (qtype === RRTYPE.ANY) return entry.answers[0]!
        return findAnswer(entry, qtype) ?? entry.alias ?? nodata
      }
    }
    const made = this.#synthesize === null ? null : this.#synthesize(qname, qtype)
    if (entry === undefined) return made ?? nxdomain
    // The name exists here, so whoever computes answers cannot deny it.
    return made === null || made.kind === 'nxdomain' ? nodata : made
  }

  /** Whether the name exists: with records, made to exist without, above such a name, or by synthesis. */
  exists(name: DomainName): boolean {
    if (this.#tree.entry(name) !== undefined) return true
    const made = this.#synthesize === null ? null : this.#synthesize(name, RRTYPE.ANY)
    return made !== null && made.kind !== 'nxdomain'
  }

  /** The RRset that the zone holds; nothing is computed for it. */
  rrset(owner: DomainName, type: number): RRset | null {
    return this.#tree.rrset(owner, type)
  }

  /** Whether the name was made to exist without records of its own. */
  isNamed(name: DomainName): boolean {
    return this.#tree.isNamed(name)
  }

  /** What is known of a Service's endpoints; null: no such Service. */
  serviceState(owner: DomainName): ServiceState | null {
    return this.#services.get(owner) ?? null
  }

  /**
   * Carries out an edit as one change: whole or, when it throws, not at all. What is so already is left out; null where
   * nothing is left, and while it is loading. Of two entries for one thing the last one counts. A change that waits for
   * its batch has equal serials.
   * @throws RangeError for an owner outside of the zone, what is no RRset, the SOA, or taking the apex's NS away.
   */
  apply(edit: ZoneEdit): ZoneChange | null {
    this.#refuseWhileNotifying()
    if (this.#isLoading) {
      this.load(edit)
      return null
    }
    const difference = differences(edit, this.apex, this.#state)
    if (difference.sets.length + difference.services.length + difference.names.length === 0) return null
    const gathered = this.#carryOut(difference, edit.originAtMs)
    const isAlone = this.#batch.isEmpty
    this.#batch.add(gathered)
    const waitMs = this.#batchedAtMs + this.#gatherMs - this.#clock.nowMs()
    // A timer may come a moment early; the serials count the same ticks.
    if (this.#gatherMs > 0 && waitMs > 0) {
      this.#cancelBatch ??= this.#clock.after(waitMs, () => this.#endBatch())
      const change = this.#changeOf(gathered, this.#serial, this.#serial)
      this.#listeners.tell(change)
      return change
    }
    const batch = this.#takeBatch()
    const change = isAlone && batch !== null ? batch : this.#changeOf(gathered, this.#serial, this.#serial)
    this.#listeners.tell(change)
    this.#tellBatch(batch)
    return change
  }

  /**
   * Carries out a change that another store made, so that a copy of it stays equal, serial included.
   * @throws RangeError where `apply` does, but for owners outside of the zone: those are a mismatch.
   */
  replay(change: ZoneChange): ReplayOutcome {
    this.#refuseWhileNotifying()
    if (change.epoch !== this.epoch || change.fromSerial !== this.#serial) return 'other-history'
    if (change.zone !== this.apex || !startsFrom(this.#state, change, this.apex)) return 'mismatch'
    const difference = differences(change, this.apex, this.#state)
    const gathered = { ...this.#carryOut(difference, change.originAtMs), ...(change.late && { late: change.late }) }
    const batch = this.#commit(gathered, change.toSerial)
    this.#listeners.tell(batch)
    this.#tellBatch(batch)
    return 'applied'
  }

  /**
   * Fills a store that nobody reads yet, in pieces: serial, journal and listeners know nothing of it.
   * @throws RangeError as `fill`, and outside of `beginLoading` where the store has changed or is listened to.
   */
  load(filling: ZoneFilling): void {
    const isInUse = this.#journal.size > 0 || this.#listeners.size > 0
    if (isInUse && !this.#isLoading) throw new RangeError('the store is in use')
    fill(this.#tree, this.#services, this.apex, filling)
    this.#lastChangeAtMs = this.#clock.epochMs()
  }

  /** Whether it is being read for the first time. */
  get isLoading(): boolean {
    return this.#isLoading
  }

  /**
   * Says that all of it is read for the first time now, and nobody may take it yet: until `endLoading` only look-ups
   * know of changes. That takes a fraction of the time.
   */
  beginLoading(): void {
    this.#endBatch()
    this.#isLoading = true
  }

  /**
   * Ends that: listeners are told that all may be another, and what is there has a serial of its own, behind all that
   * were told, and no way leads there from those.
   */
  endLoading(): void {
    if (!this.#isLoading) return
    this.#isLoading = false
    const fromSerial = this.#serial
    this.#forgetHistory(fromSerial)
    const times = { originAtMs: this.#lastChangeAtMs, learnedAtMs: this.#lastChangeAtMs }
    this.#lastBatch = times
    const nothing = { sets: [], services: [], names: [], existence: [] }
    const change: ZoneChange = { ...this.#changeOf({ ...times, ...nothing }, fromSerial, this.#serial), isWhole: true }
    this.#listeners.tell(change)
    this.#tellBatch(change)
  }

  /**
   * Goes on behind the serials of a store that this one takes the place of, and forgets its journal: none of the
   * serials told so far is of this history.
   */
  takeOverFrom(other: ZoneStore): void {
    this.#endBatch()
    const above = isLaterSerial(other.serial, this.#serial) ? other.serial : this.#serial
    this.#forgetHistory(above)
  }

  #forgetHistory(behind: number): void {
    this.#setSerial(nextSerial(behind, this.#clock.epochMs()))
    this.#journal = new Journal(this.#serial)
  }

  /**
   * Calls back after each change, in order, within the call that made it; the function returned ends that. A listener
   * must not edit this zone. When listeners throw, the others are still called, and then the first error is thrown.
   */
  subscribe(listener: ZoneListener): () => void {
    return this.#listeners.add(listener)
  }

  /** As `subscribe`, but after each batch, when serial and journal have it: what leaves this server follows batches. */
  subscribeBatches(listener: ZoneListener): () => void {
    return this.#batchListeners.add(listener)
  }

  /**
   * Calls back when no change waits for its batch, so that what the zone holds is what its serial says: at once, or
   * within the call that ends the batch.
   */
  whenBatched(callback: () => void): void {
    if (this.#batch.isEmpty) callback()
    else this.#afterBatch.push(callback)
  }

  /** Ends its timer; what waits for its batch waits for ever. */
  close(): void {
    this.#cancelBatch?.()
    this.#cancelBatch = null
  }

  /** The changes from a serial of this epoch to now, oldest first; null where the journal does not reach back there. */
  changesSince(serial: number): readonly ZoneChange[] | null {
    return this.#journal.since(serial)
  }

  /** Every RRset, the SOA first. A list taken in one go is a snapshot, since RRsets are never altered. */
  *records(): IterableIterator<RRset> {
    for (const [, entry] of this.#tree.entries()) {
      if (entry.kind === 'answer') yield entry.rrset
      else for (const answer of entry.answers) yield answer.rrset
    }
  }

  /** Every Service whose endpoints something is known of. */
  services(): IterableIterator<[DomainName, ServiceState]> {
    return this.#services.entries()
  }

  /** Every name that was made to exist without records of its own, the apex left out. */
  *pseudoNames(): IterableIterator<DomainName> {
    for (const [name, entry] of this.#tree.entries()) {
      if (entry.kind === 'node' && entry.isNamed && name !== this.apex) yield name
    }
  }

  /** Nothing in here may throw: everything was checked before. */
  #carryOut(difference: ZoneDifference, originAtMs: number): GatheredChange {
    for (const { owner, type, after } of difference.sets) {
      if (after === null) this.#tree.remove(owner, type)
      else this.#tree.put(after)
    }
    for (const { owner, after } of difference.services) {
      if (after === null) this.#services.delete(owner)
      else this.#services.set(owner, after)
    }
    for (const { owner, exists } of difference.names) this.#tree.setNamed(owner, exists)
    const learnedAtMs = this.#clock.epochMs()
    this.#lastChangeAtMs = learnedAtMs
    return { originAtMs, learnedAtMs, ...difference, existence: this.#tree.takeExistenceChanges() }
  }

  #changeOf(gathered: GatheredChange, fromSerial: number, toSerial: number): ZoneChange {
    return { zone: this.apex, epoch: this.epoch, fromSerial, toSerial, ...gathered }
  }

  /** Gives what was gathered its serial, and the journal what was gathered; null where it has undone itself. */
  #takeBatch(): ZoneChange | null {
    this.#cancelBatch?.()
    this.#cancelBatch = null
    this.#batchedAtMs = this.#clock.nowMs()
    const gathered = this.#batch.take()
    return gathered === null ? null : this.#commit(gathered, nextSerial(this.#serial, this.#clock.epochMs()))
  }

  #commit(gathered: GatheredChange, toSerial: number): ZoneChange {
    const change = this.#changeOf(gathered, this.#serial, toSerial)
    this.#setSerial(toSerial)
    this.#lastBatch = { originAtMs: gathered.originAtMs, learnedAtMs: gathered.learnedAtMs }
    this.#journal.push(change)
    return change
  }

  #setSerial(serial: number): void {
    this.#serial = serial
    this.#soa = this.soaAt(serial)
    this.#negativeSoa = negativeSoaOf(this.#soa, this.#soaFields)
    this.#tree.put(this.#soa)
  }

  #endBatch(): void {
    this.#tellBatch(this.#takeBatch())
  }

  #tellBatch(batch: ZoneChange | null): void {
    const waiting = this.#afterBatch
    this.#afterBatch = []
    try {
      if (batch !== null) this.#batchListeners.tell(batch)
    } finally {
      for (const callback of waiting) callback()
    }
  }

  #refuseWhileNotifying(): void {
    if (this.#listeners.isTelling || this.#batchListeners.isTelling)
      throw new Error('a listener edits the zone that it listens to')
  }
}
