/** What all cases of one benchmark share: folders, free ports, cores, and words for whoever watches. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { untilAnswers, type Expectation } from './ask.ts'
import { bindThreads, endChildrenWithUs, startChild, type Child } from './children.ts'
import type { BenchQuestion } from './dataset.ts'
import { readCoreBusySeconds } from './process-usage.ts'
import type { Place, ServerPlan } from './rivals/server-plan.ts'

/** Which core the servers are bound to, and which one the client; null: not bound. */
export type Cores = Readonly<{ server: number | null; client: number | null }>

const startTimeoutMs = 60_000
const logLines = 8
/** A core counts as quiet when it was busy for less than this in one sample. */
const quietSeconds = 0.04
const quietSampleMs = 200

export class Workspace {
  readonly folder: string
  readonly cores: Cores
  readonly say: (line: string) => void
  /** What is missing, and how runs were disturbed. */
  readonly notes: string[] = []
  readonly #patienceMs: number
  #places = 0

  /** @param patienceMs how long each run may wait for the cores */
  constructor(cores: Cores, say: (line: string) => void, patienceMs = 0) {
    endChildrenWithUs()
    this.folder = mkdtempSync(join(tmpdir(), 'peerdns-bench-'))
    this.cores = cores
    this.say = say
    this.#patienceMs = patienceMs
    process.on('exit', () => rmSync(this.folder, { recursive: true, force: true }))
  }

  /** Says something that the report is to say too. */
  note(line: string): void {
    if (this.notes.includes(line)) return
    this.notes.push(line)
    this.say(line)
  }

  async place(): Promise<Place> {
    const folder = join(this.folder, String(this.#places++))
    mkdirSync(folder)
    const [port, adminPort] = [await freePort(), await freePort()]
    return { folder, port, adminPort }
  }

  /** Waits for a moment in which nobody uses the cores much, but not for long: a machine may never be quiet. */
  async untilQuiet(): Promise<void> {
    const { server, client } = this.cores
    if (server === null || client === null) return
    const cores = [server, client]
    const untilMs = performance.now() + this.#patienceMs
    while (performance.now() < untilMs) {
      const before = cores.map(readCoreBusySeconds)
      await sleep(quietSampleMs)
      const isQuiet = cores.map(readCoreBusySeconds).every((busy, at) => busy - before[at]! < quietSeconds)
      if (isQuiet) return
    }
  }

  /** Starts a server and waits for its first right answer. @throws Error with the end of its log when there is none. */
  async start(
    plan: ServerPlan,
    first: { question: BenchQuestion; expected: Expectation },
    core: number | null = this.cores.server
  ): Promise<Child> {
    const logFile = join(this.folder, `${plan.id}-${plan.port}.log`)
    const child = await startChild(plan.command, plan.args, { core, cwd: this.folder, logFile })
    const { hasEnded } = child
    const problem = await untilAnswers(plan.port, first.question, first.expected, {
      withinMs: startTimeoutMs,
      hasEnded
    })
    if (problem === null) {
      if (core !== null) bindThreads(child.pid, core)
      return child
    }
    await child.stop()
    throw new Error(`${plan.title}: ${problem}${endOfLog(logFile)}`)
  }
}

/** The last lines of a log, for a message about the process that wrote it. */
export function endOfLog(file: string): string {
  const lines = readFileSync(file, 'utf8').trimEnd().split('\n').slice(-logLines)
  return lines.map((line) => `\n    ${line.slice(0, 300)}`).join('')
}

/**
 * A port of 127.0.0.1 that nobody has, by UDP and by TCP. Somebody may take it before we do; then the server says so.
 */
async function freePort(): Promise<number> {
  for (;;) {
    const tcp = createServer().listen(0, '127.0.0.1')
    await once(tcp, 'listening')
    const { port } = tcp.address() as { port: number }
    const udp = createSocket('udp4')
    const isFree = await new Promise<boolean>((resolve) => {
      udp.once('error', () => resolve(false))
      udp.bind(port, '127.0.0.1', () => resolve(true))
    })
    udp.close()
    tcp.close()
    await once(tcp, 'close')
    if (isFree) return port
  }
}
