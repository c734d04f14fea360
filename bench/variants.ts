/** Servers that differ in one option alone, each asked in a workload of its own within the same rounds. */
import { corednsForZone } from './rivals/coredns.ts'
import type { Rivals } from './rivals/find.ts'
import { peerdnsForZone } from './rivals/peerdns.ts'
import { dgramEcho } from './rivals/plain.ts'
import type { ServerPlan, ZoneRole } from './rivals/server-plan.ts'
import { unboundForZone } from './rivals/unbound.ts'
import {
  batchingWorkloads,
  fewNamesWorkload,
  manyServices,
  namesPerWorkload,
  threadsWorkloads,
  type WorkloadId
} from './workloads.ts'
import type { Workspace } from './workspace.ts'

export const onlyIn = (plan: ServerPlan, ...workloads: readonly Readonly<{ id: WorkloadId }>[]): ServerPlan => ({
  ...plan,
  onlyIn: workloads.map(({ id }) => id)
})

/** Servers of few names, beside those of many. */
export async function fewNamesPlans(
  workspace: Workspace,
  { peerdns, unbound }: Rivals,
  ttlSeconds: number
): Promise<ServerPlan[]> {
  const role = { services: manyServices(namesPerWorkload), ttlSeconds }
  const plans = [onlyIn(peerdnsForZone(peerdns, await workspace.place(), role), fewNamesWorkload)]
  if (unbound === null) return plans
  plans.push(onlyIn(unboundForZone(unbound.path, await workspace.place(), role), fewNamesWorkload))
  return plans
}

/** `threads: 0` to `2` of peerdns, one and two threads of Unbound. */
export async function threadsPlans(
  workspace: Workspace,
  { peerdns, unbound }: Rivals,
  role: ZoneRole
): Promise<ServerPlan[]> {
  const plans: ServerPlan[] = []
  for (const [threads, workload] of threadsWorkloads.entries()) {
    plans.push(onlyIn(peerdnsForZone({ ...peerdns, threads }, await workspace.place(), role), workload))
    if (unbound === null || threads === 0) continue
    plans.push(onlyIn(unboundForZone(unbound.path, await workspace.place(), role, threads), workload))
  }
  return plans
}

/** peerdns with and without batches; beside the latter an echo on the same node:dgram, and CoreDNS. */
export async function batchingPlans(
  workspace: Workspace,
  { peerdns, coredns }: Rivals,
  role: ZoneRole
): Promise<ServerPlan[]> {
  const [batches, oneByOne] = batchingWorkloads
  const plans = [
    onlyIn(peerdnsForZone({ ...peerdns, batching: 'auto' }, await workspace.place(), role), batches),
    onlyIn(peerdnsForZone({ ...peerdns, batching: 'off' }, await workspace.place(), role), oneByOne)
  ]
  if (coredns !== null) plans.push(onlyIn(corednsForZone(coredns.path, await workspace.place(), role), oneByOne))
  plans.push(onlyIn(dgramEcho(process.execPath, await workspace.place()), oneByOne))
  return plans
}
