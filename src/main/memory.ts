/** Keeps the process small: what was needed for the start, or freed since, goes back to the system. */
import { setFlagsFromString } from 'node:v8'
import type { Cancel, Clock } from '../base/clock.ts'
import { memoryTrimEveryMs, memoryTrimFirstMs } from '../base/limits.ts'

/**
 * Lets V8's young generation grow, which bin/peerdns.mjs holds small while code is read. A list of many objects makes
 * much that is soon forgotten: in a small young generation it is copied more often, and some of it grows old.
 */
export function letMemoryGrow(): void {
  setFlagsFromString('--semi-space-growth-factor=2')
}

/**
 * Lets memory grow once the start is over, and gives back now and then what the C library has kept: V8's compilers and
 * collectors take and free much in threads of theirs, and each of these has a share of its own. The function returned
 * ends that.
 * @param trim malloc_trim, which takes about a millisecond; null where there is none
 */
export function keepMemorySmall(clock: Clock, trim: ((keepOctets: number) => number) | null): Cancel {
  let cancel = clock.after(memoryTrimFirstMs, () => {
    letMemoryGrow()
    next(0)
  })
  const next = (delayMs: number): void => {
    cancel = clock.after(delayMs, () => {
      trim?.(0)
      if (trim !== null) next(memoryTrimEveryMs)
    })
  }
  return () => cancel()
}
