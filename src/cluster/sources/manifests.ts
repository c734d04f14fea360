/**
 * The source `manifests`: Kubernetes objects from files and folders, as events, read again whenever the files change.
 *
 * Each look at the files ends in the exact difference to the one before: an object that did not change gives no event,
 * whichever file it stands in now. A file is parsed again only if its content changed. Two files with the same object:
 * the later path wins.
 *
 * What is not there is not taken for empty. The objects are complete once every configured path has been read; a file
 * that cannot be read, and a configured path that is gone, keep what they last gave, so that a slip of the pen, or a
 * folder that is mounted anew, takes nothing away.
 */
import { join, relative } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import type { Cancel, Clock } from '../../base/clock.ts'
import { watchPaths } from '../../base/file-watch.ts'
import type { FileWatch } from '../../base/file-watch.ts'
import { manifestProblems, objectEventsPerBatch } from '../../base/limits.ts'
import type { ObjectEvent, ObjectKind } from '../object-event.ts'
import type { Identity } from '../objects.ts'
import { findManifestFiles, readManifestFile, reasonOf } from './manifest-files.ts'
import type { FoundFile, Listing } from './manifest-files.ts'
import { parseManifest } from './manifest-objects.ts'
import type { ManifestProblem, ParsedManifest, PutOrReject } from './manifest-objects.ts'

export type { ManifestProblem } from './manifest-objects.ts'

export type ManifestsSourceOptions = Readonly<{
  /** Files and folders; relative ones from the working directory. They need not exist yet. */
  paths: readonly string[]
  clock: Clock
  /**
   * Gets every difference, in slices of at most `objectEventsPerBatch`; never throws. `originAtMs`: wall time of the
   * change.
   */
  onEvents: (events: readonly ObjectEvent[], originAtMs: number) => void
  /** Called once, when every configured path has been there and all that it held has been told. */
  onComplete?: () => void
  /** Gets the whole list whenever it has changed. */
  onProblems?: (problems: readonly ManifestProblem[]) => void
  /** A file that is there held so many objects, and holds none from now on. */
  onEmptied?: (path: string, objects: number) => void
  /** Lets everything else in this thread run before the next object is parsed. */
  pause?: () => Promise<void>
}>

type FileState = {
  /** '' while the file may have been written since without another time: it is read again at the next look. */
  print: string
  hash: string
  parsed: ParsedManifest
  /** Why its present content cannot be used; null: it is in use. */
  failure: readonly ManifestProblem[] | null
}
type Holding = Readonly<{ path: string; line: number; event: PutOrReject }>

/** Objects compared between two pauses. */
const keysPerTurn = 1_000
/** A file written less than this ago may be written again and keep its time. */
const timestampGrainMs = 20
/** A file that changed while it was read, or is just gone, is looked at again after this. */
const unsettledDelayMs = 40
/** An empty file is believed once it has stayed empty for this long: many programs empty a file, then write it. */
const emptyGraceMs = 2_000
/** So long a file must be gone: a folder that is being removed loses its files first, and then is kept as it was. */
const goneGraceMs = 60
/** A file that changes during each of so many reads is taken as it is. */
const unsettledReads = 5

const nothing: ParsedManifest = { objects: new Map(), problems: [], hasErrors: false }
// A turn of the event loop: queries that came in meanwhile are answered before the next object is parsed.
const nextTurn = (): Promise<void> => new Promise((resolve) => void setImmediate(resolve))

export class ManifestsSource {
  readonly stats = { looks: 0, files: 0, objects: 0, problems: 0, filesParsed: 0, events: 0 }
  readonly #options: ManifestsSourceOptions
  readonly #paths: readonly string[]
  readonly #pause: () => Promise<void>
  readonly #files = new Map<string, FileState>()
  /** All files that have an object, by object and in the order of their paths: the last one's holds. */
  readonly #holdings = new Map<string, Holding[]>()
  readonly #contested = new Set<string>()
  readonly #unsettled = new Map<string, number>()
  /** Files that are empty or gone and were not before, with the monotonic time of the first look that found them so. */
  readonly #doubtedSinceMs = new Map<string, number>()
  /** Configured paths that have not been read yet. */
  readonly #unread: Set<string>
  #isComplete = false
  #isWholeNow = false
  #lastSeenWholeAtMs: number | null = null
  #problems: readonly ManifestProblem[] = []
  #watch: FileWatch | null = null
  #cancelRecheck: Cancel = () => {}
  #recheckAtMs = Number.POSITIVE_INFINITY
  #current: Promise<void> | null = null
  #mustLookAgain = false
  #lastLookAtMs: number | null = null
  #isClosed = false

  constructor(options: ManifestsSourceOptions) {
    this.#options = options
    this.#paths = options.paths.map((path) => join(path, '.'))
    this.#unread = new Set(this.#paths)
    this.#pause = options.pause ?? nextTurn
  }

  get problems(): readonly ManifestProblem[] {
    return this.#problems
  }

  /** Configured paths that have not been read yet: the objects are not complete without them. */
  get unread(): readonly string[] {
    return [...this.#unread]
  }

  /**
   * Since the last look that found every configured path there, in milliseconds; null before the objects are complete.
   */
  get seenWholeAgoMs(): number | null {
    if (!this.#isComplete || this.#lastSeenWholeAtMs === null) return null
    return this.#isWholeNow ? 0 : this.#options.clock.nowMs() - this.#lastSeenWholeAtMs
  }

  /**
   * Resolves once everything that is there has been read and told, complete or not. Never rejects for what the files
   * hold.
   */
  start(): Promise<void> {
    this.#watch = watchPaths(this.#paths, () => void this.#changed(), this.#options.clock)
    return this.#changed()
  }

  close(): void {
    this.#isClosed = true
    this.#watch?.close()
    this.#cancelRecheck()
  }

  /** Looks now, or once more after the look that is going on. */
  #changed(): Promise<void> {
    this.#mustLookAgain = true
    this.#current ??= this.#lookUntilCurrent().finally(() => (this.#current = null))
    return this.#current
  }

  async #lookUntilCurrent(): Promise<void> {
    while (this.#mustLookAgain && !this.#isClosed) {
      this.#mustLookAgain = false
      await this.#look()
    }
  }

  async #look(): Promise<void> {
    const { clock } = this.#options
    const startedAtMs = clock.epochMs()
    const listing = await findManifestFiles(this.#paths, this.#pause)
    const touched = new Map<string, PutOrReject | null>()
    let originAtMs = startedAtMs
    for (const file of listing.files) {
      const parsed = await this.#read(file)
      if (this.#isClosed) return
      if (parsed === null) continue
      originAtMs = Math.min(originAtMs, file.changedAtMs)
      await this.#replace(file.path, parsed, touched)
    }
    await this.#forgetMissing(listing, touched)
    this.stats.files = this.#files.size
    // No change is older than the look before this one, which did not see it: a symlink may lead to an old file.
    await this.#tell(touched, Math.max(originAtMs, this.#lastLookAtMs ?? startedAtMs))
    if (this.#isClosed) return
    this.#tellProblems(listing)
    this.#noteWhatIsThere(listing)
    this.stats.looks++
    this.#lastLookAtMs = startedAtMs
  }

  #noteWhatIsThere({ missing, unreadable }: Listing): void {
    const isThere = (path: string): boolean => !missing.includes(path) && !unreadable.includes(path)
    for (const path of this.#unread) {
      const file = this.#files.get(path)
      if (isThere(path) && (file === undefined || file.parsed !== nothing)) this.#unread.delete(path)
    }
    const isWhole = this.#paths.every(isThere)
    if (isWhole || this.#isWholeNow) this.#lastSeenWholeAtMs = this.#options.clock.nowMs()
    this.#isWholeNow = isWhole
    if (this.#isComplete || this.#unread.size > 0 || this.#unsettled.size > 0) return
    this.#isComplete = true
    this.#options.onComplete?.()
  }

  /** What the file gives from now on, or null where that is as before. */
  async #read(file: FoundFile): Promise<ParsedManifest | null> {
    const known = this.#files.get(file.path)
    if (known?.print === file.print) {
      this.#doubtedSinceMs.delete(file.path)
      return null
    }
    const state: FileState = known ?? { print: '', hash: '', parsed: nothing, failure: null }
    this.#files.set(file.path, state)
    const isYoung = this.#options.clock.epochMs() - file.changedAtMs < timestampGrainMs
    const isEmptied = file.sizeOctets === 0 && state.parsed.objects.size > 0
    if (isEmptied && this.#mayPass(file.path, emptyGraceMs)) {
      state.failure = [fileProblem(file.path, emptied)]
      return null
    }
    this.#doubtedSinceMs.delete(file.path)
    try {
      const content = await readManifestFile(file)
      // It was emptied since it was listed.
      if (content.text === '' && file.sizeOctets > 0) return this.#waitFor(file.path)
      if (!content.isSettled && (this.#unsettled.get(file.path) ?? 0) < unsettledReads) return this.#waitFor(file.path)
      this.#unsettled.delete(file.path)
      state.print = isYoung || !content.isSettled ? '' : file.print
      if (content.hash === state.hash) return null
      this.stats.filesParsed++
      const parsed = await parseManifest(file.path, content.text, this.#pause)
      state.hash = content.hash
      if (parsed.hasErrors && state.parsed !== nothing && !state.parsed.hasErrors) {
        state.failure = [keptProblem(file.path), ...parsed.problems]
        return null
      }
      state.failure = null
      const { size } = state.parsed.objects
      if (size > 0 && parsed.objects.size === 0) this.#options.onEmptied?.(file.path, size)
      return parsed
    } catch (error) {
      state.print = ''
      state.hash = ''
      this.#unsettled.delete(file.path)
      state.failure = [fileProblem(file.path, reasonOf(error))]
      return null
    }
  }

  #waitFor(path: string): null {
    this.#unsettled.set(path, (this.#unsettled.get(path) ?? 0) + 1)
    this.#lookAgainIn(unsettledDelayMs)
    return null
  }

  /** Whether what is doubtful about this file is so new that it may be over in a moment; then it is looked at again. */
  #mayPass(path: string, graceMs: number): boolean {
    const nowMs = this.#options.clock.nowMs()
    const sinceMs = this.#doubtedSinceMs.get(path) ?? nowMs
    this.#doubtedSinceMs.set(path, sinceMs)
    const leftMs = sinceMs + graceMs - nowMs
    if (leftMs > 0) this.#lookAgainIn(leftMs)
    return leftMs > 0
  }

  /** Sets the timer for the next look; an earlier one that is set already stays. */
  #lookAgainIn(delayMs: number): void {
    const { clock } = this.#options
    if (this.#isClosed) return
    const atMs = clock.nowMs() + delayMs
    if (this.#recheckAtMs <= atMs) return
    this.#cancelRecheck()
    this.#recheckAtMs = atMs
    this.#cancelRecheck = clock.after(delayMs, () => {
      this.#recheckAtMs = Number.POSITIVE_INFINITY
      void this.#changed()
    })
  }

  async #forgetMissing(
    { files, unreadable, missing }: Listing,
    touched: Map<string, PutOrReject | null>
  ): Promise<void> {
    const found = new Set(files.map(({ path }) => path))
    const kept = [...unreadable, ...missing]
    for (const path of this.#files.keys()) {
      if (found.has(path)) continue
      if (kept.some((above) => isAtOrBelowPath(path, above))) {
        this.#doubtedSinceMs.delete(path)
        continue
      }
      if (this.#mayPass(path, goneGraceMs)) continue
      await this.#replace(path, nothing, touched)
      this.#files.delete(path)
      this.#unsettled.delete(path)
      this.#doubtedSinceMs.delete(path)
    }
  }

  /** Exchanges what one file holds, and notes in `touched` what held before for every object concerned. */
  async #replace(path: string, parsed: ParsedManifest, touched: Map<string, PutOrReject | null>): Promise<void> {
    const state = this.#files.get(path)
    if (state === undefined) return
    let keys = 0
    for (const key of new Set([...state.parsed.objects.keys(), ...parsed.objects.keys()])) {
      if (++keys % keysPerTurn === 0) await this.#pause()
      const holdings = this.#holdings.get(key) ?? []
      if (!touched.has(key)) touched.set(key, holdings.at(-1)?.event ?? null)
      const object = parsed.objects.get(key)
      const others = holdings.filter((holding) => holding.path !== path)
      const next = object === undefined ? others : [...others, { path, ...object }]
      if (next.length === 0) this.#holdings.delete(key)
      else this.#holdings.set(key, next.length === 1 ? next : next.sort((a, b) => (a.path < b.path ? -1 : 1)))
      if (next.length > 1) this.#contested.add(key)
      else this.#contested.delete(key)
    }
    state.parsed = parsed
  }

  async #tell(touched: ReadonlyMap<string, PutOrReject | null>, originAtMs: number): Promise<void> {
    const events: ObjectEvent[] = []
    let keys = 0
    for (const [key, before] of touched) {
      if (++keys % keysPerTurn === 0) await this.#pause()
      const after = this.#holdings.get(key)?.at(-1)?.event ?? null
      if (after !== null && !isDeepStrictEqual(before, after)) events.push(after)
      else if (after === null && before !== null) events.push(deletionOf(before))
    }
    this.stats.objects = this.#holdings.size
    this.stats.events += events.length
    for (let from = 0; from < events.length && !this.#isClosed; from += objectEventsPerBatch) {
      if (from > 0) await this.#pause()
      this.#options.onEvents(events.slice(from, from + objectEventsPerBatch), originAtMs)
    }
  }

  #tellProblems(listing: Listing): void {
    const all = listing.problems.map(({ path, reason }) => fileProblem(path, reason))
    for (const path of listing.missing) {
      all.push(fileProblem(path, this.#unread.has(path) ? neverThere : noLongerThere))
    }
    for (const { failure, parsed } of this.#files.values()) all.push(...(failure ?? parsed.problems))
    for (const key of this.#contested) {
      // A file that was renamed is held under both its names for a moment.
      const holdings = this.#holdings.get(key)?.filter(({ path }) => !this.#doubtedSinceMs.has(path))
      all.push(...contestedProblems(holdings ?? []))
    }
    this.stats.problems = all.length
    all.sort((a, b) => (a.file === b.file ? a.line - b.line || a.column - b.column : a.file < b.file ? -1 : 1))
    const problems = all.slice(0, manifestProblems)
    if (this.#isClosed || isDeepStrictEqual(problems, this.#problems)) return
    this.#problems = problems
    this.#options.onProblems?.(problems)
  }
}

const emptied = `the file is empty; what it held before stays in use until it has been empty for ${emptyGraceMs / 1000} s`
const neverThere = 'no such file or folder; nothing is complete until it is there'
const noLongerThere = 'no such file or folder any more; what it held stays in use until it is back'

/** Both as they are configured, or found below that. */
function isAtOrBelowPath(path: string, above: string): boolean {
  const way = relative(above, path)
  return way !== '..' && !way.startsWith('../')
}

const fileProblem = (file: string, reason: string): ManifestProblem => ({
  file,
  line: 0,
  column: 0,
  reason,
  object: null
})

const keptProblem = (file: string): ManifestProblem =>
  fileProblem(file, 'cannot be read as it is now; what it held before stays in use')

const identityOf = (event: PutOrReject): Identity => (event.type === 'put' ? event.object : event.identity)

function deletionOf(event: PutOrReject): ObjectEvent {
  const { kind, namespace, name } = identityOf(event)
  // A rejected object may be of a kind that it only claims to be; whoever listed it finds it by what it claimed.
  return { type: 'delete', kind: kind as ObjectKind, namespace, name }
}

function contestedProblems(holdings: readonly Holding[]): ManifestProblem[] {
  const winner = holdings.at(-1)
  if (winner === undefined) return []
  const { kind, namespace, name } = identityOf(winner.event)
  return holdings.slice(0, -1).map(({ path, line }) => ({
    file: path,
    line,
    column: 1,
    reason: `the same object stands in ${winner.path}:${winner.line}, which holds because its path sorts later`,
    object: { kind, namespace, name }
  }))
}
