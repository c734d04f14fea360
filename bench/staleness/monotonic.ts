/**
 * The machine's monotonic clock, which all processes share: `performance.now()` counts from each process' own start.
 */
const [seconds, nanoseconds] = process.hrtime()
const startMs = seconds * 1000 + nanoseconds / 1e6 - performance.now()

export const monotonicMs = (): number => startMs + performance.now()
