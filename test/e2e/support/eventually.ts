/** Waiting for what takes its time, and telling how long it took. */
import { setTimeout as sleep } from 'node:timers/promises'

export type WaitOptions = Readonly<{
  /** 60 s unless told: what comes in the end may take its time on a busy machine. */
  timeoutMs?: number
  /** Between two tries; 25 ms unless told. */
  everyMs?: number
}>

/**
 * Tries until an attempt does not throw, and gives what that one gave.
 * @throws the last attempt's error where the time runs out.
 */
export async function eventually<T>(attempt: () => Promise<T>, options: WaitOptions = {}): Promise<T> {
  const { timeoutMs = 60_000, everyMs = 25 } = options
  const startedMs = performance.now()
  for (;;) {
    try {
      return await attempt()
    } catch (error) {
      if (performance.now() - startedMs >= timeoutMs) throw error
    }
    await sleep(everyMs)
  }
}

/**
 * Asks until the answer is good enough, and gives the last answer either way: the assertion on it then shows the
 * difference, where a time-out would show nothing.
 */
export async function settled<T>(
  ask: () => Promise<T>,
  isGood: (answer: T) => boolean,
  options: WaitOptions = {}
): Promise<T> {
  const answers: T[] = []
  const attempt = async (): Promise<T> => {
    answers[0] = await ask()
    if (!isGood(answers[0])) throw new Error('not yet')
    return answers[0]
  }
  return eventually(attempt, options).catch((error: unknown) => {
    if (answers.length === 0) throw error
    return answers[0]!
  })
}
