/**
 * `npm run bench`: peerdns beside other servers, measured in the same run. What it takes: options.ts; what comes out:
 * report.ts.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { buildPeerdns, withoutCompiledCode } from './build.ts'
import { measureLatency, type LatencyResult } from './cases/latency.ts'
import { measureUnderChanges, type ChangesResult } from './cases/changes.ts'
import { measureStart, type StartRow } from './cases/start.ts'
import type { ThroughputResult } from './cases/throughput.ts'
import { forwardersTo, measureFleets, startClusterA, type Rivals } from './fleets.ts'
import { parseOptions, usage, type BenchOptions } from './options.ts'
import { allowedCores, hasRaisedPriority } from './process-usage.ts'
import { plotOf } from './plot.ts'
import { markdownReport, type BenchReport } from './report.ts'
import { corednsForZoneFile } from './rivals/coredns.ts'
import {
  findCompiler,
  findCoredns,
  findDnsdist,
  findDnsmasq,
  findDnsperf,
  findKnot,
  findProgram,
  findUnbound,
  type Program
} from './rivals/find.ts'
import { peerdnsForManifests } from './rivals/peerdns.ts'
import { buildCEcho, dgramEcho } from './rivals/plain.ts'
import type { Place } from './rivals/server-plan.ts'
import { whyNoClusters } from '../test/e2e/support/part.ts'
import { Workspace, type Cores } from './workspace.ts'
import { freshQuestions } from './workloads.ts'

const root = join(fileURLToPath(import.meta.url), '..', '..')
const manifestFiles = ['cluster-a.yaml', 'cluster-b.yaml'].map((name) => join(root, 'test', 'data', name))
const starts = 7
const packaged = [
  ['unbound', 'Unbound', 'unbound'],
  ['knot', 'Knot DNS', 'knot'],
  ['dnsdist', 'dnsdist', 'dnsdist'],
  ['dnsmasq', 'dnsmasq', 'dnsmasq-base']
] as const

const say = (line: string): void => console.error(`bench: ${line}`)

async function main(options: BenchOptions): Promise<void> {
  const cores = chooseCores()
  const workspace = new Workspace(cores, say, options.patienceSeconds * 1000)
  const note = (line: string): void => workspace.note(line)
  const dnsperf = findDnsperf()
  const others = {
    coredns: findCoredns(join(root, '.cache', 'bench', 'bin'), say),
    unbound: findUnbound(),
    knot: findKnot(),
    dnsdist: findDnsdist(),
    dnsmasq: findDnsmasq()
  }
  if (cores.server === null) note('Fewer than two cores or no taskset: client and servers have no cores of their own.')
  if (dnsperf === null) note('dnsperf is not here (Debian package dnsperf): throughput is left out.')
  if (others.coredns === null) note('CoreDNS is not here, nor Go to build it: left out.')
  for (const [id, title, debianPackage] of packaged) {
    if (others[id] === null) note(`${title} is not here (Debian package ${debianPackage}): left out.`)
  }
  const compiler = findCompiler()
  const floor = compiler === null ? null : buildCEcho(compiler, workspace.folder)
  if (floor === null) note('No C compiler is here: the floor in C is left out.')
  if (hasRaisedPriority()) note('Servers and client ran with raised scheduling priority.')
  if (options.batching === 'off') note('peerdns read and sent one datagram at a time (`batching: off`).')
  const { coredns, unbound, knot, dnsdist, dnsmasq } = others
  if (options.threads > 1) note(`peerdns had \`threads: ${options.threads}\`, all on the one core.`)
  // Read now: somebody may commit while this runs.
  const versions = versionsOf({
    CoreDNS: coredns,
    Unbound: unbound,
    Knot: knot,
    dnsdist,
    dnsmasq,
    dnsperf
  })
  const peerdns = {
    ...(await buildPeerdns(root, workspace.folder)),
    batching: options.batching,
    threads: options.threads
  }
  const rivals: Rivals = { ...others, peerdns, cEcho: floor }

  let throughput: ThroughputResult[] = []
  let latency: LatencyResult[] = []
  let start: StartRow[] = []
  let changes: ChangesResult | null = null
  if (dnsperf !== null) {
    throughput = await measureFleets(workspace, rivals, options)
    if (options.cases.has('changes')) changes = await measureUnderChanges(workspace, peerdns, options)
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
  const { notes } = workspace
  write(
    { date, machine: machineText(), versions, seconds, rounds, notes, throughput, changes, latency, start },
    options
  )
}

/** Servers on the second allowed core, the client on the first, where most interrupts are handled. */
function chooseCores(): Cores {
  const [client, server] = allowedCores()
  if (client === undefined || server === undefined || findProgram('taskset') === null) {
    return { client: null, server: null }
  }
  return { client, server }
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
  if (report.throughput.length > 0) writeFileSync(join(folder, 'latest.svg'), plotOf(report.throughput))
  say(`written to ${folder}`)
}

const options = parseOptions(process.argv.slice(2))
if (typeof options === 'string') {
  console.error(`${options}\n\n${usage}`)
  process.exit(2)
}
await main(options)
process.exit(0)
