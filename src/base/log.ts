/** The operational log: pino, one JSON line an event, never one for each query unless sampling is asked for. */
import { pino, type Logger } from 'pino'

export type { Logger }

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'

/**
 * A log that writes to standard output, line by line and at once: lines are few, and none is lost when the process
 * ends.
 */
export function createLog(level: LogLevel): Logger {
  const options = {
    level,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { bindings: () => ({}), level: (label: string) => ({ level: label }) }
  }
  return pino(options, pino.destination({ dest: 1, sync: true }))
}

export const silentLog: Logger = pino({ level: 'silent' })
