/** Time and memory, for the micro-benchmarks. */

/** Microseconds that one round takes, after a tenth of the rounds to warm up. */
export function microsecondsEach(rounds: number, run: (round: number) => void): number {
  for (let round = 0; round < rounds / 10; round++) run(round)
  const startedAtMs = performance.now()
  for (let round = 0; round < rounds; round++) run(round)
  return ((performance.now() - startedAtMs) * 1000) / rounds
}

/** What is alive on the heap and in buffers, in octets. Exact only with `node --expose-gc`. */
export async function settledHeapOctets(): Promise<number> {
  for (let round = 0; round < 3; round++) {
    globalThis.gc?.()
    // Buffers are freed, and dead locals let go, only once the stack has been left.
    await new Promise((resolve) => void setImmediate(resolve))
  }
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}
