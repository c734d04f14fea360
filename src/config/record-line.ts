/** One line of `cluster.records` as a value, right or wrong. */
import { WireError } from '../base/errors.ts'
import { parseRecordLine } from '../wire/record-text.ts'

/** The record of a line, or what is wrong with it. */
export function readRecord(line: string): ReturnType<typeof parseRecordLine> | WireError {
  try {
    return parseRecordLine(line, { defaultTtlSeconds: 0 })
  } catch (error) {
    if (error instanceof WireError) return error
    throw error
  }
}
