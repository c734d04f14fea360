/** `npm run bench`: peerdns beside other servers, measured in the same run. What it takes: options.ts; what comes out: report.ts. */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildPeerdns, withoutCompiledCode } from './build.ts'
import { measureLatency, type LatencyResult } from './cases/latency.ts'
import { measureStart, type StartRow } from './cases/start.ts'
import { measureThroughput, type RunningServer, type ThroughputResult } from './cases/throughput.ts'
import type { Child } from './children.ts'
import { parseOptions, throughputCases, usage, type BenchOptions } from './options.ts'
import { allowedCores, hasRaisedPriority } from './process-usage.ts'
import { markdownReport, type BenchReport } from './report.ts'
import { corednsForwarding, corednsForZone, corednsForZoneFile } from './rivals/coredns.ts'
import { findCoredns, findDnsperf, findProgram, findUnbound, type Program } from './rivals/find.ts'
import { peerdnsForManifests, peerdnsForwarding, peerdnsForZone, type PeerdnsProgram } from './rivals/peerdns.ts'
import { dgramEcho, dns2ForZone } from './rivals/plain.ts'
import type { ForwardRole, Place, ServerPlan } from './rivals/server-plan.ts'
import { unboundForwarding, unboundForZone } from './rivals/unbound.ts'
import { whyNoClusters } from '../test/e2e/support/part.ts'
import { Workspace, type Cores } from './workspace.ts'
import {
  clusterWorkloads,
  freshQuestions,
  freshServices,
  ownServices,
  peeredServices,
  peeredSuffixes,
  peeredWorkload,
  type Workload
} from './workloads.ts'

const root = join(fileURLToPath(import.meta.url), '..', '..')
const manifestFiles = ['cluster-a.yaml', 'cluster-b.yaml'].map((name) => join(root, 'test', 'data', name))
const starts = 7
/** The TTL of Services (the default of cluster.ttl), and one that outlasts every run for what is to stay cached. */
const zoneTtlSeconds = 5
const peeredTtlSeconds = 3_600

type Rivals = Readonly<{ peerdns: PeerdnsProgram; coredns: Program | null; unbound: Program | null }>

const say = (line: string): void => console.error(`bench: ${line}`)

async function main(options: BenchOptions): Promise<void> {
  const notes: string[] = []
  const note = (line: string): void => {
    notes.push(line)
    say(line)
  }
  const dnsperf = findDnsperf()
  const coredns = findCoredns(join(root, '.cache', 'bench', 'bin'), say)
  const unbound = findUnbound()
  if (dnsperf === null) note('dnsperf is not here (Debian package dnsperf): throughput is left out.')
  if (coredns === null) note('CoreDNS is not here, nor Go to build it: left out.')
  if (unbound === null) note('Unbound is not here (Debian package unbound): left out.')
  if (hasRaisedPriority()) note('Servers and client ran with raised scheduling priority.')
  if (options.batching === 'off') note('peerdns read and sent one datagram at a time (`batching: off`).')
  // Read now: somebody may commit while this runs.
  const versions = versionsOf({ CoreDNS: coredns, Unbound: unbound, dnsperf })
  const workspace = new Workspace(chooseCores(note), say, options.patienceSeconds * 1000)
  const rivals: Rivals = {
    peerdns: { ...(await buildPeerdns(root, workspace.folder)), batching: options.batching },
    coredns,
    unbound
  }

  let throughput: ThroughputResult[] = []
  let latency: LatencyResult[] = []
  let start: StartRow[] = []
  const isWanted = ({ id }: Workload): boolean => options.cases.has(id)
  if (dnsperf !== null && throughputCases.some((id) => options.cases.has(id))) {
    throughput = [
      ...(await clusterZone(workspace, rivals, clusterWorkloads.filter(isWanted), options)),
      ...(await peeredNames(workspace, rivals, [peeredWorkload].filter(isWanted), options))
    ]
  }
  if (options.cases.has('latency')) latency = await uncachedLatency(workspace, rivals, options)
  if (options.cases.has('start')) {
    const planners = {
      peerdns: (place: Place, file: string) => peerdnsForManifests(rivals.peerdns, place, file),
      peerdnsAtFirst: (place: Place, file: string) => ({
        ...withoutCompiledCode(peerdnsForManifests(rivals.peerdns, place, file)),
        title: 'peerdns, first start'
      }),
      coredns: coredns === null ? null : (place: Place, zone: string) => corednsForZoneFile(coredns.path, place, zone),
      echo: (place: Place) => dgramEcho(process.execPath, place)
    }
    start = await measureStart(workspace, manifestFiles, planners, options.isQuick ? 2 : starts)
  }

  const { seconds, rounds } = options
  const date = new Date().toISOString().slice(0, 10)
  if (options.cases.has('staleness')) measureStaleness(options, note)
  write({ date, machine: machineText(), versions, seconds, rounds, notes, throughput, latency, start }, options)
}

/** Servers on the second allowed core, the client on the first, where most interrupts are handled. */
function chooseCores(note: (line: string) => void): Cores {
  const [client, server] = allowedCores()
  if (client === undefined || server === undefined || findProgram('taskset') === null) {
    note('Fewer than two cores or no taskset: client and servers are not bound to cores of their own.')
    return { client: null, server: null }
  }
  return { client, server }
}

/** Starts servers; one that does not get to its first right answer is named and left out. */
async function startFleet(
  workspace: Workspace,
  plans: readonly ServerPlan[],
  first: Workload
): Promise<RunningServer[]> {
  const fleet: RunningServer[] = []
  for (const plan of plans) {
    const expected = plan.id === 'echo' ? { rcode: 0, answers: 0 } : first.expected
    try {
      const child = await workspace.start(plan, { question: first.questions[0]!, expected })
      fleet.push({ plan, child })
    } catch (error) {
      workspace.say(`left out: ${(error as Error).message}`)
    }
  }
  return fleet
}

async function stopAll(children: readonly Child[]): Promise<void> {
  for (const child of children) await child.stop()
}

async function clusterZone(
  workspace: Workspace,
  { peerdns, coredns, unbound }: Rivals,
  workloads: readonly Workload[],
  options: BenchOptions
): Promise<ThroughputResult[]> {
  if (workloads.length === 0) return []
  const role = { services: ownServices, ttlSeconds: zoneTtlSeconds }
  const plans = [peerdnsForZone(peerdns, await workspace.place(), role)]
  if (coredns !== null) plans.push(corednsForZone(coredns.path, await workspace.place(), role))
  if (unbound !== null) plans.push(unboundForZone(unbound.path, await workspace.place(), role))
  plans.push(dns2ForZone(process.execPath, await workspace.place(), role))
  plans.push(dgramEcho(process.execPath, await workspace.place()))
  const fleet = await startFleet(workspace, plans, clusterWorkloads[0]!)
  try {
    return await measureThroughput(workspace, fleet, workloads, options)
  } finally {
    await stopAll(fleet.map(({ child }) => child))
  }
}

/** Cluster A, whose names are peered; it sits on the client's core, where it has nothing to do once caches are filled. */
async function startClusterA(workspace: Workspace, peerdns: PeerdnsProgram): Promise<RunningServer> {
  const role = { services: [...peeredServices, ...freshServices], ttlSeconds: peeredTtlSeconds }
  const plan = peerdnsForZone(peerdns, await workspace.place(), role)
  const { questions, expected } = peeredWorkload
  const child = await workspace.start(plan, { question: questions[0]!, expected }, workspace.cores.client)
  return { plan, child }
}

async function forwardersTo(workspace: Workspace, rivals: Rivals, peerPort: number): Promise<ServerPlan[]> {
  const role: ForwardRole = { suffixes: peeredSuffixes, peerPort }
  const plans = [peerdnsForwarding(rivals.peerdns, await workspace.place(), role)]
  if (rivals.coredns !== null) plans.push(corednsForwarding(rivals.coredns.path, await workspace.place(), role))
  if (rivals.unbound !== null) plans.push(unboundForwarding(rivals.unbound.path, await workspace.place(), role))
  return plans
}

async function peeredNames(
  workspace: Workspace,
  rivals: Rivals,
  workloads: readonly Workload[],
  options: BenchOptions
): Promise<ThroughputResult[]> {
  if (workloads.length === 0) return []
  const clusterA = await startClusterA(workspace, rivals.peerdns)
  const plans = await forwardersTo(workspace, rivals, clusterA.plan.port)
  const fleet = await startFleet(workspace, plans, peeredWorkload)
  try {
    return await measureThroughput(workspace, fleet, workloads, options)
  } finally {
    await stopAll([...fleet, clusterA].map(({ child }) => child))
  }
}

async function uncachedLatency(workspace: Workspace, rivals: Rivals, options: BenchOptions): Promise<LatencyResult[]> {
  const clusterA = await startClusterA(workspace, rivals.peerdns)
  try {
    const questions = options.isQuick ? 50 : freshQuestions.length
    const forwarders = async (peerPort: number) => forwardersTo(workspace, rivals, peerPort)
    return await measureLatency(workspace, clusterA.plan.port, forwarders, questions)
  } finally {
    await clusterA.child.stop()
  }
}

/** A benchmark of its own, with its own files: staleness.ts. */
function measureStaleness({ isQuick, resultsFolder }: BenchOptions, note: (line: string) => void): void {
  const why = whyNoClusters()
  if (why !== null) {
    note(`Staleness is left out: ${why}.`)
    return
  }
  const files = resultsFolder === null ? ['--no-files'] : ['--out', resolve(root, resultsFolder)]
  const args = [join(root, 'bench', 'staleness.ts'), ...(isQuick ? ['--trials', '5'] : []), ...files]
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
  if (status !== 0) note('Staleness could not be measured.')
}

function versionsOf(programs: Readonly<Record<string, Program | null>>): Record<string, string> {
  const commit = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' })
  const versions: Record<string, string> = { Node: process.versions.node }
  if (commit.status === 0) versions['peerdns'] = `at ${commit.stdout.trim()}`
  for (const [name, program] of Object.entries(programs)) if (program !== null) versions[name] = program.version
  return versions
}

const machineText = (): string => {
  const count = allowedCores().length
  return count === 2 ? 'two shared cores' : `${count} cores`
}

function write(report: BenchReport, { resultsFolder }: BenchOptions): void {
  const markdown = markdownReport(report)
  console.log(markdown)
  if (resultsFolder === null) return
  const folder = resolve(root, resultsFolder)
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, 'latest.md'), markdown)
  writeFileSync(join(folder, 'latest.json'), `${JSON.stringify(report, null, 1)}\n`)
  say(`written to ${folder}`)
}

const options = parseOptions(process.argv.slice(2))
if (typeof options === 'string') {
  console.error(`${options}\n\n${usage}`)
  process.exit(2)
}
await main(options)
process.exit(0)
