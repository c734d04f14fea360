/** TSIG keys whose secrets lie in files, read again when the files change, as mounted Secrets do. */
import type { Clock } from '../base/clock.ts'
import { watchPaths, type FileWatch } from '../base/file-watch.ts'
import type { Logger } from '../base/log.ts'
import type { TransferKeyConfig } from '../config/config.ts'
import { readKeySecret } from '../config/key-secret.ts'
import type { TsigKey } from '../transfer/tsig-signer.ts'
import { nameToText } from '../wire/name.ts'

export class KeyFiles {
  readonly #clock: Clock
  readonly #log: Logger
  readonly #onChange: () => void
  #configured: readonly TransferKeyConfig[] = []
  #keys: readonly TsigKey[] = []
  #watch: FileWatch | null = null

  /** @param onChange called when a key has changed, after `use` has read them first. */
  constructor(clock: Clock, log: Logger, onChange: () => void) {
    this.#clock = clock
    this.#log = log
    this.#onChange = onChange
  }

  /** The keys that could be read. */
  get keys(): readonly TsigKey[] {
    return this.#keys
  }

  /** Exchanges the keys that are wanted, and reads them. */
  use(configured: readonly TransferKeyConfig[]): void {
    if (JSON.stringify(configured) === JSON.stringify(this.#configured)) return
    this.#configured = configured
    this.#watch?.close()
    this.#read()
    const paths = configured.map(({ file }) => file)
    this.#watch = paths.length === 0 ? null : watchPaths(paths, () => this.#readAgain(), this.#clock)
  }

  close(): void {
    this.#watch?.close()
  }

  #readAgain(): void {
    const before = JSON.stringify(this.#keys.map(({ secret }) => [...secret]))
    this.#read()
    if (JSON.stringify(this.#keys.map(({ secret }) => [...secret])) === before) return
    this.#log.info(
      { keys: this.#keys.map(({ name }) => nameToText(name)) },
      'the keys for zone transfer were read again'
    )
    this.#onChange()
  }

  #read(): void {
    this.#keys = this.#configured.flatMap(({ name, algorithm, file }) => {
      try {
        return [{ name, algorithm, secret: readKeySecret(file) }]
      } catch (error) {
        const known = this.#keys.find((key) => key.name === name && key.algorithm === algorithm)
        const { message } = error as Error
        this.#log.error({ key: nameToText(name), file, message }, 'a key for zone transfer cannot be read')
        // A file may be away for a moment while it is exchanged.
        return known === undefined ? [] : [known]
      }
    })
  }
}
