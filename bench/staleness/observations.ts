/** What the observer is told, and what it tells. Times are those of `monotonicMs`. */

export type SetUpId = string

export type ObservedServer = Readonly<{
  id: SetUpId
  host: string
  port: number
  /** Also asked by a client that keeps every answer for 30 s, as a JVM does. */
  hasJavaClient?: boolean
}>

export type ToObserver =
  /** Who is asked, and for which names: each once a second, which keeps caches as they are in use. */
  | Readonly<{ kind: 'observe'; servers: readonly ObservedServer[]; names: readonly string[] }>
  /** From now on this name is asked for every 5 ms; an answer that holds the address is the endpoint's. */
  | Readonly<{ kind: 'watch'; trial: number; name: string; address: string }>
  /** The endpoint has died: answers that hold it after this moment are stale. */
  | Readonly<{ kind: 'killed'; trial: number; atMs: number }>
  /** Nothing is asked any more; how it went is told. */
  | Readonly<{ kind: 'stop' }>

export type Observation = Readonly<{
  /** From the death to the last stale answer; 0 where there was none. */
  blackHoleMs: number
  staleAnswers: number
  /** Answers since the death, stale ones among them, until the name was left alone. */
  answers: number
  /** Questions that nobody answered within a second, and answers that were errors. */
  unanswered: number
  errors: number
  /** Whether an answer without the dead endpoint was seen at last. */
  isOver: boolean
  /** When the last stale answer came; null where there was none. */
  lastStaleAtMs: number | null
}>

export type LatencyFigures = Readonly<{ answers: number; medianMs: number; p99Ms: number }>

export type FromObserver =
  | Readonly<{ kind: 'ready' }>
  | Readonly<{ kind: 'observed'; trial: number; bySetUp: Readonly<Record<SetUpId, Observation>> }>
  /** How long the 30 s client still used the dead endpoint. */
  | Readonly<{ kind: 'java'; trial: number; setUp: SetUpId; blackHoleMs: number }>
  | Readonly<{ kind: 'stopped'; lag: ObserverLag; latency: Readonly<Record<SetUpId, LatencyFigures>> }>

/** How well the observer kept its own time. */
export type ObserverLag = Readonly<{
  polls: number
  /** How late a question was sent, in milliseconds. */
  medianMs: number
  p99Ms: number
  maxMs: number
  /** Questions left out because their time had passed. */
  skipped: number
}>
