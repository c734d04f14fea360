/**
 * Holds the overrides that are in force, and changes them where they are kept, so that they outlive a restart and hold
 * for every server that reads the same place.
 */
import type { Cancel, Clock } from '../base/clock.ts'
import { TextError } from '../base/errors.ts'
import { overrideEntries, overrideTimerMaxMs } from '../base/limits.ts'
import type { Logger } from '../base/log.ts'
import {
  actionsBetween,
  entriesOf,
  holdingAt,
  nextEndEpochMs,
  noOverrides,
  overridesToText,
  parseOverrides,
  withAction,
  type OverrideAction,
  type Overrides
} from './overrides.ts'

/** The place could not be read or written; the message says what to do about it. */
export class OverridePlaceError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'OverridePlaceError'
  }
}

export type PlaceListener = Readonly<{
  /** The whole text whenever it may have changed; null: there is none. */
  onText(text: string | null): void
  /** Why the place cannot be read; null: it can be again. What was read last stays in force. */
  onUnreadable(reason: string | null): void
}>

/** Where overrides are kept: a file, or an object of the cluster. */
export interface OverridePlace {
  /** In words: `the file /etc/peerdns/config.state`. */
  readonly where: string
  /** Begins to follow the place. Resolves when it was looked at, or there is nothing to wait for. Never rejects. */
  start(listener: PlaceListener): Promise<void>
  /**
   * Exchanges the text in one step: whoever reads sees the old one or the new one, and no other change is lost.
   * @param edit is called with what is there at that moment, and again where somebody was quicker.
   * @throws OverridePlaceError
   */
  change(edit: (text: string | null) => string): Promise<void>
  close(): Promise<void>
}

/** Why an override ended or began. */
export type OverrideCause = 'operator' | 'time'

export type OverrideStoreOptions = Readonly<{
  /** null: nothing is kept, and every action is refused. */
  place: OverridePlace | null
  clock: Clock
  log: Logger
  /** Called after each change of what holds, with what changed. */
  onChange(actions: readonly OverrideAction[], cause: OverrideCause): void
  /** Called once for each problem with the place or its content; null: it is over. */
  onProblem(problem: string | null): void
}>

export class OverrideStore {
  readonly #options: OverrideStoreOptions
  /** All that was read, what is over among it. */
  #known: Overrides = noOverrides
  #holding: Overrides = noOverrides
  #badContent: string | null = null
  #unreadable: string | null = null
  #told: string | null = null
  #cancelTimer: Cancel = () => {}
  #isClosed = false

  constructor(options: OverrideStoreOptions) {
    this.#options = options
  }

  /** What is in force now. */
  get holding(): Overrides {
    return this.#holding
  }

  /** What is wrong with the place or its content; null: nothing. */
  get problem(): string | null {
    return this.#unreadable ?? this.#badContent
  }

  get where(): string {
    return this.#options.place?.where ?? 'nowhere: `overrides` is off'
  }

  /** Resolves when the place has been looked at. */
  async start(): Promise<void> {
    await this.#options.place?.start({
      onText: (text) => this.#take(text),
      onUnreadable: (reason) => {
        this.#unreadable = reason
        this.#tellProblem()
      }
    })
  }

  /**
   * Takes an action for every server that reads the same place. It is in force here when this resolves.
   * @throws OverridePlaceError where it could not be kept: then nothing has changed.
   */
  async act(action: OverrideAction): Promise<void> {
    const { place, clock, log } = this.#options
    if (place === null) throw new OverridePlaceError('`overrides: off` in the configuration: nothing would be kept')
    let written = ''
    await place.change((text) => {
      let before = noOverrides
      try {
        before = holdingAt(parseOverrides(text ?? ''), clock.epochMs())
      } catch (error) {
        if (!(error instanceof TextError)) throw error
        // An emergency must not wait for somebody to mend a file. What had been read before it broke is kept.
        before = this.#holding
        log.warn(
          { where: place.where, reason: error.message, content: text },
          'overrides that cannot be read are replaced'
        )
      }
      const after = withAction(before, action)
      if (entriesOf(after) > overrideEntries)
        throw new OverridePlaceError(`there are ${overrideEntries} overrides already`)
      written = overridesToText(after)
      return written
    })
    this.#take(written)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#cancelTimer()
    await this.#options.place?.close()
  }

  #take(text: string | null): void {
    if (this.#isClosed) return
    try {
      this.#known = parseOverrides(text ?? '')
      this.#badContent = null
    } catch (error) {
      if (!(error instanceof TextError)) throw error
      this.#badContent = `${this.where} is ignored: ${error.message}`
    }
    this.#tellProblem()
    this.#settle('operator')
  }

  #tellProblem(): void {
    const { problem } = this
    if (problem === this.#told || this.#isClosed) return
    this.#told = problem
    this.#options.onProblem(problem)
  }

  /** Finds out what holds now, and sets the timer for the next end. */
  #settle(cause: OverrideCause): void {
    const { clock, onChange } = this.#options
    const nowEpochMs = clock.epochMs()
    const before = this.#holding
    this.#holding = holdingAt(this.#known, nowEpochMs)
    this.#cancelTimer()
    const endEpochMs = nextEndEpochMs(this.#holding)
    if (endEpochMs !== null) {
      // Looked at again and again: wall time may be set, and a timer holds for 24 days at most.
      const delayMs = Math.min(Math.max(1, endEpochMs - nowEpochMs), overrideTimerMaxMs)
      this.#cancelTimer = clock.after(delayMs, () => this.#settle('time'))
    }
    const actions = actionsBetween(before, this.#holding)
    if (actions.length > 0) onChange(actions, cause)
  }
}
