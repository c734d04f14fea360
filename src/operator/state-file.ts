/** Overrides in a file beside the configuration: for servers that have no API server to keep them in. */
import { randomBytes } from 'node:crypto'
import { open, readFile, rename, rm, stat } from 'node:fs/promises'
import type { Clock } from '../base/clock.ts'
import { watchPaths, type FileWatch } from '../base/file-watch.ts'
import { overrideOctets } from '../base/limits.ts'
import { FileLock } from './file-lock.ts'
import { OverridePlaceError, type OverridePlace, type PlaceListener } from './override-store.ts'

export class StateFile implements OverridePlace {
  readonly where: string
  readonly #path: string
  readonly #clock: Clock
  /** Other servers may change the same file. */
  readonly #lock: FileLock
  #watch: FileWatch | null = null
  /** Reads and changes follow one another. */
  #queue: Promise<unknown> = Promise.resolve()
  #isClosed = false

  constructor(path: string, clock: Clock) {
    this.#path = path
    this.where = `the file ${path}`
    this.#clock = clock
    this.#lock = new FileLock(`${path}.lock`, clock)
  }

  async start(listener: PlaceListener): Promise<void> {
    const look = async (): Promise<void> => {
      const outcome = await this.#inTurn(async () => this.#read()).catch((error: unknown) => error as Error)
      if (this.#isClosed) return
      if (outcome instanceof Error) {
        listener.onUnreadable(outcome.message)
        return
      }
      listener.onUnreadable(null)
      listener.onText(outcome)
    }
    this.#watch = watchPaths([this.#path], () => void look(), this.#clock)
    await look()
  }

  async change(edit: (text: string | null) => string): Promise<void> {
    await this.#inTurn(async () => {
      try {
        await this.#lock.hold(
          () => !this.#isClosed,
          async (isHeld) => {
            // What cannot be read is written anew: the edit decides what of it is kept.
            const before = await this.#read().catch(() => '?')
            await this.#write(edit(before), isHeld)
          }
        )
      } catch (error) {
        if (error instanceof OverridePlaceError) throw error
        const { code } = error as NodeJS.ErrnoException
        if (code === undefined) throw error
        const why = code === 'ELOCKED' ? 'another process has been changing it for too long' : code
        throw new OverridePlaceError(
          `${this.where} cannot be written (${why}): nothing was changed; \`overrides.file\` in the configuration names another place`
        )
      }
    })
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#watch?.close()
    await this.#queue.catch(() => {})
  }

  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#queue.then(work, work)
    this.#queue = done.catch(() => {})
    return done
  }

  async #read(): Promise<string | null> {
    try {
      const { size } = await stat(this.#path)
      if (size > overrideOctets) throw new OverridePlaceError(`${this.where} is larger than ${overrideOctets} octets`)
      return await readFile(this.#path, 'utf8')
    } catch (error) {
      if (error instanceof OverridePlaceError) throw error
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return null
      throw new OverridePlaceError(`${this.where} cannot be read (${code ?? String(error)})`)
    }
  }

  /** Written beside and renamed over: a crash leaves the old content or the new one, never half of it. */
  async #write(text: string, isHeld: () => Promise<boolean>): Promise<void> {
    const temporary = `${this.#path}.${randomBytes(8).toString('hex')}.new`
    try {
      const file = await open(temporary, 'w', 0o644)
      try {
        await file.writeFile(text)
        await file.sync()
      } finally {
        await file.close()
      }
      if (!(await isHeld()))
        throw new OverridePlaceError(`${this.where} was changed by another process: nothing was changed`)
      await rename(temporary, this.#path)
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {})
      throw error
    }
  }
}
