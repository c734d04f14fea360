/**
 * Programs that end with the process that started them, however that ends: a test that is killed leaves nothing behind.
 */
import { spawnSync } from 'node:child_process'

let canSetDeathSignal: boolean | undefined

/**
 * Wraps a command so that the kernel kills it with this process, where setpriv (util-linux) is there to ask for that.
 */
export function diesWithUs(command: string, args: readonly string[]): [command: string, args: string[]] {
  canSetDeathSignal ??= spawnSync('setpriv', ['--pdeathsig', 'KILL', 'true'], { stdio: 'ignore' }).status === 0
  return canSetDeathSignal ? ['setpriv', ['--pdeathsig', 'KILL', '--', command, ...args]] : [command, [...args]]
}
