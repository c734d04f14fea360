/**
 * peerdns and CoreDNS on one real API server with many Services: `node bench/scale.ts`. What is measured:
 * scale/report.ts.
 */
import { spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { loadavg } from 'node:os'
import { join, relative } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { KubeApi } from '../test/e2e/support/kube-api.ts'
import { startCluster, type Cluster } from '../test/e2e/support/cluster.ts'
import type { KubeObject } from '../test/e2e/support/kinds.ts'
import { whyNoClusters } from '../test/e2e/support/part.ts'
import { buildPeerdns } from './build.ts'
import { cpuSecondsBetween, parseStatusOctets, readCpu, readRssOctets } from './process-usage.ts'
import type { PeerdnsProgram } from './rivals/peerdns.ts'
import { Endpoints, measureChanges } from './scale/changes.ts'
import { firstAddresses, namespaceObject, namespaces, serviceObject, sliceObject } from './scale/objects.ts'
import { measureReplay } from './scale/replay.ts'
import { markdownOf, type ScaleReport, type ServerFigures, type SizeFigures } from './scale/report.ts'
import { corednsOn, peerdnsInPod, type ServerUnderTest } from './scale/servers.ts'
import { spreadOf } from './statistics.ts'

const usage = `usage: node bench/scale.ts [--sizes 1000,10000,30000] [--endpoints 10] [--starts 3] [--seconds 60] [--only peerdns|coredns|replay]
                           [--rate 200] [--node-option OPTION] [--also TITLE=MAIN.js[,OPTION...]] [--out FOLDER]

  --node-option  in the place of those that the image starts the server with, which are the default
  --also  one more peerdns, compiled elsewhere or with other options of node, measured beside the others`
const root = join(import.meta.dirname, '..')
const connections = 16
/** The rates that the replay runs at. */
const replayedChangesPerSecond = 500
const queriesPerSecond = 10_000
const replaySeconds = 10
/** What a server still does after it is ready. */
const settleMs = 3_000
const nothingUsed = { tickSeconds: 0, threadNanoseconds: new Map<string, number>() }

type Options = Readonly<{
  sizes: readonly number[]
  endpoints: number
  starts: number
  seconds: number
  rate: number
  only: string | null
  nodeOptions: readonly string[]
  also: readonly Readonly<{ title: string; main: string; nodeOptions: readonly string[] }>[]
  out: string
}>

const say = (line: string): void => console.error(`scale: ${line}`)
const load = (): number => loadavg()[0]!

async function main(options: Options): Promise<void> {
  const why = whyNoClusters()
  if (why !== null) throw new Error(why)
  // 10.128.0.0/12 has room for the ClusterIPs; what needs no controller gets none.
  const cluster = await startCluster({ name: 'scale', serviceCidr: '10.128.0.0/12', isBare: true, nodes: 0 })
  try {
    const program = { ...(await build(cluster.folder)), nodeOptions: options.nodeOptions }
    const needsCluster = options.only !== 'replay'
    const sizes = needsCluster ? await measureSizes(cluster, program, options) : []
    const replay = options.only === null || options.only === 'replay' ? await replayed(cluster, program, options) : null
    const { stdout: commit } = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' })
    write(
      {
        date: new Date().toISOString().slice(0, 10),
        commit: commit.trim(),
        nodeOptions: options.nodeOptions,
        sizes,
        replay
      },
      options.out
    )
  } finally {
    await cluster.stop()
  }
}

/** In a folder that no other benchmark builds into meanwhile. */
async function build(logFolder: string): Promise<PeerdnsProgram> {
  const built = await buildPeerdns(root, logFolder)
  const [shared, own] = ['peerdns', 'scale'].map((name) => join(root, '.cache', 'bench', name)) as [string, string]
  rmSync(own, { recursive: true, force: true })
  cpSync(shared, own, { recursive: true })
  return { ...built, main: join(own, relative(shared, built.main)) }
}

async function measureSizes(cluster: Cluster, program: PeerdnsProgram, options: Options): Promise<SizeFigures[]> {
  const api = client(cluster)
  const endpoints = new Endpoints(options.endpoints)
  await createAll(
    api,
    Array.from({ length: namespaces }, (_, number) => namespaceObject(number))
  )
  let made = 0
  const first = () => ({ service: made - 2, address: endpoints.addresses(made - 2)[0]! })
  const servers: ServerUnderTest[] = []
  const figures: SizeFigures[] = []
  for (const services of options.sizes) {
    await grow(api, made, services, options.endpoints)
    made = services
    if (servers.length === 0) {
      if (options.only !== 'coredns') servers.push(await peerdnsInPod(cluster, 'peerdns', program, first))
      for (const { title, main, nodeOptions } of options.also) {
        const other = main === '' ? program.main : main
        servers.push(await peerdnsInPod(cluster, title, { ...program, main: other, nodeOptions }, first))
      }
      if (options.only !== 'peerdns') servers.push(await corednsOn(cluster, first))
    }
    figures.push({
      services,
      endpoints: services * options.endpoints,
      servers: await measureServers(servers, cluster, endpoints, services, options)
    })
  }
  api.close()
  return figures
}

const client = ({ baseUrl, ca, adminCertificate: certificate }: Cluster): KubeApi =>
  new KubeApi({ baseUrl, caFile: ca.caFile, certificate, connections })

async function createAll(api: KubeApi, objects: readonly KubeObject[]): Promise<void> {
  const rest = objects.values()
  const createRest = async (): Promise<void> => {
    for (const object of rest) await api.create(object)
  }
  await Promise.all(Array.from({ length: connections }, createRest))
}

async function grow(api: KubeApi, from: number, to: number, endpoints: number): Promise<void> {
  const startedAtMs = performance.now()
  const numbers = Array.from({ length: to - from }, (_, at) => from + at)
  await createAll(
    api,
    numbers.flatMap((number) => [serviceObject(number), sliceObject(number, firstAddresses(number, endpoints))])
  )
  say(`${to} Services, ${to * endpoints} endpoints, made in ${((performance.now() - startedAtMs) / 1000).toFixed(0)} s`)
}

type Start = { readyMs: number; cpuMs: number; rssOctets: number }

async function measureServers(
  servers: readonly ServerUnderTest[],
  cluster: Cluster,
  endpoints: Endpoints,
  services: number,
  { starts, seconds, rate }: Options
): Promise<ServerFigures[]> {
  const startsOf = new Map<ServerUnderTest, Start[]>(servers.map((server) => [server, []]))
  for (let round = 1; round < starts; round++) {
    for (const server of servers) {
      startsOf.get(server)!.push(await startOnce(server))
      await server.part.kill('SIGTERM')
    }
  }
  const figures: ServerFigures[] = []
  for (const server of servers) {
    const { part, port, title } = server
    const all = [...startsOf.get(server)!, await startOnce(server)]
    // Connections of its own: those that were idle for long may be closed just when they are used.
    const api = client(cluster)
    const changes = await measureChanges({ api, port, endpoints, services, perSecond: rate, seconds })
    const pid = part.pid!
    const changedRssOctets = readRssOctets(pid)
    const peakRssOctets = parseStatusOctets(readFileSync(`/proc/${pid}/status`, 'utf8'), 'VmHWM')
    api.close()
    await part.kill('SIGTERM')
    figures.push({
      title,
      readyMs: spreadOf(all.map(({ readyMs }) => readyMs))!,
      readyCpuMs: spreadOf(all.map(({ cpuMs }) => cpuMs))!,
      readyRssOctets: spreadOf(all.map(({ rssOctets }) => rssOctets))!,
      changes,
      changedRssOctets,
      peakRssOctets,
      load: load()
    })
    say(`${services} Services, ${title}: ${JSON.stringify(figures.at(-1))}`)
  }
  return figures
}

async function startOnce({ part }: ServerUnderTest): Promise<Start> {
  const startedAtMs = performance.now()
  await part.start()
  const readyMs = performance.now() - startedAtMs
  say(`${part.name} ready after ${readyMs.toFixed(0)} ms`)
  const cpuMs = cpuSecondsBetween(nothingUsed, readCpu(part.pid!)) * 1000
  await sleep(settleMs)
  return { readyMs, cpuMs, rssOctets: readRssOctets(part.pid!) }
}

async function replayed(cluster: Cluster, program: PeerdnsProgram, { sizes, endpoints }: Options) {
  const services = Math.min(10_000, Math.max(...sizes))
  const figures = await measureReplay({
    program,
    folder: cluster.folder,
    services,
    endpoints,
    changesPerSecond: replayedChangesPerSecond,
    queriesPerSecond,
    seconds: replaySeconds
  })
  return { ...figures, load: load() }
}

function write(report: ScaleReport, out: string): void {
  const markdown = markdownOf(report)
  console.log(markdown)
  mkdirSync(out, { recursive: true })
  writeFileSync(join(out, 'scale.md'), markdown)
  writeFileSync(join(out, 'scale.json'), `${JSON.stringify(report, null, 1)}\n`)
}

/** The options of Node that the image starts the server with. */
function imageOptions(): string[] {
  const entrypoint = /^ENTRYPOINT (\[.*\])$/m.exec(readFileSync(join(root, 'Dockerfile'), 'utf8'))?.[1] ?? '[]'
  return (JSON.parse(entrypoint) as string[]).filter((word) => word.startsWith('--'))
}

function parseOptions(args: readonly string[]): Options {
  const text = { type: 'string' } as const
  const { values } = parseArgs({
    args: [...args],
    options: {
      sizes: text,
      endpoints: text,
      starts: text,
      seconds: text,
      rate: text,
      only: text,
      'node-option': { type: 'string', multiple: true },
      also: { type: 'string', multiple: true },
      out: text
    }
  })
  const options = {
    sizes: (values.sizes ?? '1000,10000').split(',').map(Number),
    endpoints: Number(values.endpoints ?? 10),
    starts: Number(values.starts ?? 3),
    seconds: Number(values.seconds ?? 60),
    rate: Number(values.rate ?? 200),
    only: values.only ?? null,
    nodeOptions: values['node-option'] ?? imageOptions(),
    also: (values.also ?? []).map((text) => {
      const equals = text.indexOf('=')
      const [main = '', ...nodeOptions] = text.slice(equals + 1).split(',')
      return { title: text.slice(0, equals), main, nodeOptions }
    }),
    out: values.out ?? join(root, 'bench', 'results')
  }
  const numbers = [...options.sizes, options.endpoints, options.starts, options.seconds, options.rate]
  if (!numbers.every((number) => Number.isInteger(number) && number > 0)) throw new Error(usage)
  return options
}

await main(parseOptions(process.argv.slice(2)))
process.exit(0)
