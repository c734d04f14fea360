/** The SOA of a zone that we serve. RFC 1035 §3.3.13. */
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import { soaRdata } from '../wire/rdata.ts'
import type { RRset } from '../wire/rr.ts'

/** All of a SOA but its serial, times in seconds. `minimumSeconds` bounds the TTL of denials (RFC 2308 §4). */
export type SoaFields = Readonly<{
  mname: DomainName
  rname: DomainName
  refresh: number
  retry: number
  expire: number
  minimumSeconds: number
  ttlSeconds: number
}>

export function soaRRset(apex: DomainName, fields: SoaFields, serial: number): RRset {
  const { mname, rname, minimumSeconds } = fields
  const timers = { refreshSeconds: fields.refresh, retrySeconds: fields.retry, expireSeconds: fields.expire }
  const rdata = soaRdata({ mname, rname, serial, ...timers, minimumSeconds })
  return { owner: apex, type: RRTYPE.SOA, ttlSeconds: fields.ttlSeconds, rdata: [rdata] }
}

/** The SOA as a denial carries it. RFC 2308 §3. */
export function negativeSoaOf(soa: RRset, fields: SoaFields): RRset {
  return { ...soa, ttlSeconds: Math.min(soa.ttlSeconds, fields.minimumSeconds) }
}
