/** Cuts a stream of octets into lines, wherever its chunks begin and end. */
import { ApiError } from './api-error.ts'

const newline = 0x0a

export class LineSplitter {
  readonly #maxOctets: number
  #parts: Buffer[] = []
  #pendingOctets = 0

  /** @param maxOctets of one line. */
  constructor(maxOctets: number) {
    this.#maxOctets = maxOctets
  }

  /** Octets of the line that has not ended yet. */
  get pendingOctets(): number {
    return this.#pendingOctets
  }

  /**
   * The lines that end in this chunk, without their newlines; empty ones are left out. To be read to its end.
   * @throws ApiError `format` for a line that is too long.
   */
  *push(chunk: Buffer): Generator<string> {
    let from = 0
    for (let end = chunk.indexOf(newline); end >= 0; end = chunk.indexOf(newline, from)) {
      this.#hold(chunk.subarray(from, end))
      from = end + 1
      const octets = this.#pendingOctets
      const whole = this.#parts.length === 1 ? this.#parts[0]! : Buffer.concat(this.#parts, octets)
      this.#parts = []
      this.#pendingOctets = 0
      if (octets > 0) yield whole.toString('utf8')
    }
    this.#hold(chunk.subarray(from))
  }

  #hold(part: Buffer): void {
    if (part.length === 0) return
    this.#pendingOctets += part.length
    if (this.#pendingOctets > this.#maxOctets) {
      throw new ApiError('format', `a line of more than ${this.#maxOctets} octets`)
    }
    this.#parts.push(part)
  }
}
