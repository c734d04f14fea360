/**
 * Tells when files or folders change, however they change: written in place, renamed over, deleted and made anew,
 * or reached through a symlink that is exchanged (Kubernetes updates a mounted ConfigMap by exchanging `..data`).
 *
 * The kernel's events only say *when* to look. What decides is a look at every file (identity, size, times), so a
 * missed or a needless event does no harm, and a slow poll finds what no event told (network file systems, a folder
 * moved away far above). Events cover the folders themselves and the folder of every symlink on the way to them.
 * Nothing is read here: whoever listens reads the files and decides whether their content matters.
 */
import { lstatSync, readdirSync, readlinkSync, statSync, watch } from 'node:fs'
import type { FSWatcher, Stats } from 'node:fs'
import { basename, dirname, isAbsolute, join, parse, resolve, sep } from 'node:path'
import type { Cancel, Clock } from './clock.ts'
import { manifestFolderDepth } from './limits.ts'

/** From an event to the look at the files; events in between are one. */
const eventDelayMs = 20
/** Between two looks without any event. */
const pollMs = 1_000
/** The same where some folder could not be watched (no inotify watches left, no such thing on this file system). */
const unwatchedPollMs = 150
/** A file changed less than this ago may change once more without getting another time: it is looked at again first. */
const timestampGrainMs = 10
/** A file that never rests is told about all the same after this. */
const settleLimitMs = 100
/** Files looked at in one go; other work gets its turn in between. */
const filesPerSlice = 200
const maxSymlinks = 40

export type FileWatch = { close(): void }

/**
 * Calls back after each change of the files, or of anything below the folders (dot files are left out there, symlinks
 * are followed). Paths that do not exist are waited for.
 *
 * Start this first and read the files afterwards: what changes after this call is told. One change may be told twice,
 * several quick ones once. Never throws, and never calls back after close().
 */
export function watchPaths(paths: readonly string[], onChange: () => void, clock: Clock): FileWatch {
  const tree = new WatchedTree(paths, onChange, clock)
  return { close: () => tree.close() }
}

/** One look at everything: the lines of `print` are equal as long as nothing changed. */
type Look = { print: string[]; lastChangeMs: number; folders: Set<string> }

class WatchedTree {
  readonly #paths: readonly string[]
  readonly #onChange: () => void
  readonly #clock: Clock
  /** By folder path and identity, so that a folder made anew is watched anew. */
  readonly #watchers = new Map<string, FSWatcher>()
  #hasUnwatched = false
  #print: string
  /** The last look found a file so young that its next change may look the same. */
  #isYoung: boolean
  #unsettledSinceMs: number | null = null
  #hadEvent = false
  #isLooking = false
  #cancelTimer: Cancel = () => {}
  #timerAtMs = Number.POSITIVE_INFINITY
  #pauseUntilMs = 0
  #isClosed = false

  constructor(paths: readonly string[], onChange: () => void, clock: Clock) {
    this.#paths = paths.map((path) => resolve(path))
    this.#onChange = onChange
    this.#clock = clock
    const look = newLook()
    for (const _ of this.#walk(look)) continue
    this.#closeWatchersExcept(look.folders)
    this.#print = look.print.join('\n')
    this.#isYoung = this.#isYoungNow(look)
    this.#lookAgainIn(this.#pollDelayMs())
  }

  close(): void {
    this.#isClosed = true
    this.#cancelTimer()
    this.#closeWatchersExcept(new Set())
  }

  #pollDelayMs(): number {
    return this.#hasUnwatched ? unwatchedPollMs : pollMs
  }

  #isYoungNow(look: Look): boolean {
    const ageMs = this.#clock.epochMs() - look.lastChangeMs
    return ageMs < timestampGrainMs && ageMs > -timestampGrainMs
  }

  /** Sets the timer for the next look; an earlier one that is set already stays. */
  #lookAgainIn(delayMs: number): void {
    if (this.#isClosed || this.#isLooking) return
    const atMs = Math.max(this.#clock.nowMs() + delayMs, this.#pauseUntilMs)
    if (this.#timerAtMs <= atMs) return
    this.#cancelTimer()
    this.#timerAtMs = atMs
    this.#cancelTimer = this.#clock.after(atMs - this.#clock.nowMs(), () => {
      this.#timerAtMs = Number.POSITIVE_INFINITY
      this.#look()
    })
  }

  #look(): void {
    const hadEvent = this.#hadEvent
    this.#hadEvent = false
    this.#isLooking = true
    this.#hasUnwatched = false
    const look = newLook()
    const steps = this.#walk(look)
    let busyMs = 0
    const slice = (): void => {
      if (this.#isClosed) return
      const startMs = this.#clock.nowMs()
      for (let files = 0; files < filesPerSlice; files++) {
        if (steps.next().done !== true) continue
        this.#isLooking = false
        this.#closeWatchersExcept(look.folders)
        // A large tree under a storm of events takes a fifth of our time at most.
        busyMs += this.#clock.nowMs() - startMs
        this.#pauseUntilMs = this.#clock.nowMs() + 4 * busyMs
        this.#judge(look, hadEvent)
        return
      }
      busyMs += this.#clock.nowMs() - startMs
      this.#cancelTimer = this.#clock.after(0, slice)
    }
    slice()
  }

  #judge(look: Look, hadEvent: boolean): void {
    const print = look.print.join('\n')
    const isYoung = this.#isYoungNow(look)
    const nowMs = this.#clock.nowMs()
    if (print === this.#print && !(hadEvent && this.#isYoung)) {
      this.#unsettledSinceMs = null
      this.#lookAgainIn(this.#hadEvent ? eventDelayMs : this.#pollDelayMs())
      return
    }
    this.#unsettledSinceMs ??= nowMs
    if (isYoung && nowMs - this.#unsettledSinceMs < settleLimitMs) {
      this.#hadEvent ||= hadEvent
      this.#lookAgainIn(timestampGrainMs)
      return
    }
    this.#unsettledSinceMs = null
    this.#print = print
    this.#isYoung = isYoung
    this.#lookAgainIn(this.#hadEvent || isYoung ? eventDelayMs : this.#pollDelayMs())
    this.#onChange()
  }

  /** Looks at every path, and yields after each file so that the caller can stop for a moment. */
  *#walk(look: Look): Generator<void> {
    for (const path of this.#paths) {
      this.#watchWay(path, look)
      yield* this.#walkBelow(path, [], look)
    }
  }

  *#walkBelow(path: string, above: readonly string[], look: Look): Generator<void> {
    yield
    const status = statusOf(path)
    if (typeof status === 'string') {
      look.print.push(`${path} ${status}`)
      return
    }
    if (!status.isDirectory()) {
      look.print.push(`${path} ${identityOf(status)} ${status.size} ${status.mtimeMs} ${status.ctimeMs}`)
      if (status.ctimeMs > look.lastChangeMs) look.lastChangeMs = status.ctimeMs
      return
    }
    look.print.push(`${path} ${identityOf(status)}`)
    // A symlink to a folder above would go round for ever.
    if (above.length >= manifestFolderDepth || above.includes(identityOf(status))) return
    this.#watchFolder(path, look)
    const below = [...above, identityOf(status)]
    for (const entry of entriesOf(path)) {
      if (entry.name.startsWith('.')) continue
      const child = join(path, entry.name)
      if (entry.isSymbolicLink()) this.#watchWay(child, look)
      yield* this.#walkBelow(child, below, look)
    }
  }

  /**
   * Watches the folders where a step of the way to `path` could change: each symlink's, the last one's, a missing
   * one's.
   */
  #watchWay(path: string, look: Look): void {
    let folder = parse(path).root
    const steps = path.slice(folder.length).split(sep)
    let symlinks = 0
    for (let step = steps.shift(); step !== undefined; step = steps.shift()) {
      if (step === '' || step === '.') continue
      if (step === '..') {
        folder = dirname(folder)
        continue
      }
      const at = join(folder, step)
      const target = symlinkTargetOf(at)
      if (target !== null || steps.length === 0) this.#watchFolder(folder, look)
      if (target === null) {
        if (statusOf(at) === 'ENOENT') {
          this.#watchFolder(folder, look)
          return
        }
        folder = at
        continue
      }
      if (++symlinks > maxSymlinks) return
      if (isAbsolute(target)) folder = parse(target).root
      steps.unshift(...target.split(sep))
    }
  }

  #watchFolder(folder: string, look: Look): void {
    const status = statusOf(folder)
    if (typeof status === 'string' || !status.isDirectory()) return
    const key = `${folder} ${identityOf(status)}`
    look.folders.add(key)
    if (this.#watchers.has(key)) return
    try {
      const watcher = watch(folder, { persistent: false }, (_event, name) => {
        // An event with the folder's own name: it was deleted or moved, and this watcher may hear no more.
        if (name === basename(folder)) this.#drop(key, watcher)
        this.#hadEvent = true
        this.#lookAgainIn(eventDelayMs)
      })
      watcher.on('error', () => this.#drop(key, watcher))
      this.#watchers.set(key, watcher)
    } catch {
      this.#hasUnwatched = true
    }
  }

  #drop(key: string, watcher: FSWatcher): void {
    watcher.close()
    if (this.#watchers.get(key) === watcher) this.#watchers.delete(key)
  }

  #closeWatchersExcept(folders: ReadonlySet<string>): void {
    for (const [key, watcher] of this.#watchers) if (!folders.has(key)) this.#drop(key, watcher)
  }
}

const newLook = (): Look => ({ print: [], lastChangeMs: 0, folders: new Set() })

/** The birth time tells a folder from its successor, which often gets the same inode. */
const identityOf = (status: Stats): string => `${status.dev}:${status.ino}:${status.birthtimeMs}`

/** What is there, symlinks followed, or the error's code (`ENOENT`, `EACCES`, `ELOOP`, ...). */
function statusOf(path: string): Stats | string {
  try {
    return statSync(path, { throwIfNoEntry: false }) ?? 'ENOENT'
  } catch (error) {
    return codeOf(error)
  }
}

function symlinkTargetOf(path: string): string | null {
  try {
    return lstatSync(path).isSymbolicLink() ? readlinkSync(path) : null
  } catch {
    return null
  }
}

function entriesOf(folder: string): ReturnType<typeof readFolder> {
  try {
    return readFolder(folder)
  } catch {
    return []
  }
}

const readFolder = (folder: string) =>
  readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1))

const codeOf = (error: unknown): string =>
  error instanceof Error && 'code' in error ? String(error.code) : 'unreadable'
