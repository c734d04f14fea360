/**
 * A part of a core for a server: a control group with a CPU quota, where this process may make one.
 *
 * One dnsperf on one core can hardly offer twice of what peerdns answers on another; so the server gets less.
 */
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** Short, so that what a server waits for its share is no more than some milliseconds. */
const periodMicroseconds = 10_000

export type CpuGroup = Readonly<{ add(pid: number): void; remove(): void }>

/**
 * Version 1 and 2 of control groups: where the folder is made, and what is written there. Ten times the usual weight:
 * a process in there has left the priority behind that it was started with.
 */
const kinds = [
  {
    root: '/sys/fs/cgroup/cpu',
    files: (quota: number) => ({
      'cpu.cfs_period_us': `${periodMicroseconds}`,
      'cpu.cfs_quota_us': `${quota}`,
      'cpu.shares': '10240'
    })
  },
  {
    root: '/sys/fs/cgroup',
    files: (quota: number) => ({ 'cpu.max': `${quota} ${periodMicroseconds}`, 'cpu.weight': '1000' })
  }
]

/** @returns null where none can be made: not root, or a control group of somebody else's */
export function cpuGroup(share: number): CpuGroup | null {
  for (const { root, files } of kinds) {
    if (!existsSync(join(root, 'cgroup.procs'))) continue
    const folder = join(root, `peerdns-bench-${process.pid}`)
    const remove = (): void => {
      try {
        rmdirSync(folder)
      } catch {
        // Somebody is in it still: it goes with the machine.
      }
    }
    try {
      mkdirSync(folder)
      for (const [file, text] of Object.entries(files(share * periodMicroseconds)))
        writeFileSync(join(folder, file), text)
      return { add: (pid) => writeFileSync(join(folder, 'cgroup.procs'), String(pid)), remove }
    } catch {
      remove()
    }
  }
  return null
}
