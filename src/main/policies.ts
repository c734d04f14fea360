/** The policy table of a configuration. */
import type { Config } from '../config/config.ts'
import { PolicyTable } from '../policy/policy-table.ts'
import type { Policy } from '../policy/policy.ts'

export function policyTable(config: Config): PolicyTable {
  const policies: Policy[] = config.policies.map((policy) => ({
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
