/** Loads the configuration for `serve` and `check`, with what it needs to know of this machine. */
import type { Config } from '../config/config.ts'
import { loadConfig } from '../config/load.ts'
import { ConfigError } from '../config/problem.ts'
import { unsupported } from '../config/unsupported.ts'
import { loadOptions } from '../main/load-options.ts'

/** The configuration, or everything that keeps this version from serving it. */
export function loadForServing(file: string): Config | ConfigError {
  try {
    const config = loadConfig(file, loadOptions())
    const problems = unsupported(config)
    return problems.length === 0 ? config : new ConfigError(problems, config.warnings)
  } catch (error) {
    if (error instanceof ConfigError) return error
    throw error
  }
}
