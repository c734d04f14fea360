/** Limits of what operators set by hand; limits.ts has those of its content. Times in milliseconds. */

/**
 * The lock of a state file that several servers change: how often it is tried, how long it is waited for, and when it
 * was left behind by a crash.
 */
export const fileLock = { tryEveryMs: 20, waitMs: 15_000, leftBehindMs: 5_000 } as const
