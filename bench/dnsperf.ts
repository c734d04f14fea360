/**
 * dnsperf as the client: one run, and what it says about it.
 *
 * Debian's dnsperf 2.10 has no percentiles, so the verbose output (one line a response) is read afterwards; writing it
 * costs the client's core, not the server's.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { runToEnd } from './children.ts'
import { percentile } from './statistics.ts'

export type DnsperfSummary = Readonly<{
  sent: number
  completed: number
  lost: number
  seconds: number
  /** Responses by RCODE, as dnsperf names them. */
  rcodes: Readonly<Record<string, number>>
  /** Mean size of a response. */
  responseOctets: number
  /** Of what was answered within dnsperf's time-out. */
  meanLatencyMs: number
  maxLatencyMs: number
}>

export type Latency = Readonly<{ p50Ms: number; p99Ms: number; p999Ms: number }>

export type DnsperfRun = DnsperfSummary & Readonly<{ latency: Latency | null }>

export type Transport = 'udp' | 'tcp' | 'tcp-once'

/** Connections that queries over TCP are spread over. */
const tcpClients = 20

export type DnsperfOptions = Readonly<{
  port: number
  queryFile: string
  seconds: number
  /** Queries a second that are offered; null: as many as are answered, with `outstanding` under way. */
  queriesPerSecond: number | null
  outstanding: number
  core: number | null
  /** UDP unless given; `tcp-once` opens a connection for each query. */
  transport?: Transport
  /** Asks with EDNS: the client takes 4,096 octets, and the server gives what it likes to give. */
  hasEdns?: boolean
  /** Where its output may lie. */
  folder: string
  /** Whether each latency of a paced run is read, which takes dnsperf a line for each; true by default. */
  isTimed?: boolean
}>

/**
 * How long dnsperf waits for one answer. A lost query blocks its place for as long, so shorter than its default of 5 s.
 */
const queryTimeoutSeconds = 1

/** @throws Error when the output is not dnsperf's statistics. */
export function parseSummary(text: string): DnsperfSummary {
  const number = (pattern: RegExp): number => {
    const match = pattern.exec(text)
    if (match === null) throw new Error(`not dnsperf's statistics: ${pattern.source} is missing`)
    return Number(match[1])
  }
  const rcodes: Record<string, number> = {}
  const codes = /Response codes:\s+(.*)/.exec(text)?.[1] ?? ''
  for (const [, name, count] of codes.matchAll(/([A-Z0-9]+) (\d+) \(/g)) rcodes[name!] = Number(count)
  return {
    sent: number(/Queries sent:\s+(\d+)/),
    completed: number(/Queries completed:\s+(\d+)/),
    lost: number(/Queries lost:\s+(\d+)/),
    seconds: number(/Run time \(s\):\s+([\d.]+)/),
    rcodes,
    responseOctets: number(/response (\d+)/),
    meanLatencyMs: number(/Average Latency \(s\):\s+([\d.]+)/) * 1000,
    maxLatencyMs: number(/Average Latency \(s\):.*max ([\d.]+)/) * 1000
  }
}

/** Latencies from the lines `> NOERROR name A 0.000123`, sorted, in milliseconds. */
export function parseLatencies(text: string): Float64Array {
  const latencies: number[] = []
  for (let at = 0; at < text.length;) {
    const newline = text.indexOf('\n', at)
    const end = newline === -1 ? text.length : newline
    if (text.startsWith('> ', at) && !text.startsWith('> T ', at)) {
      const seconds = Number(text.slice(text.lastIndexOf(' ', end - 1) + 1, end))
      if (Number.isFinite(seconds)) latencies.push(seconds * 1000)
    }
    at = end + 1
  }
  return Float64Array.from(latencies).sort()
}

export function latencyOf(sorted: Float64Array): Latency | null {
  if (sorted.length === 0) return null
  return { p50Ms: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99), p999Ms: percentile(sorted, 0.999) }
}

/** @throws Error when dnsperf fails or says nothing that can be read. */
export async function runDnsperf(options: DnsperfOptions): Promise<DnsperfRun> {
  const isPaced = options.queriesPerSecond !== null
  const args = ['-s', '127.0.0.1', '-p', String(options.port), '-d', options.queryFile, '-l', String(options.seconds)]
  args.push(
    '-q',
    String(options.outstanding),
    '-b',
    '4096',
    '-t',
    String(queryTimeoutSeconds),
    '-O',
    'suppress=timeout'
  )
  const { transport = 'udp', hasEdns = false } = options
  if (transport !== 'udp') args.push('-m', 'tcp', '-c', String(tcpClients))
  if (transport === 'tcp-once') args.push('-O', 'num-queries-per-conn=1')
  if (hasEdns) args.push('-e')
  const isTimed = isPaced && options.isTimed !== false
  if (isPaced) args.push('-Q', String(options.queriesPerSecond))
  if (isTimed) args.push('-v')
  const stdoutFile = join(options.folder, 'dnsperf.out')
  const stderrFile = join(options.folder, 'dnsperf.err')
  const timeoutMs = (options.seconds + queryTimeoutSeconds + 5) * 1000
  const { core, folder: cwd } = options
  const code = await runToEnd('dnsperf', args, { core, cwd, stdoutFile, stderrFile, timeoutMs })
  if (code !== 0)
    throw new Error(`dnsperf ended with ${code}: ${readFileSync(stderrFile, 'utf8').trim().slice(0, 500)}`)
  const text = readFileSync(stdoutFile, 'latin1')
  // The statistics are among the last few lines, behind megabytes of responses; over TCP `Connection Statistics:`
  // follow.
  const summary = parseSummary(text.slice(Math.max(0, text.lastIndexOf('\nStatistics:'))))
  return { ...summary, latency: isTimed ? latencyOf(parseLatencies(text)) : null }
}
