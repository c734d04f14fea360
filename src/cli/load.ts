/** Loads the configuration for `serve` and `check`, with what it needs to know of this machine. */
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import { loadOptions } from '../main/load-options.ts'

/** The configuration, or everything that is wrong with it. */
export function loadForServing(file: string): Config | ConfigError {
  try {
    return loadConfig(file, loadOptions())
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
}
