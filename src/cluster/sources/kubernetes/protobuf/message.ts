/**
 * Protobuf messages as the plain objects that JSON would give, reduced to the fields that somebody reads. All others
 * are passed over without a copy: most of a Kubernetes object tells who manages which of its fields.
 */
import { malformed, wireType, type OctetReader } from './octet-reader.ts'

/**
 * A field to be read. `texts` and `messages` are lists; `entries` is a map from text to text, of which the named keys
 * are read. A number is one of 32 bits with a sign.
 */
export type Field = Readonly<
  | { kind: 'text' | 'texts' | 'flag' | 'number'; key: string }
  | { kind: 'message' | 'messages'; key: string; type: MessageType }
  | { kind: 'entries'; key: string; wanted: ReadonlySet<string> }
>

/** The fields that are read, by their numbers. No message holds itself, so reading has an end. */
export type MessageType = readonly (Field | undefined)[]

type Fields = Record<string, unknown>

export function messageType(fields: Readonly<Record<number, Field>>): MessageType {
  const type: (Field | undefined)[] = Array.from({ length: Math.max(0, ...Object.keys(fields).map(Number)) + 1 })
  for (const [number, field] of Object.entries(fields)) type[Number(number)] = field
  return type
}

/**
 * Reads a message up to `end`. Of a field that comes twice the last one counts.
 * @throws ApiError `format` for octets that are no such message.
 */
export function readMessage(reader: OctetReader, end: number, type: MessageType): Fields {
  const fields: Fields = {}
  while (reader.at < end) {
    const tag = reader.varint()
    const field = type[tag >>> 3]
    if (field === undefined) reader.skip(tag & 7)
    else readField(reader, tag & 7, field, fields)
  }
  if (reader.at > end) throw malformed('a field that is longer than its message')
  return fields
}

function readField(reader: OctetReader, given: number, field: Field, fields: Fields): void {
  const { kind, key } = field
  const isVarint = kind === 'flag' || kind === 'number'
  if (given !== (isVarint ? wireType.varint : wireType.delimited)) throw malformed(`wire type ${given} for ${key}`)
  switch (kind) {
    case 'text':
      fields[key] = reader.text()
      return
    case 'texts':
      listIn(fields, key).push(reader.text())
      return
    case 'flag':
      fields[key] = reader.varint() !== 0
      return
    case 'number':
      fields[key] = reader.varint() | 0
      return
    case 'message':
      fields[key] = readMessage(reader, reader.delimitedEnd(), field.type)
      return
    case 'messages':
      listIn(fields, key).push(readMessage(reader, reader.delimitedEnd(), field.type))
      return
    case 'entries':
      readEntry(reader, field.wanted, (fields[key] ??= {}) as Fields)
  }
}

function listIn(fields: Fields, key: string): unknown[] {
  const known = fields[key]
  if (known !== undefined) return known as unknown[]
  const list: unknown[] = []
  fields[key] = list
  return list
}

/** One entry of a map: a message of its key (1) and its value (2), in this order. */
function readEntry(reader: OctetReader, wanted: ReadonlySet<string>, entries: Fields): void {
  const end = reader.delimitedEnd()
  let key = ''
  let value = ''
  let isWanted = false
  while (reader.at < end) {
    const tag = reader.varint()
    if (tag === 0x0a) {
      key = reader.text()
      isWanted = wanted.has(key)
    } else if (tag === 0x12 && isWanted) value = reader.text()
    else reader.skip(tag & 7)
  }
  if (reader.at > end) throw malformed('a field that is longer than its message')
  if (isWanted) entries[key] = value
}
