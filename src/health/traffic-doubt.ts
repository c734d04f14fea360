/**
 * Doubt in servers that pass their probes and fail the questions that clients have, for one name after the other:
 * silent, with nonsense, or with an RCODE such as SERVFAIL or REFUSED. Such a server is not down; it is asked after
 * others, and tried until it answers again.
 *
 * A few names, or a whole zone, may fail at a server that is well. So before it is doubted, what it answered last is
 * asked once more; and while it is doubted, it is tried with what clients ask now, and the answer is remembered for the
 * next time. One zone that is broken can therefore cost the others a moment, once.
 */
import type { Cancel, Clock } from '../base/clock.ts'
import { doubt as limits } from '../base/limits.ts'
import type { DomainName } from '../wire/name.ts'
import { judgeReply, type ProbeAsk, type ProbeQuestion } from './probe.ts'

export type DoubtState = Readonly<{
  /** Questions that failed with no answer in between, each of another name, oldest first. */
  failed: readonly Readonly<{ question: ProbeQuestion; atMs: number }>[]
  /** Questions that were answered of late, newest first, each of another name. */
  answered: readonly ProbeQuestion[]
}>

export const newDoubtState: DoubtState = { failed: [], answered: [] }

/** The state after a question was answered, or failed. Pure. */
export function nextDoubt(state: DoubtState, question: ProbeQuestion, isAnswer: boolean, nowMs: number): DoubtState {
  if (isAnswer) {
    const others = state.answered.filter(({ name }) => name !== question.name)
    return { failed: [], answered: [question, ...others].slice(0, limits.answeredNames) }
  }
  const others = state.failed.filter(({ question: { name }, atMs }) => {
    return name !== question.name && nowMs - atMs < limits.windowMs
  })
  return { ...state, failed: [...others, { question, atMs: nowMs }].slice(-limits.names) }
}

/** Whether enough names in a row failed. */
export const isSuspect = ({ failed }: DoubtState): boolean => failed.length >= limits.names

export type DoubtChange = Readonly<{ server: string; isDoubtful: boolean; reason: string }>

type Doubted = {
  state: DoubtState
  /** When the doubt began; null: there is none. Monotonic milliseconds. */
  sinceMs: number | null
  isChecking: boolean
  checkedAtMs: number
  cancelTrial: Cancel
  trials: number
  /** What a client asked last that was not asked here because of the doubt. */
  passedOver: ProbeQuestion | null
}

/** Answers come or fail; anything else says nothing about the server. */
const failures: ReadonlySet<string> = new Set(['timeout', 'nonsense', 'rcode'])

export class TrafficDoubt {
  /** Servers that came into doubt, and questions that were asked to see whether they are well. */
  readonly stats = { doubts: 0, trials: 0 }
  readonly #clock: Clock
  readonly #probeName: DomainName
  readonly #ask: ProbeAsk
  readonly #servers: () => readonly string[]
  readonly #isDown: (server: string) => boolean
  readonly #onChange: (change: DoubtChange) => void
  readonly #doubted = new Map<string, Doubted>()
  #inDoubt = 0
  #isStopped = false

  /**
   * @param parts `probeName`: an answer for it says nothing, since probes ask for it too. `isDown`: probes fail too, so
   * that there is nothing to doubt.
   */
  constructor(
    parts: Readonly<{
      clock: Clock
      probeName: DomainName
      ask: ProbeAsk
      servers: () => readonly string[]
      isDown: (server: string) => boolean
      onChange: (change: DoubtChange) => void
    }>
  ) {
    this.#clock = parts.clock
    this.#probeName = parts.probeName
    this.#ask = parts.ask
    this.#servers = parts.servers
    this.#isDown = parts.isDown
    this.#onChange = parts.onChange
  }

  /** Hears what became of a client's question: `answer`, `timeout`, `nonsense` and `rcode` count. */
  observe(server: string, outcome: string, question: ProbeQuestion): void {
    const isAnswer = outcome === 'answer'
    if (this.#isStopped || (!isAnswer && !failures.has(outcome))) return
    if (isAnswer && question.name === this.#probeName) return
    const doubted = this.#of(server)
    if (!isAnswer && this.#isDown(server)) {
      // Where there is a doubt already, these are what it is tried with.
      if (doubted.sinceMs === null) doubted.state = { ...doubted.state, failed: [] }
      return
    }
    const { name, type } = question
    doubted.state = nextDoubt(doubted.state, { name, type }, isAnswer, this.#clock.nowMs())
    if (isAnswer) this.#trust(server, doubted)
    else if (doubted.sinceMs === null && this.#mayCheck(doubted) && isSuspect(doubted.state)) {
      void this.#check(server, doubted)
    }
  }

  /** Hears what a client asked that another target is asked for first, because of the doubt in every server here. */
  passedOver({ name, type }: ProbeQuestion): void {
    if (this.#isStopped || name === this.#probeName) return
    for (const doubted of this.#doubted.values()) if (doubted.sinceMs !== null) doubted.passedOver = { name, type }
  }

  /** However many questions fail, a check is made now and then only. */
  #mayCheck({ isChecking, checkedAtMs }: Doubted): boolean {
    return !isChecking && this.#clock.nowMs() - checkedAtMs >= limits.trialMs
  }

  /** Whether any server is in doubt. */
  get isAny(): boolean {
    return this.#inDoubt > 0
  }

  isDoubtful(server: string): boolean {
    return this.sinceMs(server) !== null
  }

  /** Since when a server is in doubt, in monotonic milliseconds; null where it is not. */
  sinceMs(server: string): number | null {
    return this.#doubted.get(server)?.sinceMs ?? null
  }

  stop(): void {
    this.#isStopped = true
    for (const { cancelTrial } of this.#doubted.values()) cancelTrial()
  }

  #of(server: string): Doubted {
    const known = this.#doubted.get(server)
    if (known !== undefined) return known
    const present = new Set(this.#servers())
    for (const [other, { cancelTrial, sinceMs }] of this.#doubted) {
      if (present.has(other)) continue
      cancelTrial()
      if (sinceMs !== null) this.#inDoubt--
      this.#doubted.delete(other)
    }
    const fresh: Doubted = {
      state: newDoubtState,
      sinceMs: null,
      isChecking: false,
      checkedAtMs: Number.NEGATIVE_INFINITY,
      cancelTrial: () => {},
      trials: 0,
      passedOver: null
    }
    this.#doubted.set(server, fresh)
    return fresh
  }

  /** Asks again for what was answered; where that fails too, or nothing ever was, the doubt begins. */
  async #check(server: string, doubted: Doubted): Promise<void> {
    doubted.isChecking = true
    doubted.checkedAtMs = this.#clock.nowMs()
    const { answered } = doubted.state
    const results = await Promise.all(answered.map(async (question) => this.#isAnswered(server, question)))
    doubted.isChecking = false
    if (!this.#isKnown(server, doubted)) return
    if (results.includes(true) || this.#isDown(server)) {
      doubted.state = { ...doubted.state, failed: [] }
    } else if (isSuspect(doubted.state)) {
      doubted.sinceMs = this.#clock.nowMs()
      this.#inDoubt++
      this.stats.doubts++
      this.#armTrial(server, doubted)
      const reason = `probes are answered, the last ${limits.names} names of clients were not`
      this.#onChange({ server, isDoubtful: true, reason })
    }
  }

  #armTrial(server: string, doubted: Doubted): void {
    doubted.cancelTrial = this.#clock.after(limits.trialMs, () => void this.#try(server, doubted))
  }

  /** One question of clients: what they ask now, and what was answered once or failed, in turns. */
  async #try(server: string, doubted: Doubted): Promise<void> {
    const { answered, failed } = doubted.state
    const questions = [...answered, ...failed.map(({ question }) => question)]
    const { passedOver, trials } = doubted
    const question = trials % 2 === 0 && passedOver !== null ? passedOver : questions[trials % questions.length]!
    doubted.trials++
    if (question === passedOver) doubted.passedOver = null
    const isAnswered = await this.#isAnswered(server, question)
    if (!this.#isKnown(server, doubted) || doubted.sinceMs === null) return
    if (!isAnswered) {
      this.#armTrial(server, doubted)
      return
    }
    // It is what the next suspicion is measured by.
    doubted.state = nextDoubt(doubted.state, question, true, this.#clock.nowMs())
    this.#trust(server, doubted)
  }

  async #isAnswered(server: string, question: ProbeQuestion): Promise<boolean> {
    this.stats.trials++
    return judgeReply(await this.#ask(server, question, limits.timeoutMs), null).isSuccess
  }

  #trust(server: string, doubted: Doubted): void {
    doubted.state = { ...doubted.state, failed: [] }
    if (doubted.sinceMs === null) return
    doubted.sinceMs = null
    this.#inDoubt--
    doubted.cancelTrial()
    this.#onChange({ server, isDoubtful: false, reason: 'it answers questions of clients again' })
  }

  #isKnown(server: string, doubted: Doubted): boolean {
    return !this.#isStopped && this.#doubted.get(server) === doubted
  }
}
