/**
 * The reference of every option, made from the schema, so that it cannot say anything else than the server does.
 * Run as a program it prints the document: `node src/config/reference.ts > docs/configuration.md`.
 */
import { jsonSchema, type JsonSchema } from './json-schema.ts'

const introduction = `# Configuration

One YAML file, given as \`--config FILE\`, says everything. This reference is made from the schema that checks the file
(\`node src/config/reference.ts > docs/configuration.md\`); \`config/\` has three annotated samples that work together, and
\`config/peerdns.schema.json\` lets an editor complete and check the file while it is written.

- Durations are written \`500ms\`, \`5s\`, \`1m\`, \`1h\` or \`1h30m\`, sizes \`64MiB\`. A number without a unit is an error.
- Relative paths start at the folder of the file; \`~\` is the home folder.
- Networks are written \`10.8.0.0/14\`, \`fd00:1::/64\`, as a single address, or with the words \`private\` (RFC 1918, RFC 4193,
  loopback, link-local, 100.64.0.0/10) and \`any\`.
- Servers are written \`host:port\`; without a port it is 53. IPv6 addresses with a port stand in brackets.
- The file is read again when it changes. If the new content is wrong, the server keeps the old one and says so in its
  log and its metrics.
- \`peerdns check --config FILE\` tells every mistake with file, line, column, the nearest right key and what was expected.
`

/** The document, with its last newline. */
export function referenceText(): string {
  const sections: string[] = []
  addSection(sections, '', jsonSchema())
  return `${introduction}\n${sections.join('\n')}`
}

/** One option as a row, and the sections below it. */
function addSection(sections: string[], path: string, schema: JsonSchema): void {
  const rows: string[] = []
  const inner: [path: string, schema: JsonSchema][] = []
  for (const [key, option] of Object.entries(schema.properties ?? {})) {
    const isRequired = schema.required?.includes(key) === true
    rows.push(
      `| \`${key}\` | ${defaultText(option, isRequired)} | ${cell(formOf(option))} | ${cell(option.description ?? '')} |`
    )
    inner.push(...sectionsOf(`${path === '' ? '' : `${path}.`}${key}`, option))
  }
  const title = path === '' ? '## The file' : `## \`${path}\``
  sections.push([title, '', '| option | default | form | meaning |', '|---|---|---|---|', ...rows, ''].join('\n'))
  for (const [below, section] of inner) addSection(sections, below, section)
}

/** The mappings with keys of their own that an option leads to. */
function sectionsOf(path: string, schema: JsonSchema): [path: string, schema: JsonSchema][] {
  if (schema.properties !== undefined) return [[path, schema]]
  if (schema.items !== undefined) return sectionsOf(`${path}[]`, schema.items)
  if (typeof schema.additionalProperties === 'object') return sectionsOf(`${path}.NAME`, schema.additionalProperties)
  return (schema.anyOf ?? []).flatMap((form) => sectionsOf(path, form))
}

function defaultText(option: JsonSchema, isRequired: boolean): string {
  if (isRequired) return '**required**'
  if (option.default === undefined) return '-'
  // A section's default is that of each of its options.
  const isSection = option.properties !== undefined && JSON.stringify(option.default) === '{}'
  return isSection ? 'see below' : `\`${yamlText(option.default)}\``
}

/** A value in YAML's flow style, without quotes where none are needed. */
function yamlText(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(yamlText).join(', ')}]`
  if (typeof value === 'string') return /^[\w./-]+(:\w+)?$/.test(value) ? value : `"${value}"`
  return JSON.stringify(value)
}

/** What may be written, in words. */
function formOf(schema: JsonSchema): string {
  if (schema['x-expected'] !== undefined) return schema['x-expected']
  if (schema.items !== undefined) return `list: ${formOf(schema.items)}`
  if (schema.anyOf !== undefined) return schema.anyOf.map(formOf).join('; or ')
  if (schema.properties !== undefined) return 'mapping, see below'
  if (typeof schema.additionalProperties === 'object') return `mapping of names: ${formOf(schema.additionalProperties)}`
  return enumText(schema)
}

function enumText(schema: JsonSchema & { enum?: readonly unknown[]; const?: unknown }): string {
  return schema.enum === undefined
    ? JSON.stringify(schema.const)
    : schema.enum.map((value) => JSON.stringify(value)).join(', ')
}

/** Text for a cell of a table. */
const cell = (text: string): string => text.replaceAll('|', '\\|')

if (import.meta.main) process.stdout.write(referenceText())
