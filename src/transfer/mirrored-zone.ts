/**
 * A zone of somebody else, kept equal to it by transfer: asked for its SOA over a connection held open, told of changes
 * by NOTIFY, brought up to date by IXFR, taken whole by AXFR where that does not work.
 *
 * The copy is exchanged or changed in one step, and only when all of a transfer has come and holds together: whatever a
 * server sends, the last good version stays. Serials are compared within one history only: that of a peerdns instance
 * (its epoch), or of one connection to any other server.
 */
import type { Cancel } from '../base/clock.ts'
import {
  incomingTransferIdleMs,
  incomingTransferMs,
  mirrorHeartbeatMs,
  mirrorPollMs,
  mirrorQueryTimeoutMs,
  mirrorRetryMaxMs,
  mirrorRetryMinMs,
  mirrorTransferGraceMs
} from '../base/limits.ts'
import { RCODE, rcodeToText, RRTYPE } from '../wire/iana.ts'
import type { Message } from '../wire/message.ts'
import type { DomainName } from '../wire/name.ts'
import { readSoa } from '../wire/rdata.ts'
import { isLaterSerial } from '../zone/serial.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import { IncomingTransfer, type Taken, type TransferOutcome } from './incoming-transfer.ts'
import {
  newMirrorStats,
  refusals,
  zoneAbove,
  type MirroredZoneOptions,
  type MirrorState,
  type MirrorStatus
} from './mirror-types.ts'
import { PrimaryNotes } from './primary-notes.ts'
import { soaQuery, transferQuery } from './transfer-query.ts'
import { TransferFault } from './transfer-reader.ts'

/** How much longer than a whole transfer took we wait before the next one: a big zone must not be taken all the time. */
const pauseAfterTransfer = 4

/** What servers say that do not know IXFR, or EDNS. */
const notUnderstood: ReadonlySet<number> = new Set([RCODE.FORMERR, RCODE.NOTIMP, RCODE.BADVERS])

export class MirroredZone {
  readonly apex: DomainName
  readonly stats = newMirrorStats()
  readonly #options: MirroredZoneOptions
  #copy: Taken | null = null
  #state: MirrorState = 'connecting'
  /** The history that serials of this connection belong to, where the server names none. */
  #connectionEpoch = ''
  #server = ''
  #hasIxfr = true
  #primary: PrimaryNotes
  #isPlain = false
  #isBusy = false
  /** Something was told while we were busy. */
  #isDue = false
  #failures = 0
  #lastWholeMs = 0
  #confirmedAtMs = Number.NEGATIVE_INFINITY
  /** How long ago the zone was known to be right at its origin, when our copy was last confirmed. */
  #sourceAgeMs = 0
  #lastProgressAtMs = Number.NEGATIVE_INFINITY
  #lastFault: string | null = null
  #mustTakeWhole = false
  #cancelRequest: Cancel = () => {}
  #cancelTimer: Cancel = () => {}
  #isStopped = false

  constructor(options: MirroredZoneOptions) {
    this.#options = options
    this.apex = options.apex
    this.#primary = new PrimaryNotes(options.clock)
  }

  /** The last good version; null before the first transfer. */
  get copy(): Taken | null {
    return this.#copy
  }

  get store(): ZoneStore | null {
    return this.#copy?.store ?? null
  }

  /** Since the copy was known to be right at the zone's origin, in milliseconds; null before the first transfer. */
  ageMs(): number | null {
    return this.#copy === null ? null : this.#options.clock.nowMs() - this.#confirmedAtMs + this.#sourceAgeMs
  }

  /** Since the copy was known to be equal to what the primary has, in milliseconds; null before the first transfer. */
  unconfirmedMs(): number | null {
    return this.#copy === null ? null : this.#options.clock.nowMs() - this.#confirmedAtMs
  }

  /** Who gave the copy, `host:port`. */
  get server(): string {
    return this.#server
  }

  /** The server's wall clock less ours, in milliseconds; null where it does not tell. */
  get clockOffsetMs(): number | null {
    return this.#primary.clockOffsetMs
  }

  /** Whether the copy may be answered from as if it were the zone itself: the primary gave a sign of life lately. */
  isLive(): boolean {
    if (this.#copy === null) return false
    const { clock, leaseMs } = this.#options
    const nowMs = clock.nowMs()
    const ageMs = nowMs - this.#confirmedAtMs
    if (ageMs <= leaseMs) return true
    return this.#state === 'transferring' && nowMs - this.#lastProgressAtMs <= leaseMs && ageMs <= mirrorTransferGraceMs
  }

  /** Whether the copy is older than the zone's SOA lets it be given out at all. RFC 1035 §3.3.13, EXPIRE. */
  isExpired(): boolean {
    if (this.#copy === null) return false
    return (this.unconfirmedMs() ?? 0) > readSoa(this.#copy.store.soa.rdata[0]!).expireSeconds * 1000
  }

  /** A connection is there: serials of another one mean nothing on it unless the server names its history. */
  linkUp(server: string, connection: number): void {
    if (this.#isStopped) return
    this.#connectionEpoch = `${server} ${connection}`
    this.#server = server
    this.#hasIxfr = true
    this.#isPlain = false
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

  /**
   * The primary says that the zone has changed (RFC 1996). `serial` and `epoch` are what the message tells, null where
   * it does not; over our own connection they are the server's word.
   */
  notified(serial: number | null, epoch: string | null): void {
    this.stats.notifies++
    this.#primary.hasTold()
    if (this.#isBusy) {
      this.#isDue = true
      return
    }
    if (this.#options.link.server === null) return
    const store = this.store
    const isOfThisHistory = store !== null && this.#primary.pushes && epoch === store.epoch && !this.#mustTakeWhole
    if (isOfThisHistory && serial !== null && isLaterSerial(serial, store.serial)) this.#transfer(false)
    else if (!isOfThisHistory || serial !== store.serial) this.#check()
  }

  /** Somebody says by other ways that the zone has changed: it is looked after, in a moment where many say so. */
  lookSoon(delayMs: number): void {
    this.stats.notifies++
    if (this.#isBusy) this.#isDue = true
    else if (this.#options.link.server !== null && this.#state !== 'refused') this.#later(delayMs)
  }

  /** Asks again, though it was refused. */
  askAgain(): void {
    if (!this.#isBusy && this.#options.link.server !== null) this.#check()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelTimer()
    this.#cancelRequest()
  }

  status(): MirrorStatus {
    return {
      apex: this.apex,
      state: this.#state,
      keepsCopy: true,
      serial: this.store?.serial ?? null,
      epoch: this.store?.epoch ?? null,
      server: this.#options.link.server,
      ageMs: this.ageMs(),
      clockOffsetMs: this.clockOffsetMs,
      pushes: this.#primary.pushes,
      isLive: this.isLive(),
      isExpired: this.isExpired(),
      lastFault: this.#lastFault,
      stats: this.stats
    }
  }

  #check(): void {
    if (this.#isStopped) return
    this.#cancelTimer()
    this.#isBusy = true
    this.#isDue = false
    if (this.#copy === null) this.#state = 'asking'
    this.stats.checks++
    const { link, clock, instanceId } = this.#options
    const sentAtMs = clock.nowMs()
    this.#cancelRequest = link.request({
      octets: soaQuery(this.apex, { instanceId, epoch: this.store?.epoch ?? null, isPlain: this.#isPlain }),
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
      this.#refused(
        `SOA: ${rcode === RCODE.NOERROR ? 'no such zone' : rcodeToText(rcode)}`,
        zoneAbove(message, this.apex)
      )
      return
    }
    const epoch = this.#primary.take(message, sentAtMs) ?? this.#connectionEpoch
    const { serial } = readSoa(soa.rdata)
    const store = this.store
    if (store === null || this.#mustTakeWhole || store.epoch !== epoch) {
      this.#transfer(true)
    } else if (serial === store.serial) {
      this.#confirm(sentAtMs)
    } else {
      this.#primary.hasNotTold()
      this.#transfer(!isLaterSerial(serial, store.serial))
    }
  }

  /** @param isWhole AXFR, else IXFR from our serial. */
  #transfer(isWhole: boolean): void {
    if (this.#isStopped) return
    this.#cancelTimer()
    this.#isBusy = true
    this.#isDue = false
    this.#state = 'transferring'
    const { link, clock, instanceId, synthesize, limits } = this.#options
    const startedAtMs = clock.nowMs()
    const base = isWhole || !this.#hasIxfr ? null : this.#copy
    const incoming = new IncomingTransfer({
      apex: this.apex,
      base,
      clock,
      connectionEpoch: this.#connectionEpoch,
      epochOf: (message) => this.#primary.take(message, startedAtMs),
      ...(synthesize === undefined ? {} : { synthesize }),
      ...(limits === undefined ? {} : { limits })
    })
    this.#lastProgressAtMs = startedAtMs
    let isOver = false
    this.#cancelRequest = link.request({
      octets: transferQuery(this.apex, base?.store.soa ?? null, {
        instanceId,
        epoch: base?.store.epoch ?? null,
        isPlain: this.#isPlain
      }),
      idleTimeoutMs: incomingTransferIdleMs,
      onMessage: (message, sizeOctets) => {
        const nowMs = clock.nowMs()
        this.#lastProgressAtMs = nowMs
        if (nowMs - startedAtMs > incomingTransferMs) {
          throw new TransferFault('limit', `it takes longer than ${incomingTransferMs / 1000} s`)
        }
        const outcome = incoming.take(message, sizeOctets)
        if (outcome === null) return false
        isOver = true
        this.#isBusy = false
        this.#count(incoming)
        this.#took(outcome, startedAtMs)
        return true
      },
      onFail: (fault) => {
        this.#count(incoming)
        // What else of the stream may come is nobody's: only another connection is clean.
        const isMidStream = !isOver && incoming.hasBegun && fault.kind !== 'network'
        this.#transferFailed(fault, base !== null)
        if (isMidStream) link.drop(fault.message)
      }
    })
  }

  #count({ stats }: IncomingTransfer): void {
    this.stats.records += stats.records
    this.stats.octets += stats.octets
  }

  #took(outcome: TransferOutcome, startedAtMs: number): void {
    const { clock, onSwap, onChange } = this.#options
    if (outcome.kind === 'fault') {
      this.#transferFailed(outcome.fault, true)
      return
    }
    if (outcome.kind === 'zone') {
      const before = this.store
      this.#copy = outcome.taken
      this.#mustTakeWhole = false
      this.#lastWholeMs = clock.nowMs() - startedAtMs
      this.stats.wholeTransfers++
      this.#confirm(startedAtMs)
      onSwap(this, outcome.taken.store, before, outcome.times)
      return
    }
    this.stats.deltaTransfers++
    this.#confirm(startedAtMs)
    onChange(this, outcome.change, outcome.steps)
  }

  /** The copy was equal to the primary's at this moment, or later. */
  #confirm(atMs: number): void {
    const { link, clock } = this.#options
    this.#state = 'current'
    this.#failures = 0
    this.#lastFault = null
    this.#confirmedAtMs = Math.max(this.#confirmedAtMs, atMs)
    this.#sourceAgeMs = this.#primary.sourceAgeMs
    link.markGood()
    this.#options.onConfirmed?.(this)
    if (this.#isDue) {
      this.#later(0)
      return
    }
    const everyMs = this.#primary.pushes ? mirrorHeartbeatMs : mirrorPollMs
    const nextAtMs =
      atMs + Math.max(everyMs, this.#primary.pushes || this.#hasIxfr ? 0 : pauseAfterTransfer * this.#lastWholeMs)
    this.#later(nextAtMs - clock.nowMs())
  }

  #later(delayMs: number): void {
    this.#cancelTimer()
    this.#cancelTimer = this.#options.clock.after(Math.max(0, delayMs), () => this.#check())
  }

  #refused(why: string, above: DomainName | null): void {
    this.#state = 'refused'
    this.#lastFault = why
    this.#options.link.markGood()
    this.#options.onRefused(this, why, above)
  }

  #transferFailed(fault: TransferFault, wasDelta: boolean): void {
    this.#isBusy = false
    if (fault.kind === 'rcode' && wasDelta && fault.rcode !== RCODE.SERVFAIL) {
      // It may know AXFR alone, or allow that alone.
      this.#hasIxfr = false
      this.#noteFault(fault)
      this.#transfer(true)
      return
    }
    if (fault.kind === 'rcode' && fault.rcode !== null && refusals.has(fault.rcode)) {
      this.#noteFault(fault)
      this.#refused(`transfer: ${fault.message}`, null)
      return
    }
    // A whole zone cannot be wrong about what we have; a delta can.
    if (wasDelta && fault.kind !== 'network') this.#mustTakeWhole = true
    this.#failed(fault)
  }

  #failed(fault: TransferFault): void {
    this.#isBusy = false
    this.#noteFault(fault)
    if (this.#isStopped || fault.kind === 'network') return
    this.#state = 'failing'
    if (fault.rcode !== null && notUnderstood.has(fault.rcode)) this.#isPlain = true
    const delayMs = Math.min(mirrorRetryMaxMs, mirrorRetryMinMs * 2 ** Math.min(this.#failures, 10))
    this.#failures++
    // The first one may have been a slip: the whole zone follows at once.
    this.#later(this.#failures === 1 ? 0 : delayMs * (0.75 + 0.5 * this.#options.random()))
  }

  #noteFault(fault: TransferFault): void {
    this.#lastFault = fault.message
    this.stats.faults[fault.kind]++
    this.#options.onFault(this, fault)
  }
}
