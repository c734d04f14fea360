/**
 * The source `manifests`: Kubernetes objects from files and folders, as events, read again whenever the files change.
 *
 * Each look at the files ends in the exact difference to the one before: an object that did not change gives no event,
 * whichever file it stands in now. A file is parsed again only if its content changed. A file that cannot be read keeps
 * what it last gave, so that a slip of the pen takes nothing away. Two files with the same object: the later path wins.
 */
import { join } from 'node:path'
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
  /** Gets every difference, in slices of at most `objectEventsPerBatch`; never throws. `originAtMs`: wall time of the change. */
  onEvents: (events: readonly ObjectEvent[], originAtMs: number) => void
  /** Gets the whole list whenever it has changed. */
  onProblems?: (problems: readonly ManifestProblem[]) => void
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
/** A file that has just become empty, or that changed while it was read, is looked at again after this. */
const unsettledDelayMs = 40
/** An empty file is believed once it has stayed empty for this long: many programs empty a file, then write it. */
const emptyGraceMs = 80
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
  #problems: readonly ManifestProblem[] = []
  #watch: FileWatch | null = null
  #cancelRecheck: Cancel = () => {}
  #current: Promise<void> | null = null
  #mustLookAgain = false
  #lastLookAtMs: number | null = null
  #isClosed = false

  constructor(options: ManifestsSourceOptions) {
    this.#options = options
    this.#paths = options.paths.map((path) => join(path, '.'))
    this.#pause = options.pause ?? nextTurn
  }

  get problems(): readonly ManifestProblem[] {
    return this.#problems
  }

  /** Resolves once everything that is there has been read and told. Never rejects for what the files hold. */
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
    this.#tellProblems(listing)
    this.stats.looks++
    this.#lastLookAtMs = startedAtMs
  }

  /** What the file gives from now on, or null where that is as before. */
  async #read(file: FoundFile): Promise<ParsedManifest | null> {
    const known = this.#files.get(file.path)
    if (known?.print === file.print) return null
    const state: FileState = known ?? { print: '', hash: '', parsed: nothing, failure: null }
    this.#files.set(file.path, state)
    const ageMs = this.#options.clock.epochMs() - file.changedAtMs
    const isYoung = ageMs < timestampGrainMs
    if (file.sizeOctets === 0 && state.parsed.objects.size > 0 && ageMs < emptyGraceMs) return this.#waitFor(file.path)
    try {
      const content = await readManifestFile(file)
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
      return parsed
    } catch (error) {
      state.print = ''
      state.hash = ''
      state.failure = [fileProblem(file.path, reasonOf(error))]
      return null
    }
  }

  #waitFor(path: string): null {
    this.#unsettled.set(path, (this.#unsettled.get(path) ?? 0) + 1)
    this.#cancelRecheck()
    this.#cancelRecheck = this.#options.clock.after(unsettledDelayMs, () => void this.#changed())
    return null
  }

  async #forgetMissing({ files, unreadable }: Listing, touched: Map<string, PutOrReject | null>): Promise<void> {
    const found = new Set(files.map(({ path }) => path))
    for (const path of this.#files.keys()) {
      const mayStillBeThere = unreadable.some((above) => path === above || path.startsWith(`${above}/`))
      if (found.has(path) || mayStillBeThere) continue
      await this.#replace(path, nothing, touched)
      this.#files.delete(path)
      this.#unsettled.delete(path)
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
    for (const { failure, parsed } of this.#files.values()) all.push(...(failure ?? parsed.problems))
    for (const key of this.#contested) all.push(...contestedProblems(this.#holdings.get(key) ?? []))
    this.stats.problems = all.length
    all.sort((a, b) => (a.file === b.file ? a.line - b.line || a.column - b.column : a.file < b.file ? -1 : 1))
    const problems = all.slice(0, manifestProblems)
    if (this.#isClosed || isDeepStrictEqual(problems, this.#problems)) return
    this.#problems = problems
    this.#options.onProblems?.(problems)
  }
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
