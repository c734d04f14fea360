/**
 * A whole zone while it comes in: a store that nobody reads until the last record is there.
 *
 * Records are put in message by message, so that no moment's work grows with the zone.
 */
import type { Clock } from '../base/clock.ts'
import { groupRRsets } from '../wire/message.ts'
import { rdataKey, readSoa } from '../wire/rdata.ts'
import type { ResourceRecord, RRset } from '../wire/rr.ts'
import { ZoneStore, type Synthesize } from '../zone/zone-store.ts'

export type ShadowZoneOptions = Readonly<{
  /** The first record of the transfer. */
  soa: ResourceRecord
  epoch: string
  clock: Clock
  synthesize?: Synthesize
}>

/** An empty store with the serial and timers of a SOA that came in. */
export function shadowZone({ soa, epoch, clock, synthesize }: ShadowZoneOptions): ZoneStore {
  const { mname, rname, serial, refreshSeconds, retrySeconds, expireSeconds, minimumSeconds } = readSoa(soa.rdata)
  const { ttlSeconds } = soa
  return new ZoneStore({
    apex: soa.owner,
    epoch,
    serial,
    clock,
    ns: null,
    soa: {
      mname,
      rname,
      refresh: refreshSeconds,
      retry: retrySeconds,
      expire: expireSeconds,
      minimumSeconds,
      ttlSeconds
    },
    ...(synthesize === undefined ? {} : { synthesize })
  })
}

/** Puts records into a store that is being filled; those of an RRset may come in any number of pieces. */
export function loadRecords(store: ZoneStore, records: readonly ResourceRecord[]): void {
  const sets = groupRRsets(records).map((set) => {
    const held = store.rrset(set.owner, set.type)
    return { owner: set.owner, type: set.type, after: held === null ? set : joined(held, set) }
  })
  store.load({ sets, services: [], names: [] })
}

function joined(held: RRset, added: RRset): RRset {
  const records = new Map(held.rdata.map((rdata) => [rdataKey(held.type, rdata), rdata]))
  for (const rdata of added.rdata) {
    const key = rdataKey(held.type, rdata)
    if (!records.has(key)) records.set(key, rdata)
  }
  return { ...held, ttlSeconds: Math.min(held.ttlSeconds, added.ttlSeconds), rdata: [...records.values()] }
}
