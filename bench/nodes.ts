/**
 * What resolvers on nodes cost the hub whose zones they take: `node bench/nodes.ts`. What comes out: nodes/report.ts.
 */
import { fork, spawnSync, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { systemClock } from '../src/base/clock.ts'
import { parseName } from '../src/wire/name.ts'
import { isLaterSerial } from '../src/zone/serial.ts'
import type { HubReading, HubReply, HubRequest } from './nodes/hub.ts'
import { LightNode } from './nodes/light-node.ts'
import { between, markdownOf, type NodesFigures } from './nodes/report.ts'
import { percentile } from './statistics.ts'

const usage = `usage: node bench/nodes.ts [--nodes 500] [--services 1000] [--seconds 20] [--rate 5] [--out FOLDER]

  --seconds  for how long nothing, and then something changes
  --rate     changes a second, each of one Service
  --out      where results go; none: they are printed alone`

const root = join(import.meta.dirname, '..')
const clusterZone = parseName('cluster.local')
const apexes = [clusterZone, parseName('clusterset.local')]
const startTimeoutMs = 120_000
const settleMs = 2_000

type Options = Readonly<{ nodes: number; services: number; seconds: number; rate: number; out: string | null }>

class Hub {
  readonly #process: ChildProcess

  constructor() {
    this.#process = fork(join(import.meta.dirname, 'nodes', 'hub.ts'), { stdio: 'inherit' })
  }

  async ask(request: HubRequest): Promise<HubReply> {
    this.#process.send(request)
    const [reply] = (await once(this.#process, 'message')) as [HubReply]
    return reply
  }

  async read(): Promise<HubReading> {
    const reply = await this.ask({ kind: 'read' })
    if (reply.kind !== 'reading') throw new Error(`the hub says ${reply.kind}`)
    return reply.reading
  }

  stop(): void {
    this.#process.disconnect()
  }
}

/** When each node has a serial of the cluster zone. */
class Arrivals {
  readonly delaysMs: number[] = []
  readonly #nodes: number
  readonly #serials: number[]
  #waiting: { serial: number; atMs: number; left: Set<number>; done: () => void }[] = []

  constructor(nodes: number) {
    this.#nodes = nodes
    this.#serials = Array.from({ length: nodes }, () => -1)
  }

  async all(serial: number, atMs: number): Promise<void> {
    const left = new Set(
      Array.from({ length: this.#nodes }, (_, node) => node).filter((node) => !this.#has(node, serial))
    )
    if (left.size === 0) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#waiting.push({ serial, atMs, left, done: resolve })
    return promise
  }

  came(node: number, serial: number): void {
    this.#serials[node] = serial
    const nowMs = Date.now()
    for (const one of this.#waiting) {
      if (!this.#has(node, one.serial) || !one.left.delete(node)) continue
      this.delaysMs.push(nowMs - one.atMs)
      if (one.left.size === 0) one.done()
    }
    this.#waiting = this.#waiting.filter(({ left }) => left.size > 0)
  }

  #has(node: number, serial: number): boolean {
    const held = this.#serials[node]!
    return held >= 0 && (held === serial || isLaterSerial(held, serial))
  }
}

async function measure({ nodes, services, seconds, rate }: Options): Promise<Omit<NodesFigures, 'date' | 'commit'>> {
  const hub = new Hub()
  const faults = new Map<string, number>()
  const arrivals = new Arrivals(nodes)
  const missing = new Set<string>()
  const started = Promise.withResolvers<void>()
  let all: LightNode[] = []
  try {
    const start = await hub.ask({ kind: 'start', services })
    if (start.kind !== 'started') throw new Error(`the hub says ${start.kind}`)
    await sleep(settleMs)
    const alone = await hub.read()
    all = Array.from({ length: nodes }, (_, number) => {
      for (const apex of apexes) missing.add(`${number} ${apex}`)
      return new LightNode({
        server: start.server,
        apexes,
        clock: systemClock,
        instanceId: number.toString(16).padStart(12, '0'),
        onVersion: (apex, serial) => {
          if (apex === clusterZone) arrivals.came(number, serial)
          if (missing.delete(`${number} ${apex}`) && missing.size === 0) started.resolve()
        },
        onFault: (why) => faults.set(why, (faults.get(why) ?? 0) + 1)
      })
    })
    const startedAtMs = performance.now()
    for (const node of all) node.start()
    const cancel = systemClock.after(startTimeoutMs, () =>
      started.reject(new Error(`${missing.size} zones never came`))
    )
    await started.promise
    cancel()
    const startSeconds = (performance.now() - startedAtMs) / 1000
    const afterStart = await hub.read()

    await sleep(settleMs)
    const beforeIdle = await hub.read()
    await sleep(seconds * 1000)
    const afterIdle = await hub.read()

    const count = Math.max(1, Math.round(seconds * rate))
    const beganAtMs = performance.now()
    const done: Promise<void>[] = []
    for (let number = 0; number < count; number++) {
      const reply = await hub.ask({ kind: 'change', service: number % services, generation: number + 1 })
      if (reply.kind === 'changed') done.push(arrivals.all(reply.serial, reply.atMs))
      await sleep(Math.max(0, beganAtMs + ((number + 1) * 1000) / rate - performance.now()))
    }
    await Promise.all(done)
    const afterChanges = await hub.read()
    const sorted = Float64Array.from(arrivals.delaysMs).sort()
    for (const [why, times] of faults) console.error(`nodes: ${times} times: ${why}`)
    return {
      nodes,
      zones: apexes.length,
      services,
      rrsets: afterChanges.rrsets,
      start: { seconds: startSeconds, used: between(alone, afterStart) },
      idle: { seconds, used: between(beforeIdle, afterIdle) },
      changes: {
        count,
        perSecond: rate,
        delayMs: { median: percentile(sorted, 0.5), p99: percentile(sorted, 0.99), max: sorted.at(-1) ?? Number.NaN },
        used: between(afterIdle, afterChanges)
      },
      rssWithoutNodesOctets: alone.rssOctets
    }
  } finally {
    for (const node of all) node.stop()
    hub.stop()
  }
}

function optionsOf(args: readonly string[]): Options | null {
  const { values } = parseArgs({
    args: [...args],
    options: {
      nodes: { type: 'string', default: '500' },
      services: { type: 'string', default: '1000' },
      seconds: { type: 'string', default: '20' },
      rate: { type: 'string', default: '5' },
      out: { type: 'string' },
      help: { type: 'boolean', default: false }
    }
  })
  const { nodes, services, seconds, rate } = values
  const [ofNodes, ofServices, ofSeconds, ofRate] = [nodes, services, seconds, rate].map(Number) as [
    number,
    number,
    number,
    number
  ]
  const isRight = [ofNodes, ofServices, ofSeconds, ofRate].every((value) => value > 0)
  if (values.help || !isRight) return null
  return { nodes: ofNodes, services: ofServices, seconds: ofSeconds, rate: ofRate, out: values.out ?? null }
}

const options = optionsOf(process.argv.slice(2))
if (options === null) {
  console.error(usage)
  process.exitCode = 2
} else {
  const { stdout } = spawnSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: root, encoding: 'utf8' })
  const figures: NodesFigures = {
    date: new Date().toISOString().slice(0, 10),
    commit: stdout.trim(),
    ...(await measure(options))
  }
  const markdown = markdownOf(figures)
  console.log(markdown)
  if (options.out !== null) {
    mkdirSync(options.out, { recursive: true })
    writeFileSync(join(options.out, 'nodes.json'), `${JSON.stringify(figures, null, 1)}\n`)
    writeFileSync(join(options.out, 'nodes.md'), markdown)
  }
}
