/**
 * Gives our zones away: who may take which, and the transfers themselves. Closed unless the operator opens it.
 *
 * It knows messages and connections, but no sockets: the pipeline brings the questions and the listener's connection.
 */
import type { Clock } from '../base/clock.ts'
import { alwaysDifferences, encodedZoneRRsets, notifyPeers, transferTimeoutMs } from '../base/transfer-limits.ts'
import type { NetworkSet } from '../base/network.ts'
import type { Edns, EdnsOption } from '../wire/edns.ts'
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import { equalOctets } from '../wire/octets.ts'
import { encodePeerdnsOption, type PeerdnsOption } from '../wire/peerdns-option.ts'
import type { Tsig } from '../wire/tsig.ts'
import { isLaterSerial } from '../zone/serial.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import {
  EncodedTransfers,
  encodeTransfer,
  sendEncoded,
  type EncodedKey,
  type EncodedTransfer
} from './encoded-transfers.ts'
import { ExportRule, type ExportLists } from './export-rule.ts'
import { MessagePacker, type Signer } from './message-packer.ts'
import { notifyMessage, notifyResponseId } from './notify-message.ts'
import { snapshotOf, Turns, whenBatched } from './part-snapshot.ts'
import { readTopic, topicOf, type CopySource } from './passed-on.ts'
import type { PodMode } from './private-records.ts'
import { ZoneSender, type MetaSource } from './send-zone.ts'
import { Subscriptions, type Connection, type PushStream } from './subscriptions.ts'
import { TransferSlots } from './transfer-slots.ts'
import { makeTransferStats, type TransferStats } from './transfer-stats.ts'
import { checkTsig, signRequest, type TsigCheck, type TsigKey } from './tsig-signer.ts'
import { ZoneParts, type PartFound, type ZoneSource } from './zone-parts.ts'
import { ZonePart } from './zone-part.ts'

export type PrimaryOptions = Readonly<{
  /** Who may take zones. */
  allow: NetworkSet
  /** Whether transfers must be signed; also where none of the keys could be read. */
  needsKey: boolean
  keys: readonly TsigKey[]
  export: ExportLists
  /** Cluster zone and clusterset zone: their names follow the Kubernetes schema, and suffixes can be taken alone. */
  schemaZones: readonly DomainName[]
  /** How pods of a zone are named. */
  pods(store: ZoneStore): Readonly<{ mode: PodMode; ttlSeconds: number }>
  /** Copies of other clusters' zones, for our own nodes; none by default. */
  copies?: CopySource
}>

/** The connection that messages go down, as the listener gives it. */
export interface TransferStream extends PushStream {
  send(message: Uint8Array): Promise<boolean>
}

/**
 * Who wants to know of changes and asks for them by itself: told of in which zones they are, and who asked for which.
 */
export type ChangeListener = Readonly<{
  /** A zone for other servers has another serial; `isZone`: it is no suffix. */
  changed(apex: DomainName, isZone: boolean): void
  /** A server that is no peerdns took a zone, or asked for its SOA. */
  noteInterest(address: string, apex: DomainName): void
}>

export type TransferRequest = Readonly<{
  part: ZonePart
  id: number
  /** As it was asked, octet for octet. */
  question: Uint8Array
  /** The serial of the asker's copy; null: the whole zone is wanted. */
  serial: number | null
  /** What a peerdns said of itself; null for every other server. */
  peerdns: PeerdnsOption | null
  /** What the response's OPT says; null where the query had none. */
  edns: Edns | null
  signer: Signer | null
}>

/** Octets that are made, or kept from others who asked for the same, and what they count as. */
type Shorter = Readonly<{ kind: 'differencesTotal' | 'currentTotal'; made: Promise<EncodedTransfer> }>

export class Primary {
  readonly stats: TransferStats = makeTransferStats()
  readonly #clock: Clock
  readonly #slots = new TransferSlots()
  readonly #subscriptions: Subscriptions
  readonly #listener: ChangeListener
  /** Which key a server signed with last, by its address; the one that asked longest ago goes first. */
  readonly #keyOf = new Map<string, DomainName>()
  readonly #encoded = new EncodedTransfers()
  #options: PrimaryOptions
  #keys: ReadonlyMap<DomainName, TsigKey>
  #parts: ZoneParts

  constructor(clock: Clock, options: PrimaryOptions, source: ZoneSource, listener: ChangeListener = nobody) {
    this.#clock = clock
    this.#options = options
    this.#keys = byName(options.keys)
    this.#listener = listener
    this.#subscriptions = new Subscriptions(clock, this.stats, (topic) => this.#pushed(topic))
    this.#parts = this.#partsOf(options, source)
  }

  /** Takes over another configuration, or other zones, and tells those who wait for changes. */
  use(options: PrimaryOptions, source: ZoneSource): void {
    this.#parts.close()
    this.#encoded.clear()
    // Who subscribed with another key comes again and shows the new one.
    const hasSameKeys = options.needsKey === this.#options.needsKey && isSameKeys(options.keys, this.#options.keys)
    this.#options = options
    this.#keys = byName(options.keys)
    this.#parts = this.#partsOf(options, source)
    this.#subscriptions.keepOnly(({ address }) => hasSameKeys && options.allow.contains(address))
    this.announce()
  }

  /** Tells everybody of every zone: they may be complete now, or of another history. */
  announce(): void {
    this.#subscriptions.changedAll()
    if (this.isReady) for (const { apex } of this.#parts.source.stores) this.#listener.changed(apex, true)
  }

  close(): void {
    this.#parts.close()
  }

  /** Zones that connections are told of now, each connection counted by itself. */
  get subscriptions(): number {
    return this.#subscriptions.count
  }

  /** Whether a client may take zones at all. */
  permits(address: string, signature: TsigCheck | null): boolean {
    const { allow, needsKey } = this.#options
    return allow.contains(address) && (!needsKey || (signature !== null && signature.key !== null))
  }

  /** Why a client may not, in words. */
  whyNot(address: string): string {
    const isListed = this.#options.allow.contains(address)
    return isListed ? 'a zone transfer must be signed with a key' : 'no zone transfer for this client'
  }

  /** Looks at the signature of a query of anybody. */
  checkSignature(octets: Uint8Array, tsig: Tsig): TsigCheck {
    const check = checkTsig(octets, tsig, this.#keys, () => this.#nowSeconds())
    if (check.error !== 0) this.stats.badSignaturesTotal += 1
    return check
  }

  /**
   * The message signed with the key that a server used last, or with the only one; as it is where that is not known.
   */
  signFor(address: string, message: Uint8Array): Uint8Array {
    const name = this.#keyOf.get(address)
    const [only] = this.#options.keys
    const key = name === undefined ? undefined : this.#keys.get(name)
    const chosen = key ?? (this.#options.keys.length === 1 ? only : undefined)
    return chosen === undefined ? message : signRequest(message, chosen, this.#nowSeconds())
  }

  get isReady(): boolean {
    return this.#parts.source.isReady()
  }

  find(apex: DomainName, toPeerdns: boolean): PartFound {
    return this.#parts.find(apex, toPeerdns)
  }

  /** A copy of another cluster's zone, for one of our own nodes. */
  findCopy(copyOf: string, apex: DomainName): ZonePart | 'not-here-yet' | 'not-authoritative' {
    const found = this.#options.copies?.find(copyOf, apex) ?? 'absent'
    if (found === 'absent') return 'not-authoritative'
    return found === 'not-here-yet' ? found : new ZonePart(found.store, apex, ExportRule.open, found)
  }

  /** Whether a client that may take our zones may take such copies too. */
  permitsCopies(signature: TsigCheck | null): boolean {
    return this.#options.copies?.isNode(signature?.key?.name ?? null) === true
  }

  /** A copy of another cluster's zone has another serial, or another history. */
  copyChanged(copyOf: string, apex: DomainName): void {
    this.#subscriptions.changed(topicOf(copyOf, apex))
  }

  /** Since a zone was known to be right at its origin, in milliseconds; null where it never was. */
  ageMs({ passedOn }: ZonePart): number | null {
    return passedOn === null ? this.#parts.source.ageMs() : passedOn.ageMs
  }

  /** What a peerdns is told with a zone's SOA. */
  history(part: ZonePart): EdnsOption {
    const clockMs = this.#clock.epochMs()
    const told = { epoch: part.epoch, clockMs, ageMs: this.ageMs(part) }
    if (part.passedOn === null) return encodePeerdnsOption(told)
    const { copyOf, silentMs } = part.passedOn
    return encodePeerdnsOption({ ...told, copyOf, silentMs })
  }

  /** Whether the connection is told of a zone's changes. */
  isSubscribed(connection: Connection, part: ZonePart): boolean {
    return this.#subscriptions.has(connection, part.topic)
  }

  /** Tells the connection of a zone's changes from now on; false where there are too many already. */
  subscribe(connection: Connection, stream: TransferStream, part: ZonePart): boolean {
    return this.#subscriptions.add(connection, stream, part.topic)
  }

  /** Takes a response that came down a connection; false where it is to no NOTIFY of ours. */
  takeResponse(connection: Connection, octets: Uint8Array, size: number): boolean {
    const id = notifyResponseId(octets, size)
    return id !== null && this.#subscriptions.answered(connection, id)
  }

  /** Somebody who may take zones asked for one, or for its SOA. */
  noteInterest(address: string, part: ZonePart, signature: TsigCheck | null = null): void {
    this.#keyOf.delete(address)
    if (signature?.key !== undefined && signature.key !== null) this.#keyOf.set(address, signature.key.name)
    if (this.#keyOf.size > notifyPeers) this.#keyOf.delete(this.#keyOf.keys().next().value!)
    this.#listener.noteInterest(address, part.apex)
  }

  /** NOTIFY of a zone as it is now, without id; null where there is no such zone. */
  notifyMessage(apex: DomainName, toPeerdns: boolean): Uint8Array | null {
    const part = this.#parts.find(apex, toPeerdns)
    return part instanceof ZonePart ? notifyMessage(part, toPeerdns ? this.history(part) : null) : null
  }

  #pushed(topic: string): Uint8Array | null {
    const { copyOf, apex } = readTopic(topic)
    if (copyOf === null) return this.notifyMessage(apex, true)
    const part = this.findCopy(copyOf, apex)
    return part instanceof ZonePart ? notifyMessage(part, this.history(part)) : null
  }

  /** Sends what was asked for; false where there are too many already and nothing was sent. Never rejects. */
  async transfer(request: TransferRequest, stream: TransferStream): Promise<boolean> {
    const cancel = this.#clock.after(transferTimeoutMs, () => stream.destroy())
    try {
      return await this.#send(request, stream)
    } finally {
      cancel()
    }
  }

  async #send(request: TransferRequest, stream: TransferStream): Promise<boolean> {
    const { part } = request
    const shorter = await whenBatched(part.store, () => this.#shorter(request))
    if (shorter !== null) {
      const { kind, made } = shorter
      const encoded = await made
      this.#count(await this.#sendEncoded(encoded, request, stream), kind, encoded.records)
      return true
    }
    if (!(await this.#slots.enter())) {
      this.stats.overloadedTotal += 1
      return false
    }
    try {
      if (stream.isClosed) this.stats.brokenTotal += 1
      else await this.#sendWhole(request, stream)
    } finally {
      this.#slots.leave()
    }
    return true
  }

  async #sendWhole(request: TransferRequest, stream: TransferStream): Promise<void> {
    const { part, question } = request
    const key = this.#keyOfWhole(request)
    const kept = this.#encoded.get(key)
    if (kept === undefined && part.store.sizes.rrsets > encodedZoneRRsets) {
      const { content, serial, times } = await snapshotOf(part, this.#clock)
      const sender = this.#sender(request, stream)
      this.#count(await sender.whole(content, serial, times), 'wholeTotal', sender.recordsSent)
      return
    }
    const made = kept ?? this.#encodeWhole(part, question, key.toPeerdns)
    // Those who ask while it is being made get the same.
    if (kept === undefined) this.#encoded.put(key, made)
    const encoded = await made
    this.#count(await this.#sendEncoded(encoded, request, stream), 'wholeTotal', encoded.records)
  }

  #keyOfWhole({ part, question, peerdns }: TransferRequest): EncodedKey {
    return { part, fromSerial: null, toSerial: part.serial, toPeerdns: peerdns !== null, question }
  }

  async #encodeWhole(part: ZonePart, question: Uint8Array, toPeerdns: boolean): Promise<EncodedTransfer> {
    const { content, serial, times } = await snapshotOf(part, this.#clock)
    const meta = toPeerdns ? this.#metaSource(part) : null
    const turns = new Turns(this.#clock)
    return encodeTransfer({ part, question }, meta, turns, (sender) => sender.whole(content, serial, times))
  }

  /** What is less than the whole zone: nothing new, or differences; null where the whole zone has to be sent. */
  #shorter({ part, serial, peerdns, question }: TransferRequest): Shorter | null {
    if (serial === null) return null
    const isOfOtherHistory = peerdns !== null && peerdns.epoch !== null && peerdns.epoch !== part.epoch
    if (isOfOtherHistory) return null
    const now = part.serial
    const toPeerdns = peerdns !== null
    const encode = (write: (sender: ZoneSender) => Promise<boolean>): Promise<EncodedTransfer> =>
      encodeTransfer({ part, question }, toPeerdns ? this.#metaSource(part) : null, null, write)
    // RFC 1995 §2: who has the same version, or a newer one, gets the SOA alone.
    if (serial === now || isLaterSerial(serial, now)) {
      return { kind: 'currentTotal', made: encode((sender) => sender.soaAlone(now)) }
    }
    const key = { part, fromSerial: serial, toSerial: now, toPeerdns, question }
    const kept = this.#encoded.get(key)
    if (kept !== undefined) return kept === null ? null : { kind: 'differencesTotal', made: kept }
    const differences = part.differencesSince(serial, toPeerdns)
    const records = differences?.reduce((sum, { gone, come }) => sum + gone.length + come.length + 2, 0) ?? 0
    const made =
      differences === null || differences.length === 0 || records > Math.max(part.store.sizes.rrsets, alwaysDifferences)
        ? null
        : encode((sender) => sender.differences(differences, serial))
    this.#encoded.put(key, made)
    return made === null ? null : { kind: 'differencesTotal', made }
  }

  async #sendEncoded(encoded: EncodedTransfer, request: TransferRequest, stream: TransferStream): Promise<boolean> {
    const { id, edns, signer } = request
    return sendEncoded(encoded, { id, edns, signer, clockMs: () => this.#clock.epochMs(), send: this.#counted(stream) })
  }

  #sender({ id, question, edns, signer, part, peerdns }: TransferRequest, stream: TransferStream): ZoneSender {
    const packer = new MessagePacker({ id, question, edns, signer, send: this.#counted(stream) })
    return new ZoneSender(packer, part, peerdns === null ? null : this.#metaSource(part))
  }

  #counted(stream: TransferStream): (message: Uint8Array) => Promise<boolean> {
    return async (message) => {
      this.stats.messagesTotal += 1
      this.stats.octetsTotal += message.length
      return stream.send(message)
    }
  }

  /** null: its times are not known. */
  #metaSource({ store, passedOn }: ZonePart): MetaSource | null {
    const nowEpochMs = (): number => this.#clock.epochMs()
    if (passedOn === null) return { nowEpochMs, clockOffsetMs: 0, pods: this.#options.pods(store) }
    return passedOn.times === null ? null : { nowEpochMs, ...passedOn.times }
  }

  #count(isSent: boolean, kind: 'wholeTotal' | 'differencesTotal' | 'currentTotal', records: number): void {
    this.stats[isSent ? kind : 'brokenTotal'] += 1
    this.stats.recordsTotal += records
  }

  #nowSeconds(): number {
    return Math.floor(this.#clock.epochMs() / 1000)
  }

  #changed({ apex, store }: ZonePart): void {
    const { source } = this.#parts
    const isGiven = (toPeerdns: boolean): boolean => source.stores.some((own) => source.given(own, toPeerdns) === store)
    if (isGiven(true)) this.#subscriptions.changed(apex)
    // Before the zones are complete nobody would get them.
    if (this.isReady && isGiven(false)) this.#listener.changed(apex, apex === store.apex)
  }

  #partsOf(options: PrimaryOptions, source: ZoneSource): ZoneParts {
    return new ZoneParts(source, {
      rule: new ExportRule(options.export, options.schemaZones),
      suffixZones: options.schemaZones,
      onChange: (part) => this.#changed(part),
      isKept: ({ apex }) => this.#subscriptions.hasAny(apex)
    })
  }
}

const byName = (keys: readonly TsigKey[]): ReadonlyMap<DomainName, TsigKey> =>
  new Map(keys.map((key) => [key.name, key]))

const isSameKeys = (one: readonly TsigKey[], other: readonly TsigKey[]): boolean =>
  one.length === other.length &&
  one.every((key, at) => {
    const { name, algorithm, secret } = other[at]!
    return key.name === name && key.algorithm === algorithm && equalOctets(key.secret, secret)
  })

const nobody: ChangeListener = { changed() {}, noteInterest() {} }

/** Whether a type asks for a zone, or for what has changed in it. */
export const isTransferType = (qtype: number): boolean => qtype === RRTYPE.AXFR || qtype === RRTYPE.IXFR
