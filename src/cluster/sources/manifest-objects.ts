/** From the text of one manifest to the objects that DNS needs, and what is wrong with the others. */
import { manifestProblemsPerFile } from '../../base/limits.ts'
import { eventForReduced, objectKey } from '../object-event.ts'
import type { ObjectEvent } from '../object-event.ts'
import { reduceObject } from '../objects.ts'
import type { Identity } from '../objects.ts'
import { readManifest } from './manifest-text.ts'
import type { ManifestObject, Position } from './manifest-text.ts'

/** `line` and `column` count from 1; both are 0 where a file or folder as a whole is meant. */
export type ManifestProblem = Readonly<{
  file: string
  line: number
  column: number
  reason: string
  object: Identity | null
}>

export type PutOrReject = Extract<ObjectEvent, { type: 'put' | 'reject' }>

/** `hasErrors`: parts of the text could not be read at all, so objects may be missing here that are meant. */
export type ParsedManifest = Readonly<{
  objects: ReadonlyMap<string, Readonly<{ event: PutOrReject; line: number }>>
  problems: readonly ManifestProblem[]
  hasErrors: boolean
}>

/** Parses object by object, with a pause after each. Never rejects. */
export async function parseManifest(file: string, text: string, pause: () => Promise<void>): Promise<ParsedManifest> {
  const objects = new Map<string, { event: PutOrReject; line: number }>()
  const problems: ManifestProblem[] = []
  let problemsTotal = 0
  let hasErrors = false
  const addProblem = (place: () => Position, reason: string, object: Identity | null) => {
    problemsTotal++
    if (problems.length < manifestProblemsPerFile) problems.push({ file, ...place(), reason, object })
  }
  for (const found of readManifest(text)) {
    if (found === null) {
      await pause()
    } else if ('error' in found) {
      hasErrors = true
      addProblem(() => found.error.position, found.error.reason, null)
    } else {
      readObject(found.object)
    }
  }

  function readObject({ value, position, locate }: ManifestObject): void {
    const event = detached(eventForReduced(reduceObject(value)))
    if (event === null || event.type === 'delete') return
    const { kind, namespace, name } = event.type === 'put' ? event.object : event.identity
    const identity = { kind, namespace, name }
    const key = objectKey(kind, namespace, name)
    if (event.type === 'reject') {
      const field = event.path === '' ? '' : `${event.path}: `
      addProblem(() => locate(event.path), `left out: ${field}${event.reason}`, identity)
    } else if (event.warning !== undefined && event.warning !== null) {
      addProblem(() => position, event.warning, identity)
    }
    const earlier = objects.get(key)
    if (earlier !== undefined && name !== '') {
      addProblem(() => position, `the same object stands in line ${earlier.line} already; this one holds`, identity)
    }
    objects.set(key, { event, line: position.line })
  }

  if (problemsTotal > problems.length) {
    const reason = `${problemsTotal - problems.length} more problems in this file`
    problems.push({ file, line: 0, column: 0, reason, object: null })
  }
  return { objects, problems, hasErrors }
}

/** A copy that shares no text with the file: a short string cut from a long one would keep all of it in memory. */
const detached = (event: ObjectEvent | null): ObjectEvent | null => structuredClone(event)
