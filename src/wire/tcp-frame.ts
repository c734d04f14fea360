/**
 * Messages on a TCP stream: each behind its length in two octets (RFC 1035 §4.2.2, RFC 7766 §8), however the stream is
 * cut.
 */
import { WireError } from '../base/errors.ts'
import { maxMessageOctets } from '../base/limits.ts'
import { readU16, writeU16 } from './octets.ts'

const lengthOctets = 2
/** Room that a reader keeps once it has needed it; more is given back as soon as all is read. */
const keptOctets = 4_096
const nothing = new Uint8Array(0)

/**
 * Cuts a stream into messages. It holds what was pushed and not yet read, so room grows with what really came, never
 * with a length that was only announced.
 */
export class TcpFrameReader {
  #octets = nothing
  #start = 0
  #end = 0

  /** Octets that were pushed and not yet returned by `next`, lengths included. */
  get bufferedOctets(): number {
    return this.#end - this.#start
  }

  /** Whether the stream stands within a message: bytes are missing. */
  get isMidMessage(): boolean {
    return this.#start !== this.#end
  }

  /** Takes the next piece of the stream; it is copied. */
  push(chunk: Uint8Array): void {
    this.#makeRoom(chunk.length)
    this.#octets.set(chunk, this.#end)
    this.#end += chunk.length
  }

  /** The next whole message, valid until the next `push`; null where there is none yet. It may be empty. */
  next(): Uint8Array | null {
    const start = this.#start + lengthOctets
    if (start > this.#end) return null
    const end = start + readU16(this.#octets, this.#start)
    if (end > this.#end) return null
    this.#start = end
    return this.#octets.subarray(start, end)
  }

  #makeRoom(wanted: number): void {
    const buffered = this.bufferedOctets
    if (buffered === 0) {
      this.#start = 0
      this.#end = 0
      if (this.#octets.length > keptOctets) this.#octets = nothing
    }
    if (this.#end + wanted <= this.#octets.length) return
    // Moving down pays only where it frees half of the room; else octets would be moved again and again.
    if (buffered + wanted <= this.#octets.length / 2) {
      this.#octets.copyWithin(0, this.#start, this.#end)
    } else {
      const grown = new Uint8Array(2 ** Math.ceil(Math.log2(Math.max(256, 2 * (buffered + wanted)))))
      grown.set(this.#octets.subarray(this.#start, this.#end))
      this.#octets = grown
    }
    this.#start = 0
    this.#end = buffered
  }
}

/**
 * The message with its length before it, in one piece, so that it leaves in one segment (RFC 7766 §8).
 * @throws WireError TOO_LARGE over 65535 octets.
 */
export function frameMessage(message: Uint8Array): Uint8Array {
  if (message.length > maxMessageOctets) throw new WireError('TOO_LARGE', maxMessageOctets)
  const framed = new Uint8Array(lengthOctets + message.length)
  writeU16(framed, 0, message.length)
  framed.set(message, lengthOctets)
  return framed
}
