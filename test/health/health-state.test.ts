// The state machine of one server's health: rows of outcomes against the states that they must give.
import { test } from 'tap'
import { flapWindowMs, healthHistoryEntries, holdDownMaxMs, holdDownMinMs } from '../../src/base/limits.ts'
import { newHealthState, nextHealth, type HealthOutcome, type HealthState } from '../../src/health/health-state.ts'

const options = { fall: 2, rise: 3 }

/**
 * `+` and `-` a probe, `o` and `x` a question of real traffic, each 100 ms after the one before and begun 50 ms ago.
 */
function play(outcomes: string, from = newHealthState(0), startMs = 0): HealthState[] {
  const states: HealthState[] = []
  let state = from
  let nowMs = startMs
  for (const sign of outcomes) {
    nowMs += 100
    const outcome: HealthOutcome = {
      from: '+-'.includes(sign) ? 'probe' : 'traffic',
      isSuccess: '+o'.includes(sign),
      reason: { '-': 'SERVFAIL', x: 'network' }[sign] ?? 'NOERROR',
      startedAtMs: nowMs - 50
    }
    state = nextHealth(state, outcome, options, nowMs)
    states.push(state)
  }
  return states
}

const letters = (states: HealthState[]): string =>
  states.map(({ health }) => ({ unknown: '?', up: 'u', down: 'd' })[health]).join('')

test('nextHealth gives the health that outcomes in a row prove', async (t) => {
  const rows: { name: string; outcomes: string; want: string }[] = [
    { name: 'a first success is enough', outcomes: '+', want: 'u' },
    { name: 'one failure is none', outcomes: '-+-+-+', want: '?uuuuu' },
    { name: 'fall failures bring down', outcomes: '+--', want: 'uud' },
    { name: 'unknown falls too', outcomes: '--', want: '?d' },
    { name: 'the way back needs rise successes in a row', outcomes: '--++-+++', want: '?ddddddu' },
    { name: 'traffic brings down as probes do', outcomes: '+xx', want: 'uud' },
    { name: 'an answer in between resets traffic', outcomes: '+xoxox', want: 'uuuuuu' },
    { name: 'a good probe resets traffic', outcomes: '+x+x+x', want: 'uuuuuu' },
    { name: 'answers to real questions do not outweigh bad probes', outcomes: '+-o-', want: 'uuud' },
    { name: 'answers to real questions do not bring up', outcomes: '--oooooo', want: '?ddddddd' },
    { name: 'old successes do not help back up', outcomes: '++++xx+++', want: 'uuuuudddu' },
    { name: 'traffic failures while down count for nothing', outcomes: '--xxxx+++x', want: '?ddddddduu' }
  ]
  for (const { name, outcomes, want } of rows) t.equal(letters(play(outcomes)), want, `${name}: ${outcomes}`)
  t.equal(play('+').at(-1)?.health, 'up')
  t.equal(newHealthState(0).health, 'unknown')
})

test('nextHealth does not count a slow question against a server that answered meanwhile', async (t) => {
  let state = play('+').at(-1)!
  const slow = (startedAtMs: number): HealthOutcome => ({
    from: 'traffic',
    isSuccess: false,
    reason: 'network',
    startedAtMs
  })
  state = nextHealth(state, slow(90), options, 500)
  state = nextHealth(state, slow(90), options, 510)
  t.equal(state.health, 'up', 'both were begun before the last success')
  t.equal(state.trafficFailures, 0)
  state = nextHealth(state, slow(120), options, 520)
  state = nextHealth(state, slow(120), options, 530)
  t.equal(state.health, 'down')
})

test('nextHealth remembers transitions with reason and time, the last of them only', async (t) => {
  const states = play('+--+++xx')
  t.same(states.at(-1)?.history, [
    { from: 'unknown', to: 'up', reason: 'NOERROR', atMs: 100 },
    { from: 'up', to: 'down', reason: 'SERVFAIL', atMs: 300 },
    { from: 'down', to: 'up', reason: 'NOERROR', atMs: 600 },
    { from: 'up', to: 'down', reason: 'traffic: network', atMs: 800 }
  ])
  t.equal(states.at(-1)?.sinceMs, 800)
  // Long enough up in between that no time without failures is asked for.
  const long = play(`${'+'.repeat(90)}--`.repeat(40)).at(-1)!
  t.equal(long.history.length, healthHistoryEntries)
  t.equal(long.history.at(-1)?.atMs, 40 * 92 * 100)
})

test('nextHealth holds a server that flaps down for longer with each fall, and forgets', async (t) => {
  let state = newHealthState(0)
  let nowMs = 0
  const probe = (isSuccess: boolean): void => {
    nowMs += 100
    state = nextHealth(state, { from: 'probe', isSuccess, reason: '', startedAtMs: nowMs }, options, nowMs)
  }
  const fall = (): void => {
    for (let at = 0; at < options.fall; at++) probe(false)
    if (state.health !== 'down') t.fail('it did not fall')
  }
  /** Time from the first success until it is up. */
  const risenAfterMs = (): number => {
    const startedAtMs = nowMs + 100
    while (state.health === 'down') probe(true)
    return nowMs - startedAtMs
  }
  fall()
  t.equal(risenAfterMs(), (options.rise - 1) * 100, 'the first time: rise successes')
  const holds: number[] = []
  for (let at = 0; at < 5; at++) {
    fall()
    holds.push(risenAfterMs())
  }
  t.same(holds, [holdDownMinMs, holdDownMinMs * 2, holdDownMaxMs, holdDownMaxMs, holdDownMaxMs])
  fall()
  for (let at = 0; at < 30; at++) {
    probe(true)
    probe(true)
    probe(false)
  }
  t.equal(state.health, 'down', 'each failure begins the time anew')
  while (state.health === 'down') probe(true)
  nowMs += flapWindowMs
  fall()
  t.equal(risenAfterMs(), (options.rise - 1) * 100, 'forgotten')
})
