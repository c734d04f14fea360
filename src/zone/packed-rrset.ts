/**
 * RRsets in little memory: a zone of 100,000 endpoints holds half a million records, and one Uint8Array takes over 100
 * octets beside its own.
 *
 * RDATA is kept as text with one character for each octet, as names are, and becomes octets when somebody reads
 * `rdata`. Those of the sets read last are kept, so what is asked for often is at hand and all else stays small.
 */
import { filledArray } from '../base/filled-array.ts'
import { unpackedRecords, unpackedRRsets } from '../base/limits.ts'
import type { DomainName } from '../wire/name.ts'
import { latin1Of, octetsOf } from '../wire/octets.ts'
import type { Rdata, RRset } from '../wire/rr.ts'

/** Stands for octets that are not at hand; which one says how the text is to be read. */
const single: readonly Rdata[] = []
const several: readonly Rdata[] = []
/** What a record shares with its owner's end is left out from so many octets on. */
const minSharedOctets = 8
/** Before each of several records: its length in two octets, and how many of them are the owner's last ones. */
const headOctets = 3
/** More than most sets need; a larger one is made for a set that needs it. */
const keptScratchOctets = 16 * 1024

/** It is also what a lookup finds, so that a name with one RRset is held by that alone. */
export class PackedRRset implements RRset {
  readonly owner: DomainName
  readonly type: number
  readonly ttlSeconds: number
  declare readonly rdata: readonly Rdata[]
  readonly #text: string
  #octets: readonly Rdata[]

  /** @param text of `packText`; `isSingle` where it was made of one record. */
  constructor(owner: DomainName, type: number, ttlSeconds: number, text: string, isSingle: boolean) {
    this.owner = owner
    this.type = type
    this.ttlSeconds = ttlSeconds
    this.#text = text
    this.#octets = isSingle ? single : several
    // An own property, so that a set is cloned, spread and compared as the plain data it stands for.
    Object.defineProperty(this, 'rdata', PackedRRset.#rdata)
  }

  static readonly #rdata: PropertyDescriptor & ThisType<PackedRRset> = {
    enumerable: true,
    get() {
      return this.#octets.length > 0 ? this.#octets : this.#unpack()
    }
  }

  get kind(): 'answer' {
    return 'answer'
  }

  get rrset(): this {
    return this
  }

  /** How many records it has; this does not unpack them. */
  get records(): number {
    if (this.#octets.length > 0) return this.#octets.length
    return this.#octets === single ? 1 : countRecords(this.#text)
  }

  /** The RDATA of its only record; null where it has several. */
  get onlyText(): string | null {
    return this.#isSingle ? this.#text : null
  }

  /** Whether it says this, in the text of `packText`. */
  says(ttlSeconds: number, text: string, isSingle: boolean): boolean {
    return this.ttlSeconds === ttlSeconds && this.#text === text && this.#isSingle === isSingle
  }

  /** Whether two sets of one owner and type say the same. */
  equals(other: PackedRRset): boolean {
    return other.says(this.ttlSeconds, this.#text, this.#isSingle)
  }

  /** Lets go of the octets; they are made again when they are needed. */
  letGo(): void {
    this.#octets = this.#isSingle ? single : several
  }

  get #isSingle(): boolean {
    return this.#octets === single || this.#octets.length === 1
  }

  #unpack(): readonly Rdata[] {
    this.#octets = this.#isSingle ? [octetsOf(this.#text)] : unpackSeveral(this.#text, this.owner)
    keepUnpacked(this, this.#octets.length)
    return this.#octets
  }
}

/**
 * The text of a set's RDATA: that of its only record as it is, or all of them one behind the other.
 * @param rdata in the order of its octets and none twice, so that equal sets have equal texts.
 */
export function packText(owner: DomainName, rdata: readonly string[]): string {
  if (rdata.length === 1) return rdata[0]!
  let at = 0
  let shared = 0
  let end = ''
  for (const record of rdata) {
    // Mostly one record ends as the one before it does.
    if (shared === 0 || !record.endsWith(end) || isSharedAt(record, owner, shared)) {
      shared = sharedOctets(record, owner)
      end = owner.slice(owner.length - shared)
    }
    const own = record.length - shared
    if (at + headOctets + own > scratch.length) scratch = enlarged(scratch, at + headOctets + own)
    scratch[at] = record.length >> 8
    scratch[at + 1] = record.length
    scratch[at + 2] = shared
    at += headOctets
    for (let i = 0; i < own; i++) scratch[at + i] = record.charCodeAt(i)
    at += own
  }
  // Unlike concatenation this makes one flat string.
  const text = latin1Of(scratch, 0, at)
  if (scratch.length > keptScratchOctets) scratch = new Uint8Array(keptScratchOctets)
  return text
}

/** Where texts are put together. */
let scratch = new Uint8Array(keptScratchOctets)

function enlarged(octets: Uint8Array<ArrayBuffer>, least: number): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(2 * least)
  larger.set(octets)
  return larger
}

/** How many records an RRset has, without unpacking them. */
export const recordsIn = (rrset: RRset): number => (rrset instanceof PackedRRset ? rrset.records : rrset.rdata.length)

/** Any RRset as a packed one; its records come in the order of their octets then. */
export function packRRset(rrset: RRset): PackedRRset {
  if (rrset instanceof PackedRRset) return rrset
  const { owner, type, ttlSeconds } = rrset
  const rdata = rrset.rdata.map((octets) => latin1Of(octets, 0, octets.length))
  if (rdata.length > 1) rdata.sort((one, other) => (one < other ? -1 : one > other ? 1 : 0))
  return new PackedRRset(owner, type, ttlSeconds, packText(owner, rdata), rdata.length === 1)
}

function sharedOctets(record: string, owner: DomainName): number {
  let shared = 0
  while (isSharedAt(record, owner, shared)) shared++
  return shared < minSharedOctets ? 0 : shared
}

/** Whether the octet before the last so many ones is the same in both. */
const isSharedAt = (record: string, owner: DomainName, fromEnd: number): boolean =>
  fromEnd < record.length &&
  fromEnd < owner.length &&
  record.charCodeAt(record.length - 1 - fromEnd) === owner.charCodeAt(owner.length - 1 - fromEnd)

function countRecords(text: string): number {
  let records = 0
  for (let at = 0; at < text.length; records++) {
    const octets = (text.charCodeAt(at) << 8) | text.charCodeAt(at + 1)
    at += headOctets + octets - text.charCodeAt(at + 2)
  }
  return records
}

function unpackSeveral(text: string, owner: DomainName): readonly Rdata[] {
  const rdata: Rdata[] = []
  for (let at = 0; at < text.length;) {
    const octets = new Uint8Array((text.charCodeAt(at) << 8) | text.charCodeAt(at + 1))
    const shared = text.charCodeAt(at + 2)
    const own = octets.length - shared
    at += headOctets
    for (let i = 0; i < own; i++) octets[i] = text.charCodeAt(at + i)
    for (let i = 0, from = owner.length - shared; i < shared; i++) octets[own + i] = owner.charCodeAt(from + i)
    at += own
    rdata.push(octets)
  }
  return rdata
}

/** The sets whose octets are at hand, oldest first: a ring, in which `oldest` is the one to go. */
const ring = filledArray<PackedRRset | null>(unpackedRRsets, null)
const ringRecords = new Uint32Array(unpackedRRsets)
const held = { records: 0, oldest: 0, next: 0 }

function keepUnpacked(rrset: PackedRRset, records: number): void {
  if (ring[held.next] !== null) dropOldest()
  ring[held.next] = rrset
  ringRecords[held.next] = records
  held.next = (held.next + 1) % unpackedRRsets
  held.records += records
  while (held.records > unpackedRecords && ring[held.oldest] !== rrset) dropOldest()
}

function dropOldest(): void {
  const { oldest } = held
  ring[oldest]?.letGo()
  ring[oldest] = null
  held.records -= ringRecords[oldest]!
  held.oldest = (oldest + 1) % unpackedRRsets
}
