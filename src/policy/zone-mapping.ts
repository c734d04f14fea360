/**
 * Names between clusters that call their zones differently.
 *
 * A target's `zone` says what that cluster calls its zone. Names go out with our suffix exchanged for the target's,
 * and come back with the target's exchanged for ours: owner names, and the names inside RDATA that mean a place in
 * that cluster (CNAME, SRV, PTR, NS, MX, SOA).
 */
import { RRTYPE } from '../wire/iana.ts'
import { isAtOrBelow, labelsOf, parentOf, parseName, replaceSuffix, type DomainName } from '../wire/name.ts'
import { mapRdataNames } from '../wire/rdata-names.ts'
import type { RRset, Sections } from '../wire/rr.ts'
import type { Target } from './policy.ts'

/** `ours` and `theirs` name the same zone; null stands for "names are the same on both sides". */
export type ZoneMapping = Readonly<{ ours: DomainName; theirs: DomainName }> | null

/**
 * The zone that a dnsName lies in, as we call it: ours where it is below one of `ownZones`, else what follows its
 * `svc` or `pod` label, else the dnsName itself (so `cluster-a.local` can stand for another cluster's whole zone).
 */
export function zoneOfDnsName(dnsName: DomainName, ownZones: readonly DomainName[]): DomainName {
  const own = ownZones.find((zone) => isAtOrBelow(dnsName, zone))
  if (own !== undefined) return own
  const labels = labelsOf(dnsName)
  const rootAt = Math.max(labels.lastIndexOf('svc'), labels.lastIndexOf('pod'))
  let zone = dnsName
  for (let cut = 0; cut <= rootAt; cut++) zone = parentOf(zone) ?? zone
  return zone
}

/** `in-addr.arpa` and `ip6.arpa`: all clusters call these names the same. */
const reverseRoots = ['in-addr.arpa', 'ip6.arpa'].map(parseName)

/**
 * The zone, as we call it, whose names a target's `zone` renames in a policy with this dnsName: the one that it lies
 * in; our cluster zone (the first one of `ownZones`) for a reverse name, since its PTR records point there.
 */
export function mappedZoneOf(dnsName: DomainName, ownZones: readonly DomainName[]): DomainName {
  const isReverse = reverseRoots.some((root) => isAtOrBelow(dnsName, root))
  return isReverse ? (ownZones[0] ?? dnsName) : zoneOfDnsName(dnsName, ownZones)
}

/** How names map towards one target, where its zone is the one that we call `ours`. */
export function zoneMapping(ours: DomainName, target: Target): ZoneMapping {
  return target.zone === null || target.zone === ours ? null : { ours, theirs: target.zone }
}

/** The name as the target knows it; names outside of our zone stay. Null where it would be too long there. */
export function toTheirs(name: DomainName, mapping: ZoneMapping): DomainName | null {
  if (mapping === null || !isAtOrBelow(name, mapping.ours)) return name
  return replaceSuffix(name, mapping.ours, mapping.theirs)
}

/** The name as our clients know it; names outside of the target's zone stay, as do those that would be too long. */
export function toOurs(name: DomainName, mapping: ZoneMapping): DomainName {
  if (mapping === null) return name
  return replaceSuffix(name, mapping.theirs, mapping.ours) ?? name
}

const typesWithNames: ReadonlySet<number> = new Set([
  RRTYPE.NS,
  RRTYPE.CNAME,
  RRTYPE.SOA,
  RRTYPE.PTR,
  RRTYPE.MX,
  RRTYPE.SRV,
  RRTYPE.DNAME,
  RRTYPE.SVCB,
  RRTYPE.HTTPS
])

const mapRRset = (rrset: RRset, mapping: ZoneMapping): RRset => ({
  owner: toOurs(rrset.owner, mapping),
  type: rrset.type,
  ttlSeconds: rrset.ttlSeconds,
  rdata: typesWithNames.has(rrset.type)
    ? rrset.rdata.map((rdata) => mapRdataNames(rrset.type, rdata, (name) => toOurs(name, mapping)))
    : rrset.rdata
})

/** A target's answer with every name of its zone written as one of ours. */
export function sectionsToOurs(sections: Sections, mapping: ZoneMapping): Sections {
  if (mapping === null) return sections
  const map = (rrsets: readonly RRset[]): RRset[] => rrsets.map((rrset) => mapRRset(rrset, mapping))
  return {
    rcode: sections.rcode,
    answer: map(sections.answer),
    authority: map(sections.authority),
    additional: map(sections.additional)
  }
}
