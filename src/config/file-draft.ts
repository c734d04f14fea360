/** What the checks across options look at. */
import type { PathStep } from './problem.ts'
import type { Draft, Report } from './read-draft.ts'
import type { FileContent } from './schema.ts'

/** The content of a file as far as it is right. */
export type FileDraft = NonNullable<Draft<FileContent>>

export type CheckOptions = Readonly<{
  report: Report
  /** Tells of what can be served and does nothing. */
  warn: Report
  /** Whether this stands in the file, rather than its default. */
  isWritten(path: readonly PathStep[]): boolean
  /** The secret in the file of this path, as it is written; throws TextError. null: files are not looked at. */
  secretOf: ((path: string) => Uint8Array) | null
  /** The line where the value at a path stands. */
  lineOf(path: readonly PathStep[]): number
  /** Addresses of this machine's interfaces, canonical; a listener on 0.0.0.0 or :: has them all. */
  localAddresses: readonly string[]
}>
