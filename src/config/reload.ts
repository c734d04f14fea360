/** Follows the configuration file: each new content is loaded, or told to be wrong, once. */
import type { Cancel, Clock } from '../base/clock.ts'
import { watchPaths, type FileWatch } from '../base/file-watch.ts'
import type { Config } from './config.ts'
import { parseConfig, readConfigFile, type FileText, type LoadOptions } from './load.ts'
import { ConfigError } from './problem.ts'

export type ConfigWatcherOptions = Readonly<{
  file: string
  load: LoadOptions
  clock: Clock
  /** Hash of the configuration in use; this content is not told again. */
  hash: string
  /** A new content that is right. May throw a ConfigError to refuse it: `onProblem` gets that then. */
  onLoaded(config: Config): void
  /** A new content that is wrong, or a file that can't be read any more. The old configuration stays in use. */
  onProblem(error: ConfigError): void
}>

/** From a change to reading the file, so that whoever writes it can finish. */
const settleMs = 50

/**
 * Tells of every change of the file's content until close(). A file that was touched, or written anew as it was, is no
 * change. After a problem, going back to the content in use is told as loaded again, so that the problem can be
 * cleared.
 */
export class ConfigWatcher {
  readonly #options: ConfigWatcherOptions
  readonly #watch: FileWatch
  /** What was told last: a content's hash, or the message of a file that can't be read. */
  #told: string
  #cancel: Cancel = () => {}
  #isClosed = false
  readonly stats = { loaded: 0, refused: 0 }

  constructor(options: ConfigWatcherOptions) {
    this.#options = options
    this.#told = options.hash
    this.#watch = watchPaths([options.file], () => this.#readSoon(), options.clock)
    // What changed between loading the configuration in use and watching the file.
    this.#readSoon()
  }

  close(): void {
    this.#isClosed = true
    this.#cancel()
    this.#watch.close()
  }

  /** Reads the file now, as an operator who sends SIGHUP expects; whether there was something new to tell. */
  check(): boolean {
    return !this.#isClosed && this.#read()
  }

  #readSoon(): void {
    this.#cancel()
    if (!this.#isClosed) this.#cancel = this.#options.clock.after(settleMs, () => this.#read())
  }

  #read(): boolean {
    const { file, load, onLoaded, onProblem } = this.#options
    let content: FileText | null = null
    try {
      content = readConfigFile(file)
      if (content.hash === this.#told) return false
      this.#told = content.hash
      onLoaded(parseConfig(content, file, load))
      this.stats.loaded++
    } catch (error) {
      const problem = error instanceof ConfigError ? error : internalError(file, error)
      if (content === null && problem.message === this.#told) return false
      if (content === null) this.#told = problem.message
      this.stats.refused++
      onProblem(problem)
    }
    return true
  }
}

/** A bug met on the way must not end a server that runs well on its old configuration. */
function internalError(file: string, error: unknown): ConfigError {
  const message = `the configuration could not be taken over: ${error instanceof Error ? error.message : String(error)}`
  return new ConfigError([{ file, line: 1, column: 1, path: '', message }])
}
