/** The policies of a configuration, and the table of those that are in force. */
import type { Config } from '../config/config.ts'
import { PolicyTable } from '../policy/policy-table.ts'
import type { Policy } from '../policy/policy.ts'

/** @param isDisabled names the policies that an operator took out: names are answered as if these were not there. */
export function policyTable(config: Config, isDisabled: (name: string) => boolean): PolicyTable {
  const inForce = config.policies.filter(({ name }) => !isDisabled(name))
  const policies: Policy[] = inForce.map((policy) => ({
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
    tricklePercent: policy.tricklePercent
  }))
  return new PolicyTable(policies, [config.cluster.zone, config.cluster.clustersetZone])
}
