/** What comes out of one part of the benchmark. */
import { percentile } from '../statistics.ts'
import type { Trial } from './deaths.ts'
import type { OwnFigures } from './own-figures.ts'
import type { JavaObservation } from './observer-process.ts'
import type { LatencyFigures, ObserverLag, SetUpId } from './observations.ts'

export type Figures = Readonly<{ medianMs: number; p99Ms: number; maxMs: number; count: number }>

export type SetUpFigures = Readonly<{
  id: SetUpId
  title: string
  /** From the API's reply to the last stale answer. */
  blackHole: Figures
  blackHolesMs: readonly number[]
  /** In all trials together. */
  staleAnswers: number
  answers: number
  unanswered: number
  errors: number
  /** Trials in which the dead endpoint was still given at the end. */
  unfinished: number
  latency: LatencyFigures
}>

export type JavaFigures = Readonly<{ title: string; blackHole: Figures }>

/** What a peerdns on B did with the questions while it was measured. */
export type SweepFigures = Readonly<{ title: string; questionsToPeer: number; queries: number; hitShare: number }>

export type PartFigures = Readonly<{
  date: string
  commit: string
  trials: number
  background: Readonly<{ perMinute: number; failures: number }>
  /** The API server's own time, and the controller's after it. */
  api: Figures
  slice: Figures
  setUps: readonly SetUpFigures[]
  java: readonly JavaFigures[]
  sweep: readonly SweepFigures[]
  own: readonly OwnFigures[]
  lag: ObserverLag
  /** Load average of the machine over the last minute. */
  load: number
}>

export function figuresOf(values: readonly number[]): Figures {
  const sorted = Float64Array.from(values).sort()
  const count = sorted.length
  const maxMs = sorted.at(-1) ?? Number.NaN
  return { medianMs: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99), maxMs, count }
}

const rounded = (value: number): number => Math.round(value * 10) / 10

export function setUpFigures(
  { id, title }: Readonly<{ id: SetUpId; title: string }>,
  trials: readonly Trial[],
  latency: LatencyFigures
): SetUpFigures {
  const seen = trials.map(({ bySetUp }) => bySetUp[id]!)
  const sum = (key: 'staleAnswers' | 'answers' | 'unanswered' | 'errors'): number =>
    seen.reduce((total, one) => total + one[key], 0)
  const blackHolesMs = seen.map(({ blackHoleMs }) => rounded(blackHoleMs))
  return {
    id,
    title,
    blackHole: figuresOf(blackHolesMs),
    blackHolesMs,
    staleAnswers: sum('staleAnswers'),
    answers: sum('answers'),
    unanswered: sum('unanswered'),
    errors: sum('errors'),
    unfinished: seen.filter(({ isOver }) => !isOver).length,
    latency
  }
}

export const javaFigures = (id: SetUpId, title: string, all: readonly JavaObservation[]): JavaFigures => ({
  title,
  blackHole: figuresOf(all.filter(({ setUp }) => setUp === id).map(({ blackHoleMs }) => rounded(blackHoleMs)))
})
