/**
 * Cuts a watch in protobuf into its events, wherever its chunks begin and end: each has its length in four octets
 * before it.
 */
import { apiObjectOctets } from '../../../../base/limits.ts'
import { ApiError } from '../api-error.ts'
import { readEnveloped } from './envelope.ts'
import { statusMessage } from './kubernetes-messages.ts'
import type { MessageType } from './message.ts'
import { malformed, OctetReader } from './octet-reader.ts'

const lengthOctets = 4
/** `WatchEvent` is `type` and `object`, and that is a message with the octets of an enveloped one. */
const typeTag = 0x0a
const objectTag = 0x12
const rawTag = 0x0a

export type WatchEvent = Readonly<{ type: string; object: unknown }>

export class WatchFrames {
  readonly #object: MessageType
  #parts: Buffer[] = []
  #pendingOctets = 0
  #neededOctets = lengthOctets

  constructor(object: MessageType) {
    this.#object = object
  }

  /** Octets of the event that has not ended yet. */
  get pendingOctets(): number {
    return this.#pendingOctets
  }

  /** The events that end in this chunk. To be read to its end. @throws ApiError `format` */
  *push(chunk: Buffer): Generator<WatchEvent> {
    this.#parts.push(chunk)
    this.#pendingOctets += chunk.length
    if (this.#pendingOctets < this.#neededOctets) return
    const octets = this.#parts.length === 1 ? chunk : Buffer.concat(this.#parts, this.#pendingOctets)
    this.#parts = []
    let at = 0
    this.#neededOctets = lengthOctets
    while (octets.length - at >= lengthOctets) {
      const length = octets.readUInt32BE(at)
      if (length > apiObjectOctets) throw new ApiError('format', `a watch event of more than ${apiObjectOctets} octets`)
      const end = at + lengthOctets + length
      if (end > octets.length) {
        this.#neededOctets = end - at
        break
      }
      yield this.#event(octets, at + lengthOctets, end)
      at = end
    }
    this.#pendingOctets = octets.length - at
    if (this.#pendingOctets > 0) this.#parts.push(octets.subarray(at))
  }

  #event(octets: Buffer, from: number, end: number): WatchEvent {
    const reader = new OctetReader(octets, from, end)
    let type = ''
    let raw: Buffer | null = null
    while (!reader.isAtEnd) {
      const tag = reader.varint()
      if (tag === typeTag) type = reader.text()
      else if (tag === objectTag) raw = rawOf(reader)
      else reader.skip(tag & 7)
    }
    if (type === '' || raw === null) throw malformed('a watch event without type or object')
    return { type, object: readEnveloped(raw, type === 'ERROR' ? statusMessage : this.#object) }
  }
}

function rawOf(outer: OctetReader): Buffer | null {
  const end = outer.delimitedEnd()
  const reader = new OctetReader(outer.octets, outer.at, end)
  let raw: Buffer | null = null
  while (!reader.isAtEnd) {
    const tag = reader.varint()
    const from = reader.at
    reader.skip(tag & 7)
    if (tag !== rawTag) continue
    const value = new OctetReader(reader.octets, from, reader.at)
    value.delimitedEnd()
    raw = reader.octets.subarray(value.at, reader.at)
  }
  outer.at = end
  return raw
}
