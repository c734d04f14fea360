/**
 * Collecting records into RRsets: duplicates fall out, SRV weights follow from their number, and RDATA stands in the
 * order of its octets, so equal records make equal RRsets whatever order the objects came in.
 *
 * While it is being put together RDATA is text with one character for each octet, as names are: that compares and sorts
 * without copies. Only what is really new becomes octets, side by side in few buffers, since one buffer for each record
 * would take more memory than all else.
 */
import { RRTYPE } from '../wire/iana.ts'
import { joinLabels, maxLabelOctets, maxNameOctets } from '../wire/name.ts'
import type { DomainName } from '../wire/name.ts'
import { latin1Of } from '../wire/octets.ts'
import type { Rdata, RRset } from '../wire/rr.ts'

/** An RRset to be: RDATA as text, in order and none twice. */
export type DraftSet = Readonly<{ owner: DomainName; type: number; ttlSeconds: number; rdata: readonly string[] }>

type OpenSet = { type: number; rdata: string[] }

/** RDATA of other sets than these may keep a buffer alive that they lie in, so buffers stay small. */
const bufferOctets = 1_024

export class RecordSets {
  readonly #ttlSeconds: number
  readonly #open = new Map<DomainName, OpenSet[]>()

  constructor(ttlSeconds: number) {
    this.#ttlSeconds = ttlSeconds
  }

  add(owner: DomainName, type: number, rdata: string): void {
    const sets = this.#open.get(owner)
    const set = sets?.find((set) => set.type === type)
    if (set !== undefined) set.rdata.push(rdata)
    else if (sets !== undefined) sets.push({ type, rdata: [rdata] })
    else this.#open.set(owner, [{ type, rdata: [rdata] }])
  }

  /** The A or AAAA record of an address's octets. */
  addAddress(owner: DomainName, octets: string): void {
    this.add(owner, octets.length === 4 ? RRTYPE.A : RRTYPE.AAAA, octets)
  }

  /** Priority is 0; the weight is shared out among all SRV records of the owner. */
  addSrv(owner: DomainName, port: number, target: DomainName): void {
    this.add(owner, RRTYPE.SRV, u16(port) + target)
  }

  finish(): DraftSet[] {
    const drafts: DraftSet[] = []
    for (const [owner, sets] of this.#open) {
      for (const { type, rdata } of sets) {
        const ordered = inOrder(rdata)
        const complete = type === RRTYPE.SRV ? withWeights(ordered) : ordered
        drafts.push({ owner, type, ttlSeconds: this.#ttlSeconds, rdata: complete })
      }
    }
    return drafts
  }
}

const u16 = (value: number): string => String.fromCharCode(value >> 8, value & 0xff)

/** RFC 2782: priority 0 and an equal share of 100 as weight, but at least 1, before port and target. */
function withWeights(rdata: readonly string[]): readonly string[] {
  const head = u16(0) + u16(Math.max(1, Math.floor(100 / rdata.length)))
  return rdata.map((portAndTarget) => head + portAndTarget)
}

/** In the order of the octets, none twice. */
export function inOrder(rdata: readonly string[]): readonly string[] {
  return rdata.length < 2 ? rdata : [...new Set(rdata)].sort((one, other) => (one < other ? -1 : one > other ? 1 : 0))
}

export const octetsToText = (rdata: Rdata): string => latin1Of(rdata, 0, rdata.length)

/** Whether the RRset is what the draft asks for; both have their RDATA in order. */
function isAsDrafted(rrset: RRset, draft: DraftSet): boolean {
  return (
    rrset.ttlSeconds === draft.ttlSeconds &&
    rrset.rdata.length === draft.rdata.length &&
    rrset.rdata.every(
      (rdata, at) => rdata.length === draft.rdata[at]!.length && octetsToText(rdata) === draft.rdata[at]
    )
  )
}

/** Drafts become RRsets, their octets in buffers of their own. */
export function toRRsets(drafts: readonly DraftSet[]): RRset[] {
  let left = 0
  for (const { rdata } of drafts) for (const text of rdata) left += text.length
  let buffer = Buffer.alloc(0)
  let used = 0
  const place = (text: string): Rdata => {
    if (used + text.length > buffer.length) {
      buffer = Buffer.from(new ArrayBuffer(Math.max(text.length, Math.min(left, bufferOctets))))
      used = 0
    }
    buffer.write(text, used, 'latin1')
    const octets = new Uint8Array(buffer.buffer, used, text.length)
    used += text.length
    left -= text.length
    return octets
  }
  return drafts.map(({ owner, type, ttlSeconds, rdata }) => ({ owner, type, ttlSeconds, rdata: rdata.map(place) }))
}

export type Replacement = Readonly<{
  /** All RRsets that there are now. */
  sets: readonly RRset[]
  /** Those of them that are new or differ. */
  changed: readonly RRset[]
  /** Those whose owner and type are no longer there. */
  gone: readonly RRset[]
}>

/** Compares what there was with what there shall be. RRsets that stay the same stay the same objects. */
export function replaceSets(before: readonly RRset[], drafts: readonly DraftSet[]): Replacement {
  if (before.length === 0) {
    const changed = toRRsets(drafts)
    return { sets: changed, changed, gone: [] }
  }
  const old = new Map(before.map((set) => [set.owner + set.type, set]))
  const same: RRset[] = []
  const different: DraftSet[] = []
  for (const draft of drafts) {
    const key = draft.owner + draft.type
    const known = old.get(key)
    if (known !== undefined && isAsDrafted(known, draft)) same.push(known)
    else different.push(draft)
    old.delete(key)
  }
  const changed = toRRsets(different)
  return { sets: same.concat(changed), changed, gone: [...old.values()] }
}

/** Labels before a suffix; null where a label or the whole would be too long to be a name. */
export function nameBelow(labels: readonly string[], suffix: DomainName): DomainName | null {
  let octets = suffix.length
  for (const label of labels) {
    if (label.length === 0 || label.length > maxLabelOctets) return null
    octets += label.length + 1
  }
  return octets > maxNameOctets ? null : joinLabels(labels, suffix)
}
