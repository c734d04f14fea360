/**
 * The health of one server as a pure function of what was seen: probes judge it, and a network that refuses real
 * traffic may speak against it sooner. No timers and no sockets here; probe.ts has them.
 */
import { flapWindowMs, healthHistoryEntries, holdDownMaxMs, holdDownMinMs } from '../base/limits.ts'

/** `unknown` until something was seen; it counts as usable, since a probe that has not run proves nothing. */
export type Health = 'up' | 'down' | 'unknown'

export type HealthTransition = Readonly<{
  from: Health
  to: Health
  reason: string
  /** Monotonic milliseconds. */
  atMs: number
}>

export type HealthState = Readonly<{
  health: Health
  /** When it became so; monotonic milliseconds. */
  sinceMs: number
  /** Probes in a row that succeeded. */
  probeSuccesses: number
  /** When the first of them came back; monotonic milliseconds. */
  risingSinceMs: number
  /** When it fell of late, oldest first; monotonic milliseconds. */
  fallsAtMs: readonly number[]
  /** Probes in a row that failed. */
  probeFailures: number
  /** Questions of real traffic in a row that failed, with no success of either kind in between. */
  trafficFailures: number
  /** When a probe or a question last succeeded; monotonic milliseconds, null before the first. */
  lastSuccessAtMs: number | null
  lastReason: string
  /** The latest transitions, oldest first. */
  history: readonly HealthTransition[]
}>

/** Of traffic only what speaks for the whole server: one name alone may time out, which probe.ts leaves out. */
export type HealthOutcome = Readonly<{
  from: 'probe' | 'traffic'
  isSuccess: boolean
  /** For people: `NOERROR with SOA`, `timeout`, `network`, `REFUSED`, ... */
  reason: string
  /** When what ended now was begun; monotonic milliseconds. */
  startedAtMs: number
}>

export type HealthOptions = Readonly<{
  /** Failures in a row that make a server `down`. */
  fall: number
  /** Successful probes in a row that make it `up` again. */
  rise: number
}>

export const newHealthState = (nowMs: number): HealthState => ({
  health: 'unknown',
  sinceMs: nowMs,
  probeSuccesses: 0,
  risingSinceMs: nowMs,
  fallsAtMs: [],
  probeFailures: 0,
  trafficFailures: 0,
  lastSuccessAtMs: null,
  lastReason: 'not probed yet',
  history: []
})

/**
 * The state after one outcome.
 *
 * - A first successful probe makes `unknown` `up`; `down` needs `rise` of them in a row, and from the second fall
 *   within two minutes on, a time without any failure that doubles with each fall.
 * - `fall` failed probes in a row, or `fall` failed questions in a row, make it `down`.
 * - A failed question counts only if nothing succeeded since it was begun: else the server lives, and the
 *   trouble is over. Answers to real questions never make it `up`: a server may know one name and have lost the rest.
 */
export function nextHealth(
  state: HealthState,
  outcome: HealthOutcome,
  options: HealthOptions,
  nowMs: number
): HealthState {
  const counted = outcome.from === 'probe' ? afterProbe(state, outcome, nowMs) : afterTraffic(state, outcome, nowMs)
  if (counted === state) return state
  const to = judge(counted, options, nowMs)
  if (to === state.health) return counted
  const reason =
    counted.trafficFailures >= options.fall && outcome.from === 'traffic'
      ? `traffic: ${outcome.reason}`
      : outcome.reason
  const transition: HealthTransition = { from: state.health, to, reason, atMs: nowMs }
  return {
    ...counted,
    health: to,
    sinceMs: nowMs,
    trafficFailures: 0,
    // Successes before the fall say nothing about the way back.
    probeSuccesses: to === 'down' ? 0 : counted.probeSuccesses,
    fallsAtMs: to === 'down' ? [...recentFalls(counted, nowMs), nowMs].slice(-maxFalls) : counted.fallsAtMs,
    history: [...state.history.slice(1 - healthHistoryEntries), transition]
  }
}

function afterProbe(state: HealthState, { isSuccess, reason }: HealthOutcome, nowMs: number): HealthState {
  return isSuccess
    ? {
        ...state,
        probeSuccesses: state.probeSuccesses + 1,
        risingSinceMs: state.probeSuccesses === 0 ? nowMs : state.risingSinceMs,
        probeFailures: 0,
        trafficFailures: 0,
        lastSuccessAtMs: nowMs,
        lastReason: reason
      }
    : { ...state, probeSuccesses: 0, probeFailures: state.probeFailures + 1, lastReason: reason }
}

function afterTraffic(
  state: HealthState,
  { isSuccess, reason, startedAtMs }: HealthOutcome,
  nowMs: number
): HealthState {
  if (isSuccess) return { ...state, trafficFailures: 0, lastSuccessAtMs: nowMs }
  const livesSince = state.lastSuccessAtMs !== null && state.lastSuccessAtMs > startedAtMs
  if (state.health === 'down' || livesSince) return state
  return { ...state, trafficFailures: state.trafficFailures + 1, lastReason: reason }
}

/** More of them do not make the time any longer. */
const maxFalls = 8

const recentFalls = ({ fallsAtMs }: HealthState, nowMs: number): readonly number[] =>
  fallsAtMs.filter((atMs) => nowMs - atMs < flapWindowMs)

/** How long a server that is down has to answer without a failure before it is up: damps one that flaps. */
export function holdDownMs(state: HealthState, nowMs: number): number {
  const falls = recentFalls(state, nowMs).length
  return falls < 2 ? 0 : Math.min(holdDownMaxMs, holdDownMinMs * 2 ** (falls - 2))
}

function judge(state: HealthState, { fall, rise }: HealthOptions, nowMs: number): Health {
  if (state.health === 'down') {
    const isProven = state.probeSuccesses >= rise && nowMs - state.risingSinceMs >= holdDownMs(state, nowMs)
    return isProven ? 'up' : 'down'
  }
  if (state.probeFailures >= fall || state.trafficFailures >= fall) return 'down'
  return state.health === 'unknown' && state.probeSuccesses > 0 ? 'up' : state.health
}
