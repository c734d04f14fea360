/**
 * Takes the items out of a List in protobuf while it arrives, as the scanner of JSON does: each item as soon as it is
 * complete. A List of any length needs no more memory than its largest item.
 */
import { apiDocumentOctets, apiObjectOctets } from '../../../../base/limits.ts'
import { ApiError } from '../api-error.ts'
import { fieldTag, magic, mustBeEmpty, typeMeta, unknownField } from './envelope.ts'
import { listMeta } from './kubernetes-messages.ts'
import { readMessage, type MessageType } from './message.ts'
import { malformed, OctetReader, wireType } from './octet-reader.ts'

/** Numbers of the fields of a List. */
const listField = { metadata: 1, items: 2 } as const
/** Octets of a tag and a length, at most. */
const maxHeadOctets = 20

export class ProtobufListScanner {
  readonly #item: MessageType
  #parts: Buffer[] = []
  #pendingOctets = 0
  /** With fewer octets than this nothing goes on. */
  #neededOctets = magic.length
  #place: 'magic' | 'envelope' | 'list' = 'magic'
  #isInTrailer = false
  /** Octets of the List that are still to come. */
  #listOctets = 0
  #kind = ''
  #metadata: Record<string, unknown> = {}

  constructor(item: MessageType) {
    this.#item = item
  }

  /** The items that have become complete with this chunk. To be read to its end. @throws ApiError `format` */
  *push(chunk: Buffer): Generator {
    this.#parts.push(chunk)
    this.#pendingOctets += chunk.length
    if (this.#pendingOctets < this.#neededOctets) return
    const octets = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts, this.#pendingOctets)
    const reader = new OctetReader(octets)
    this.#parts = []
    this.#neededOctets = 1
    if (this.#place === 'magic') this.#begin(reader)
    while (!reader.isAtEnd) {
      const from = reader.at
      const end = this.#endOfField(reader)
      if (end === null) {
        reader.at = from
        break
      }
      const isInList = this.#place === 'list'
      // Tags of the fields that we know are single octets.
      const item = this.#take(octets[from]!, reader, end)
      if (isInList) this.#countDown(end - from)
      if (item !== null) yield item
    }
    this.#pendingOctets = octets.length - reader.at
    if (this.#pendingOctets > 0) this.#parts.push(octets.subarray(reader.at))
  }

  /** Nothing waits for the end. */
  *rest(): Generator {}

  /** What the List says beside its items. @throws ApiError `format` where it has not ended, or is no List. */
  end(): Readonly<{ resourceVersion: string; continueToken: string }> {
    if (!this.#isInTrailer || this.#pendingOctets > 0) throw malformed('a list that breaks off')
    if (!this.#kind.endsWith('List')) throw malformed('an answer that is no list')
    const { resourceVersion = '', continue: continueToken = '' } = this.#metadata as Record<string, string>
    if (resourceVersion === '') throw malformed('a list without resourceVersion')
    return { resourceVersion, continueToken }
  }

  #begin(reader: OctetReader): void {
    reader.at = magic.length
    if (!reader.octets.subarray(0, magic.length).equals(magic)) throw malformed('no Kubernetes message')
    this.#place = 'envelope'
  }

  /**
   * Reads a field's tag and length, and tells where its value ends; null where not all of it is there. All fields at
   * this depth have their length before them; the List itself counts as there at once.
   */
  #endOfField(reader: OctetReader): number | null {
    const from = reader.at
    const headEnd = endOfHead(reader.octets, from)
    if (headEnd === null) {
      if (reader.end - from >= maxHeadOctets) throw malformed('a number of more than 64 bits')
      return null
    }
    const tag = reader.varint()
    if ((tag & 7) !== wireType.delimited) throw malformed(`wire type ${tag & 7} in a list`)
    const octets = reader.varint()
    if (this.#place === 'envelope' && tag === fieldTag(unknownField.raw)) return headEnd + octets
    const isItem = this.#place === 'list' && tag === fieldTag(listField.items)
    const most = isItem ? apiObjectOctets : apiDocumentOctets
    if (octets > most) throw new ApiError('format', `an object of more than ${most} octets in a list`)
    if (headEnd + octets <= reader.end) return headEnd + octets
    this.#neededOctets = headEnd + octets - from
    return null
  }

  #take(tag: number, reader: OctetReader, end: number): Record<string, unknown> | null {
    if (this.#place === 'list') {
      if (tag === fieldTag(listField.items)) return readMessage(reader, end, this.#item)
      if (tag === fieldTag(listField.metadata)) this.#metadata = readMessage(reader, end, listMeta)
      reader.at = end
      return null
    }
    if (tag === fieldTag(unknownField.raw)) {
      if (this.#isInTrailer) throw malformed('a list with items twice')
      this.#beginList(end - reader.at)
      return null
    }
    if (tag === fieldTag(unknownField.typeMeta)) {
      const { kind = '' } = readMessage(reader, end, typeMeta) as { kind?: string }
      this.#kind = kind
    } else if (tag === fieldTag(unknownField.contentEncoding))
      mustBeEmpty(reader.octets.toString('utf8', reader.at, end))
    reader.at = end
    return null
  }

  #beginList(octets: number): void {
    this.#listOctets = octets
    if (octets === 0) this.#isInTrailer = true
    else this.#place = 'list'
  }

  #countDown(octets: number): void {
    this.#listOctets -= octets
    if (this.#listOctets < 0) throw malformed('a list that is longer than it says')
    if (this.#listOctets > 0) return
    this.#place = 'envelope'
    this.#isInTrailer = true
  }
}

/** Where two varints end; null where they are not all there. */
function endOfHead(octets: Buffer, from: number): number | null {
  const most = Math.min(octets.length, from + maxHeadOctets)
  let numbers = 0
  for (let at = from; at < most; at++) if (octets[at]! < 0x80 && ++numbers === 2) return at + 1
  return null
}
