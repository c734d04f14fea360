/** The policies of a configuration, and the table of those that are in force. */
import type { Config, PolicyConfig } from '../config/config.ts'
import { PolicyTable } from '../policy/policy-table.ts'
import type { Policy } from '../policy/policy.ts'

export type PolicyTables = Readonly<{
  /** Those that are in force. */
  policies: PolicyTable
  /** The same with those that only count what they would change; null: there are none. */
  withUnenforced: PolicyTable | null
}>

/** @param isDisabled names the policies that an operator took out: names are answered as if these were not there. */
export function policyTables(config: Config, isDisabled: (name: string) => boolean): PolicyTables {
  const { zone, clustersetZone } = config.cluster
  const tableOf = (policies: readonly PolicyConfig[]): PolicyTable =>
    new PolicyTable(policies.map(policyOf), [zone, clustersetZone])
  const present = config.policies.filter(({ name }) => !isDisabled(name))
  const inForce = present.filter(({ enforce }) => enforce)
  return { policies: tableOf(inForce), withUnenforced: inForce.length === present.length ? null : tableOf(present) }
}

const policyOf = (policy: PolicyConfig): Policy => ({
  name: policy.name,
  dnsNames: policy.dnsNames,
  targets: policy.targets,
  select: policy.select,
  nextOn: policy.nextOn,
  maxTtlSeconds: policy.maxTtlSeconds,
  maxNegativeTtlSeconds: policy.maxNegativeTtlSeconds,
  clients: policy.clients,
  transit: policy.transit,
  allowReserved: policy.allowReserved,
  enforce: policy.enforce,
  allDown: policy.allDown,
  tricklePercent: policy.tricklePercent
})
