/**
 * `npm run bench`: peerdns beside other servers, measured in the same run. What it takes: options.ts; how results of
 * several runs become one: joined.ts; what comes out: results.ts.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { buildPeerdns, withoutCompiledCode } from './build.ts'
import { measureLatency, type LatencyResult } from './cases/latency.ts'
import { measureStart, type StartRow } from './cases/start.ts'
import { measuredCommit } from './commit.ts'
import { forwardersTo, measureFleets, startClusterA } from './fleets.ts'
import { emptyReport, format, joined, textOf, type BenchReport, type Measured } from './joined.ts'
import { otherCommands, parseOptions, usage, type BenchOptions } from './options.ts'
import { allowedCores, hasRaisedPriority } from './process-usage.ts'
import { markdownReport } from './report.ts'
import { draw, readReport } from './results.ts'
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
  type Program,
  type Rivals
} from './rivals/find.ts'
import { peerdnsForManifests } from './rivals/peerdns.ts'
import { buildCEcho, dgramEcho } from './rivals/plain.ts'
import type { Place } from './rivals/server-plan.ts'
import { Workspace, type Cores } from './workspace.ts'
import { freshQuestions } from './workloads.ts'

const root = join(import.meta.dirname, '..')
const manifestFiles = ['cluster-a.yaml', 'cluster-b.yaml'].map((name) => join(root, 'test', 'data', name))
const starts = 7
const packaged = [
  ['unbound', 'Unbound', 'unbound'],
  ['knot', 'Knot DNS', 'knot'],
  ['dnsdist', 'dnsdist', 'dnsdist'],
  ['dnsmasq', 'dnsmasq', 'dnsmasq-base']
] as const

const say = (line: string): void => console.error(`bench: ${line}`)

async function measured(options: BenchOptions): Promise<BenchReport> {
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
  if (others.coredns === null) say('CoreDNS is not here, nor Go to build it: left out.')
  for (const [id, title, debianPackage] of packaged) {
    if (others[id] === null) say(`${title} is not here (Debian package ${debianPackage}): left out.`)
  }
  const compiler = findCompiler()
  const floor = compiler === null ? null : buildCEcho(compiler, workspace.folder)
  if (floor === null) note('No C compiler is here: the floor in C is left out.')
  if (hasRaisedPriority()) note('Servers and client ran with raised scheduling priority.')
  if (options.batching === 'off') note('peerdns read and sent one datagram at a time (`batching: off`).')
  const { coredns, unbound, knot, dnsdist, dnsmasq } = others
  if (options.threads !== 1) note(`peerdns had \`threads: ${options.threads}\`, all on the one core.`)
  // Read now: somebody may commit while this runs.
  const [run, commit, machine] = [new Date().toISOString(), measuredCommit(root), machineText()]
  const versions = versionsOf({ CoreDNS: coredns, Unbound: unbound, Knot: knot, dnsdist, dnsmasq, dnsperf })
  const { batching, threads, seconds, rounds } = options
  const peerdns = { ...(await buildPeerdns(root, workspace.folder)), batching, threads }
  const rivals: Rivals = { ...others, peerdns, cEcho: floor }

  const throughput = dnsperf === null ? [] : await measureFleets(workspace, rivals, options)
  const latency = options.cases.has('latency') ? await uncachedLatency(workspace, rivals, options) : null
  const start = options.cases.has('start') ? await startTimes(workspace, rivals, options) : null
  const date = new Date().toISOString().slice(0, 10)
  const { notes } = workspace
  const about: Measured = { date, run, commit, machine, versions, seconds, rounds, notes }
  return {
    format,
    throughput: throughput.map((result) => ({ ...result, measured: about })),
    latency: latency === null ? null : { measured: about, results: latency },
    start: start === null ? null : { measured: about, rows: start }
  }
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

async function startTimes(workspace: Workspace, rivals: Rivals, options: BenchOptions): Promise<StartRow[]> {
  const { peerdns, coredns } = rivals
  const planners = {
    peerdns: (place: Place, file: string) => peerdnsForManifests(peerdns, place, file),
    peerdnsAtFirst: (place: Place, file: string) => ({
      ...withoutCompiledCode(peerdnsForManifests(peerdns, place, file)),
      title: 'peerdns, first start'
    }),
    coredns: coredns === null ? null : (place: Place, zone: string) => corednsForZoneFile(coredns.path, place, zone),
    echo: (place: Place) => dgramEcho(process.execPath, place)
  }
  return measureStart(workspace, manifestFiles, planners, options.isQuick ? 2 : starts)
}

/** Benchmarks of their own, with files of their own. */
function runOthers({ cases, isQuick, resultsFolder }: BenchOptions): void {
  const files = resultsFolder === null ? ['--no-files'] : ['--out', resolve(root, resultsFolder)]
  for (const command of otherCommands) {
    if (!cases.has(command)) continue
    const args = [join(root, 'bench', `${command}.ts`), ...(isQuick ? quickArguments[command] : []), ...files]
    const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' })
    if (status !== 0) say(`${command} ended with ${status}`)
  }
}

const quickArguments = { overload: ['--seconds', '8'], restart: ['--restarts', '5'], staleness: ['--trials', '5'] }

function versionsOf(programs: Readonly<Record<string, Program | null>>): Record<string, string> {
  const versions: Record<string, string> = { Node: process.versions.node }
  for (const [name, program] of Object.entries(programs)) if (program !== null) versions[name] = program.version
  return versions
}

const machineText = (): string => {
  const count = allowedCores().length
  return count === 2 ? 'Two shared cores' : `${count} core${count === 1 ? '' : 's'}`
}

async function main(options: BenchOptions): Promise<void> {
  const folder = options.resultsFolder === null ? null : resolve(root, options.resultsFolder)
  const file = folder === null ? null : join(folder, 'latest.json')
  if (options.isDrawnOnly) {
    if (folder !== null && file !== null)
      draw(readReport(file), folder, options.hasReadme ? join(root, 'README.md') : null)
    return
  }
  const hasOwnCases = [...options.cases].some((id) => !(otherCommands as readonly string[]).includes(id))
  const report = hasOwnCases ? await measured(options) : emptyReport
  if (hasOwnCases) console.log(markdownReport(report, { overload: null, restart: null }))
  if (folder !== null && file !== null) {
    mkdirSync(folder, { recursive: true })
    // Written first: what comes now takes long, and may fail.
    writeFileSync(file, textOf(joined(readReport(file), report)))
  }
  runOthers(options)
  if (folder === null || file === null) return
  draw(readReport(file), folder, options.hasReadme ? join(root, 'README.md') : null)
  say(`written to ${folder}`)
}

const options = parseOptions(process.argv.slice(2))
if (typeof options === 'string') {
  console.error(`${options}\n\n${usage}`)
  process.exit(2)
}
await main(options)
process.exit(0)
