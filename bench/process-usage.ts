/**
 * What processes and cores used, from Linux's /proc.
 *
 * A process' CPU time is user and system time of all its threads. /proc/PID/stat counts it in ticks of 10 ms, a few
 * percent of a short run, so the scheduler's own nanoseconds per thread are taken where the threads stayed the same.
 */
import { readFileSync, readdirSync } from 'node:fs'
import { getPriority } from 'node:os'

/** USER_HZ: Linux shows 100 ticks a second to programs on every architecture Node runs on. */
const ticksPerSecond = 100

export type CpuReading = Readonly<{ tickSeconds: number; threadNanoseconds: ReadonlyMap<string, number> }>

/**
 * User and system time from /proc/PID/stat. The command's name may hold spaces and parentheses, so count from the last.
 */
export function parseStatSeconds(stat: string): number {
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return (Number(fields[11]) + Number(fields[12])) / ticksPerSecond
}

/** The value of a line like `VmRSS:  51234 kB`, in octets; NaN where the line is missing. */
export function parseStatusOctets(status: string, key: string): number {
  const match = new RegExp(`^${key}:\\s+(\\d+) kB$`, 'm').exec(status)
  return match === null ? Number.NaN : Number(match[1]) * 1024
}

/** Seconds that a core was not idle since boot, from /proc/stat; NaN for a core that is not there. */
export function parseCoreBusySeconds(stat: string, core: number): number {
  const line = stat.split('\n').find((line) => line.startsWith(`cpu${core} `))
  if (line === undefined) return Number.NaN
  const [user, nice, system, _idle, _ioWait, irq, softIrq, steal] = line.split(' ').slice(1).map(Number)
  return (user! + nice! + system! + irq! + softIrq! + (steal ?? 0)) / ticksPerSecond
}

/** The cores in a list like `0-3,6`. */
export function parseCoreList(text: string): number[] {
  return text
    .trim()
    .split(',')
    .filter((part) => part !== '')
    .flatMap((part) => {
      const [first, last = first] = part.split('-').map(Number)
      return Array.from({ length: last! - first! + 1 }, (_, index) => first! + index)
    })
}

export function cpuSecondsBetween(before: CpuReading, after: CpuReading): number {
  let nanoseconds = 0
  for (const [thread, count] of after.threadNanoseconds)
    nanoseconds += count - (before.threadNanoseconds.get(thread) ?? 0)
  for (const thread of before.threadNanoseconds.keys()) {
    // A thread that ended took its nanoseconds with it; the process' ticks still hold them.
    if (!after.threadNanoseconds.has(thread)) return after.tickSeconds - before.tickSeconds
  }
  return after.threadNanoseconds.size === 0 ? after.tickSeconds - before.tickSeconds : nanoseconds / 1e9
}

export function readCpu(pid: number): CpuReading {
  const threadNanoseconds = new Map<string, number>()
  const folder = `/proc/${pid}/task`
  try {
    for (const thread of readdirSync(folder)) {
      const schedstat = readFileSync(`${folder}/${thread}/schedstat`, 'utf8')
      threadNanoseconds.set(thread, Number(schedstat.split(' ')[0]))
    }
  } catch {
    // A kernel without schedstat, or a thread that ends just now: the ticks have to do.
    threadNanoseconds.clear()
  }
  return { tickSeconds: parseStatSeconds(readFileSync(`/proc/${pid}/stat`, 'utf8')), threadNanoseconds }
}

export const readRssOctets = (pid: number): number =>
  parseStatusOctets(readFileSync(`/proc/${pid}/status`, 'utf8'), 'VmRSS')

export const readCoreBusySeconds = (core: number): number =>
  parseCoreBusySeconds(readFileSync('/proc/stat', 'utf8'), core)

/** Whether this process, or its whole session (autogroup), runs before others that want the same core. */
export function hasRaisedPriority(): boolean {
  if (getPriority() < 0) return true
  try {
    return / nice -/.test(readFileSync('/proc/self/autogroup', 'utf8'))
  } catch {
    return false
  }
}

/** The cores that this process may run on. */
export function allowedCores(): number[] {
  const status = readFileSync('/proc/self/status', 'utf8')
  return parseCoreList(/^Cpus_allowed_list:\s+(.*)$/m.exec(status)?.[1] ?? '')
}
