/**
 * Which records of a zone are listed: `name=api.backend.svc.cluster.local`, `suffix=...`, `type=SRV`. All must hold.
 */
import { TextError } from '../base/errors.ts'
import { parseType } from '../wire/iana.ts'
import { isAtOrBelow } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import { readNameOf } from './request-values.ts'

export type RecordFilter = (rrset: RRset) => boolean

/**
 * Reads filters as they are written.
 * @throws TextError
 */
export function readRecordFilter(texts: readonly string[]): RecordFilter {
  const filters = texts.map(readOne)
  return (rrset) => filters.every((filter) => filter(rrset))
}

function readOne(text: string): RecordFilter {
  const equals = text.indexOf('=')
  const [key, value] = [text.slice(0, Math.max(0, equals)), text.slice(equals + 1)]
  if (key === 'name') {
    const name = readNameOf('filter name', value)
    return ({ owner }) => owner === name
  }
  if (key === 'suffix') {
    const suffix = readNameOf('filter suffix', value)
    return ({ owner }) => isAtOrBelow(owner, suffix)
  }
  if (key === 'type') {
    const type = parseType(value)
    if (type === null) throw new TextError(`filter type: \`${value}\` is not a record type`)
    return (rrset) => rrset.type === type
  }
  throw new TextError(`filter: \`${text}\` is none of name=NAME, suffix=NAME, type=TYPE`)
}
