/**
 * Reads the plain content of a file by the schema, and goes on after each mistake: what is right is kept, what is
 * wrong is left undefined and reported with its path, so that the checks across options (checks.ts) see all the rest.
 *
 * Zod alone would stop refining a section at its first mistake, and tells of a union what is wrong with every form.
 */
import * as z from 'zod'
import { inBackticks } from '../base/errors.ts'
import type { HostPort, ListenAddress } from '../base/host-port.ts'
import type { Network } from '../base/network.ts'
import { nearestWord } from './nearest.ts'
import { describeValue, expectedKey, wordList, type Forward } from './option.ts'
import type { PathStep } from './problem.ts'

/**
 * One mistake; `at` says whether the key or the value at the path is wrong, `offset` counts characters into the value.
 */
export type Mistake = Readonly<{
  path: readonly PathStep[]
  at: 'key' | 'value'
  offset?: number
  message: string
  nearest?: string
  expected?: string
}>

export type Report = (mistake: Mistake) => void

type LeafValue = string | number | boolean | null | undefined | Forward | HostPort | ListenAddress | readonly Network[]

/** A value of the schema in which every part may be missing because it was wrong. */
export type Draft<Value> = Value extends LeafValue
  ? Value | undefined
  : Value extends readonly (infer Item)[]
    ? readonly Draft<Item>[] | undefined
    : { readonly [Key in keyof Value]?: Draft<Value[Key]> } | undefined

const misspelt = new WeakSet<object>()

/** Whether this section had an unknown key, which was told: what seems to be missing may be what it means. */
export const hasUnknownKey = (section: object): boolean => misspelt.has(section)

/** Reads `value` by `schema` and reports every mistake. */
export function readDraft<Type extends z.ZodType>(schema: Type, value: unknown, report: Report): Draft<z.output<Type>> {
  return readValue(schema, value, [], report) as Draft<z.output<Type>>
}

function readValue(schema: z.core.$ZodType, value: unknown, path: readonly PathStep[], report: Report): unknown {
  if (value === undefined && schema instanceof z.ZodPrefault) return schema.parse(undefined)
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional) {
    return value === undefined ? undefined : readValue(schema.unwrap(), value, path, report)
  }
  const refuse = (message: string): undefined =>
    report({ path, at: 'value', message, expected: expectedOf(schema) }) as undefined
  if (schema instanceof z.ZodObject) {
    return isMapping(value) ? readSection(schema, value, path, report) : refuse(describeValue(value))
  }
  if (schema instanceof z.ZodRecord) {
    return isMapping(value) ? readRecord(schema, value, path, report) : refuse(describeValue(value))
  }
  if (schema instanceof z.ZodArray) {
    if (!Array.isArray(value)) return refuse(describeValue(value))
    if (value.length === 0 && !schema.safeParse(value).success) return refuse('the list is empty')
    return value.map((item, index) => readValue(schema.element, item, [...path, index], report))
  }
  if (schema instanceof z.ZodUnion) {
    const form = schema.options.find((option) => takes(option, value))
    return form === undefined ? refuse(describeValue(value)) : readValue(form, value, path, report)
  }
  return readLeaf(schema, value, path, report)
}

function readLeaf(schema: z.core.$ZodType, value: unknown, path: readonly PathStep[], report: Report): unknown {
  const result = z.safeParse(schema, value)
  if (result.success) return result.data
  const issue = result.error.issues[0]!
  const expected = expectedOf(schema)
  const offset = issue.code === 'custom' ? Number(issue.params?.['offset'] ?? 0) : 0
  const words = schema instanceof z.ZodEnum ? schema.options.map(String) : []
  const nearest = typeof value === 'string' ? nearestWord(value, words) : null
  report({ path, at: 'value', offset, message: issue.message, expected, ...(nearest === null ? {} : { nearest }) })
  return undefined
}

function readSection(
  schema: z.ZodObject,
  value: Readonly<Record<string, unknown>>,
  path: readonly PathStep[],
  report: Report
): Record<string, unknown> {
  const keys = Object.keys(schema.shape)
  const draft: Record<string, unknown> = {}
  /** Keys that an unknown one is most likely meant to be. */
  const meant = new Set<string>()
  for (const key of Object.keys(value)) {
    if (keys.includes(key)) continue
    misspelt.add(draft)
    const nearest = nearestWord(key, keys)
    if (nearest !== null) meant.add(nearest)
    const message = `unknown key ${inBackticks(key)}`
    const expected = `one of the keys ${wordList(keys)}`
    report({ path: [...path, key], at: 'key', message, expected, ...(nearest === null ? {} : { nearest }) })
  }
  for (const key of keys) {
    const option = schema.shape[key]!
    // A key of the prototype (`constructor`) is no key of the file.
    const item = Object.hasOwn(value, key) ? value[key] : undefined
    if (item !== undefined || option instanceof z.ZodPrefault) {
      draft[key] = readValue(option, item, [...path, key], report)
    } else if (!(option instanceof z.ZodOptional) && !meant.has(key)) {
      report({ path, at: 'key', message: `${inBackticks(key)} is missing`, expected: expectedOf(option) })
    }
  }
  return draft
}

function readRecord(
  schema: z.ZodRecord,
  value: Readonly<Record<string, unknown>>,
  path: readonly PathStep[],
  report: Report
): Record<string, unknown> {
  const draft: Record<string, unknown> = {}
  for (const [key, item] of Object.entries(value)) {
    const at = [...path, key]
    const name = z.safeParse(schema.keyType, key)
    if (!name.success) {
      report({ path: at, at: 'key', message: name.error.issues[0]!.message, expected: expectedOf(schema.keyType) })
    }
    // defineProperty: an entry called __proto__ is an entry.
    const enumerable = { enumerable: true, configurable: true, writable: true }
    Object.defineProperty(draft, key, { ...enumerable, value: readValue(schema.valueType, item, at, report) })
  }
  return draft
}

function isMapping(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Whether this form of a union is the one that is meant, told by the kind of value alone. */
function takes(schema: z.core.$ZodType, value: unknown): boolean {
  if (schema instanceof z.ZodObject || schema instanceof z.ZodRecord) return isMapping(value)
  if (schema instanceof z.ZodArray) return Array.isArray(value)
  return typeof value !== 'object'
}

/** What the schema expects, for a message. */
function expectedOf(schema: z.core.$ZodType): string {
  if (schema instanceof z.ZodPrefault || schema instanceof z.ZodOptional) return expectedOf(schema.unwrap())
  if (schema instanceof z.ZodObject) return `a mapping with ${wordList(Object.keys(schema.shape))}`
  if (schema instanceof z.ZodRecord) return 'a mapping'
  if (schema instanceof z.ZodArray) return `a list, each entry ${expectedOf(schema.element)}`
  if (schema instanceof z.ZodUnion) return schema.options.map(expectedOf).join('; or ')
  if (schema instanceof z.ZodLiteral) return wordList([...schema.values].map(String))
  const expected = z.globalRegistry.get(schema)?.[expectedKey]
  return typeof expected === 'string' ? expected : 'something else'
}
