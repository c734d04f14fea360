/** Answers that no zone and no peer gives: static addresses of a policy, and denials by rule. */
import { EDE, isAddressType, RCODE, RRTYPE } from '../wire/iana.ts'
import { isIPv6 } from 'node:net'
import { aaaaRdata, aRdata, soaRdata } from '../wire/rdata.ts'
import { isAtOrBelow, joinLabels, type DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import type { PolicyMatch } from '../policy/policy-table.ts'
import type { Target } from '../policy/policy.ts'
import { answerOf, type Answer, type Ede } from './answer.ts'
import type { Parts } from './parts.ts'
import type { Query } from './query.ts'

/** TTL in seconds of static addresses where the policy sets no `maxTtl`. */
const staticAddressTtlSeconds = 30
/** The same where they are checked: one that goes down is given for no longer than cluster data. */
const checkedAddressTtlSeconds = 5

const ttlSecondsOf = ({ policy }: PolicyMatch, { probe }: Target): number =>
  policy.maxTtlSeconds ?? (probe === null ? staticAddressTtlSeconds : checkedAddressTtlSeconds)

/** A SOA for a suffix that has no zone here: a denial without one could not be cached (RFC 2308 §5). */
function madeUpSoa(owner: DomainName, ttlSeconds: number): RRset {
  const rdata = soaRdata({
    mname: owner,
    rname: joinLabels(['hostmaster'], owner),
    serial: 1,
    refreshSeconds: 7200,
    retrySeconds: 1800,
    expireSeconds: 86_400,
    minimumSeconds: ttlSeconds
  })
  return { owner, type: RRTYPE.SOA, ttlSeconds, rdata: [rdata] }
}

/**
 * Those of one type among the addresses that stand in the policy itself; null: none are. They are of any name at or
 * below its dnsName.
 */
export function staticAddressSet(
  match: PolicyMatch,
  target: Target,
  owner: DomainName,
  type: number,
  addresses: readonly string[]
): RRset | null {
  if (!isAddressType(type)) return null
  const wanted = addresses.filter((address) => isIPv6(address) === (type === RRTYPE.AAAA))
  if (wanted.length === 0) return null
  const ttlSeconds = ttlSecondsOf(match, target)
  return { owner, type, ttlSeconds, rdata: wanted.map(type === RRTYPE.A ? aRdata : aaaaRdata) }
}

/** @param addresses those of the target that are given. */
export function staticAddressAnswer(
  match: PolicyMatch,
  target: Target,
  query: Query,
  addresses: readonly string[]
): Answer {
  const origin = { from: 'policy', target: target.id } as const
  const rrset = staticAddressSet(match, target, query.qname, query.qtype, addresses)
  if (rrset === null) {
    const soa = madeUpSoa(match.dnsName, Math.min(ttlSecondsOf(match, target), match.policy.maxNegativeTtlSeconds))
    return answerOf({ rcode: RCODE.NOERROR, answer: [], authority: [soa], additional: [] }, { origin })
  }
  return answerOf({ rcode: RCODE.NOERROR, answer: [rrset], authority: [], additional: [] }, { origin })
}

/** NXDOMAIN that no target confirmed, with the SOA of our own zone where the name lies in one. */
export function denialByRule(
  parts: Parts,
  match: PolicyMatch,
  query: Query,
  ttlSeconds: number,
  ...ede: readonly Ede[]
): Answer {
  const zone = parts.own.zones.find(query.qname)
  const soa =
    zone !== null && isAtOrBelow(query.qname, zone.apex) ? zone.negativeSoa : madeUpSoa(match.dnsName, ttlSeconds)
  const sections = { rcode: RCODE.NXDOMAIN, answer: [], authority: [soa], additional: [] }
  return answerOf(sections, { maxTtlSeconds: ttlSeconds, ede, policy: match.policy.name })
}

/** NODATA where `allDown: closed` keeps back the addresses of a target without a healthy endpoint. */
export function closedByRule(parts: Parts, match: PolicyMatch, query: Query): Answer {
  const { name, maxNegativeTtlSeconds } = match.policy
  const ede = { code: EDE.OTHER, text: `${name}: no endpoint is healthy, and \`allDown\` is closed` }
  return noDataByRule(parts, match, query, maxNegativeTtlSeconds, ede)
}

/** NODATA that no target confirmed. */
export function noDataByRule(
  parts: Parts,
  match: PolicyMatch,
  query: Query,
  ttlSeconds: number,
  ...ede: readonly Ede[]
): Answer {
  const denial = denialByRule(parts, match, query, ttlSeconds, ...ede)
  return { ...denial, sections: { ...denial.sections, rcode: RCODE.NOERROR } }
}

/** What nobody answers for: no zone, no policy, no forwarding. */
export const noRule: Ede = { code: EDE.NOT_AUTHORITATIVE, text: 'no zone, policy or forward is for this name' }
