/**
 * A zone of somebody else, kept equal to it by transfer: brought up to date by IXFR, taken whole by AXFR where that
 * does not work.
 *
 * The copy is exchanged or changed in one step, and only when all of a transfer has come and holds together: whatever a
 * server sends, the last good version stays.
 */
import { RCODE, RRTYPE } from '../wire/iana.ts'
import { readSoa } from '../wire/rdata.ts'
import { isLaterSerial } from '../zone/serial.ts'
import type { ZoneChange } from '../zone/zone-change.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import { IncomingTransfer, type IncomingOptions, type Taken, type TransferOutcome } from './incoming-transfer.ts'
import type { Step, Times } from './read-delta.ts'
import type { SecondaryOptions, Version } from './secondary-types.ts'
import { refusals, SecondaryZone } from './secondary-zone.ts'
import type { TransferFault } from './transfer-reader.ts'

export type MirroredZoneOptions = SecondaryOptions &
  Readonly<{
    synthesize?: IncomingOptions['synthesize']
    /** Another store has taken the place of `before`. */
    onSwap: (zone: MirroredZone, store: ZoneStore, before: ZoneStore | null, times: Times) => void
    /** The store was changed by deltas. */
    onChange: (zone: MirroredZone, change: ZoneChange, steps: readonly Step[]) => void
  }>

export class MirroredZone extends SecondaryZone {
  readonly #options: MirroredZoneOptions
  #copy: Taken | null = null
  #copyNumber = 0
  #mustTakeWhole = false
  /** When the copy was last asked for whole; Infinity: it was brought up to date by deltas since. */
  #takenWholeAtMs = Number.POSITIVE_INFINITY
  readonly #onTaken = new Set<() => void>()

  constructor(options: MirroredZoneOptions) {
    super(options, true)
    this.#options = options
  }

  /** The last good version; null before the first transfer. */
  get copy(): Taken | null {
    return this.#copy
  }

  /** Another number for each store: who notes it need not hold on to a store that is not the copy any more. */
  get copyNumber(): number {
    return this.#copyNumber
  }

  get store(): ZoneStore | null {
    return this.#copy?.store ?? null
  }

  /** Whether the copy is older than the zone's SOA lets it be given out at all. RFC 1035 §3.3.13, EXPIRE. */
  isExpired(): boolean {
    if (this.#copy === null) return false
    return (this.unconfirmedMs() ?? 0) > readSoa(this.#copy.store.soa.rdata[0]!).expireSeconds * 1000
  }

  /**
   * How long `isLive` holds at least without another sign of life, in milliseconds; 0 where it does not, or only because
   * a transfer is under way.
   */
  liveForMs(): number {
    const silentMs = this.unconfirmedMs()
    return silentMs === null ? 0 : Math.max(0, this.#options.leaseMs - silentMs)
  }

  /**
   * Calls back as soon as the copy is another one or was changed, before anybody answers from it. The function returned
   * ends that.
   */
  onTaken(listener: () => void): () => void {
    this.#onTaken.add(listener)
    return () => this.#onTaken.delete(listener)
  }

  protected get held(): Version | null {
    return this.store
  }

  protected tookVersion(version: Version): boolean {
    const { serial, epoch } = version
    const { store } = this
    if (store === null || this.#mustTakeWhole || store.epoch !== epoch) {
      this.#transfer(true)
      return false
    }
    if (serial === store.serial) {
      if (!this.isPartOfSecond(version, this.#takenWholeAtMs)) return true
      this.#transfer(true)
      return false
    }
    this.#transfer(!isLaterSerial(serial, store.serial))
    return false
  }

  protected takeLater(): void {
    if (this.#mustTakeWhole) this.check()
    else this.#transfer(false)
  }

  /** @param isWhole AXFR, else IXFR from our serial. */
  #transfer(isWhole: boolean): void {
    const base = isWhole || !this.hasIxfr ? null : this.#copy
    const { apex, clock, synthesize, limits } = this.#options
    this.take(
      base?.store ?? null,
      (sentAtMs) =>
        new IncomingTransfer({
          apex,
          base,
          hadNs: this.store !== null && this.store.rrset(apex, RRTYPE.NS) !== null,
          clock,
          connectionEpoch: this.connectionEpoch,
          epochOf: (message) => this.primary.take(message, sentAtMs),
          ...(synthesize === undefined ? {} : { synthesize }),
          ...(limits === undefined ? {} : { limits })
        }),
      {
        onTaken: (outcome, sentAtMs) => this.#took(outcome, sentAtMs),
        onFail: (fault) => this.#transferFailed(fault, base !== null)
      }
    )
  }

  #took(outcome: TransferOutcome, sentAtMs: number): void {
    const { onSwap, onChange } = this.#options
    if (outcome.kind === 'fault') {
      this.#transferFailed(outcome.fault, true)
      return
    }
    if (outcome.kind === 'zone') {
      const before = this.store
      this.#copy = outcome.taken
      this.#copyNumber++
      this.#mustTakeWhole = false
      this.#takenWholeAtMs = sentAtMs
      this.tookWhole(sentAtMs)
      this.confirm(sentAtMs)
      for (const listener of this.#onTaken) listener()
      onSwap(this, outcome.taken.store, before, outcome.times)
      return
    }
    this.stats.deltaTransfers++
    this.#takenWholeAtMs = Number.POSITIVE_INFINITY
    this.confirm(sentAtMs)
    for (const listener of this.#onTaken) listener()
    onChange(this, outcome.change, outcome.steps)
  }

  #transferFailed(fault: TransferFault, wasDelta: boolean): void {
    if (fault.kind === 'rcode' && wasDelta && fault.rcode !== RCODE.SERVFAIL) {
      // It may know AXFR alone, or allow that alone.
      this.hasIxfr = false
      this.noteFault(fault)
      this.#transfer(true)
      return
    }
    if (fault.kind === 'rcode' && fault.rcode !== null && refusals.has(fault.rcode)) {
      this.noteFault(fault)
      this.refused(`transfer: ${fault.message}`, null)
      return
    }
    // A whole zone cannot be wrong about what we have; a delta can.
    if (wasDelta && fault.kind !== 'network') this.#mustTakeWhole = true
    this.failed(fault)
  }
}
