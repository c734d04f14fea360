/**
 * Real time for whole servers and their stubs in one process, which stands still while the process gets no processor: a
 * turn of the event loop, with a task of libuv's threads, counts `turnMs` at most, however long it was kept waiting.
 *
 * So a time-out means as many turns in which an answer could have come as on a quiet machine, and what "took" 200 ms
 * was waited for, not kept off the processor. Wall time stays the system's.
 */
import { stat } from 'node:fs'
import type { Cancel, Clock } from '../../src/base/clock.ts'

const tickMs = 2
const turnMs = 5

let passedMs = 0
let tickedAtMs = performance.now()

const nowMs = (): number => passedMs + Math.min(performance.now() - tickedAtMs, turnMs)

function tick(): void {
  passedMs = nowMs()
  tickedAtMs = performance.now()
  setTimeout(() => stat('/', tick), tickMs).unref()
}
tick()

/** The system's timers are never too late by this clock, so one that is too early is set again for the rest. */
function after(delayMs: number, callback: () => void, keepsAlive: boolean): Cancel {
  const dueMs = nowMs() + delayMs
  let timer: NodeJS.Timeout
  const set = (waitMs: number): void => {
    timer = setTimeout(() => {
      const restMs = dueMs - nowMs()
      if (restMs > 0) set(Math.max(1, restMs))
      else callback()
    }, waitMs)
    if (!keepsAlive) timer.unref()
  }
  set(delayMs)
  return () => clearTimeout(timer)
}

export const loopClock: Clock = {
  nowMs,
  epochMs: () => Date.now(),
  after: (delayMs, callback) => after(delayMs, callback, false)
}

/** The same, so many times as fast: for what checks something every few seconds, and is answered at once. */
export const quickClock = (times: number): Clock => ({
  nowMs: () => nowMs() * times,
  epochMs: () => Date.now(),
  after: (delayMs, callback) => after(delayMs / times, callback, false)
})

/** Lets every socket that is ready have its turn, so often. */
export async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => void setImmediate(resolve))
}

/** Calls back after so long, and keeps the process alive until then. */
export const giveUpAfter = (ms: number, callback: () => void): Cancel => after(ms, callback, true)

/** Waits by this clock; it keeps the process alive. */
export const sleep = (ms: number): Promise<void> => new Promise((resolve) => void after(ms, resolve, true))
