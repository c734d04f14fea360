/** Which policy decides a name: the longest dnsName wins, and a policy that is not for this client is passed over. */
import type { DomainName } from '../wire/name.ts'
import type { Policy } from './policy.ts'
import { mappedZoneOf, zoneOfDnsName } from './zone-mapping.ts'

/** A policy and the one of its dnsNames that matched. */
export type PolicyMatch = Readonly<{
  policy: Policy
  dnsName: DomainName
  /** The zone that the dnsName lies in, as we call it. */
  zone: DomainName
  /** False where nothing tells where that zone begins: at the dnsName, or somewhere above. */
  isApexKnown: boolean
  /** The zone, as we call it, that a target's `zone` is another name of. */
  mappedZone: DomainName
}>

export class PolicyTable {
  readonly policies: readonly Policy[]
  readonly #byDnsName = new Map<DomainName, PolicyMatch[]>()
  /** Lengths in octets that dnsNames have: suffixes of any other length need no look-up. */
  readonly #lengths = new Set<number>()

  /**
   * `ownZones` are the zones that this cluster calls its own, the cluster zone first; they give each dnsName its zone.
   */
  constructor(policies: readonly Policy[], ownZones: readonly DomainName[]) {
    this.policies = policies
    for (const policy of policies) {
      for (const dnsName of policy.dnsNames) {
        const zone = zoneOfDnsName(dnsName, ownZones)
        const isApexKnown = zone !== dnsName || ownZones.includes(zone)
        const match = { policy, dnsName, zone, isApexKnown, mappedZone: mappedZoneOf(dnsName, ownZones) }
        this.#lengths.add(dnsName.length)
        const matches = this.#byDnsName.get(dnsName)
        if (matches === undefined) this.#byDnsName.set(dnsName, [match])
        else matches.push(match)
      }
    }
  }

  /**
   * The policy for this name and client, or null. Costs one map look-up for each suffix of the name that is as long as
   * some dnsName.
   *
   * `accepts` passes over policies that do not apply for another reason (no transit, reserved names).
   */
  match(qname: DomainName, clientAddress: string, accepts: (policy: Policy) => boolean): PolicyMatch | null {
    if (this.#byDnsName.size === 0) return null
    for (let at = 0; at < qname.length; at += qname.charCodeAt(at) + 1) {
      if (!this.#lengths.has(qname.length - at)) continue
      const matches = this.#byDnsName.get(qname.slice(at) as DomainName)
      if (matches === undefined) continue
      for (const match of matches) {
        const { clients } = match.policy
        if ((clients === null || clients.contains(clientAddress)) && accepts(match.policy)) return match
      }
    }
    return null
  }

  /** Whether any policy is for this client (then recursion is available to it). */
  hasPolicyFor(clientAddress: string): boolean {
    return this.policies.some((policy) => policy.clients === null || policy.clients.contains(clientAddress))
  }
}
