/**
 * Which of several replicas checks addresses for all of them. It says so again and again in a text that all see and
 * change by conditional writes, together with what is down; the others follow it. When it falls silent another one
 * takes its place and goes on from its results. Silence is taken by the clock of who waits: clocks need not agree.
 */
import type { Cancel, Clock } from '../base/clock.ts'
import {
  checkAloneAfterMs,
  checkedEndpoints,
  checkHolderReleaseMs,
  checkHolderRenewEveryMs,
  checkHolderSilenceMs,
  checkHolderTurnMs,
  sharedDownOctets
} from '../base/endpoint-limits.ts'

/**
 * - `following`: another one checks, or nothing is known yet.
 * - `holding`: we check, for all.
 * - `alone`: we check for ourselves, since neither another one was heard nor could its place be taken.
 */
export type CheckRole = 'following' | 'holding' | 'alone'

/** A text that several processes see. */
export interface SharedText {
  start(
    listener: Readonly<{ onText(text: string | null): void; onUnreadable(reason: string | null): void }>
  ): Promise<void>
  /**
   * Exchanges it by one conditional write. Rejects where it cannot be written.
   * @param edit may be called again, where somebody else was quicker; null: the text is to stay as it is.
   */
  change(edit: (text: string | null) => string | null): Promise<void>
  close(): Promise<void>
}

export type CheckHolderOptions = Readonly<{
  clock: Clock
  text: SharedText
  /** Tells this process from all others. */
  identity: string
  /** What is taken to be down until something is heard. */
  down: ReadonlySet<string>
  /** What we found to be down ourselves. */
  ownDown: () => ReadonlySet<string>
  /** After each change of the role, or of what the others found to be down. */
  onChange: () => void
  /** Why the text cannot be read or written; null: it can be again. */
  onProblem: (problem: string | null) => void
}>

/** The text, read; `holder` '' where nobody holds the place. */
type Shared = Readonly<{ holder: string; renewal: number; down: ReadonlySet<string> }>

export class CheckHolder {
  readonly #options: CheckHolderOptions
  #role: CheckRole = 'following'
  #down: ReadonlySet<string>
  /** Holder and renewal as last seen, and when that was new. */
  #seen: Readonly<{ holder: string | null; renewal: number; atMs: number }>
  #triedAtMs = -Infinity
  #isWriting = false
  #hasNews = false
  #unreadable: string | null = null
  #unwritable: string | null = null
  #cancel: Cancel = () => {}
  #isClosed = false

  constructor(options: CheckHolderOptions) {
    this.#options = options
    this.#down = options.down
    this.#seen = { holder: null, renewal: 0, atMs: options.clock.nowMs() }
  }

  get role(): CheckRole {
    return this.#role
  }

  /** Keys of what the one that checks for all found to be down, as last heard. */
  get down(): ReadonlySet<string> {
    return this.#down
  }

  /** Who checks for all, as last heard; '' where that is nobody. */
  get holder(): string {
    return this.#seen.holder ?? ''
  }

  start(): void {
    void this.#options.text.start({
      onText: (text) => this.#hear(text),
      onUnreadable: (reason) => {
        this.#unreadable = reason
        this.#tellProblem()
      }
    })
    this.#turn()
  }

  /** What we found to be down has changed. */
  ownDownChanged(): void {
    this.#hasNews = true
  }

  /** Gives up the place, so that another one need not wait for our silence. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#cancel()
    const { clock, text, identity } = this.#options
    if (this.#role === 'holding') {
      const timeIsUp = Promise.withResolvers<void>()
      const cancel = clock.after(checkHolderReleaseMs, timeIsUp.resolve)
      const release = text.change((before) => {
        const found = parseShared(before)
        return found.holder === identity ? sharedText({ ...found, holder: '', renewal: found.renewal + 1 }) : null
      })
      await Promise.race([release.catch(() => {}), timeIsUp.promise])
      cancel()
    }
    await text.close()
  }

  #turn(): void {
    const nowMs = this.#options.clock.nowMs()
    const silenceMs = nowMs - this.#seen.atMs
    if (this.#role === 'following' && silenceMs >= checkAloneAfterMs) this.#become('alone')
    const isDue = nowMs - this.#triedAtMs >= checkHolderRenewEveryMs
    const wants = this.#role === 'holding' ? isDue || this.#hasNews : isDue && this.#mayTake()
    if (wants && !this.#isWriting) void this.#write()
    this.#cancel = this.#options.clock.after(checkHolderTurnMs, () => this.#turn())
  }

  /** What nobody holds may be taken at once, and what is ours by a write whose reply was lost. */
  #mayTake(): boolean {
    const { holder, atMs } = this.#seen
    const { identity, clock } = this.#options
    return holder === '' || holder === identity || clock.nowMs() - atMs >= checkHolderSilenceMs
  }

  async #write(): Promise<void> {
    const { clock, text, identity, ownDown } = this.#options
    this.#isWriting = true
    this.#triedAtMs = clock.nowMs()
    this.#hasNews = false
    let taken: Shared | null = null
    try {
      await text.change((before) => {
        this.#hear(before)
        taken = null
        if (this.#isClosed || !this.#mayTake()) return null
        // Who only followed goes on from what the last one found.
        const down = this.#role === 'following' ? this.#down : ownDown()
        taken = { holder: identity, renewal: parseShared(before).renewal + 1, down }
        return sharedText(taken)
      })
      this.#unwritable = null
    } catch (error) {
      // Whether it is written or not shows when it is read again; until then everything stays as it is.
      this.#hasNews = true
      this.#unwritable = error instanceof Error ? error.message : String(error)
      taken = null
    }
    this.#isWriting = false
    if (this.#isClosed) return
    this.#tellProblem()
    if (taken === null) return
    this.#note(taken)
    this.#become('holding')
  }

  #hear(text: string | null): void {
    if (this.#isClosed) return
    const found = parseShared(text)
    const isNews = this.#note(found)
    const isOthers = found.holder !== '' && found.holder !== this.#options.identity
    if (!isOthers && this.#role !== 'following') return
    const isDifferent = text !== null && !isSame(this.#down, found.down)
    if (this.#role === 'holding' || (this.#role === 'alone' && isNews)) {
      this.#down = found.down
      this.#become('following')
    } else if (this.#role === 'following' && isDifferent) {
      this.#down = found.down
      this.#options.onChange()
    }
  }

  /** Whether somebody gave a sign of life. */
  #note({ holder, renewal }: Shared): boolean {
    if (this.#seen.holder === holder && this.#seen.renewal === renewal) return false
    this.#seen = { holder, renewal, atMs: this.#options.clock.nowMs() }
    return true
  }

  #become(role: CheckRole): void {
    if (this.#role === role) return
    this.#role = role
    this.#options.onChange()
  }

  #tellProblem(): void {
    if (!this.#isClosed) this.#options.onProblem(this.#unreadable ?? this.#unwritable)
  }
}

const isSame = (one: ReadonlySet<string>, other: ReadonlySet<string>): boolean =>
  one.size === other.size && [...one].every((key) => other.has(key))

function sharedText({ holder, renewal, down }: Shared): string {
  const keys: string[] = []
  let octets = 0
  for (const key of [...down].sort()) {
    octets += Buffer.byteLength(key) + '"",'.length
    if (octets > sharedDownOctets) break
    keys.push(key)
  }
  return JSON.stringify({ holder, renewal, down: keys })
}

/** What is not as we write it is nobody's, and nothing is down. */
function parseShared(text: string | null): Shared {
  const nobodys: Shared = { holder: '', renewal: 0, down: new Set() }
  if (text === null) return nobodys
  try {
    const { holder, renewal, down } = Object(JSON.parse(text)) as Record<string, unknown>
    if (typeof holder !== 'string' || !Number.isSafeInteger(renewal) || !Array.isArray(down)) return nobodys
    const keys = down.filter((key): key is string => typeof key === 'string').slice(0, checkedEndpoints)
    return { holder, renewal: renewal as number, down: new Set(keys) }
  } catch {
    return nobodys
  }
}
