/**
 * Name compression for one message at a time (RFC 1035 §4.1.4): remembers the labels that were written and where.
 *
 * Each remembered label knows the one behind it, so a name is looked up from its root on, and two names are equal as
 * far as they lead to the same labels. The octets are compared in the message itself: nothing is copied, and nothing
 * is allocated for a message. The number of labels is bounded; what is not remembered is written in full, which is
 * right too.
 */
import { WireError } from '../base/errors.ts'
import { fnvOffset, fnvPrime } from '../base/fnv1a.ts'
import { compressionLabels } from '../base/limits.ts'
import { lowerCaseOf, maxLabelOctets, maxNameOctets } from './name.ts'

/** A pointer has 14 bits. */
const pointerReach = 0x4000
const slotCount = compressionLabels * 4
/** Places that are tried for one label, so that colliding names cost no more than that. */
const maxProbes = 8
const lastStamp = 0x3fff_ffff
/** What is behind the last label of a name. */
const root = -1
const notFound = -2

export class NameCompression {
  #out: Uint8Array = new Uint8Array(0)
  /** The labels, in the order in which they were written: where each lies, and which label follows it. */
  readonly #offset = new Int32Array(compressionLabels)
  readonly #next = new Int32Array(compressionLabels)
  #count = 0
  /** Hash table of label numbers, each plus the stamp of its message: so it is never cleared between messages. */
  readonly #slots = new Int32Array(slotCount)
  #stamp = 1
  /** Where the labels of the name at hand begin. */
  readonly #starts = new Uint8Array(maxNameOctets)

  /** Forgets all names, for a new message in `out`. */
  begin(out: Uint8Array): void {
    this.#out = out
    this.#count = 0
    this.#stamp += compressionLabels
    if (this.#stamp > lastStamp) {
      this.#slots.fill(0)
      this.#stamp = 1
    }
  }

  /** Forgets what was written from here on, because it is taken back. */
  forgetFrom(offset: number): void {
    while (this.#count > 0 && this.#offset[this.#count - 1]! >= offset) this.#count--
  }

  /** Remembers an uncompressed name that is in the message already. */
  learn(offset: number): void {
    let next = root
    for (let label = this.#split(this.#out, offset) - 1; label >= 0; label--) {
      const at = offset + this.#starts[label]!
      const hash = hashLabel(this.#out, at, next)
      const known = this.#find(hash, this.#out, at, next, true)
      next = known === notFound ? this.#remember(hash, at, next) : known
      if (next === notFound) return
    }
  }

  /**
   * Writes an uncompressed name of `source` to the message at `at` and returns where it ends there; -1 where it would
   * pass `limit`.
   * @param keepsCase whether only names of the same case are pointed to: the reader sees the case of what is pointed
   * to.
   * @throws WireError BAD_RDATA where there is no name in `source`.
   */
  write(source: Uint8Array, sourceAt: number, at: number, limit: number, keepsCase: boolean): number {
    const labels = this.#split(source, sourceAt)
    let known = root
    let unknown = labels
    let hash = 0
    while (unknown > 0) {
      const labelAt = sourceAt + this.#starts[unknown - 1]!
      hash = hashLabel(source, labelAt, known)
      const found = this.#find(hash, source, labelAt, known, keepsCase)
      if (found === notFound) break
      known = found
      unknown--
    }
    // `starts` has one element more than there are labels: where the root's octet lies.
    const literalOctets = this.#starts[unknown]!
    const end = at + literalOctets + (known === root ? 1 : 2)
    if (end > limit) return -1
    const out = this.#out
    for (let i = 0; i < literalOctets; i++) out[at + i] = source[sourceAt + i]!
    if (known === root) {
      out[end - 1] = 0
    } else {
      const offset = this.#offset[known]!
      out[end - 2] = 0xc0 | (offset >>> 8)
      out[end - 1] = offset
    }
    let next = known
    for (let label = unknown - 1; label >= 0 && next !== notFound; label--) {
      const labelAt = at + this.#starts[label]!
      if (label < unknown - 1) hash = hashLabel(out, labelAt, next)
      next = this.#remember(hash, labelAt, next)
    }
    return end
  }

  /** Notes where the labels of a name begin, counted from the name's own beginning, and returns their number. */
  #split(octets: Uint8Array, offset: number): number {
    let labels = 0
    let at = 0
    for (;;) {
      const length = octets[offset + at]
      if (length === undefined || length > maxLabelOctets || at >= maxNameOctets) {
        throw new WireError('BAD_RDATA', offset + at, 'no uncompressed name')
      }
      this.#starts[labels] = at
      if (length === 0) return labels
      labels++
      at += length + 1
    }
  }

  #find(hash: number, octets: Uint8Array, at: number, next: number, keepsCase: boolean): number {
    for (let probe = 0; probe < maxProbes; probe++) {
      const label = this.#slots[(hash + probe) & (slotCount - 1)]! - this.#stamp
      if (label < 0 || label >= this.#count) return notFound
      if (this.#next[label] === next && sameLabel(octets, at, this.#out, this.#offset[label]!, keepsCase)) return label
    }
    return notFound
  }

  #remember(hash: number, at: number, next: number): number {
    if (this.#count === compressionLabels || at >= pointerReach) return notFound
    for (let probe = 0; probe < maxProbes; probe++) {
      const slot = (hash + probe) & (slotCount - 1)
      const label = this.#slots[slot]! - this.#stamp
      if (label >= 0 && label < this.#count) continue
      this.#slots[slot] = this.#count + this.#stamp
      this.#offset[this.#count] = at
      this.#next[this.#count] = next
      return this.#count++
    }
    return notFound
  }
}

/** FNV-1a over the label in lower case, with what follows it. */
function hashLabel(octets: Uint8Array, at: number, next: number): number {
  let hash = (fnvOffset ^ next) | 0
  for (let i = at + octets[at]!; i >= at; i--) hash = Math.imul(hash ^ lowerCaseOf[octets[i]!]!, fnvPrime)
  return (hash ^ (hash >>> 15)) >>> 0
}

function sameLabel(a: Uint8Array, aAt: number, b: Uint8Array, bAt: number, keepsCase: boolean): boolean {
  for (let i = a[aAt]!; i >= 0; i--) {
    const left = a[aAt + i]!
    const right = b[bAt + i]!
    if (left !== right && (keepsCase || lowerCaseOf[left] !== lowerCaseOf[right])) return false
  }
  return true
}
