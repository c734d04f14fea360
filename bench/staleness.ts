/**
 * How long a dead endpoint of one cluster is still given out in another: `node bench/staleness.ts`. What it takes:
 * staleness/options.ts; what comes out: staleness/report.ts.
 */
import { spawnSync } from 'node:child_process'
import { loadavg } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { startCluster, type Cluster } from '../test/e2e/support/cluster.ts'
import { KubeApi } from '../test/e2e/support/kube-api.ts'
import { whyNoClusters } from '../test/e2e/support/part.ts'
import { Background } from './staleness/background.ts'
import { letDie } from './staleness/deaths.ts'
import { figuresOf, javaFigures, setUpFigures, type PartFigures } from './staleness/figures.ts'
import { ObserverProcess } from './staleness/observer-process.ts'
import { allParts, parseOptions, usage, type PartName, type StalenessOptions } from './staleness/options.ts'
import { ownFigures } from './staleness/own-figures.ts'
import { lowerPriority, raisePriority } from './staleness/priority.ts'
import { readResults, writeResults, type Results } from './staleness/results.ts'
import { Fleet } from './staleness/servers.ts'
import { cachedSetUps, linkSetUps, sweepSetUps, toldSetUps } from './staleness/set-ups.ts'
import { namespace, nodesFor, openShop, questionName, type ShopOptions } from './staleness/shop.ts'
import { SliceWatch } from './staleness/slice-watch.ts'
import { countersOf, sweepFigures } from './staleness/sweep.ts'

/** Caches fill, and code is compiled, before the first endpoint dies. */
const warmUpMs = 4_000
/** A client that keeps answers for 30 s is waited for this long after everybody else is done. */
const javaTailMs = 32_000

const say = (line: string): void => console.error(`staleness: ${line}`)

type Clusters = Readonly<{ a: Cluster; b: Cluster }>

/**
 * The share of the endpoints that die in each part, and the time between two deaths on average: where answers stay
 * stale for long, many names are asked for at once, and two cores have to keep up.
 */
const paceOf: Readonly<Record<PartName, Readonly<{ share: number; gapMs: number }>>> = {
  told: { share: 1, gapMs: 500 },
  cached: { share: 1, gapMs: 1_000 },
  link: { share: 1, gapMs: 500 },
  sweep: { share: 0.25, gapMs: 1_500 }
}

const setUpsOf = { told: toldSetUps, cached: cachedSetUps, link: linkSetUps, sweep: sweepSetUps } as const

async function main(options: StalenessOptions): Promise<void> {
  const why = whyNoClusters()
  if (why !== null) throw new Error(why)
  const shop: ShopOptions = {
    services: options.trials,
    podsOfService: 1 + options.parts.size,
    busyServices: options.background === 0 ? 0 : 40,
    podsOfBusyService: 10
  }
  const startedAtMs = performance.now()
  const [a, b] = await Promise.all([
    startCluster({ name: 'cluster-a', nodes: nodesFor(shop) }),
    startCluster({ name: 'cluster-b', nodes: 1, serviceCidr: '10.97.0.0/16', podCidr: '10.245.0.0/16' })
  ])
  try {
    const addresses = await openShop(a, shop)
    say(`${addresses.size} pods are ready after ${((performance.now() - startedAtMs) / 1000).toFixed(0)} s`)
    const results: Results = options.resultsFolder === null ? {} : readResults(options.resultsFolder)
    const parts = allParts.filter((name) => options.parts.has(name))
    for (const [pod, name] of parts.entries()) {
      try {
        results[name] = await measure(name, { a, b }, { options, shop, addresses, pod })
      } catch (error) {
        // A slow way needs root and koffi; what else can be measured is worth having.
        say(`${name} is left out: ${(error as Error).message}`)
        process.exitCode = 1
      }
    }
    writeResults(results, options.resultsFolder)
  } finally {
    await Promise.all([a.stop(), b.stop()])
  }
}

type Ground = Readonly<{
  options: StalenessOptions
  shop: ShopOptions
  addresses: ReadonlyMap<string, string>
  pod: number
}>

async function measure(name: PartName, clusters: Clusters, ground: Ground): Promise<PartFigures> {
  const { options, shop, addresses, pod } = ground
  // Servers of one part would only take time from those of the next.
  const fleet = new Fleet(clusters)
  const setUps = await setUpsOf[name](fleet).catch(async (error: unknown) => {
    await fleet.stop()
    throw error
  })
  const { share, gapMs } = paceOf[name]
  const services = shuffled(shop.services).slice(0, Math.ceil(shop.services * share))
  const observer = await ObserverProcess.start(
    setUps.map(({ server }) => server),
    services.map(questionName)
  )
  const [api, busyApi] = [client(clusters.a), client(clusters.a)]
  const slices = await SliceWatch.start(clusters.a, namespace)
  const background = new Background(busyApi, shop, options.background)
  try {
    raisePriority()
    await sleep(warmUpMs)
    const before = await countersOf(setUps)
    say(`${name}: ${services.length} endpoints die in ${((services.length * gapMs) / 1000).toFixed(0)} s`)
    const trials = await letDie({ api, observer, slices, addresses, services, pod, gapMs })
    const load = loadavg()[0]!
    const sweep = sweepFigures(setUps, before, await countersOf(setUps))
    if (setUps.some(({ server }) => server.hasJavaClient === true)) {
      say(`${name}: all have died; clients that keep answers are waited for`)
      await sleep(javaTailMs)
    }
    const { lag, latency } = await observer.stop()
    const sliceMs = trials.map((trial) => trial.sliceMs).filter((ms) => ms !== null)
    return {
      date: new Date().toISOString().slice(0, 10),
      commit: spawnSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).stdout.trim(),
      trials: trials.length,
      background: { perMinute: background.perMinute, failures: background.failures },
      api: figuresOf(trials.map(({ apiMs }) => apiMs)),
      slice: figuresOf(sliceMs),
      setUps: setUps.map((setUp) => setUpFigures(setUp, trials, latency[setUp.id]!)),
      java: setUps
        .filter(({ server }) => server.hasJavaClient === true)
        .map(({ id, title }) => javaFigures(id, title, observer.java)),
      sweep: name === 'sweep' ? sweep : [],
      own: await ownFigures(setUps, trials),
      lag,
      load
    }
  } finally {
    lowerPriority()
    observer.kill()
    await background.stop()
    slices.stop()
    api.close()
    busyApi.close()
    await fleet.stop()
  }
}

const client = ({ baseUrl, ca, adminCertificate: certificate }: Cluster): KubeApi =>
  new KubeApi({ baseUrl, caFile: ca.caFile, certificate })

/** The numbers below `count` in a random order. */
function shuffled(count: number): number[] {
  const numbers = Array.from({ length: count }, (_, number) => number)
  for (let at = count - 1; at > 0; at--) {
    const other = Math.floor(Math.random() * (at + 1))
    ;[numbers[at], numbers[other]] = [numbers[other]!, numbers[at]!]
  }
  return numbers
}

const options = parseOptions(process.argv.slice(2))
if (typeof options === 'string') {
  console.error(`${options}\n\n${usage}`)
  process.exit(2)
}
await main(options)
process.exit()
