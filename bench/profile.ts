/**
 * Where peerdns spends its time under load: the real server from its sources, with --cpu-prof, under dnsperf.
 *
 *     node bench/profile.ts [WORKLOAD, default cluster-a] [--seconds 5] [--top 30] [--rate 30000]
 *
 * Without --rate as much is asked as is answered. Shares are of the time in which the process was not idle.
 */
import { readFileSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { costsByPart, costsOf, type CpuProfile } from './cpu-profile.ts'
import { queryFileOf } from './dataset.ts'
import { runDnsperf } from './dnsperf.ts'
import { allowedCores } from './process-usage.ts'
import { markdownTable } from './tables.ts'
import { peerdnsForwarding, peerdnsForZone } from './rivals/peerdns.ts'
import { clusterWorkloads, ownServices, peeredSuffixes, peeredWorkloads, servicesOfPeer } from './workloads.ts'
import { Workspace } from './workspace.ts'

const root = join(fileURLToPath(import.meta.url), '..', '..')
const outstanding = 100
const samplingMicroseconds = 200

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    seconds: { type: 'string', default: '5' },
    top: { type: 'string', default: '30' },
    rate: { type: 'string' }
  }
})
const workloads = [...clusterWorkloads, ...peeredWorkloads]
const workload = workloads.find(({ id }) => id === (positionals[0] ?? 'cluster-a'))
if (workload === undefined) {
  console.error(`no workload \`${positionals[0]}\`: ${workloads.map(({ id }) => id).join(', ')}`)
  process.exit(2)
}

const [client = null, server = null] = allowedCores()
const workspace = new Workspace({ client, server }, (line) => console.error(line))
const main = join(root, 'src', 'cli', 'main.ts')
const first = { question: workload.questions[0]!, expected: workload.expected }
const place = await workspace.place()
const profiling = ['--cpu-prof', '--cpu-prof-dir', place.folder, '--cpu-prof-interval', String(samplingMicroseconds)]
const profiled = { node: process.execPath, nodeOptions: profiling, main }

const isPeered = peeredWorkloads.includes(workload)
const clusterA = isPeered ? await startClusterA() : null
const plan =
  clusterA === null
    ? peerdnsForZone(profiled, place, { services: ownServices, ttlSeconds: 5 })
    : peerdnsForwarding(profiled, place, { suffixes: peeredSuffixes, peerPort: clusterA.port })
const child = await workspace.start(plan, first)
const queryFile = join(workspace.folder, 'queries')
writeFileSync(queryFile, queryFileOf(workload.questions))
// The profile's clock is the one that hrtime reads.
const microsecondsNow = (): number => Number(process.hrtime.bigint() / 1000n)
const from = microsecondsNow()
const run = await runDnsperf({
  port: plan.port,
  queryFile,
  seconds: Number(values.seconds),
  queriesPerSecond: values.rate === undefined ? null : Number(values.rate),
  outstanding,
  core: client,
  folder: workspace.folder
})
const to = microsecondsNow()
await child.stop()
await clusterA?.stop()

const file = readdirSync(place.folder).find((name) => name.endsWith('.cpuprofile'))
if (file === undefined) throw new Error('the server left no profile')
const costs = costsOf(JSON.parse(readFileSync(join(place.folder, file), 'utf8')) as CpuProfile, root, { from, to })
console.log(`${workload.title}: ${Math.round(run.completed / run.seconds)} answers a second, profiler included\n`)
const share = (value: number): string => `${(value * 100).toFixed(1)} %`
const rows = costs
  .slice(0, Number(values.top))
  .map(({ name, where, selfShare, totalShare }) => [
    name.slice(0, 40),
    where.slice(-60),
    share(selfShare),
    share(totalShare)
  ])
console.log(markdownTable(['function', 'where', 'self', 'with what it calls'], rows))
const parts = costsByPart(costs).map(({ part, share: cost }) => [part.slice(-60), share(cost)])
console.log(`\n${markdownTable(['part', 'self'], parts.slice(0, 15))}`)
process.exit(0)

async function startClusterA() {
  const place = await workspace.place()
  const plan = peerdnsForZone({ node: process.execPath, nodeOptions: [], main }, place, {
    services: servicesOfPeer,
    ttlSeconds: 3_600
  })
  const { stop } = await workspace.start(plan, first, client)
  return { port: plan.port, stop }
}
