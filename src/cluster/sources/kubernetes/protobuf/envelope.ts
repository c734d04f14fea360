/**
 * What an API server puts around each protobuf message: four octets, and a message `Unknown` with the kind and, as
 * octets, the message itself.
 */
import { malformed, OctetReader, wireType } from './octet-reader.ts'
import { messageType, readMessage, type MessageType } from './message.ts'

export const protobufType = 'application/vnd.kubernetes.protobuf'
export const magic = Buffer.from('k8s\0', 'latin1')

/** Numbers of the fields of `Unknown`. */
export const unknownField = { typeMeta: 1, raw: 2, contentEncoding: 3 } as const
export const typeMeta = messageType({ 2: { kind: 'text', key: 'kind' } })

export const isProtobuf = (contentType: string): boolean => contentType.startsWith(protobufType)

/** One whole message in its envelope. @throws ApiError `format` */
export function readEnveloped(octets: Buffer, type: MessageType): Record<string, unknown> {
  if (!octets.subarray(0, magic.length).equals(magic)) throw malformed('no Kubernetes message')
  const reader = new OctetReader(octets, magic.length)
  let message: Record<string, unknown> = {}
  while (!reader.isAtEnd) {
    const tag = reader.varint()
    if (tag === fieldTag(unknownField.raw)) message = readMessage(reader, reader.delimitedEnd(), type)
    else if (tag === fieldTag(unknownField.contentEncoding)) mustBeEmpty(reader.text())
    else reader.skip(tag & 7)
  }
  return message
}

/** The tag of a field that has its length before it. */
export const fieldTag = (field: number): number => (field << 3) | wireType.delimited

export function mustBeEmpty(contentEncoding: string): void {
  if (contentEncoding !== '') throw malformed('a message in an encoding of its own')
}
