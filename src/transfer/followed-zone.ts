/**
 * A zone of somebody else whose changes we want to hear of, without keeping a copy: told by NOTIFY or found by asking
 * for the SOA, named by IXFR. Who listens takes the changed names out of a cache.
 *
 * Where the server names no differences, or its history is another one, all of the zone may have changed.
 */
import type { Cancel } from '../base/clock.ts'
import {
  incomingTransferIdleMs,
  mirrorHeartbeatMs,
  mirrorPollMs,
  mirrorQueryTimeoutMs,
  mirrorRetryMaxMs,
  mirrorRetryMinMs
} from '../base/limits.ts'
import { RCODE, rcodeToText, RRTYPE } from '../wire/iana.ts'
import type { Message } from '../wire/message.ts'
import type { DomainName } from '../wire/name.ts'
import { readSoa } from '../wire/rdata.ts'
import type { RRset } from '../wire/rr.ts'
import { isLaterSerial } from '../zone/serial.ts'
import {
  newMirrorStats,
  refusals,
  zoneAbove,
  type MirroredZoneOptions,
  type MirrorState,
  type MirrorStatus
} from './mirror-types.ts'
import { PrimaryNotes } from './primary-notes.ts'
import { readDelta, stepOf, type Step } from './read-delta.ts'
import { soaQuery, transferQuery } from './transfer-query.ts'
import { TransferFault, TransferReader } from './transfer-reader.ts'

export type FollowedZoneOptions = Pick<
  MirroredZoneOptions,
  'apex' | 'link' | 'clock' | 'random' | 'instanceId' | 'leaseMs' | 'limits' | 'onFault' | 'onConfirmed'
> &
  Readonly<{
    /** These names may have other answers now, in the order of the changes. */
    onNames: (zone: FollowedZone, steps: readonly Step[]) => void
    /** Whatever lies in the zone may have other answers now. */
    onAnything: (zone: FollowedZone) => void
    onRefused: (zone: FollowedZone, why: string, above: DomainName | null) => void
  }>

export class FollowedZone {
  readonly apex: DomainName
  readonly stats = newMirrorStats()
  readonly #options: FollowedZoneOptions
  #state: MirrorState = 'connecting'
  #connectionEpoch = ''
  #server = ''
  #primary: PrimaryNotes
  /** What was last heard of; null before. */
  #known: { soa: RRset; serial: number; epoch: string } | null = null
  #hasHeard = false
  #hasIxfr = true
  #isBusy = false
  #isDue = false
  #failures = 0
  #confirmedAtMs = Number.NEGATIVE_INFINITY
  #lastFault: string | null = null
  #cancelRequest: Cancel = () => {}
  #cancelTimer: Cancel = () => {}
  #isStopped = false

  constructor(options: FollowedZoneOptions) {
    this.#options = options
    this.apex = options.apex
    this.#primary = new PrimaryNotes(options.clock)
  }

  /** There is no copy. */
  readonly copy = null
  readonly store = null

  get server(): string {
    return this.#server
  }

  get clockOffsetMs(): number | null {
    return this.#primary.clockOffsetMs
  }

  /** Whether changes are heard of: the server gave a sign of life lately. */
  isLive(): boolean {
    return this.#options.clock.nowMs() - this.#confirmedAtMs <= this.#options.leaseMs
  }

  isExpired(): boolean {
    return false
  }

  linkUp(server: string, connection: number): void {
    if (this.#isStopped) return
    // One that a space makes unlike any that a server names.
    this.#connectionEpoch = `${server} ${connection}`
    this.#server = server
    this.#hasIxfr = true
    this.#isBusy = false
    this.#primary = new PrimaryNotes(this.#options.clock)
    this.#check()
  }

  linkDown(): void {
    this.#cancelTimer()
    this.#cancelRequest()
    this.#isBusy = false
    if (this.#state !== 'refused') this.#state = 'connecting'
  }

  /** As MirroredZone's. */
  notified(serial: number | null, epoch: string | null): void {
    this.stats.notifies++
    this.#primary.hasTold()
    const known = this.#known
    if (this.#isBusy) this.#isDue = true
    else if (this.#options.link.server === null) return
    else if (known !== null && serial !== null && epoch === known.epoch && isLaterSerial(serial, known.serial)) {
      if (this.#hasIxfr) this.#takeNames(known)
      else this.#check()
    } else this.#check()
  }

  /** Somebody says by other ways that the zone has changed. */
  lookSoon(delayMs: number): void {
    this.stats.notifies++
    if (this.#isBusy) this.#isDue = true
    else if (this.#options.link.server !== null && this.#state !== 'refused') this.#later(delayMs)
  }

  askAgain(): void {
    if (!this.#isBusy && this.#options.link.server !== null) this.#check()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelTimer()
    this.#cancelRequest()
  }

  status(): MirrorStatus {
    const { clock, link } = this.#options
    return {
      apex: this.apex,
      state: this.#state,
      keepsCopy: false,
      serial: this.#known?.serial ?? null,
      epoch: this.#known?.epoch ?? null,
      server: link.server,
      ageMs: this.#known === null ? null : clock.nowMs() - this.#confirmedAtMs,
      clockOffsetMs: this.clockOffsetMs,
      pushes: this.#primary.pushes,
      isLive: this.isLive(),
      isExpired: false,
      lastFault: this.#lastFault,
      stats: this.stats
    }
  }

  #check(): void {
    if (this.#isStopped) return
    this.#cancelTimer()
    this.#isBusy = true
    this.#isDue = false
    this.stats.checks++
    const { link, clock, instanceId } = this.#options
    const sentAtMs = clock.nowMs()
    this.#cancelRequest = link.request({
      octets: soaQuery(this.apex, { instanceId, epoch: this.#known?.epoch ?? null, isPlain: false }),
      idleTimeoutMs: mirrorQueryTimeoutMs,
      onMessage: (message) => {
        this.#isBusy = false
        this.#tookSoa(message, sentAtMs)
        return true
      },
      onFail: (fault) => this.#failed(fault)
    })
  }

  #tookSoa(message: Message, sentAtMs: number): void {
    const { rcode } = message
    const soa = message.answer.find(({ owner, type }) => owner === this.apex && type === RRTYPE.SOA)
    if (rcode !== RCODE.NOERROR && !refusals.has(rcode)) {
      this.#failed(new TransferFault('rcode', `SOA: ${rcodeToText(rcode)}`, rcode))
      return
    }
    if (rcode !== RCODE.NOERROR || soa === undefined) {
      this.#state = 'refused'
      this.#lastFault = rcode === RCODE.NOERROR ? 'SOA: no such zone' : `SOA: ${rcodeToText(rcode)}`
      this.#options.link.markGood()
      this.#options.onRefused(this, this.#lastFault, zoneAbove(message, this.apex))
      return
    }
    const epoch = this.#primary.take(message, sentAtMs) ?? this.#connectionEpoch
    const { serial } = readSoa(soa.rdata)
    const { owner, type, ttlSeconds, rdata } = soa
    const heard = { soa: { owner, type, ttlSeconds, rdata: [rdata] }, serial, epoch }
    const known = this.#known
    if (known !== null && known.epoch === epoch && known.serial === serial) {
      this.#confirm(sentAtMs)
      return
    }
    if (known !== null) this.#primary.hasNotTold()
    if (known !== null && known.epoch === epoch && this.#hasIxfr && isLaterSerial(serial, known.serial)) {
      this.#takeNames(known)
      return
    }
    this.#known = heard
    // What was answered before we listened at all is as old as its TTL lets it be.
    if (this.#hasHeard) this.#options.onAnything(this)
    this.#hasHeard = true
    this.#confirm(sentAtMs)
  }

  /** Asks what has changed since then. */
  #takeNames(known: { soa: RRset; epoch: string; serial: number }): void {
    this.#cancelTimer()
    this.#isBusy = true
    this.#isDue = false
    this.#state = 'transferring'
    const { link, clock, instanceId, limits } = this.#options
    const sentAtMs = clock.nowMs()
    let epoch: string | null = null
    let isWhole = false
    const reader = new TransferReader({
      apex: this.apex,
      fromSerial: known.serial,
      onZone: () => (isWhole = true),
      onRecords: () => {},
      ...(limits === undefined ? {} : { limits })
    })
    this.#cancelRequest = link.request({
      octets: transferQuery(this.apex, known.soa, { instanceId, epoch: known.epoch, isPlain: false }),
      idleTimeoutMs: incomingTransferIdleMs,
      onMessage: (message, sizeOctets) => {
        if (reader.stats.messages === 0) epoch = this.#primary.take(message, sentAtMs)
        const result = reader.take(message, sizeOctets)
        if (result === null) return false
        this.#isBusy = false
        this.stats.records += reader.stats.records
        this.stats.octets += reader.stats.octets
        const { owner, type, ttlSeconds, rdata } = result.soa
        const soa = { owner, type, ttlSeconds, rdata: [rdata] }
        this.#known = { soa, serial: result.serial, epoch: epoch ?? this.#connectionEpoch }
        if (result.kind === 'deltas' && this.#known.epoch === known.epoch) {
          this.stats.deltaTransfers++
          this.#options.onNames(
            this,
            result.deltas.map((delta) => stepOf(readDelta(delta, this.apex, epoch)))
          )
        } else {
          // It has no differences to give; the whole zone is not taken again only to learn that.
          if (isWhole) this.#hasIxfr = epoch !== null
          this.stats.wholeTransfers += isWhole ? 1 : 0
          this.#options.onAnything(this)
        }
        this.#confirm(sentAtMs)
        return true
      },
      onFail: (fault) => {
        const hasBegun = reader.stats.messages > 0 && fault.kind !== 'network'
        // What it would have named is not known: everything, then.
        this.#known = null
        this.#hasIxfr = false
        this.#failed(fault)
        if (hasBegun) link.drop(fault.message)
      }
    })
  }

  #confirm(atMs: number): void {
    const { link, clock } = this.#options
    this.#state = 'current'
    this.#failures = 0
    this.#lastFault = null
    this.#confirmedAtMs = Math.max(this.#confirmedAtMs, atMs)
    link.markGood()
    this.#options.onConfirmed?.(this)
    const everyMs = this.#primary.pushes ? mirrorHeartbeatMs : mirrorPollMs
    this.#later(this.#isDue ? 0 : atMs + everyMs - clock.nowMs())
  }

  #later(delayMs: number): void {
    this.#cancelTimer()
    this.#cancelTimer = this.#options.clock.after(Math.max(0, delayMs), () => this.#check())
  }

  #failed(fault: TransferFault): void {
    this.#isBusy = false
    this.#lastFault = fault.message
    this.stats.faults[fault.kind]++
    this.#options.onFault(this, fault)
    if (this.#isStopped || fault.kind === 'network') return
    this.#state = 'failing'
    const delayMs = Math.min(mirrorRetryMaxMs, mirrorRetryMinMs * 2 ** Math.min(this.#failures++, 10))
    this.#later(delayMs * (0.75 + 0.5 * this.#options.random()))
  }
}
