/** Hand-written records (`cluster.records`): merged into RRsets, and brought to the zones they fall into. */
import { RRTYPE, typeToText } from '../wire/iana.ts'
import { isAtOrBelow, nameToText } from '../wire/name.ts'
import type { DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import type { Zones } from '../zone/zones.ts'
import { isHidden, type EditBatch } from './edit-batch.ts'
import { inOrder, octetsToText, toRRsets } from './record-sets.ts'

/** The types that we generate at names; hand-written ones take their place. */
const generatedTypes = [RRTYPE.A, RRTYPE.AAAA, RRTYPE.CNAME, RRTYPE.PTR, RRTYPE.SRV, RRTYPE.TXT]

export type HandWrittenRecords = Readonly<{
  byOwner: ReadonlyMap<DomainName, readonly RRset[]>
  /** Those that cannot be served, and why. */
  refused: readonly Readonly<{ name: string; reason: string }>[]
}>

/** Sets of one owner and type become one, of the lowest TTL. SOA is refused: each zone makes its own. */
export function collectHandWritten(records: readonly RRset[]): HandWrittenRecords {
  const byOwner = new Map<DomainName, RRset[]>()
  const refused: { name: string; reason: string }[] = []
  for (const record of records) {
    const name = `${nameToText(record.owner)} ${typeToText(record.type)}`
    if (record.type === RRTYPE.SOA) {
      refused.push({ name, reason: 'a zone makes its SOA by itself' })
      continue
    }
    const sets = byOwner.get(record.owner) ?? []
    const at = sets.findIndex((set) => set.type === record.type)
    const known = sets[at]
    const [merged] = toRRsets([
      {
        ...record,
        ttlSeconds: Math.min(record.ttlSeconds, known?.ttlSeconds ?? record.ttlSeconds),
        rdata: inOrder([...(known?.rdata ?? []), ...record.rdata].map(octetsToText))
      }
    ])
    byOwner.set(record.owner, known === undefined ? [...sets, merged!] : sets.with(at, merged!))
  }
  return { byOwner, refused }
}

/**
 * The apexes of the zones that hand-written records need beyond the zones there are: of `apexes` those that hold one,
 * and else the record's own name, so that we never claim more than was written.
 */
export function extraApexes(
  owners: Iterable<DomainName>,
  zones: readonly DomainName[],
  apexes: readonly DomainName[]
): DomainName[] {
  const extra: DomainName[] = []
  // Shorter names first, so that one apex serves the names below it.
  for (const owner of [...owners].sort((one, other) => one.length - other.length)) {
    const isInside = [...zones, ...extra].some((zone) => isAtOrBelow(owner, zone))
    if (isInside) continue
    const given = apexes.filter((apex) => isAtOrBelow(owner, apex)).sort((one, other) => other.length - one.length)
    extra.push(given[0] ?? owner)
  }
  return extra
}

/** Puts them where they belong, and takes away what was generated in their place. Every one has a zone in `zones`. */
export function writeHandWritten(batch: EditBatch, zones: Zones, { byOwner }: HandWrittenRecords): void {
  for (const [owner, sets] of byOwner) {
    const zone = zones.find(owner)!
    for (const type of generatedTypes) if (isHidden(byOwner, owner, type)) batch.setByHand(zone, owner, type, null)
    for (const set of sets) batch.setByHand(zone, owner, set.type, set)
  }
}
