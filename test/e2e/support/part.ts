/**
 * A program that a suite runs beside itself: started, watched until it is ready, killed, frozen and started again.
 *
 * No part outlives its suite: the kernel kills it when the suite's process is gone, however that ended, and whoever
 * leaves by Ctrl-C or `process.exit` also takes its folders along.
 */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process'
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { diesWithUs } from '../../support/dies-with-us.ts'

const bin = join(import.meta.dirname, '..', '..', '..', '.cache', 'e2e', 'bin')
/** How much of a log is shown where something went wrong. */
const shownLogOctets = 4000
const readyPollMs = 25

/** What `test/e2e/parts/build.sh` builds. */
export type Binary = 'etcd' | 'kube-apiserver' | 'kube-controller-manager' | 'kubectl' | 'kwok' | 'coredns'

/** The path of a built part. @throws Error that says how to build it where it is missing. */
export function binary(name: Binary): string {
  const path = join(bin, name)
  if (!existsSync(path)) throw new Error(`${name} is not built yet: run test/e2e/parts/build.sh`)
  return path
}

/**
 * Why the suites on real clusters cannot run here, or null where they can. A CI without Go has to fail, not to skip.
 */
export function whyNoClusters(): string | null {
  if (existsSync(join(bin, 'kube-apiserver')) || process.env.CI !== undefined) return null
  const hasGo = spawnSync('go', ['version'], { stdio: 'ignore' }).error === undefined
  return hasGo ? null : 'the parts of a cluster are not built, nor is Go here to build them'
}

export type PartOptions = Readonly<{
  /** For messages and the log file's name. */
  name: string
  /** Path of the program, or a name on PATH. */
  command: string
  args: readonly string[]
  env?: Readonly<Record<string, string>>
  /** Where the log goes, as `<name>.log`. */
  folder: string
  /** Asked again and again after a start, until it is true. */
  isReady: () => Promise<boolean>
  /** A start that takes longer has failed; 60 s unless told. */
  startTimeoutMs?: number
  /** Started again where it ends by itself, as a kubelet would do; not unless told. */
  isKeptRunning?: boolean
}>

/** A part that ends by itself so often has another trouble. */
const startsAgainAtMost = 5

export class Part {
  readonly name: string
  readonly logFile: string
  readonly #options: PartOptions
  #child: ChildProcess | null = null
  #ended: Promise<void> = Promise.resolve()
  #isWanted = false
  #startsLeft = startsAgainAtMost

  constructor(options: PartOptions) {
    this.#options = options
    this.name = options.name
    this.logFile = join(options.folder, `${options.name}.log`)
  }

  get pid(): number | null {
    return this.#child?.pid ?? null
  }

  get isRunning(): boolean {
    return this.#child !== null
  }

  /**
   * Starts it and waits until it is ready. @throws Error with the end of its log where it ends first or takes too long.
   */
  async start(): Promise<void> {
    this.launch()
    await this.untilReady()
  }

  /** Starts it without waiting. */
  launch(): void {
    if (this.#child !== null) throw new Error(`${this.name} runs already`)
    const { command, args, env } = this.#options
    const log = openSync(this.logFile, 'a')
    const [program, programArgs] = diesWithUs(command, args)
    const child = spawn(program, programArgs, { stdio: ['ignore', log, log], env: { ...process.env, ...env } })
    closeSync(log)
    this.#child = child
    this.#isWanted = true
    living.add(this)
    this.#ended = new Promise((resolve) => {
      const end = () => {
        if (this.#child !== child) return
        this.#child = null
        living.delete(this)
        resolve()
        if (this.#isWanted && this.#options.isKeptRunning === true) this.#launchAgain()
      }
      child.once('exit', end)
      child.once('error', end)
    })
  }

  #launchAgain(): void {
    if (this.#startsLeft-- === 0) return
    console.log(`    ${this.name} ended by itself and is started again`)
    this.launch()
  }

  /** @throws Error with the end of its log where it ends first or takes too long. */
  async untilReady(): Promise<void> {
    const timeoutMs = this.#options.startTimeoutMs ?? 60_000
    const startedMs = performance.now()
    while (performance.now() - startedMs < timeoutMs) {
      if (this.#child === null) throw new Error(`${this.name} ended before it was ready:\n${this.logTail()}`)
      if (await this.#options.isReady().catch(() => false)) return
      await sleep(readyPollMs)
    }
    throw new Error(`${this.name} was not ready after ${timeoutMs} ms:\n${this.logTail()}`)
  }

  /** Ends it, also where it is frozen, and waits until it is gone. Does nothing where it does not run. */
  async kill(signal: 'SIGKILL' | 'SIGTERM' = 'SIGKILL'): Promise<void> {
    this.#isWanted = false
    this.#child?.kill(signal)
    if (signal !== 'SIGKILL') this.#child?.kill('SIGCONT')
    await this.#ended
  }

  killNow(): void {
    this.#isWanted = false
    this.#child?.kill('SIGKILL')
  }

  /** Kills it and starts it again, on the same ports and with the same data. */
  async restart(): Promise<void> {
    await this.kill()
    await this.start()
  }

  /** SIGSTOP: its sockets stay open, and nothing comes out of them. */
  freeze(): void {
    this.#child?.kill('SIGSTOP')
  }

  /** SIGCONT: it goes on where it was. */
  thaw(): void {
    this.#child?.kill('SIGCONT')
  }

  /** The last lines of its log. */
  logTail(): string {
    const text = existsSync(this.logFile) ? readFileSync(this.logFile, 'utf8') : ''
    return text.slice(-shownLogOctets).replace(/^[^\n]*\n/, text.length > shownLogOctets ? '...\n' : '$&')
  }
}

const living = new Set<Part>()
const folders = new Set<string>()

process.once('exit', () => {
  for (const part of living) part.killNow()
  for (const folder of folders) removeFolder(folder)
})
for (const [signal, number] of [
  ['SIGINT', 2],
  ['SIGTERM', 15],
  ['SIGHUP', 1]
] as const) {
  // prettier-ignore
  process.once(signal, () => process.exit(128 + number))
}

/** A folder that goes with this process, or earlier by `removeFolder`. */
export function temporaryFolder(name: string): string {
  const folder = mkdtempSync(join(tmpdir(), `peerdns-e2e-${name}-`))
  folders.add(folder)
  return folder
}

/** Removes it with everything in it; with PEERDNS_E2E_KEEP set it stays, and its path is told. */
export function removeFolder(folder: string): void {
  if (!folders.delete(folder)) return
  if (process.env.PEERDNS_E2E_KEEP === undefined) rmSync(folder, { recursive: true, force: true })
  else console.error(`kept: ${folder}`)
}
