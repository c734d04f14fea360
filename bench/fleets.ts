/** Which servers answer for what: one fleet for each kind of data, all of them running while it is measured. */
import type { BenchOptions } from './options.ts'
import { measureThroughput, type RunningServer, type ThroughputResult } from './cases/throughput.ts'
import type { Child } from './children.ts'
import { corednsForwarding, corednsForZone } from './rivals/coredns.ts'
import { dnsdistBefore } from './rivals/dnsdist.ts'
import { dnsmasqForwarding, dnsmasqForZone } from './rivals/dnsmasq.ts'
import type { Program } from './rivals/find.ts'
import { knotForZone } from './rivals/knot.ts'
import { peerdnsForwarding, peerdnsForZone, type PeerdnsProgram } from './rivals/peerdns.ts'
import { cEcho, dgramEcho, dns2ForZone } from './rivals/plain.ts'
import { isEcho, type ForwardRole, type ServerPlan, type ZoneRole } from './rivals/server-plan.ts'
import { unboundForwarding, unboundForZone } from './rivals/unbound.ts'
import {
  clusterWorkloads,
  manyNamesWorkloads,
  manyServices,
  mirroredWorkload,
  ownServices,
  peeredServices,
  peeredSuffixes,
  peeredWorkload,
  peeredWorkloads,
  servicesOfPeer,
  type Workload
} from './workloads.ts'
import type { Workspace } from './workspace.ts'

export type Rivals = Readonly<{
  peerdns: PeerdnsProgram
  coredns: Program | null
  unbound: Program | null
  knot: Program | null
  dnsdist: Program | null
  dnsmasq: Program | null
  /** The compiled floor in C. */
  cEcho: string | null
}>

/** The TTL of Services (the default of cluster.ttl), and one that outlasts every run for what is to stay cached. */
const zoneTtlSeconds = 5
const peeredTtlSeconds = 3_600

/** Measures the workloads that are wanted, fleet by fleet. */
export async function measureFleets(
  workspace: Workspace,
  rivals: Rivals,
  options: BenchOptions
): Promise<ThroughputResult[]> {
  const wanted = (workloads: readonly Workload[]): Workload[] => workloads.filter(({ id }) => options.cases.has(id))
  const results = [
    await inFleet(workspace, wanted(clusterWorkloads), options, () => clusterZonePlans(workspace, rivals)),
    await withClusterA(workspace, rivals, wanted(peeredWorkloads), options, (port) =>
      forwardersTo(workspace, rivals, port)
    ),
    await withClusterA(workspace, rivals, wanted([mirroredWorkload]), options, (port) =>
      mirrorsOf(workspace, rivals, port)
    )
  ]
  for (const [count, workloads] of Object.entries(manyNamesWorkloads)) {
    const plans = () => manyNamesPlans(workspace, rivals, Number(count))
    results.push(await inFleet(workspace, wanted(workloads), options, plans))
  }
  return results.flat()
}

async function clusterZonePlans(workspace: Workspace, rivals: Rivals): Promise<ServerPlan[]> {
  const role = { services: ownServices, ttlSeconds: zoneTtlSeconds }
  const { dnsdist, dnsmasq, cEcho: floor } = rivals
  const plans = await zonePlans(workspace, rivals, role)
  const behind = plans[0]!
  if (dnsdist !== null) plans.push(dnsdistBefore(dnsdist.path, await workspace.place(), behind))
  if (dnsmasq !== null) plans.push(dnsmasqForZone(dnsmasq.path, await workspace.place(), role))
  plans.push(dns2ForZone(process.execPath, await workspace.place(), role))
  plans.push(dgramEcho(process.execPath, await workspace.place()))
  if (floor !== null) plans.push(cEcho(floor, await workspace.place()))
  return plans
}

/** peerdns first, and those who serve a zone from memory. */
async function zonePlans(
  workspace: Workspace,
  { peerdns, coredns, unbound, knot }: Rivals,
  role: ZoneRole
): Promise<ServerPlan[]> {
  const plans = [peerdnsForZone(peerdns, await workspace.place(), role)]
  if (coredns !== null) plans.push(corednsForZone(coredns.path, await workspace.place(), role))
  if (unbound !== null) plans.push(unboundForZone(unbound.path, await workspace.place(), role))
  if (knot !== null) plans.push(knotForZone(knot.path, await workspace.place(), role))
  return plans
}

async function manyNamesPlans(workspace: Workspace, rivals: Rivals, count: number): Promise<ServerPlan[]> {
  const plans = await zonePlans(workspace, rivals, { services: manyServices(count), ttlSeconds: zoneTtlSeconds })
  if (rivals.cEcho !== null) plans.push(cEcho(rivals.cEcho, await workspace.place()))
  return plans
}

/** Servers that ask cluster A and keep what it says. */
export async function forwardersTo(workspace: Workspace, rivals: Rivals, peerPort: number): Promise<ServerPlan[]> {
  const role: ForwardRole = { suffixes: peeredSuffixes, peerPort }
  const { peerdns, coredns, unbound, dnsdist, dnsmasq, cEcho: floor } = rivals
  const plans = [peerdnsForwarding(peerdns, await workspace.place(), role)]
  if (coredns !== null) plans.push(corednsForwarding(coredns.path, await workspace.place(), role))
  if (unbound !== null) plans.push(unboundForwarding(unbound.path, await workspace.place(), role))
  const clusterA = { port: peerPort, title: "cluster A's peerdns" }
  if (dnsdist !== null) plans.push(dnsdistBefore(dnsdist.path, await workspace.place(), clusterA))
  if (dnsmasq !== null) plans.push(dnsmasqForwarding(dnsmasq.path, await workspace.place(), role))
  if (floor !== null) plans.push(cEcho(floor, await workspace.place()))
  return plans
}

/** Servers that hold A's zone: peerdns takes it by transfer, the others have it as their own. */
async function mirrorsOf(workspace: Workspace, rivals: Rivals, peerPort: number): Promise<ServerPlan[]> {
  const role = { services: peeredServices, ttlSeconds: peeredTtlSeconds }
  const mirror = peerdnsForwarding(
    rivals.peerdns,
    await workspace.place(),
    { suffixes: peeredSuffixes, peerPort },
    true
  )
  const [, ...others] = await zonePlans(workspace, rivals, role)
  return [mirror, ...others]
}

/** Starts servers; one that does not get to its first right answer is named and left out. */
async function startFleet(
  workspace: Workspace,
  plans: readonly ServerPlan[],
  first: Workload
): Promise<RunningServer[]> {
  const fleet: RunningServer[] = []
  for (const plan of plans) {
    const expected = isEcho(plan.id) ? { rcode: 0, answers: 0 } : first.expected
    try {
      const child = await workspace.start(plan, { question: first.questions[0]!, expected })
      fleet.push({ plan, child })
    } catch (error) {
      workspace.note(`Left out: ${(error as Error).message}`)
    }
  }
  return fleet
}

async function stopAll(children: readonly Child[]): Promise<void> {
  for (const child of children) await child.stop()
}

async function inFleet(
  workspace: Workspace,
  workloads: readonly Workload[],
  options: BenchOptions,
  plans: () => Promise<ServerPlan[]>
): Promise<ThroughputResult[]> {
  if (workloads.length === 0) return []
  const fleet = await startFleet(workspace, await plans(), workloads[0]!)
  try {
    return await measureThroughput(workspace, fleet, workloads, options)
  } finally {
    await stopAll(fleet.map(({ child }) => child))
  }
}

async function withClusterA(
  workspace: Workspace,
  rivals: Rivals,
  workloads: readonly Workload[],
  options: BenchOptions,
  plansFor: (peerPort: number) => Promise<ServerPlan[]>
): Promise<ThroughputResult[]> {
  if (workloads.length === 0) return []
  const clusterA = await startClusterA(workspace, rivals.peerdns)
  try {
    return await inFleet(workspace, workloads, options, () => plansFor(clusterA.plan.port))
  } finally {
    await clusterA.child.stop()
  }
}

/**
 * Cluster A, whose names are peered; it sits on the client's core, where it has nothing to do once caches are filled.
 */
export async function startClusterA(workspace: Workspace, peerdns: PeerdnsProgram): Promise<RunningServer> {
  const role = { services: servicesOfPeer, ttlSeconds: peeredTtlSeconds }
  const plan = peerdnsForZone(peerdns, await workspace.place(), role, { transfer: { allow: ['127.0.0.0/8'] } })
  const { questions, expected } = peeredWorkload
  const child = await workspace.start(plan, { question: questions[0]!, expected }, workspace.cores.client)
  return { plan, child }
}
