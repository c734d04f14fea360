/**
 * Restarts while clients ask: `node bench/restart.ts`. With `takeover: on` a new process is started beside the one that
 * serves, takes its sockets over, and then the old one is told to stop; and so on, under dnsperf. Beside it, the same
 * with one process after the other (`takeover: off`). Goes to bench/results/restart.md and restart.json. Takes some two
 * minutes. Exit code 1 where a query was lost with `takeover: on`.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { CLASS, OPCODE, RRTYPE } from '../src/wire/iana.ts'
import { encodeMessage } from '../src/wire/message.ts'
import { parseName } from '../src/wire/name.ts'
import { measuredCommit } from './commit.ts'
import { queryFileOf } from './dataset.ts'
import { parseSummary, type DnsperfSummary } from './dnsperf.ts'
import { hasRaisedPriority } from './process-usage.ts'
import type { RestartResults } from './restart/results.ts'
import { findDnsperf } from './rivals/find.ts'
import { peerdnsForZone } from './rivals/peerdns.ts'
import type { Place } from './rivals/server-plan.ts'
import { endOfLog, Workspace } from './workspace.ts'
import { clusterWorkloads, ownServices } from './workloads.ts'

const root = join(import.meta.dirname, '..')
const options = parseArgs({
  options: {
    restarts: { type: 'string', default: '50' },
    rate: { type: 'string', default: '10000' },
    out: { type: 'string', default: join(import.meta.dirname, 'results') },
    'no-files': { type: 'boolean', default: false }
  }
}).values

/** With one process after the other, so many restarts are enough to see it. */
const plainRestarts = 5
const startTimeoutMs = 30_000
/** An answer that is later counts as lost. */
const queryTimeoutSeconds = 2
const outstanding = 5_000
/** Of those who come with a connection of their own each time. */
const connectEveryMs = 25

const say = (line: string): void => console.error(`restart: ${line}`)
const { questions, expected } = clusterWorkloads[0]!

type Process = Readonly<{ child: ChildProcess; stop: () => Promise<number | null> }>
/** Who asked over TCP or HTTP, a new connection each time, and who got no answer. */
type Tally = { asked: number; failed: number; longestMs: number }
type Figures = Readonly<{ restarts: number; udp: DnsperfSummary; tcp: Tally; http: Tally; tookMs: number }>

class Fleet {
  readonly #workspace: Workspace
  readonly #place: Place
  readonly #command: readonly [string, readonly string[]]
  readonly #alive = new Set<ChildProcess>()
  #started = 0

  constructor(workspace: Workspace, place: Place, takeover: 'on' | 'off') {
    const program = { node: process.execPath, nodeOptions: [], main: join(root, 'src', 'cli', 'main.ts') }
    const plan = peerdnsForZone(program, place, { services: ownServices, ttlSeconds: 5 })
    const file = plan.args.at(-1)!
    writeFileSync(file, `${readFileSync(file, 'utf8').replace('level: warn', 'level: info')}takeover: ${takeover}\n`)
    this.#workspace = workspace
    this.#place = place
    this.#command = [plan.command, plan.args]
    process.once('exit', () => {
      for (const child of this.#alive) child.kill('SIGKILL')
    })
  }

  get port(): number {
    return this.#place.port
  }

  get adminPort(): number {
    return this.#place.adminPort
  }

  /** Resolves when the process listens, and so has taken over what there was, and has read its Services. */
  async start(): Promise<Process> {
    const logFile = join(this.#workspace.folder, `restart-${this.#place.port}-${this.#started++}.log`)
    const log = openSync(logFile, 'w')
    const [command, args] = this.#command
    const child = spawn(command, args, { stdio: ['ignore', log, log] })
    closeSync(log)
    this.#alive.add(child)
    child.once('exit', () => this.#alive.delete(child))
    const ended = once(child, 'exit').then(([code]) => code as number | null)
    const untilMs = performance.now() + startTimeoutMs
    const hasSaid = (what: string): boolean => readFileSync(logFile, 'utf8').includes(`"msg":"${what}"`)
    while (!hasSaid('listening') || !hasSaid('the cluster is read')) {
      if (child.exitCode !== null || performance.now() > untilMs)
        throw new Error(`it does not listen${endOfLog(logFile)}`)
      await sleep(5)
    }
    const stop = async (): Promise<number | null> => {
      child.kill('SIGTERM')
      return ended
    }
    return { child, stop }
  }
}

/** The first question as one frame. */
function framedQuery(): Buffer {
  const flags = { qr: false, aa: false, tc: false, rd: true, ra: false, ad: false, cd: false }
  const question = { name: parseName(questions[0]!.name), type: RRTYPE.A, class: CLASS.IN }
  const sections = { answer: [], authority: [], additional: [], edns: null }
  const message = { id: 1, opcode: OPCODE.QUERY, rcode: 0, ...flags, questions: [question], ...sections }
  const octets = Buffer.from(encodeMessage(message))
  return Buffer.concat([Buffer.from([octets.length >>> 8, octets.length & 0xff]), octets])
}

const query = framedQuery()

async function askByTcp(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' })
    socket.setTimeout(queryTimeoutSeconds * 1000, () => socket.destroy())
    socket.on('error', () => {})
    socket.on('close', () => resolve(false))
    socket.once('data', (octets: Buffer) => {
      resolve(octets.length > 14 && (octets[5]! & 0x0f) === expected.rcode)
      socket.end()
    })
    socket.write(query)
  })
}

const askByHttp = async (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/healthz`, { headers: { connection: 'close' }, signal: AbortSignal.timeout(5_000) })
    .then(async (reply) => reply.ok && (await reply.text()) !== '')
    .catch(() => false)

async function askSteadily(ask: () => Promise<boolean>, until: AbortSignal): Promise<Tally> {
  const tally: Tally = { asked: 0, failed: 0, longestMs: 0 }
  while (!until.aborted) {
    const startedAtMs = performance.now()
    if (!(await ask())) tally.failed += 1
    tally.asked += 1
    const tookMs = performance.now() - startedAtMs
    tally.longestMs = Math.max(tally.longestMs, tookMs)
    await sleep(Math.max(0, connectEveryMs - tookMs))
  }
  return tally
}

async function measure(workspace: Workspace, takeover: 'on' | 'off', restarts: number): Promise<Figures> {
  const fleet = new Fleet(workspace, await workspace.place(), takeover)
  const queryFile = join(workspace.folder, 'queries')
  writeFileSync(queryFile, queryFileOf(questions))
  let serving = await fleet.start()
  const outFile = join(workspace.folder, `dnsperf-${takeover}.out`)
  const out = openSync(outFile, 'w')
  const args = ['-s', '127.0.0.1', '-p', String(fleet.port), '-d', queryFile, '-Q', options.rate, '-b', '4096']
  args.push('-l', '3600', '-q', String(outstanding), '-t', String(queryTimeoutSeconds), '-O', 'suppress=timeout')
  const dnsperf = spawn('dnsperf', args, { stdio: ['ignore', out, out] })
  closeSync(out)
  process.once('exit', () => dnsperf.kill('SIGKILL'))
  const over = new AbortController()
  const asking = Promise.all([
    askSteadily(async () => askByTcp(fleet.port), over.signal),
    askSteadily(async () => askByHttp(fleet.adminPort), over.signal)
  ])
  await sleep(500)
  const startedAtMs = performance.now()
  for (let restart = 0; restart < restarts; restart++) {
    const old = serving
    if (takeover === 'off') await old.stop()
    serving = await fleet.start()
    const code = takeover === 'off' ? 0 : await old.stop()
    if (code !== 0) throw new Error(`restart ${restart}: the old process ended with ${code}`)
  }
  const tookMs = performance.now() - startedAtMs
  // The last ones get their time.
  await sleep(queryTimeoutSeconds * 1000 + 500)
  over.abort()
  const [tcp, http] = await asking
  dnsperf.kill('SIGINT')
  await once(dnsperf, 'exit')
  await serving.stop()
  return { restarts, udp: parseSummary(readFileSync(outFile, 'utf8')), tcp, http, tookMs }
}

const rowOf = (title: string, { restarts, udp, tcp, http, tookMs }: Figures): string => {
  const cells = [
    title,
    restarts,
    `${(tookMs / restarts / 1000).toFixed(1)} s`,
    `${udp.lost} of ${udp.sent}`,
    `${udp.maxLatencyMs.toFixed(0)} ms`,
    Object.keys(udp.rcodes).join(', '),
    `${tcp.failed} of ${tcp.asked}`,
    `${http.failed} of ${http.asked}`
  ]
  return `| ${cells.join(' | ')} |`
}

/** @returns whether no query was lost with `takeover: on` */
async function main(): Promise<boolean> {
  if (findDnsperf() === null) throw new Error('dnsperf is not here (Debian package dnsperf)')
  const workspace = new Workspace({ client: null, server: null }, say)
  const taken = await measure(workspace, 'on', Number(options.restarts))
  say(`${taken.udp.lost} of ${taken.udp.sent} queries lost in ${taken.restarts} restarts`)
  const plain = await measure(workspace, 'off', plainRestarts)
  const report = [
    '# Restarts while clients ask',
    '',
    `Made by \`node bench/restart.ts\` on ${new Date().toISOString().slice(0, 10)}: dnsperf at ${options.rate} queries a second over UDP, an answer after more than ${queryTimeoutSeconds} s counts as lost;`,
    `beside it every ${connectEveryMs} ms a new TCP connection with one question, and a new HTTP connection that asks \`/healthz\`.`,
    ...(hasRaisedPriority() ? ['Servers and clients ran with raised scheduling priority.'] : []),
    '',
    '| | restarts | each | UDP lost | longest wait | RCODEs | TCP failed | HTTP failed |',
    '|---|--:|--:|--:|--:|---|--:|--:|',
    rowOf('`takeover: on`, the new process beside the old one', taken),
    rowOf('`takeover: off`, one after the other', plain),
    ''
  ].join('\n')
  console.log(report)
  const { sent, lost, maxLatencyMs } = taken.udp
  if (!options['no-files']) {
    const date = new Date().toISOString().slice(0, 10)
    const queriesPerSecond = Number(options.rate)
    const results: RestartResults = {
      date,
      commit: measuredCommit(root),
      restarts: taken.restarts,
      queriesPerSecond,
      sent,
      lost,
      longestMs: maxLatencyMs
    }
    writeFileSync(join(options.out, 'restart.md'), report)
    writeFileSync(join(options.out, 'restart.json'), `${JSON.stringify(results, null, 1)}\n`)
  }
  say(`${lost === 0 ? 'met' : 'MISSED'}: ${lost} of ${sent} queries lost, none may be`)
  return lost === 0
}

process.exit((await main()) ? 0 : 1)
