/**
 * The JSON Schema of the configuration file, with which editors complete and check it while it is written.
 * Run as a program it prints the schema: `node src/config/json-schema.ts > config/peerdns.schema.json`.
 */
import * as z from 'zod'
import { fileSchema } from './schema.ts'

/** What of JSON Schema our schema uses, as far as the reference reads it. */
export type JsonSchema = Readonly<{
  type?: string
  description?: string
  default?: unknown
  'x-expected'?: string
  properties?: Readonly<Record<string, JsonSchema>>
  required?: readonly string[]
  items?: JsonSchema
  additionalProperties?: JsonSchema | boolean
  anyOf?: readonly JsonSchema[]
}>

/** The schema of what stands in the file (not of what is made of it). */
export function jsonSchema(): JsonSchema {
  const schema = z.toJSONSchema(fileSchema, { io: 'input' })
  return { title: 'peerdns configuration', ...schema } as JsonSchema
}

if (import.meta.main) process.stdout.write(`${JSON.stringify(jsonSchema(), null, 2)}\n`)
