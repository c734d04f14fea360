/**
 * What changed in a zone: the one record that the watch, the journal, IXFR, cache eviction and threads all speak.
 *
 * Plain data that can be cloned to another thread. RRsets in it are shared with the store and never altered.
 */
import type { DomainName } from '../wire/name.ts'
import { equalOctets, latin1Of } from '../wire/octets.ts'
import type { RRset } from '../wire/rr.ts'
import { PackedRRset } from './packed-rrset.ts'

/** One RRset before and after; null: there was, or is, none. The SOA is not listed: it follows from the serials. */
export type RRsetChange = Readonly<{ owner: DomainName; type: number; before: RRset | null; after: RRset | null }>

/**
 * What is known of a Service's endpoints. `empty`: it has slices, and no endpoint in them is ready or serving.
 * `unknown`: there is no slice object at all, as with imports.
 */
export type ServiceState = 'present' | 'empty' | 'unknown'

export type ServiceStateChange = Readonly<{
  owner: DomainName
  before: ServiceState | null
  after: ServiceState | null
}>

/** A name and whether it exists. */
export type NameChange = Readonly<{ owner: DomainName; exists: boolean }>

/** A name that changed later than the first one of its batch, by the same clock. */
export type LateChange = Readonly<{ owner: DomainName; originAtMs: number }>

export type ZoneChange = Readonly<{
  zone: DomainName
  /** The history that the serials belong to: serials of two epochs cannot be compared. */
  epoch: string
  fromSerial: number
  toSerial: number
  /**
   * When it happened, or the first of what it gathers, by the wall clock of where it happened; milliseconds since 1970.
   */
  originAtMs: number
  /** Anything may be another now, and what is not told: a zone has been read whole for the first time. */
  isWhole?: true
  /** Where several changes became one: the names that were touched later than that. */
  late?: readonly LateChange[]
  /** When this store learned of it, by our own wall clock. */
  learnedAtMs: number
  sets: readonly RRsetChange[]
  services: readonly ServiceStateChange[]
  /** Names that were made to exist without records of their own (an empty namespace), or no longer are. */
  names: readonly NameChange[]
  /**
   * Every name that began or ceased to exist by this change, empty non-terminals included: those whose NXDOMAIN
   * became NODATA or an answer, and the other way round. It follows from the rest, worked out once for all readers.
   */
  existence: readonly NameChange[]
}>

/** Whether two RRsets of one owner and type say the same: equal TTL and the same RDATA in any order. */
export function isSameRRset(one: RRset, other: RRset): boolean {
  if (one instanceof PackedRRset && other instanceof PackedRRset) return one === other || one.equals(other)
  return one === other || (one.ttlSeconds === other.ttlSeconds && isSameRdata(one.rdata, other.rdata))
}

function isSameRdata(one: readonly Uint8Array[], other: readonly Uint8Array[]): boolean {
  if (one.length !== other.length) return false
  // Sets are mostly rebuilt in the order they had, so look for that first: it needs no memory.
  if (one.every((rdata, at) => equalOctets(rdata, other[at]!))) return true
  if (one.length === 1) return false
  const missing = new Set(one.map(octetsAsText))
  return other.every((rdata) => missing.delete(octetsAsText(rdata)))
}

const octetsAsText = (octets: Uint8Array): string => latin1Of(octets, 0, octets.length)
