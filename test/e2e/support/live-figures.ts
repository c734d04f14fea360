/** What a suite measured or counted, told on standard error: the reporter shows only what failed. */

export const tell = (text: string): void => console.error(`    ${text}`)

/** `median 1.2 ms, p99 4.0 ms, most 5.1 ms of 100` */
export function durationsText(durationsMs: readonly number[]): string {
  const sorted = durationsMs.toSorted((a, b) => a - b)
  const at = (share: number) => (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0).toFixed(1)
  return `median ${at(0.5)} ms, p99 ${at(0.99)} ms, most ${at(1)} ms of ${sorted.length}`
}
