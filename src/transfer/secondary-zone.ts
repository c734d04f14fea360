/**
 * A zone of somebody else whose changes we follow: asked for its SOA over a connection held open, told of changes by
 * NOTIFY, led to the newest version by a transfer. What is held of it, and what a new version means, is for each kind:
 * a copy (`MirroredZone`), or the version that was last heard of (`FollowedZone`).
 *
 * Serials are compared within one history only: that of a peerdns instance (its epoch), or of one connection to any
 * other server.
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
  mirrorTransferGraceMs,
  serialSecondMs,
  serialSecondsApart
} from '../base/transfer-limits.ts'
import { RCODE, rcodeToText, RRTYPE } from '../wire/iana.ts'
import type { Message } from '../wire/message.ts'
import type { DomainName } from '../wire/name.ts'
import { isLaterSerial } from '../zone/serial.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import { newMirrorStats, type MirrorState, type MirrorStatus } from './mirror-types.ts'
import { PrimaryNotes } from './primary-notes.ts'
import { versionOf, type SecondaryOptions, type TransferTaker, type Version } from './secondary-types.ts'
import { peerdnsOf, soaQuery, transferQuery, zoneAbove, type QueryOptions } from './transfer-query.ts'
import { TransferFault } from './transfer-reader.ts'

/** RCODEs that say that a server does not give a zone. */
export const refusals: ReadonlySet<number> = new Set([RCODE.REFUSED, RCODE.NOTAUTH, RCODE.NXDOMAIN])

/** What servers say that do not know IXFR, or EDNS. */
const notUnderstood: ReadonlySet<number> = new Set([RCODE.FORMERR, RCODE.NOTIMP, RCODE.BADVERS])

/**
 * How much longer than a whole transfer took we wait before the next one: a big zone must not be taken all the time.
 */
const pauseAfterTransfer = 4

export abstract class SecondaryZone {
  readonly apex: DomainName
  readonly stats = newMirrorStats()
  protected primary: PrimaryNotes
  /** The history that serials of this connection belong to, where the server names none. */
  protected connectionEpoch = ''
  protected hasIxfr = true
  readonly #options: SecondaryOptions
  readonly #keepsCopy: boolean
  #state: MirrorState = 'connecting'
  #server = ''
  #isPlain = false
  #isBusy = false
  /** Something was told while we were busy. */
  #isDue = false
  #failures = 0
  /** Servers whose answers were of no use since the zone was last right; before `#retryAtMs` they are left alone. */
  readonly #failedServers = new Set<string>()
  #retryAtMs = Number.NEGATIVE_INFINITY
  #lastWholeMs = 0
  /** The version that the primary has, and when it was first seen. */
  #seen = { serial: -1, epoch: '', atMs: Number.NEGATIVE_INFINITY }
  #confirmedAtMs = Number.NEGATIVE_INFINITY
  /** How long ago the zone was known to be right at its origin, when what we hold was last confirmed. */
  #sourceAgeMs = 0
  #lastProgressAtMs = Number.NEGATIVE_INFINITY
  #lastFault: string | null = null
  #cancelRequest: Cancel = () => {}
  #cancelTimer: Cancel = () => {}
  #isStopped = false

  constructor(options: SecondaryOptions, keepsCopy: boolean) {
    this.#options = options
    this.#keepsCopy = keepsCopy
    this.apex = options.apex
    this.primary = new PrimaryNotes(options.clock)
  }

  /** The copy; null where none has come, or none is kept. */
  abstract get store(): ZoneStore | null

  /** What is held; null before the first transfer. */
  protected abstract get held(): Version | null

  /** The primary has this version. True: it is held, so nothing is to be taken. */
  protected abstract tookVersion(version: Version): boolean

  /** The primary has a later version of the history that is held. */
  protected abstract takeLater(): void

  abstract isExpired(): boolean

  /** Since what is held was known to be right at the zone's origin, in milliseconds; null before the first transfer. */
  ageMs(): number | null {
    const unconfirmedMs = this.unconfirmedMs()
    return unconfirmedMs === null ? null : unconfirmedMs + this.#sourceAgeMs
  }

  /** Since it was known to be equal to what the primary has, in milliseconds; null before the first transfer. */
  unconfirmedMs(): number | null {
    return this.held === null ? null : this.#options.clock.nowMs() - this.#confirmedAtMs
  }

  /** Who gave it, `host:port`. */
  get server(): string {
    return this.#server
  }

  /** The server's wall clock less ours, in milliseconds; null where it does not tell. */
  get clockOffsetMs(): number | null {
    return this.primary.clockOffsetMs
  }

  /** Whether what is held may stand for the zone itself: the primary gave a sign of life lately. */
  isLive(): boolean {
    const silentMs = this.unconfirmedMs()
    if (silentMs === null) return false
    const { clock, leaseMs } = this.#options
    if (silentMs <= leaseMs) return true
    const isComing = this.#state === 'transferring' && clock.nowMs() - this.#lastProgressAtMs <= leaseMs
    return isComing && silentMs <= mirrorTransferGraceMs
  }

  /** A connection is there: serials of another one mean nothing on it unless the server names its history. */
  linkUp(server: string, connection: number): void {
    if (this.#isStopped) return
    // One that a space makes unlike any that a server names.
    this.connectionEpoch = `${server} ${connection}`
    this.#server = server
    this.hasIxfr = true
    this.#isPlain = false
    this.#isBusy = false
    this.primary = new PrimaryNotes(this.#options.clock)
    const pauseMs = this.#failedServers.has(server) ? this.#retryAtMs - this.#options.clock.nowMs() : 0
    if (pauseMs > 0) this.#later(pauseMs)
    else this.check()
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
    this.primary.hasTold()
    if (this.#isBusy) {
      this.#isDue = true
      return
    }
    if (this.#options.link.server === null) return
    const { held } = this
    const isOfThisHistory = held !== null && this.primary.pushes && epoch === held.epoch
    if (isOfThisHistory && serial !== null && isLaterSerial(serial, held.serial)) this.takeLater()
    else if (!isOfThisHistory || serial !== held.serial) this.check()
  }

  /** Somebody says by other ways that the zone has changed: it is looked after, in a moment where many say so. */
  lookSoon(delayMs: number): void {
    this.stats.notifies++
    if (this.#isBusy) this.#isDue = true
    else if (this.#options.link.server !== null && this.#state !== 'refused') this.#later(delayMs)
  }

  /** Asks again, though it was refused. */
  askAgain(): void {
    if (!this.#isBusy && this.#options.link.server !== null) this.check()
  }

  stop(): void {
    this.#isStopped = true
    this.#cancelTimer()
    this.#cancelRequest()
  }

  status(): MirrorStatus {
    const { held } = this
    return {
      apex: this.apex,
      state: this.#state,
      keepsCopy: this.#keepsCopy,
      serial: held?.serial ?? null,
      epoch: held?.epoch ?? null,
      server: this.#options.link.server,
      ageMs: this.ageMs(),
      clockOffsetMs: this.clockOffsetMs,
      pushes: this.primary.pushes,
      isLive: this.isLive(),
      isExpired: this.isExpired(),
      lastFault: this.#lastFault,
      stats: this.stats
    }
  }

  /**
   * Whether a version that was taken whole at this moment may be less than all of it: of a serial that is a time in
   * seconds, the second was not over. False as long as it is not over yet, since looking again would tell no more.
   */
  protected isPartOfSecond({ serial }: Version, takenAtMs: number): boolean {
    const { clock } = this.#options
    const { atMs } = this.#seen
    if (takenAtMs - atMs >= serialSecondMs || clock.nowMs() - atMs < serialSecondMs) return false
    return !this.primary.isPeerdns && Math.abs(serial - clock.epochMs() / 1000) <= serialSecondsApart
  }

  /** Asks the primary which version it has. */
  protected check(): void {
    if (this.#isStopped) return
    this.#begin()
    const { held } = this
    if (held === null) this.#state = 'asking'
    this.stats.checks++
    const { link, clock } = this.#options
    const sentAtMs = clock.nowMs()
    this.#cancelRequest = link.request({
      octets: soaQuery(this.apex, this.#queryOptions(held)),
      idleTimeoutMs: mirrorQueryTimeoutMs,
      onMessage: (message) => {
        this.#isBusy = false
        this.#tookSoa(message, sentAtMs)
        return true
      },
      onFail: (fault) => this.failed(fault)
    })
  }

  /**
   * Asks for a transfer: IXFR from `from`, AXFR where it is null.
   * @param makeTaker is given when the question goes out, by our monotonic clock.
   * @param ends what becomes of it; exactly one of them is called, unless the connection is taken away before.
   */
  protected take<Outcome>(
    from: Version | null,
    makeTaker: (sentAtMs: number) => TransferTaker<Outcome>,
    ends: Readonly<{ onTaken(outcome: Outcome, sentAtMs: number): void; onFail(fault: TransferFault): void }>
  ): void {
    if (this.#isStopped) return
    this.#begin()
    this.#state = 'transferring'
    const { link, clock } = this.#options
    const sentAtMs = clock.nowMs()
    const taker = makeTaker(sentAtMs)
    this.#lastProgressAtMs = sentAtMs
    let isOver = false
    this.#cancelRequest = link.request({
      octets: transferQuery(this.apex, from?.soa ?? null, this.#queryOptions(from)),
      idleTimeoutMs: incomingTransferIdleMs,
      onMessage: (message, sizeOctets) => {
        const nowMs = clock.nowMs()
        this.#lastProgressAtMs = nowMs
        if (nowMs - sentAtMs > incomingTransferMs) {
          throw new TransferFault('limit', `it takes longer than ${incomingTransferMs / 1000} s`)
        }
        const outcome = taker.take(message, sizeOctets)
        if (outcome === null) return false
        isOver = true
        this.#isBusy = false
        this.#count(taker)
        ends.onTaken(outcome, sentAtMs)
        return true
      },
      onFail: (fault) => {
        if (!isOver) this.#count(taker)
        // What else of the stream may come is nobody's: only another connection is clean.
        const hasBegun = !isOver && taker.stats.messages > 0
        const isMidStream = hasBegun && fault.kind !== 'network'
        // Who cuts off each transfer would else be asked for one with each connection.
        if (hasBegun && fault.kind === 'network') this.#pauseMs()
        this.#isBusy = false
        ends.onFail(fault)
        if (isMidStream) link.drop(fault.message)
      }
    })
  }

  /** Whole transfers take so long: they are not to follow one another at once. */
  protected tookWhole(sentAtMs: number): void {
    this.#lastWholeMs = this.#options.clock.nowMs() - sentAtMs
    this.stats.wholeTransfers++
  }

  /** What is held was equal to the primary's at this moment, or later. */
  protected confirm(atMs: number): void {
    const { link, clock } = this.#options
    this.#state = 'current'
    this.#failures = 0
    this.#failedServers.clear()
    this.#lastFault = null
    // Who passes on a copy tells how long its own primary has been silent.
    this.#confirmedAtMs = Math.max(this.#confirmedAtMs, atMs - this.primary.silentMs)
    this.#sourceAgeMs = this.primary.sourceAgeMs
    link.markGood()
    this.#options.onConfirmed?.(this)
    if (this.#isDue) {
      this.#later(0)
      return
    }
    const { pushes } = this.primary
    const everyMs = pushes ? mirrorHeartbeatMs : mirrorPollMs
    const takesWhole = this.#keepsCopy && !pushes && !this.hasIxfr
    const pauseMs = Math.max(everyMs, takesWhole ? pauseAfterTransfer * this.#lastWholeMs : 0)
    this.#later(atMs + pauseMs - clock.nowMs())
  }

  protected refused(why: string, above: DomainName | null): void {
    this.#state = 'refused'
    this.#lastFault = why
    this.#options.link.markGood()
    this.#options.onRefused(this, why, above)
  }

  protected failed(fault: TransferFault): void {
    this.#isBusy = false
    this.noteFault(fault)
    if (this.#isStopped || fault.kind === 'network') return
    this.#state = 'failing'
    if (fault.rcode !== null && notUnderstood.has(fault.rcode)) this.#isPlain = true
    this.#later(this.#pauseMs())
  }

  /**
   * How long to wait after one more failure. The first one may have been a slip: what helps against it follows at once.
   */
  #pauseMs(): number {
    const { clock, random } = this.#options
    const delayMs = Math.min(mirrorRetryMaxMs, mirrorRetryMinMs * 2 ** Math.min(this.#failures, 10))
    this.#failures++
    const pauseMs = this.#failures === 1 ? 0 : delayMs * (0.75 + 0.5 * random())
    this.#failedServers.add(this.#server)
    this.#retryAtMs = clock.nowMs() + pauseMs
    return pauseMs
  }

  protected noteFault(fault: TransferFault): void {
    this.#lastFault = fault.message
    this.stats.faults[fault.kind]++
    this.#options.onFault(this, fault)
  }

  #queryOptions(of: Version | null): QueryOptions {
    const { instanceId, copyOf } = this.#options
    return { instanceId, epoch: of?.epoch ?? null, isPlain: this.#isPlain, copyOf: copyOf ?? null }
  }

  #begin(): void {
    this.#cancelTimer()
    this.#isBusy = true
    this.#isDue = false
  }

  #tookSoa(message: Message, sentAtMs: number): void {
    const { rcode } = message
    const soa = message.answer.find(({ owner, type }) => owner === this.apex && type === RRTYPE.SOA)
    if (rcode !== RCODE.NOERROR && !refusals.has(rcode)) {
      this.failed(new TransferFault('rcode', `SOA: ${rcodeToText(rcode)}`, rcode))
      return
    }
    if (rcode !== RCODE.NOERROR || soa === undefined) {
      this.refused(
        `SOA: ${rcode === RCODE.NOERROR ? 'no such zone' : rcodeToText(rcode)}`,
        zoneAbove(message, this.apex)
      )
      return
    }
    if ((this.#options.copyOf ?? null) !== (peerdnsOf(message)?.copyOf ?? null)) {
      // It speaks of its own zone of that name.
      this.refused('SOA: the server passes on no copies', null)
      return
    }
    const epoch = this.primary.take(message, sentAtMs) ?? this.connectionEpoch
    const { held } = this
    const version = versionOf(soa, epoch)
    const { serial } = version
    if (serial !== this.#seen.serial || epoch !== this.#seen.epoch) {
      this.#seen = { serial, epoch, atMs: this.#options.clock.nowMs() }
    }
    const isOfThisHistory = held !== null && held.epoch === epoch
    if (isOfThisHistory && held.serial !== serial) this.primary.hasNotTold()
    if (this.tookVersion(version)) this.confirm(sentAtMs)
  }

  #count({ stats }: TransferTaker<unknown>): void {
    this.stats.records += stats.records
    this.stats.octets += stats.octets
  }

  #later(delayMs: number): void {
    this.#cancelTimer()
    this.#cancelTimer = this.#options.clock.after(Math.max(0, delayMs), () => this.check())
  }
}
