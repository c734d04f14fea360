/** What comes out of one run. */
import { percentile } from '../statistics.ts'

export type LatencyFigures = Readonly<{ medianMs: number; p99Ms: number; maxMs: number }>

export function latencyFigures(delaysMs: readonly number[]): LatencyFigures {
  const sorted = Float64Array.from(delaysMs).sort()
  const maxMs = sorted.at(-1) ?? Number.NaN
  return { medianMs: percentile(sorted, 0.5), p99Ms: percentile(sorted, 0.99), maxMs }
}

/** Load average of the machine over the last minute. */
export type WithLoad<T> = T & Readonly<{ load: number }>
