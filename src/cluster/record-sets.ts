/**
 * Collecting records into RRsets: duplicates fall out, SRV weights follow from their number, and RDATA stands in the
 * order of its octets, so equal records make equal RRsets whatever order the objects came in.
 */
import { RRTYPE } from '../wire/iana.ts'
import { joinLabels, maxLabelOctets, maxNameOctets } from '../wire/name.ts'
import type { DomainName } from '../wire/name.ts'
import { srvRdata } from '../wire/rdata.ts'
import type { Rdata, RRset } from '../wire/rr.ts'

type OpenSet = { owner: DomainName; type: number; rdata: Rdata[] }
type OpenSrvSet = { owner: DomainName; targets: Map<string, { port: number; target: DomainName }> }

/** RDATA in the order of its octets, none twice. */
export function inOrder(rdata: readonly Rdata[]): readonly Rdata[] {
  if (rdata.length < 2) return rdata
  const sorted = [...rdata].sort((one, other) => Buffer.compare(one, other))
  return sorted.filter((octets, at) => at === 0 || Buffer.compare(octets, sorted[at - 1]!) !== 0)
}

export class RecordSets {
  readonly #ttlSeconds: number
  readonly #open = new Map<string, OpenSet>()
  readonly #openSrv = new Map<DomainName, OpenSrvSet>()

  constructor(ttlSeconds: number) {
    this.#ttlSeconds = ttlSeconds
  }

  add(owner: DomainName, type: number, rdata: Rdata): void {
    // A name ends in the root's zero octet, so the number behind it cannot be read as part of it.
    const key = owner + type
    const open = this.#open.get(key)
    if (open === undefined) this.#open.set(key, { owner, type, rdata: [rdata] })
    else open.rdata.push(rdata)
  }

  /** The A or AAAA record of an address's octets. */
  addAddress(owner: DomainName, octets: Rdata): void {
    this.add(owner, octets.length === 4 ? RRTYPE.A : RRTYPE.AAAA, octets)
  }

  /** Priority is 0; the weight is shared out among all SRV records of the owner. */
  addSrv(owner: DomainName, port: number, target: DomainName): void {
    const key = target + port
    const open = this.#openSrv.get(owner)
    if (open === undefined) this.#openSrv.set(owner, { owner, targets: new Map([[key, { port, target }]]) })
    else open.targets.set(key, { port, target })
  }

  finish(): RRset[] {
    const sets: RRset[] = []
    for (const { owner, type, rdata } of this.#open.values()) {
      sets.push({ owner, type, ttlSeconds: this.#ttlSeconds, rdata: inOrder(rdata) })
    }
    for (const { owner, targets } of this.#openSrv.values()) {
      const weight = Math.max(1, Math.floor(100 / targets.size))
      const rdata = Array.from(targets.values(), ({ port, target }) => srvRdata({ priority: 0, weight, port, target }))
      sets.push({ owner, type: RRTYPE.SRV, ttlSeconds: this.#ttlSeconds, rdata: inOrder(rdata) })
    }
    return sets
  }
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
