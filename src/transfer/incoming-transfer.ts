/**
 * One transfer on its way in: from the messages of a server to a new store, or to a change of the one that we have.
 *
 * Nothing that is answered from is touched before the last record has come. A whole zone is filled into a store of its
 * own; deltas are composed and checked, and then carried out in one step.
 */
import type { Clock } from '../base/clock.ts'
import { WireError } from '../base/errors.ts'
import { incomingRRsetRecords } from '../base/transfer-limits.ts'
import { RRTYPE, typeToText } from '../wire/iana.ts'
import { groupRRsets, type Message } from '../wire/message.ts'
import { nameToText, type DomainName } from '../wire/name.ts'
import { rdataKey, readSoa } from '../wire/rdata.ts'
import type { Rdata, ResourceRecord, RRset } from '../wire/rr.ts'
import type { LateChange, ServiceState, ServiceStateChange, ZoneChange } from '../zone/zone-change.ts'
import { ZoneStore, type Synthesize } from '../zone/zone-store.ts'
import { readDelta, stepOf, type DeltaStep, type Step, type Times } from './read-delta.ts'
import { composeDeltas, isSameSoaButSerial, soaRecord } from './compose-deltas.ts'
import { Coverage } from './coverage.ts'
import {
  decodeMeta,
  decodeName,
  decodeState,
  isPrivateType,
  privateType,
  type TransferMeta
} from './private-records.ts'
import { TransferFault, TransferReader, type Delta, type TransferReaderOptions } from './transfer-reader.ts'

export type Pods = { mode: TransferMeta['pods']['mode']; ttlSeconds: number }

/** A copy of a zone: its store, and what has no place in one. */
export type Taken = Readonly<{
  store: ZoneStore
  coverage: Coverage
  /** How names of pods are answered; changes with the zone. */
  pods: Pods
}>

export type TransferOutcome =
  | Readonly<{ kind: 'zone'; taken: Taken; times: Times }>
  | Readonly<{ kind: 'change'; change: ZoneChange; steps: readonly Step[] }>
  | Readonly<{ kind: 'fault'; fault: TransferFault }>

export type IncomingOptions = Readonly<{
  apex: DomainName
  /** What we have, where IXFR was asked; null: AXFR was asked. */
  base: Taken | null
  /** Whether the zone had NS records when it last came; one that never had any may do without (CoreDNS on loopback). */
  hadNs: boolean
  clock: Clock
  /** The history that a zone belongs to whose server names none. */
  connectionEpoch: string
  /** The history that a response names; null: its server is no peerdns. */
  epochOf: (message: Message) => string | null
  /** Makes the answers that a zone computes from names. */
  synthesize?: (copy: () => Taken) => Synthesize
  limits?: TransferReaderOptions['limits']
}>

type Joined = { owner: DomainName; type: number; ttlSeconds: number; records: Map<string, Rdata> }

const noPods = (): Pods => ({ mode: 'disabled', ttlSeconds: 0 })

export class IncomingTransfer {
  readonly #options: IncomingOptions
  readonly #reader: TransferReader
  #isFirst = true
  /** What the first message named; null: private records have no meaning. */
  #epoch: string | null = null
  #soa: ResourceRecord | null = null
  #meta: TransferMeta | null = null
  #taken: Taken | null = null
  /** RRsets that came in more than one message. */
  readonly #joined = new Map<string, Joined>()

  constructor(options: IncomingOptions) {
    this.#options = options
    this.#reader = new TransferReader({
      apex: options.apex,
      fromSerial: options.base?.store.serial ?? null,
      onZone: (soa) => (this.#soa = soa),
      onRecords: (records) => this.#load(records),
      ...(options.limits === undefined ? {} : { limits: options.limits })
    })
  }

  get stats(): Readonly<{ messages: number; records: number; octets: number; outOfZone: number }> {
    return this.#reader.stats
  }

  /** Whether a message was taken that others may follow. */
  get hasBegun(): boolean {
    return this.#reader.stats.messages > 0
  }

  /**
   * Takes the next message; null: more have to come. `fault`: all has come, and it does not fit what we have.
   * @throws TransferFault or WireError where the messages are no transfer.
   */
  take(message: Message, sizeOctets: number): TransferOutcome | null {
    if (this.#isFirst) {
      this.#isFirst = false
      this.#epoch = this.#options.epochOf(message)
    }
    const result = this.#reader.take(message, sizeOctets)
    if (result === null) return null
    if (result.kind === 'zone') return this.#finishZone()
    const base = this.#options.base!
    if (result.kind === 'current') {
      // It was asked because there is a newer one: whoever says so and then not is not believed.
      return { kind: 'fault', fault: new TransferFault('delta', 'it has no newer version after all') }
    }
    try {
      return this.#change(base, result.soa, result.deltas)
    } catch (error) {
      if (error instanceof TransferFault) return { kind: 'fault', fault: error }
      if (error instanceof WireError) return { kind: 'fault', fault: new TransferFault('malformed', error.message) }
      throw error
    }
  }

  #isSameHistory(base: Taken): boolean {
    return base.store.epoch === (this.#epoch ?? this.#options.connectionEpoch)
  }

  #load(records: readonly ResourceRecord[]): void {
    const isPrivate = this.#epoch === null ? () => false : ({ type }: ResourceRecord) => isPrivateType(type)
    const services: { owner: DomainName; after: ServiceState }[] = []
    const names: { owner: DomainName; exists: boolean }[] = []
    for (const { owner, type, rdata } of records.filter(isPrivate)) {
      if (type === privateType.meta) this.#takeMeta(owner, rdata)
      else if (type === privateType.state) services.push({ owner, after: decodeState(rdata) })
      else if (type === privateType.name) {
        decodeName(rdata)
        names.push({ owner, exists: true })
      }
    }
    const { store, coverage } = this.#shadow()
    const sets = groupRRsets(records.filter((record) => !isPrivate(record))).flatMap((after) => {
      const { owner, type } = after
      refuseTooMany(after, after.rdata.length)
      const held = store.rrset(owner, type)
      if (held === null) {
        coverage.note(owner, type, true)
        return [{ owner, type, after }]
      }
      this.#joinLater(held, after)
      return []
    })
    store.load({ sets, services, names })
  }

  /** The records of one RRset may come in many messages: each costs what it brings, not what is there. */
  #joinLater(held: RRset, more: RRset): void {
    const { owner, type } = more
    const key = `${type} ${owner}`
    let joined = this.#joined.get(key)
    if (joined === undefined) {
      joined = { owner, type, ttlSeconds: held.ttlSeconds, records: new Map() }
      for (const rdata of held.rdata) joined.records.set(rdataKey(type, rdata), rdata)
      this.#joined.set(key, joined)
    }
    joined.ttlSeconds = Math.min(joined.ttlSeconds, more.ttlSeconds)
    for (const rdata of more.rdata) {
      const recordKey = rdataKey(type, rdata)
      if (!joined.records.has(recordKey)) joined.records.set(recordKey, rdata)
    }
    refuseTooMany(more, joined.records.size)
  }

  #takeMeta(owner: DomainName, rdata: Uint8Array): void {
    if (owner !== this.#options.apex) throw new TransferFault('malformed', `times at ${nameToText(owner)}`)
    const meta = decodeMeta(rdata)
    if (meta.epoch !== this.#epoch) throw new TransferFault('malformed', 'records of another epoch than the message')
    this.#meta = meta
    if (this.#taken !== null) Object.assign(this.#taken.pods, meta.pods)
  }

  /** The store that is being filled. */
  #shadow(): Taken {
    if (this.#taken !== null) return this.#taken
    const { apex, clock, connectionEpoch, synthesize } = this.#options
    const soa = this.#soa!
    const { mname, rname, serial, refreshSeconds, retrySeconds, expireSeconds, minimumSeconds } = readSoa(soa.rdata)
    const pods = { ...noPods(), ...this.#meta?.pods }
    const store: ZoneStore = new ZoneStore({
      apex,
      epoch: this.#epoch ?? connectionEpoch,
      serial,
      ...(this.#meta === null
        ? {}
        : { lastBatch: { originAtMs: this.#meta.originAtMs, learnedAtMs: clock.epochMs() } }),
      clock,
      ns: null,
      soa: {
        mname,
        rname,
        refresh: refreshSeconds,
        retry: retrySeconds,
        expire: expireSeconds,
        minimumSeconds,
        ttlSeconds: soa.ttlSeconds
      },
      ...(synthesize === undefined ? {} : { synthesize: synthesize(() => this.#taken!) })
    })
    this.#taken = { store, coverage: new Coverage(apex), pods }
    return this.#taken
  }

  #finishZone(): TransferOutcome {
    const taken = this.#shadow()
    const { store } = taken
    const sets = Array.from(this.#joined.values(), ({ owner, type, ttlSeconds, records }) => ({
      owner,
      type,
      after: { owner, type, ttlSeconds, rdata: [...records.values()] }
    }))
    store.load({ sets, services: [], names: [] })
    // RFC 1035 §5.2: there is no such zone. Two SOA records alone would else wipe all that we have.
    if (store.rrset(store.apex, RRTYPE.NS) === null && (this.#options.hadNs || store.sizes.rrsets <= 1))
      throw new TransferFault('malformed', 'a zone without NS')
    return { kind: 'zone', taken, times: this.#meta }
  }

  #change(base: Taken, soa: ResourceRecord, deltas: readonly Delta[]): TransferOutcome {
    const { store } = base
    if (!this.#isSameHistory(base)) throw new TransferFault('delta', 'deltas of another history')
    if (!isSameSoaButSerial(soaRecord(store.soa), soa))
      throw new TransferFault('delta', 'the timers of the SOA changed')
    const steps = deltas.map((delta) => readDelta(delta, store.apex, this.#epoch))
    const sets = composeDeltas(steps, (owner, type) => store.rrset(owner, type))
    for (const { owner, type, after } of sets) refuseTooMany({ owner, type }, after?.rdata.length ?? 0)
    const last = steps.at(-1)!.meta
    const nowMs = this.#options.clock.epochMs()
    const originAtMs = steps.find(({ meta }) => meta !== null)?.meta?.originAtMs ?? nowMs
    const late = lateOwners(steps, originAtMs)
    const change: ZoneChange = {
      zone: store.apex,
      epoch: store.epoch,
      fromSerial: store.serial,
      toSerial: readSoa(soa.rdata).serial,
      originAtMs,
      ...(late.length > 0 && { late }),
      learnedAtMs: nowMs,
      sets,
      services: composeStates(steps, (owner) => store.serviceState(owner)),
      names: composeNames(steps),
      existence: []
    }
    const applied = replayed(store, change)
    for (const { owner, type, before, after } of sets) {
      if (type === RRTYPE.SOA || (before === null) === (after === null)) continue
      base.coverage.note(owner, type, after !== null)
    }
    if (last !== null) Object.assign(base.pods, last.pods)
    return {
      kind: 'change',
      change: applied,
      steps: steps.map(stepOf)
    }
  }
}

/** @throws TransferFault where the change does not fit the store, which is then as before. */
function replayed(store: ZoneStore, change: ZoneChange): ZoneChange {
  let made: ZoneChange | null = null
  const unsubscribe = store.subscribe((told) => (made = told))
  try {
    const outcome = store.replay(change)
    if (outcome !== 'applied') throw new TransferFault('delta', `a change that does not fit: ${outcome}`)
    return made ?? change
  } catch (error) {
    if (error instanceof RangeError) throw new TransferFault('delta', error.message)
    throw error
  } finally {
    unsubscribe()
  }
}

function composeStates(
  steps: readonly DeltaStep[],
  held: (owner: DomainName) => ServiceState | null
): ServiceStateChange[] {
  const states = new Map<DomainName, ServiceState | null>()
  for (const { owner, state, isAdded } of steps.flatMap(({ states: all }) => all)) {
    const now = states.has(owner) ? states.get(owner)! : held(owner)
    if (isAdded ? now !== null : now !== state) {
      throw new TransferFault('delta', `a delta with another state of ${nameToText(owner)} than ours`)
    }
    states.set(owner, isAdded ? state : null)
  }
  return Array.from(states, ([owner, after]) => ({ owner, before: held(owner), after })).filter(
    ({ before, after }) => before !== after
  )
}

function composeNames(steps: readonly DeltaStep[]): { owner: DomainName; exists: boolean }[] {
  const changes = new Map<DomainName, boolean>()
  for (const { owner, exists } of steps.flatMap(({ names }) => names)) {
    // Came and went: nothing has changed.
    if (changes.get(owner) === !exists) changes.delete(owner)
    else changes.set(owner, exists)
  }
  return Array.from(changes, ([owner, exists]) => ({ owner, exists }))
}

/** The names that were touched later than the first change of all steps. */
function lateOwners(steps: readonly DeltaStep[], originAtMs: number): LateChange[] {
  const first = new Map<DomainName, number>()
  for (const step of steps) {
    if (step.meta === null) continue
    for (const owner of stepOf(step).owners) {
      const atMs = step.meta.originAtMs + (step.laterMs.get(owner) ?? 0)
      first.set(owner, Math.min(first.get(owner) ?? atMs, atMs))
    }
  }
  return Array.from(first, ([owner, atMs]) => ({ owner, originAtMs: atMs })).filter(
    (one) => one.originAtMs > originAtMs
  )
}

function refuseTooMany({ owner, type }: Pick<RRset, 'owner' | 'type'>, records: number): void {
  if (records <= incomingRRsetRecords) return
  throw new TransferFault(
    'limit',
    `more than ${incomingRRsetRecords} records of ${nameToText(owner)} ${typeToText(type)}`
  )
}
