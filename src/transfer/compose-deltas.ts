/**
 * From the deltas of an incremental transfer to the one change that they make together.
 *
 * Every record that a delta takes away must be there, and none that it brings may be: a delta that does not fit was
 * made for another history, and then nothing of it is believed. RFC 1995 §4.
 */
import { CLASS, RRTYPE, typeToText } from '../wire/iana.ts'
import { nameToText, type DomainName } from '../wire/name.ts'
import { rdataKey, readSoa } from '../wire/rdata.ts'
import type { Rdata, ResourceRecord, RRset } from '../wire/rr.ts'
import type { RRsetChange } from '../zone/zone-change.ts'
import { TransferFault, type Delta } from './transfer-reader.ts'

/** One RRset as the deltas have left it so far. */
type Draft = {
  readonly owner: DomainName
  readonly type: number
  readonly before: RRset | null
  ttlSeconds: number
  readonly records: Map<string, Rdata>
}

/**
 * What the deltas change, RRset by RRset; what they change back is left out.
 * @param held gives the RRset that the zone has now.
 * @throws TransferFault `delta` where one of them does not fit.
 */
export function composeDeltas(
  deltas: readonly Pick<Delta, 'deleted' | 'added'>[],
  held: (owner: DomainName, type: number) => RRset | null
): RRsetChange[] {
  const drafts = new Map<string, Draft>()
  const draftOf = (owner: DomainName, type: number): Draft => {
    const key = `${type} ${owner}`
    const known = drafts.get(key)
    if (known !== undefined) return known
    const before = held(owner, type)
    const records = new Map(before?.rdata.map((rdata) => [rdataKey(type, rdata), rdata]))
    const draft: Draft = { owner, type, before, ttlSeconds: before?.ttlSeconds ?? 0, records }
    drafts.set(key, draft)
    return draft
  }
  for (const { deleted, added } of deltas) {
    for (const { owner, type, rdata } of deleted) {
      if (!draftOf(owner, type).records.delete(rdataKey(type, rdata))) doesNotFit('takes away', 'is not', owner, type)
    }
    for (const { owner, type, ttlSeconds, rdata } of added) {
      const draft = draftOf(owner, type)
      const key = rdataKey(type, rdata)
      // Some write a changed TTL as an addition alone.
      if (draft.records.has(key) && draft.ttlSeconds === ttlSeconds) doesNotFit('adds', 'is already', owner, type)
      draft.records.set(key, rdata)
      draft.ttlSeconds = ttlSeconds
    }
  }
  return [...drafts.values()].flatMap(changeOf)
}

function doesNotFit(what: string, why: string, owner: DomainName, type: number): never {
  throw new TransferFault('delta', `a delta ${what} what ${why} there: ${nameToText(owner)} ${typeToText(type)}`)
}

function changeOf({ owner, type, before, ttlSeconds, records }: Draft): RRsetChange[] {
  if (records.size === 0) return before === null ? [] : [{ owner, type, before, after: null }]
  const isSame =
    before !== null &&
    before.ttlSeconds === ttlSeconds &&
    before.rdata.length === records.size &&
    before.rdata.every((rdata) => records.has(rdataKey(type, rdata)))
  return isSame ? [] : [{ owner, type, before, after: { owner, type, ttlSeconds, rdata: [...records.values()] } }]
}

/** Whether two SOA records say the same but for the serial: a store has one set of timers for all its serials. */
export function isSameSoaButSerial(one: ResourceRecord, other: ResourceRecord): boolean {
  if (one.ttlSeconds !== other.ttlSeconds) return false
  const [first, second] = [readSoa(one.rdata), readSoa(other.rdata)]
  return JSON.stringify({ ...first, serial: 0 }) === JSON.stringify({ ...second, serial: 0 })
}

export const soaRecord = (soa: RRset): ResourceRecord => ({
  owner: soa.owner,
  type: RRTYPE.SOA,
  class: CLASS.IN,
  ttlSeconds: soa.ttlSeconds,
  rdata: soa.rdata[0]!
})
