/**
 * The zones that one peer gives us, over one connection: which they are is found out by asking.
 *
 * Each name that is wanted is asked for as a zone of its own; where it is none, or is refused, its ancestors are.
 */
import type { Cancel, Clock } from '../base/clock.ts'
import { mirrorRefusedMs, notifiesPerSecond } from '../base/transfer-limits.ts'
import { OPCODE, RCODE, RRTYPE } from '../wire/iana.ts'
import { encodeMessage, type Message } from '../wire/message.ts'
import { isAtOrBelow, labelCount, nameToText, parentOf, type DomainName } from '../wire/name.ts'
import { readSoa } from '../wire/rdata.ts'
import { FollowedZone } from './followed-zone.ts'
import type { Step } from './read-delta.ts'
import { Link, type LinkOptions } from './link.ts'
import type { MirrorStatus } from './mirror-types.ts'
import { MirroredZone, type MirroredZoneOptions } from './mirrored-zone.ts'
import type { RefusedZone, SecondaryOptions } from './secondary-types.ts'
import type { SecondaryZone } from './secondary-zone.ts'
import type { TransferFault } from './transfer-reader.ts'
import { peerdnsOf } from './transfer-query.ts'

export type PeerMirrorOptions = Pick<LinkOptions, 'servers' | 'open' | 'signer'> &
  Pick<
    MirroredZoneOptions,
    | 'instanceId'
    | 'copyOf'
    | 'leaseMs'
    | 'limits'
    | 'synthesize'
    | 'onSwap'
    | 'onChange'
    | 'onFault'
    | 'clock'
    | 'random'
  > &
  Readonly<{
    /** The names that we want to answer for, as the peer calls them. */
    names: readonly DomainName[]
    /** Where it is given, no copies are kept: the changed names are told, or that all of a zone may have changed. */
    onTold?: (zone: FollowedZone, steps: readonly Step[] | 'anything') => void
    /** Whether ancestors are asked for where a name is no zone. */
    mayAscend: boolean
    /** Nobody gives this zone, nor one above it; it is asked for again later. */
    onRefused?: (zone: RefusedZone, why: string) => void
    /**
     * A wanted name is followed no more; told once, until it is followed again. `why` has the RCODE where there was
     * one.
     */
    onTrouble?: (name: DomainName, why: string) => void
    /** Of a zone that no copy is kept of, changes are not named. */
    onCoarse?: (zone: Readonly<{ apex: DomainName }>, why: string) => void
    /** What was told by `onTrouble` is over. */
    onBack?: (name: DomainName, zone: Readonly<{ apex: DomainName }>) => void
    /** The connection was made, or lost. */
    onLink: (server: string, isUp: boolean, why: string) => void
  }>

/** So many faults in a row are no slip: after each one, something else is tried. */
const faultsOfTrouble = 3

export class PeerMirror {
  readonly link: Link
  readonly #options: PeerMirrorOptions
  readonly #clock: Clock
  readonly #zones = new Map<DomainName, SecondaryZone>()
  /** Where each wanted name is looked for at the moment. */
  readonly #places = new Map<DomainName, DomainName>()
  #connection: { server: string; number: number } | null = null
  #cancelRetry: Cancel | null = null
  /** Wanted names that somebody was told of: they are not followed. */
  readonly #troubled = new Map<DomainName, string>()
  /** Why each wanted name was not given, from itself upwards. */
  readonly #refusals = new Map<DomainName, string>()
  /** Faults of each zone since it was last right. */
  readonly #faults = new Map<DomainName, number>()
  /** When somebody last made us look after a zone. */
  readonly #lookedAtMs = new Map<DomainName, number>()

  constructor(options: PeerMirrorOptions) {
    this.#options = options
    this.#clock = options.clock
    this.link = new Link({
      servers: options.servers,
      open: options.open,
      clock: options.clock,
      random: options.random,
      signer: options.signer,
      onUp: (server, number) => {
        this.#connection = { server, number }
        options.onLink(server, true, '')
        for (const zone of this.#wantedZones()) zone.linkUp(server, number)
      },
      onDown: (server, why) => {
        this.#connection = null
        options.onLink(server, false, why)
        for (const zone of this.#zones.values()) zone.linkDown()
      },
      onNotify: (message) => this.#answerNotify(message)
    })
  }

  start(): void {
    for (const name of this.#options.names) this.#place(name, name)
    this.link.start()
  }

  /** Exchanges the names that are wanted; zones that are still wanted stay as they are. */
  setNames(names: readonly DomainName[]): void {
    for (const name of this.#places.keys()) {
      if (names.includes(name)) continue
      this.#places.delete(name)
      this.#troubled.delete(name)
      this.#refusals.delete(name)
    }
    for (const name of names) if (!this.#places.has(name)) this.#place(name, name)
    const wanted = new Set(this.#places.values())
    for (const zone of this.#zones.values()) {
      if (!wanted.has(zone.apex)) this.#end(zone)
    }
  }

  stop(): void {
    this.#cancelRetry?.()
    this.#cancelRetry = null
    this.link.stop()
    for (const zone of this.#zones.values()) zone.stop()
  }

  /** The copy that holds a name: the longest apex at or above it, live ones before others; null where there is none. */
  find(name: DomainName): MirroredZone | null {
    let best: MirroredZone | null = null
    for (const zone of this.#zones.values()) {
      if (!(zone instanceof MirroredZone) || zone.store === null || !isAtOrBelow(name, zone.apex)) continue
      if (best === null || Number(zone.isLive()) - Number(best.isLive()) > 0) best = zone
      else if (zone.isLive() === best.isLive() && zone.apex.length > best.apex.length) best = zone
    }
    return best
  }

  /** Whether this zone is the one that tells of a name: no live one below it holds the name, too. */
  holds(zone: Readonly<{ apex: DomainName }>, name: DomainName): boolean {
    for (const other of this.#zones.values()) {
      if (other.apex.length > zone.apex.length && isAtOrBelow(name, other.apex) && other.isLive()) return false
    }
    return true
  }

  /** The zone of exactly this apex, be it without a copy yet. */
  get(apex: DomainName): SecondaryZone | null {
    return this.#zones.get(apex) ?? null
  }

  /** Whether changes of a name are heard of now. */
  follows(name: DomainName): boolean {
    for (const zone of this.#zones.values()) if (isAtOrBelow(name, zone.apex) && zone.isLive()) return true
    return false
  }

  /** Somebody says, by other ways than our connection, that a zone has changed. False: it is none of ours. */
  notified(apex: DomainName): boolean {
    const zone = this.#zones.get(apex)
    if (zone === undefined) return false
    const nowMs = this.#clock.nowMs()
    const lastMs = this.#lookedAtMs.get(apex) ?? Number.NEGATIVE_INFINITY
    const delayMs = Math.max(0, lastMs + 1000 / notifiesPerSecond - nowMs)
    if (delayMs === 0) this.#lookedAtMs.set(apex, nowMs)
    zone.lookSoon(delayMs)
    return true
  }

  status(): readonly MirrorStatus[] {
    return [...this.#zones.values()].map((zone) => {
      const status = zone.status()
      return { ...status, lastFault: this.#troubled.get(zone.apex) ?? status.lastFault }
    })
  }

  get zones(): IterableIterator<SecondaryZone> {
    return this.#zones.values()
  }

  /** Zones that some wanted name is looked for in; others are left over, and asked for no more. */
  #wantedZones(): SecondaryZone[] {
    const wanted = new Set(this.#places.values())
    return [...this.#zones.values()].filter(({ apex }) => wanted.has(apex))
  }

  #place(name: DomainName, apex: DomainName): void {
    this.#places.set(name, apex)
    const known = this.#zones.get(apex)
    if (known !== undefined) {
      if (known.status().state === 'refused') known.askAgain()
      return
    }
    const zone =
      this.#options.onTold === undefined ? this.#newCopy(apex) : this.#newFollowed(apex, this.#options.onTold)
    this.#zones.set(apex, zone)
    if (this.#connection !== null) zone.linkUp(this.#connection.server, this.#connection.number)
  }

  #newCopy(apex: DomainName): MirroredZone {
    const { synthesize, onSwap, onChange } = this.#options
    return new MirroredZone({
      ...this.#secondaryOptions(apex),
      ...(synthesize === undefined ? {} : { synthesize }),
      onSwap: (swapped, store, before, times) => {
        this.#dropUnwanted()
        onSwap(swapped, store, before, times)
      },
      onChange
    })
  }

  #newFollowed(apex: DomainName, onTold: PeerMirrorOptions['onTold'] & {}): FollowedZone {
    return new FollowedZone({
      ...this.#secondaryOptions(apex),
      onNames: (zone, steps) => onTold(zone, steps),
      onAnything: (zone) => onTold(zone, 'anything'),
      onCoarse: (zone, why) => this.#options.onCoarse?.(zone, why)
    })
  }

  #secondaryOptions(apex: DomainName): SecondaryOptions {
    const { clock, random, instanceId, leaseMs, limits, copyOf } = this.#options
    return {
      apex,
      link: this.link,
      clock,
      random,
      instanceId,
      leaseMs,
      copyOf: copyOf ?? null,
      ...(limits === undefined ? {} : { limits }),
      onFault: (of, fault) => this.#noteFault(of, fault),
      onConfirmed: (of) => this.#confirmed(of),
      onRefused: (refused, why, above) => this.#refused(refused, why, above)
    }
  }

  #refused(zone: RefusedZone, why: string, above: DomainName | null): void {
    const { apex } = zone
    const next = above ?? parentOf(apex)
    const mayGoOn = this.#options.mayAscend && next !== null && labelCount(next) > 0
    for (const [name, place] of this.#places) {
      if (place !== apex) continue
      const before = name === apex ? undefined : this.#refusals.get(name)
      this.#refusals.set(name, before === undefined ? why : `${before}; ${nameToText(apex)} ${why}`)
      if (mayGoOn) this.#place(name, next)
      else {
        // What is wanted is this name, wherever it was looked for.
        this.#places.set(name, name)
        this.#trouble(name, this.#refusals.get(name)!)
        this.#retryLater()
      }
    }
    this.#dropUnwanted()
    if (!mayGoOn) this.#options.onRefused?.(zone, why)
  }

  #trouble(name: DomainName, why: string): void {
    const isTold = this.#troubled.has(name)
    this.#troubled.set(name, why)
    if (!isTold) this.#options.onTrouble?.(name, why)
  }

  #noteFault(zone: Readonly<{ apex: DomainName }>, fault: TransferFault): void {
    this.#options.onFault(zone, fault)
    // Of connections that fail, the link tells.
    if (fault.kind === 'network') return
    const faults = (this.#faults.get(zone.apex) ?? 0) + 1
    this.#faults.set(zone.apex, faults)
    if (faults < faultsOfTrouble) return
    for (const [name, place] of this.#places) if (place === zone.apex) this.#trouble(name, fault.message)
  }

  #confirmed(zone: Readonly<{ apex: DomainName }>): void {
    this.#faults.delete(zone.apex)
    for (const [name, place] of this.#places) {
      if (place !== zone.apex) continue
      const left = name === place ? undefined : this.#zones.get(name)
      if (left !== undefined && left.store === null && !this.#isWanted(name)) this.#end(left)
      if (this.#troubled.delete(name)) this.#options.onBack?.(name, zone)
    }
  }

  #isWanted(apex: DomainName): boolean {
    for (const place of this.#places.values()) if (place === apex) return true
    return false
  }

  #end(zone: SecondaryZone): void {
    zone.stop()
    this.#zones.delete(zone.apex)
    this.#faults.delete(zone.apex)
  }

  /** Whoever refused everything may be told otherwise: then a policy here and a permission there are enough. */
  #retryLater(): void {
    if (this.#cancelRetry !== null) return
    this.#cancelRetry = this.#clock.after(mirrorRefusedMs, () => {
      this.#cancelRetry = null
      for (const [name, place] of this.#places) {
        if (this.#zones.get(place)?.status().state !== 'refused') continue
        this.#place(name, name)
      }
    })
  }

  /** A zone that nothing is looked for in goes as soon as it has no copy, or others hold what it was kept for. */
  #dropUnwanted(): void {
    const wanted = new Set(this.#wantedZones())
    const copies = [...wanted].filter(({ store }) => store !== null)
    for (const zone of this.#zones.values()) {
      if (wanted.has(zone)) continue
      // Shown as what it is while its ancestors are asked.
      if (zone.store === null && this.#places.has(zone.apex) && copies.length === 0) continue
      const isReplaced = copies.some(({ apex }) => isAtOrBelow(zone.apex, apex) || isAtOrBelow(apex, zone.apex))
      if (zone.store !== null && !isReplaced && !zone.isExpired()) continue
      this.#end(zone)
    }
  }

  /** RFC 1996 §4.7: the answer is the message with QR set and nothing but the question. */
  #answerNotify(message: Message): Uint8Array | null {
    const question = message.questions[0]
    if (question === undefined) return null
    const zone = this.#zones.get(question.name)
    const soa = message.answer.find(({ owner, type }) => owner === question.name && type === RRTYPE.SOA)
    const serial = soa === undefined ? null : readSoa(soa.rdata).serial
    zone?.notified(serial, peerdnsOf(message)?.epoch ?? null)
    const rcode = zone === undefined ? RCODE.NOTAUTH : RCODE.NOERROR
    return encodeMessage({
      ...message,
      qr: true,
      opcode: OPCODE.NOTIFY,
      aa: true,
      rcode,
      questions: [question],
      answer: [],
      authority: [],
      additional: [],
      edns: message.edns === null ? null : { ...message.edns, options: [] }
    })
  }
}
