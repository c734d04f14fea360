/**
 * Collecting records into RRsets: duplicates fall out, SRV weights follow from their number, and RDATA stands in the
 * order of its octets, so equal records make equal RRsets whatever order the objects came in.
 *
 * RDATA is text with one character for each octet, as names are: that compares and sorts without copies, and it is how
 * RRsets are kept.
 */
import { RRTYPE } from '../wire/iana.ts'
import { joinLabels, maxLabelOctets, maxNameOctets } from '../wire/name.ts'
import type { DomainName } from '../wire/name.ts'
import { latin1Of } from '../wire/octets.ts'
import type { Rdata, RRset } from '../wire/rr.ts'
import { PackedRRset, packRRset, packText } from '../zone/packed-rrset.ts'

/** An RRset to be: RDATA as text, in order and none twice. */
export type DraftSet = Readonly<{ owner: DomainName; type: number; ttlSeconds: number; rdata: readonly string[] }>

type OpenSet = { type: number; rdata: string[] }

export class RecordSets {
  readonly #ttlSeconds: number
  readonly #open = new Map<DomainName, OpenSet[]>()

  constructor(ttlSeconds: number) {
    this.#ttlSeconds = ttlSeconds
  }

  add(owner: DomainName, type: number, rdata: string): void {
    this.open(owner, type).push(rdata)
  }

  /** Where to put the RDATA of many records of one owner and type. */
  open(owner: DomainName, type: number): string[] {
    const sets = this.#open.get(owner)
    if (sets === undefined) {
      const rdata: string[] = []
      this.#open.set(owner, [{ type, rdata }])
      return rdata
    }
    for (const set of sets) if (set.type === type) return set.rdata
    const rdata: string[] = []
    sets.push({ type, rdata })
    return rdata
  }

  /** The A or AAAA record of an address's octets. */
  addAddress(owner: DomainName, octets: string): void {
    this.add(owner, octets.length === 4 ? RRTYPE.A : RRTYPE.AAAA, octets)
  }

  finish(): DraftSet[] {
    const drafts: DraftSet[] = []
    for (const [owner, sets] of this.#open) {
      for (const { type, rdata } of sets) {
        if (rdata.length === 0) continue
        const ordered = inOrder(rdata)
        const complete = type === RRTYPE.SRV ? withWeights(ordered) : ordered
        drafts.push({ owner, type, ttlSeconds: this.#ttlSeconds, rdata: complete })
      }
    }
    return drafts
  }
}

/**
 * What stands in an SRV record before the target, but for priority and weight: those follow from the number of records.
 */
export const portOctets = (port: number): string => u16(port)

const u16 = (value: number): string => String.fromCharCode(value >> 8, value & 0xff)

/** RFC 2782: priority 0 and an equal share of 100 as weight, but at least 1, before port and target. */
function withWeights(rdata: readonly string[]): readonly string[] {
  const head = u16(0) + u16(Math.max(1, Math.floor(100 / rdata.length)))
  return rdata.map((portAndTarget) => head + portAndTarget)
}

/** In the order of the octets, none twice. */
export function inOrder(rdata: readonly string[]): readonly string[] {
  if (rdata.length < 2) return rdata
  const sorted = [...rdata].sort((one, other) => (one < other ? -1 : one > other ? 1 : 0))
  return sorted.filter((text, at) => text !== sorted[at - 1])
}

export const octetsToText = (rdata: Rdata): string => latin1Of(rdata, 0, rdata.length)

/** Drafts become RRsets. */
export const toRRsets = (drafts: readonly DraftSet[]): RRset[] =>
  drafts.map(
    ({ owner, type, ttlSeconds, rdata }) =>
      new PackedRRset(owner, type, ttlSeconds, packText(owner, rdata), rdata.length === 1)
  )

export type Replacement = Readonly<{
  /** All RRsets that there are now. */
  sets: readonly RRset[]
  /** Those of them that are new or differ. */
  changed: readonly RRset[]
  /** Those in whose place other ones stand now. */
  replaced: readonly RRset[]
  /** Those whose owner and type are no longer there. */
  gone: readonly RRset[]
}>

/** Compares what there was with what there shall be. RRsets that stay the same stay the same objects. */
export function replaceSets(before: readonly RRset[], drafts: readonly DraftSet[]): Replacement {
  if (before.length === 0) {
    const changed = toRRsets(drafts)
    return { sets: changed, changed, replaced: [], gone: [] }
  }
  // Mostly the sets stand where they stood, so only the rest has to be searched.
  const moved = new Map<string, RRset>()
  for (const [at, set] of before.entries()) {
    if (!isOf(set, drafts[at])) moved.set(set.owner + set.type, set)
  }
  const sets: RRset[] = []
  const changed: RRset[] = []
  const replaced: RRset[] = []
  for (const [at, { owner, type, ttlSeconds, rdata }] of drafts.entries()) {
    let known = before[at]
    if (!isOf(known, drafts[at])) {
      const key = owner + type
      known = moved.get(key)
      moved.delete(key)
    }
    const text = packText(owner, rdata)
    const isSingle = rdata.length === 1
    if (known !== undefined && packRRset(known).says(ttlSeconds, text, isSingle)) {
      sets.push(known)
      continue
    }
    if (known !== undefined) replaced.push(known)
    // The owner's string that is held already, not one more of the same.
    const set = new PackedRRset(known?.owner ?? owner, type, ttlSeconds, text, isSingle)
    sets.push(set)
    changed.push(set)
  }
  return { sets, changed, replaced, gone: [...moved.values()] }
}

const isOf = (set: RRset | undefined, draft: DraftSet | undefined): boolean =>
  set !== undefined && set.owner === draft?.owner && set.type === draft.type

/** Labels before a suffix; null where a label or the whole would be too long to be a name. */
export function nameBelow(labels: readonly string[], suffix: DomainName): DomainName | null {
  let octets = suffix.length
  for (const label of labels) {
    if (label.length === 0 || label.length > maxLabelOctets) return null
    octets += label.length + 1
  }
  return octets > maxNameOctets ? null : joinLabels(labels, suffix)
}
