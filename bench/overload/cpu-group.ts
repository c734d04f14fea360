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

/** Version 1 and 2 of control groups: where the folder is made, and what the quota's file is called. */
const kinds = [
  {
    root: '/sys/fs/cgroup/cpu',
    quotaFiles: (quota: number) => ({ 'cpu.cfs_period_us': `${periodMicroseconds}`, 'cpu.cfs_quota_us': `${quota}` })
  },
  { root: '/sys/fs/cgroup', quotaFiles: (quota: number) => ({ 'cpu.max': `${quota} ${periodMicroseconds}` }) }
]

/** @returns null where none can be made: not root, or a control group of somebody else's */
export function cpuGroup(share: number): CpuGroup | null {
  for (const { root, quotaFiles } of kinds) {
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
      for (const [file, text] of Object.entries(quotaFiles(share * periodMicroseconds)))
        writeFileSync(join(folder, file), text)
      return { add: (pid) => writeFileSync(join(folder, 'cgroup.procs'), String(pid)), remove }
    } catch {
      remove()
    }
  }
  return null
}
