/**
 * Reading the fields of an object that nobody vouches for: null counts as absent everywhere, as API servers and
 * their clients treat it, and everything else of the wrong kind throws one ObjectError with its path.
 *
 * Only own properties are read, so a key such as `__proto__` or `constructor` is a key like any other.
 */

/** Why an object is left out: `path` is the field, such as `spec.ports[1].port`. */
export class ObjectError extends Error {
  readonly path: string
  constructor(path: string, reason: string) {
    super(reason)
    this.name = 'ObjectError'
    this.path = path
  }
}

export type Fields = Readonly<Record<string, unknown>>

/** What a value is, for messages. */
function kindOf(value: unknown): string {
  if (value === null) return 'null'
  if (value === undefined) return 'nothing'
  return Array.isArray(value) ? 'a list' : `a ${typeof value}`
}

/** The value of an own property; undefined where it is absent or null. */
export function field(fields: Fields, key: string): unknown {
  return Object.hasOwn(fields, key) ? (fields[key] ?? undefined) : undefined
}

export function asFields(value: unknown, path: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new ObjectError(path, `expected an object, found ${kindOf(value)}`)
  }
  return value as Fields
}

const noFields: Fields = Object.freeze(Object.create(null) as Fields)

export function fieldsAt(fields: Fields, key: string, path: string): Fields {
  const value = field(fields, key)
  return value === undefined ? noFields : asFields(value, path + key)
}

export function listAt(fields: Fields, key: string, path: string): readonly unknown[] {
  const value = field(fields, key)
  if (value === undefined) return []
  if (!Array.isArray(value)) throw new ObjectError(path + key, `expected a list, found ${kindOf(value)}`)
  return value
}

export function asText(value: unknown, path: string): string {
  if (typeof value !== 'string') throw new ObjectError(path, `expected text, found ${kindOf(value)}`)
  return value
}

/** The text, or '' where it is absent. */
export function textAt(fields: Fields, key: string, path: string): string {
  const value = field(fields, key)
  return value === undefined ? '' : asText(value, path + key)
}

/** The truth value, or null where it is absent. */
export function flagAt(fields: Fields, key: string, path: string): boolean | null {
  const value = field(fields, key)
  if (value === undefined) return null
  if (typeof value !== 'boolean') throw new ObjectError(path + key, `expected true or false, found ${kindOf(value)}`)
  return value
}

/** A whole number from 0 to `max`, or null where it is absent. */
export function numberAt(fields: Fields, key: string, max: number, path: string): number | null {
  const value = field(fields, key)
  if (value === undefined) return null
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > max) {
    throw new ObjectError(path + key, `expected a whole number from 0 to ${max}`)
  }
  return value
}

const labelPattern = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/

/** Whether the text is one label as Kubernetes names have it: RFC 1123, lower case, at most 63 characters. */
export const isLabel = (text: string): boolean => labelPattern.test(text)

/** A label, in lower case; Kubernetes compares DNS data without case, files may hold either. */
export function asLabel(text: string, path: string): string {
  const label = text.toLowerCase()
  if (!isLabel(label)) throw new ObjectError(path, 'expected a DNS label: letters, digits and inner dashes, at most 63')
  return label
}
