/**
 * The processes a benchmark starts. None outlives it: not after an error, not after Ctrl-C.
 */
import { spawn, spawnSync, type ChildProcess, type StdioOptions } from 'node:child_process'
import { once } from 'node:events'
import { openSync, closeSync } from 'node:fs'

/** How long a process may take to end after SIGTERM before it is killed. */
const stopTimeoutMs = 3_000

export type ChildOptions = Readonly<{
  /** The core it is bound to; null: wherever the system puts it. */
  core: number | null
  cwd: string
  /** What it writes to standard output and error ends up here, for the message when it fails. */
  logFile: string
}>

export type Child = Readonly<{
  pid: number
  logFile: string
  hasEnded: () => boolean
  ended: Promise<number | null>
  stop: () => Promise<void>
}>

const alive = new Set<ChildProcess>()

function killAll(): void {
  for (const child of alive) child.kill('SIGKILL')
  alive.clear()
}

/** To be called once, first of all. Exit handlers run after errors too; signals have to be turned into an exit. */
export function endChildrenWithUs(): void {
  process.on('exit', killAll)
  process.once('SIGINT', () => process.exit(130))
  process.once('SIGTERM', () => process.exit(143))
  process.once('SIGHUP', () => process.exit(129))
}

/** The command bound to a core: `taskset` becomes the command itself, so the pid stays its own. */
export function pinned(core: number | null, command: string, args: readonly string[]): [string, string[]] {
  return core === null ? [command, [...args]] : ['taskset', ['-c', String(core), command, ...args]]
}

/** Binds what threads there are once more: Knot binds its own to the first cores, whatever it was started on. */
export function bindThreads(pid: number, ...cores: readonly number[]): void {
  spawnSync('taskset', ['-a', '-c', '-p', cores.join(','), String(pid)], { stdio: 'ignore' })
}

/** @throws the system's error when the command cannot be run. */
export async function startChild(command: string, args: readonly string[], options: ChildOptions): Promise<Child> {
  const log = openSync(options.logFile, 'a')
  try {
    const process = spawnTracked(...pinned(options.core, command, args), options.cwd, ['ignore', log, log])
    await once(process, 'spawn')
    const ended = once(process, 'exit').then(([code]) => code as number | null)
    const hasEnded = (): boolean => process.exitCode !== null || process.signalCode !== null
    const stop = async (): Promise<void> => {
      if (hasEnded()) return
      process.kill('SIGTERM')
      const timer = setTimeout(() => process.kill('SIGKILL'), stopTimeoutMs)
      await ended
      clearTimeout(timer)
    }
    return { pid: process.pid!, logFile: options.logFile, hasEnded, ended, stop }
  } finally {
    closeSync(log)
  }
}

function spawnTracked(command: string, args: string[], cwd: string, stdio: StdioOptions): ChildProcess {
  const child = spawn(command, args, { cwd, stdio })
  alive.add(child)
  child.once('exit', () => alive.delete(child))
  return child
}

/** Runs a command to its end, with its output in files; killed after `timeoutMs`. */
export async function runToEnd(
  command: string,
  args: readonly string[],
  options: { core: number | null; cwd: string; stdoutFile: string; stderrFile: string; timeoutMs: number }
): Promise<number | null> {
  const out = openSync(options.stdoutFile, 'w')
  const errors = openSync(options.stderrFile, 'w')
  try {
    const child = spawnTracked(...pinned(options.core, command, args), options.cwd, ['ignore', out, errors])
    const timer = setTimeout(() => child.kill('SIGKILL'), options.timeoutMs)
    const [code] = (await once(child, 'exit')) as [number | null]
    clearTimeout(timer)
    return code
  } finally {
    closeSync(out)
    closeSync(errors)
  }
}
