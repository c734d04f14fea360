/** Which servers answer for what: one fleet for each kind of data, all of them running while it is measured. */
import type { BenchOptions } from './options.ts'
import {
  measureThroughput,
  type Absence,
  type RunningServer,
  type Surroundings,
  type ThroughputResult
} from './cases/throughput.ts'
import { changesFleet } from './cases/changes.ts'
import { corednsForwarding, corednsForZone } from './rivals/coredns.ts'
import { dnsdistBefore } from './rivals/dnsdist.ts'
import { dnsmasqForwarding, dnsmasqForZone } from './rivals/dnsmasq.ts'
import type { Rivals } from './rivals/find.ts'
import { knotForZone } from './rivals/knot.ts'
import { peerdnsForwarding, peerdnsForZone, type PeerdnsProgram } from './rivals/peerdns.ts'
import { cEcho, dgramEcho, dns2ForZone } from './rivals/plain.ts'
import { isEcho, serverTitles, type ForwardRole, type ServerPlan, type ZoneRole } from './rivals/server-plan.ts'
import { unboundForwarding, unboundForZone } from './rivals/unbound.ts'
import { batchingPlans, fewNamesPlans, onlyIn, threadsPlans } from './variants.ts'
import {
  batchingWorkloads,
  changesWorkloads,
  clusterWorkloads,
  fewNamesWorkload,
  manyNamesWorkloads,
  manyServices,
  mirroredWorkload,
  ownServices,
  peeredServices,
  peeredSuffixes,
  peeredWorkload,
  peeredWorkloads,
  servicesOfPeer,
  threadsWorkloads,
  type Workload
} from './workloads.ts'
import type { Workspace } from './workspace.ts'

/** The TTL of Services (the default of cluster.ttl), and one that outlasts every run for what is to stay cached. */
const zoneTtlSeconds = 5
const peeredTtlSeconds = 3_600

const ownZonesOnly = 'it answers from its own zones only'
const noTransfer = 'it keeps no copy of a zone'
const noApiServer = 'it does not read an API server'
const absentIn = {
  peered: [
    { title: serverTitles.knot, why: ownZonesOnly },
    { title: serverTitles.dns2, why: ownZonesOnly }
  ],
  mirrored: (['dnsdist', 'dnsmasq', 'dns2'] as const).map((id) => ({ title: serverTitles[id], why: noTransfer })),
  changes: (['unbound', 'knot', 'dnsdist', 'dnsmasq', 'dns2'] as const).map((id) => ({
    title: serverTitles[id],
    why: noApiServer
  }))
}

/** What one fleet is made of and how it is asked. */
export type FleetOptions = Readonly<{
  workloads: readonly Workload[]
  plans: () => Promise<ServerPlan[]>
  /** Servers that cannot do it, and why. */
  absent?: readonly Absence[]
  surroundings?: Surroundings
  /** Where the servers run, if not on the one core that is for servers. */
  core?: number | null
}>

/** Measures the workloads that are wanted, fleet by fleet. */
export async function measureFleets(
  workspace: Workspace,
  rivals: Rivals,
  options: BenchOptions
): Promise<ThroughputResult[]> {
  const wanted = (workloads: readonly Workload[]): Workload[] => workloads.filter(({ id }) => options.cases.has(id))
  const missing = (['coredns', 'unbound', 'knot', 'dnsdist', 'dnsmasq'] as const)
    .filter((id) => rivals[id] === null)
    .map((id) => ({ title: serverTitles[id], why: 'not installed' }))
  const results: ThroughputResult[] = []
  const measure = async ({ absent = [], ...fleet }: FleetOptions): Promise<void> => {
    const titles = new Set(absent.map(({ title }) => title))
    const all = [...absent, ...missing.filter(({ title }) => !titles.has(title))]
    results.push(...(await inFleet(workspace, { ...fleet, absent: all }, options)))
  }
  const besideClusterA = async (
    workloads: readonly Workload[],
    absent: readonly Absence[],
    plansFor: (port: number) => Promise<ServerPlan[]>
  ): Promise<void> => {
    if (workloads.length === 0) return
    const { plan, child } = await startClusterA(workspace, rivals.peerdns)
    try {
      await measure({ workloads, absent, plans: async () => plansFor(plan.port) })
    } finally {
      await child.stop()
    }
  }
  await measure({ workloads: wanted(clusterWorkloads), plans: async () => clusterZonePlans(workspace, rivals) })
  await besideClusterA(wanted(peeredWorkloads), absentIn.peered, async (port) => forwardersTo(workspace, rivals, port))
  await besideClusterA(wanted([mirroredWorkload]), absentIn.mirrored, async (port) =>
    mirrorsOf(workspace, rivals, port)
  )
  for (const [count, workloads] of Object.entries(manyNamesWorkloads)) {
    const role = { services: manyServices(Number(count)), ttlSeconds: zoneTtlSeconds }
    const [few, many] = [workloads.filter(isOfFewNames), workloads.filter((workload) => !isOfFewNames(workload))]
    const plans = async (): Promise<ServerPlan[]> => [
      ...(await allForZone(workspace, rivals, role)).map((plan) => onlyIn(plan, ...many)),
      ...(wanted(few).length === 0 ? [] : await fewNamesPlans(workspace, rivals, zoneTtlSeconds))
    ]
    await measure({ workloads: wanted(workloads), plans })
  }
  const changing = wanted(changesWorkloads)
  if (changing.length > 0) {
    const { fleet, close } = await changesFleet(workspace, rivals, changing)
    try {
      await measure({ ...fleet, absent: absentIn.changes })
    } finally {
      await close()
    }
  }
  await measure({
    workloads: wanted(threadsWorkloads),
    plans: async () => threadsPlans(workspace, rivals, ownZone),
    core: null
  })
  await measure({ workloads: wanted(batchingWorkloads), plans: async () => batchingPlans(workspace, rivals, ownZone) })
  return results
}

const isOfFewNames = ({ id }: Workload): boolean => id === fewNamesWorkload.id

const ownZone: ZoneRole = { services: ownServices, ttlSeconds: zoneTtlSeconds }

async function clusterZonePlans(workspace: Workspace, rivals: Rivals): Promise<ServerPlan[]> {
  const plans = await allForZone(workspace, rivals, ownZone)
  plans.push({ ...dgramEcho(process.execPath, await workspace.place()), onlyIn: ['cluster-a'] })
  return plans
}

/** Everybody who can answer from such a zone, and the floor. */
async function allForZone(workspace: Workspace, rivals: Rivals, role: ZoneRole): Promise<ServerPlan[]> {
  const { dnsdist, dnsmasq, cEcho: floor } = rivals
  const plans = await zonePlans(workspace, rivals, role)
  if (dnsdist !== null) plans.push(dnsdistBefore(dnsdist.path, await workspace.place(), plans[0]!))
  if (dnsmasq !== null) plans.push(dnsmasqForZone(dnsmasq.path, await workspace.place(), role))
  plans.push(dns2ForZone(process.execPath, await workspace.place(), role))
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
  const from = { suffixes: peeredSuffixes, peerPort }
  const mirror = peerdnsForwarding(rivals.peerdns, await workspace.place(), from, true)
  const [, ...others] = await zonePlans(workspace, rivals, role)
  const floor = rivals.cEcho === null ? [] : [cEcho(rivals.cEcho, await workspace.place())]
  return [mirror, ...others, ...floor]
}

/** Starts servers; one that does not get to its first right answer is named and left out. */
async function startFleet(
  workspace: Workspace,
  plans: readonly ServerPlan[],
  first: Workload,
  core: number | null
): Promise<{ fleet: RunningServer[]; failed: Absence[] }> {
  const fleet: RunningServer[] = []
  const failed: Absence[] = []
  for (const plan of plans) {
    const expected = isEcho(plan.id) ? { rcode: 0, answers: 0 } : first.expected
    try {
      const child = await workspace.start(plan, { question: first.questions[0]!, expected }, core)
      fleet.push({ plan, child })
    } catch (error) {
      const why = (error as Error).message
      workspace.say(`left out: ${why}`)
      failed.push({ title: plan.title, why: why.split('\n')[0]! })
    }
  }
  return { fleet, failed }
}

async function inFleet(
  workspace: Workspace,
  { workloads, plans, absent = [], surroundings, core = workspace.cores.server }: FleetOptions,
  options: BenchOptions
): Promise<ThroughputResult[]> {
  if (workloads.length === 0) return []
  const { fleet, failed } = await startFleet(workspace, await plans(), workloads[0]!, core)
  try {
    const all = [...absent, ...failed]
    return await measureThroughput(workspace, fleet, workloads, options, all, surroundings)
  } finally {
    for (const { child } of fleet) await child.stop()
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
