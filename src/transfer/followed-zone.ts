/**
 * A zone of somebody else whose changes we want to hear of, without keeping a copy: IXFR names what has changed. Who
 * listens takes the changed names out of a cache.
 *
 * Where the server names no differences, or its history is another one, all of the zone may have changed.
 */
import { isLaterSerial } from '../zone/serial.ts'
import { readDelta, stepOf, type Step } from './read-delta.ts'
import { versionOf, type SecondaryOptions, type TransferTaker, type Version } from './secondary-types.ts'
import { SecondaryZone } from './secondary-zone.ts'
import { TransferReader, type TransferResult } from './transfer-reader.ts'

export type FollowedZoneOptions = SecondaryOptions &
  Readonly<{
    /** These names may have other answers now, in the order of the changes. */
    onNames: (zone: FollowedZone, steps: readonly Step[]) => void
    /** Whatever lies in the zone may have other answers now. */
    onAnything: (zone: FollowedZone) => void
    /** The server refuses to name changes, so that each is one of the whole zone; told once for each connection. */
    onCoarse?: (zone: FollowedZone, why: string) => void
  }>

/** How a transfer ended, and the history that it named; null: its server is no peerdns. */
type Told = Readonly<{ result: TransferResult; epoch: string | null }>

export class FollowedZone extends SecondaryZone {
  readonly #options: FollowedZoneOptions
  /** What was last heard of; null before. */
  #known: Version | null = null
  #hasHeard = false
  /** When all of the zone was last said to have changed; Infinity: its changes were named since. */
  #toldAllAtMs = Number.POSITIVE_INFINITY

  constructor(options: FollowedZoneOptions) {
    super(options, false)
    this.#options = options
  }

  get store(): null {
    return null
  }

  isExpired(): boolean {
    return false
  }

  protected get held(): Version | null {
    return this.#known
  }

  protected tookVersion(version: Version): boolean {
    const known = this.#known
    const isOfThisHistory = known !== null && known.epoch === version.epoch
    if (isOfThisHistory && known.serial === version.serial) {
      if (this.isPartOfSecond(version, this.#toldAllAtMs)) this.#tellAll()
      return true
    }
    if (isOfThisHistory && this.hasIxfr && isLaterSerial(version.serial, known.serial)) {
      this.#takeNames(known)
      return false
    }
    this.#known = version
    // What was answered before we listened at all is as old as its TTL lets it be.
    if (this.#hasHeard) this.#tellAll()
    this.#hasHeard = true
    return true
  }

  protected takeLater(): void {
    if (this.#known !== null && this.hasIxfr) this.#takeNames(this.#known)
    else this.check()
  }

  /** Asks what has changed since then. */
  #takeNames(known: Version): void {
    this.take(known, (sentAtMs) => this.#taker(known, sentAtMs), {
      onTaken: (told, sentAtMs) => {
        this.#took(told, known)
        this.confirm(sentAtMs)
      },
      onFail: (fault) => {
        // What it would have named is not known: everything, then.
        this.#known = null
        if (this.hasIxfr && fault.kind === 'rcode') this.#options.onCoarse?.(this, `IXFR: ${fault.message}`)
        this.hasIxfr = false
        this.failed(fault)
      }
    })
  }

  #taker(known: Version, sentAtMs: number): TransferTaker<Told> {
    const { limits } = this.#options
    const reader = new TransferReader({
      apex: this.apex,
      fromSerial: known.serial,
      onZone: () => {},
      onRecords: () => {},
      ...(limits === undefined ? {} : { limits })
    })
    let epoch: string | null = null
    return {
      stats: reader.stats,
      take: (message, sizeOctets) => {
        if (reader.stats.messages === 0) epoch = this.primary.take(message, sentAtMs)
        const result = reader.take(message, sizeOctets)
        return result === null ? null : { result, epoch }
      }
    }
  }

  #took({ result, epoch }: Told, known: Version): void {
    const now = versionOf(result.soa, epoch ?? this.connectionEpoch)
    this.#known = now
    if (result.kind === 'deltas' && now.epoch === known.epoch) {
      this.stats.deltaTransfers++
      this.#toldAllAtMs = Number.POSITIVE_INFINITY
      const steps = result.deltas.map((delta) => stepOf(readDelta(delta, this.apex, epoch)))
      this.#options.onNames(this, steps)
      return
    }
    if (result.kind === 'zone') {
      this.stats.wholeTransfers++
      // It has no differences to give; the whole zone is not taken again only to learn that.
      this.hasIxfr = epoch !== null
    }
    this.#tellAll()
  }

  #tellAll(): void {
    this.#toldAllAtMs = this.#options.clock.nowMs()
    this.#options.onAnything(this)
  }
}
