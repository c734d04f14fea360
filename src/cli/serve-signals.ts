/**
 * The signals that `serve` listens to, from before the server's code is loaded: a start takes half a second, and
 * whoever signals it meanwhile is heard as well.
 *
 * SIGTERM and SIGINT drain the server and end with 0; a second one ends it at once. SIGHUP reads the configuration
 * again, where the start is not over right after it.
 */
import { exitCode } from './command-io.ts'

/** 128 and the signal's number, as shells report it. */
const forcedExitCodes = { SIGINT: 130, SIGTERM: 143 } as const
type Ending = keyof typeof forcedExitCodes

/** What the signals are about. */
export type Signalled = Readonly<{ stop(): Promise<unknown>; reload(): Promise<unknown> }>

export class ServeSignals {
  #server: Signalled | null = null
  #isStarted = false
  #isStopping = false
  #isReloadWanted = false
  readonly #onEnding = (signal: Ending): void => {
    if (this.#isStopping) process.exit(forcedExitCodes[signal])
    this.#isStopping = true
    // Before there is a server nothing is open.
    if (this.#server === null) process.exit(exitCode.done)
    void this.#server.stop().then(() => process.exit(exitCode.done))
  }
  readonly #onReload = (): void => {
    if (this.#isStarted) void this.#server?.reload()
    else this.#isReloadWanted = true
  }

  constructor() {
    process.on('SIGTERM', this.#onEnding)
    process.on('SIGINT', this.#onEnding)
    process.on('SIGHUP', this.#onReload)
  }

  /** The server is about to start: a signal to end stops what it has opened so far. */
  starting(server: Signalled): void {
    this.#server = server
  }

  /** The start is over: a reload that was asked for meanwhile happens now, once. */
  started(): void {
    this.#isStarted = true
    if (this.#isReloadWanted) this.#onReload()
  }

  /** Signals do what they do to any process again. */
  release(): void {
    process.off('SIGTERM', this.#onEnding)
    process.off('SIGINT', this.#onEnding)
    process.off('SIGHUP', this.#onReload)
  }
}
