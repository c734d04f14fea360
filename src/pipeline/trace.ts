/** The steps of one query, collected only where somebody asked to see them. */
export type TraceStep = Readonly<{
  /** What happened: `route`, `zone`, `cache`, `policy`, `peer`, `forward`, `alias`, `answer`. */
  step: string
  /** In words, for people. */
  detail: string
  /** Milliseconds since the query began. */
  atMs: number
  /** How long the step took; 0 for what is answered from memory. */
  tookMs: number
  /** Who was asked, `host:port`; null for our own memory. */
  server: string | null
  /** Age in milliseconds of the data that the step gave; null where it gave none. */
  ageMs: number | null
  /** Lowest TTL in seconds of what it gave; null where it gave nothing. */
  ttlSeconds: number | null
}>

export class Trace {
  readonly steps: TraceStep[] = []
  readonly #startedAtMs: number

  constructor(startedAtMs: number) {
    this.#startedAtMs = startedAtMs
  }

  add(nowMs: number, step: Partial<TraceStep> & Pick<TraceStep, 'step' | 'detail'>): void {
    this.steps.push({
      tookMs: 0,
      server: null,
      ageMs: null,
      ttlSeconds: null,
      atMs: nowMs - this.#startedAtMs,
      ...step
    })
  }
}
