/**
 * Milliseconds of processor time that this thread spends on some work: what a machine that is busy with others does not
 * stretch, as it does the time on the clock.
 */
export function cpuMsOf(work: () => void): number {
  const before = process.threadCpuUsage()
  work()
  const { user, system } = process.threadCpuUsage(before)
  return (user + system) / 1_000
}
