/** Those who look at the clock run before those who are looked at: being late would show as answers that came late. */
import { setPriority } from 'node:os'

const raised = -10

/** Only root may do that; else the observer's lag tells how good the figures are. */
export function raisePriority(): void {
  try {
    setPriority(raised)
  } catch {
    // As everybody else, then.
  }
}

/** Before other processes are started, which would inherit it. */
export function lowerPriority(): void {
  setPriority(0)
}
