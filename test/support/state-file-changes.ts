/**
 * Changes a state file many times, beside other processes: drains the peers NAME-0, NAME-1, ... Arguments: PATH NAME
 * COUNT.
 */
import { silentLog } from '../../src/base/log.ts'
import { OverrideStore } from '../../src/operator/override-store.ts'
import { StateFile } from '../../src/operator/state-file.ts'
import { loopClock } from './loop-clock.ts'

const [path, name, count] = process.argv.slice(2) as [string, string, string]
const store = new OverrideStore({
  place: new StateFile(path, loopClock),
  clock: loopClock,
  log: silentLog,
  onChange: () => {},
  onProblem: () => {}
})
await store.start()
// Timers of the clock do not keep a process alive.
const alive = setInterval(() => {}, 1_000)
for (let at = 0; at < Number(count); at++) {
  const override = { sinceEpochMs: loopClock.epochMs(), untilEpochMs: null, reason: '', by: '' }
  await store.act({ kind: 'drain', peer: `${name}-${at}`, override })
}
await store.close()
clearInterval(alive)
