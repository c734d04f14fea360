/** Kubernetes objects in protobuf, as an API server sends them: written by the tables that the server reads them by. */
import { fieldTag, magic, unknownField } from '../../src/cluster/sources/kubernetes/protobuf/envelope.ts'
import {
  endpointSliceMessage,
  metadataMessage,
  podMessage,
  serviceMessage,
  statusMessage
} from '../../src/cluster/sources/kubernetes/protobuf/kubernetes-messages.ts'
import type { Field, MessageType } from '../../src/cluster/sources/kubernetes/protobuf/message.ts'

type Fields = Readonly<Record<string, unknown>>

/** How the objects of a path look in protobuf; those of other paths only exist in JSON. */
export function messageAt(path: string): MessageType | null {
  if (path.endsWith('/services')) return serviceMessage
  if (path.endsWith('/endpointslices')) return endpointSliceMessage
  if (path.endsWith('/namespaces')) return metadataMessage
  return path.endsWith('/pods') ? podMessage : null
}

export function varint(value: number): Buffer {
  const octets: number[] = []
  // Numbers below 0 have all their 64 bits.
  let left = BigInt.asUintN(64, BigInt(value))
  for (; left >= 0x80n; left >>= 7n) octets.push(Number(left & 0x7fn) | 0x80)
  octets.push(Number(left))
  return Buffer.from(octets)
}

export function delimited(field: number, value: Buffer | string): Buffer {
  const octets = typeof value === 'string' ? Buffer.from(value) : value
  return Buffer.concat([varint(fieldTag(field)), varint(octets.length), octets])
}

/** A field that nobody reads, in each message; it is skipped. */
const noise = Buffer.concat([delimited(200, 'f:managedFields'), varint(201 << 3), varint(-1)])

export function encodeMessage(type: MessageType, object: Fields): Buffer {
  const parts = type.flatMap((field, number) => (field === undefined ? [] : encodeField(number, field, object)))
  return Buffer.concat([noise, ...parts])
}

function encodeField(number: number, field: Field, object: Fields): Buffer[] {
  const value = object[field.key]
  if (value === undefined || value === null) return []
  switch (field.kind) {
    case 'text':
      return [delimited(number, value as string)]
    case 'texts':
      return (value as unknown[]).map((one) => delimited(number, one as string))
    case 'flag':
    case 'number':
      return [Buffer.concat([varint(number << 3), varint(Number(value))])]
    case 'message':
      return [delimited(number, encodeMessage(field.type, value as Fields))]
    case 'messages':
      return (value as Fields[]).map((one) => delimited(number, encodeMessage(field.type, one)))
    default:
      return Object.entries(value as Fields).map(([key, one]) =>
        delimited(number, Buffer.concat([delimited(1, key), delimited(2, one as string)]))
      )
  }
}

export function enveloped(kind: string, message: Buffer, apiVersion = 'v1'): Buffer {
  const typeMeta = Buffer.concat([delimited(1, apiVersion), delimited(2, kind)])
  const parts = [delimited(unknownField.typeMeta, typeMeta), delimited(unknownField.raw, message)]
  return Buffer.concat([magic, ...parts, delimited(unknownField.contentEncoding, ''), delimited(4, '')])
}

export type ListHead = Readonly<{ resourceVersion: string; continue?: string }>

export function encodeList(
  type: MessageType,
  kind: string,
  head: ListHead,
  items: readonly Fields[],
  apiVersion = 'v1'
): Buffer {
  const metadata = Buffer.concat([delimited(2, head.resourceVersion), delimited(3, head.continue ?? '')])
  const list = [delimited(1, metadata), ...items.map((item) => delimited(2, encodeMessage(type, item)))]
  return enveloped(kind, Buffer.concat(list), apiVersion)
}

/** One event of a watch, with its length before it. */
export function encodeEvent(type: MessageType, event: Readonly<{ type: string; object: Fields }>): Buffer {
  const { kind = 'Any', apiVersion = 'v1' } = event.object as { kind?: string; apiVersion?: string }
  const object =
    event.type === 'ERROR'
      ? enveloped('Status', encodeMessage(statusMessage, event.object))
      : enveloped(kind, encodeMessage(type, event.object), apiVersion)
  const frame = Buffer.concat([delimited(1, event.type), delimited(2, delimited(1, object))])
  const length = Buffer.alloc(4)
  length.writeUInt32BE(frame.length)
  return Buffer.concat([length, frame])
}
