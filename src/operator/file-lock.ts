/**
 * A lock between processes, which may run in different containers: a file that only one of them can create. It is held
 * for moments; one that stays as it is for longer than that was left behind by a crash, and is taken away. Age is what
 * the one that waits has seen, so clocks need not agree.
 */
import { randomBytes } from 'node:crypto'
import { readFile, rename, rm, writeFile } from 'node:fs/promises'
import type { Clock } from '../base/clock.ts'
import { fileLock as limits } from '../base/operator-limits.ts'

export class FileLock {
  readonly #path: string
  readonly #clock: Clock

  /** @param path of the lock's own file; its folder must be writable. */
  constructor(path: string, clock: Clock) {
    this.#path = path
    this.#clock = clock
  }

  /**
   * Does the work while nobody else who asks for this lock does any.
   * @param isWanted false: the wait is given up.
   * @param work is given whether the lock is still held, to be asked before what must not be done without it.
   * @throws Error of the file system where the lock's file cannot be created, with code ELOCKED where others hold it
   * for too long.
   */
  async hold<T>(isWanted: () => boolean, work: (isHeld: () => Promise<boolean>) => Promise<T>): Promise<T> {
    const token = randomBytes(16).toString('hex')
    await this.#take(token, isWanted)
    // Whoever took it for left behind has put another one in its place, or none.
    const isHeld = async (): Promise<boolean> => (await this.#holder()) === token
    try {
      return await work(isHeld)
    } finally {
      if (await isHeld()) await rm(this.#path, { force: true })
    }
  }

  async #take(token: string, isWanted: () => boolean): Promise<void> {
    const startedAtMs = this.#clock.nowMs()
    let seen: string | null = null
    let seenAtMs = startedAtMs
    while (!(await this.#create(token))) {
      const nowMs = this.#clock.nowMs()
      const holder = await this.#holder()
      if (holder !== seen) {
        seen = holder
        seenAtMs = nowMs
      }
      if (holder !== null && nowMs - seenAtMs >= limits.leftBehindMs) await this.#takeAway(holder, token)
      else if (!isWanted() || nowMs - startedAtMs >= limits.waitMs) {
        throw Object.assign(new Error(`${this.#path} is held by another process`), { code: 'ELOCKED' })
      } else await this.#pause()
    }
  }

  /** False where somebody holds it. */
  async #create(token: string): Promise<boolean> {
    try {
      await writeFile(this.#path, token, { flag: 'wx', mode: 0o644 })
      return true
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
      throw error
    }
  }

  async #holder(): Promise<string | null> {
    try {
      return await readFile(this.#path, 'latin1')
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
      throw error
    }
  }

  /** Of several who do this, one moves the file away; one that finds a new one in its hands puts it back. */
  async #takeAway(holder: string, token: string): Promise<void> {
    const away = `${this.#path}.${token}.away`
    try {
      await rename(this.#path, away)
      const found = await readFile(away, 'latin1')
      if (found !== holder) await writeFile(this.#path, found, { flag: 'wx', mode: 0o644 })
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code !== 'ENOENT' && code !== 'EEXIST') throw error
    } finally {
      await rm(away, { force: true })
    }
  }

  async #pause(): Promise<void> {
    const over = Promise.withResolvers<void>()
    this.#clock.after(limits.tryEveryMs, over.resolve)
    await over.promise
  }
}
