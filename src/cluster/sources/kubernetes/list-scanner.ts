/**
 * Takes the items out of a List while it arrives: each item as soon as it is complete, and the rest of the List
 * (`kind`, `metadata`) at the end. A List of any length needs no more memory than its largest item.
 */
import { apiDocumentOctets, apiObjectOctets } from '../../../base/limits.ts'
import { ApiError } from './api-error.ts'

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const openBracket = 0x5b
const isOpening = (octet: number) => octet === 0x7b || octet === openBracket
const isClosing = (octet: number) => octet === 0x7d || octet === 0x5d
const isSpace = (octet: number) => octet === 0x20 || octet === 0x0a || octet === 0x0d || octet === 0x09

/** Collects octets up to a limit. */
class Collector {
  readonly #what: string
  readonly #maxOctets: number
  #parts: Buffer[] = []
  #octets = 0

  constructor(what: string, maxOctets: number) {
    this.#what = what
    this.#maxOctets = maxOctets
  }

  add(part: Buffer): void {
    this.#octets += part.length
    if (this.#octets > this.#maxOctets) {
      throw new ApiError('format', `${this.#what} of more than ${this.#maxOctets} octets`)
    }
    this.#parts.push(part)
  }

  take(): string {
    const parts = this.#parts
    const whole = parts.length === 1 ? parts[0]! : Buffer.concat(parts, this.#octets)
    this.#parts = []
    this.#octets = 0
    return whole.toString('utf8')
  }

  /** The last octets, for a look back. */
  tail(octets: number): string {
    return Buffer.concat(this.#parts).subarray(-octets).toString('latin1')
  }
}

/** How an API server begins an item of most kinds, and how it goes from one to the next. */
const itemBegin = Buffer.from('{"metadata":{')
const itemsBorder = Buffer.from('},{"metadata":{')

/** Longer items are read octet by octet: each search for the border begins anew. */
const quickItemOctets = 64 * 1024

function isUsual(chunk: Buffer, from: number): boolean {
  const end = from + itemBegin.length
  return end <= chunk.length && chunk.compare(itemBegin, 0, itemBegin.length, from, end) === 0
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new ApiError('format', 'an item of a list that is not JSON')
  }
}

export class ListScanner {
  readonly #head = new Collector('a list without its items', apiDocumentOctets)
  readonly #item = new Collector('an object', apiObjectOctets)
  /** Where octets belong: to the head, to an item, or to nothing (between items). */
  #place: 'head' | 'item' | 'between' = 'head'
  #depth = 0
  #isInString = false
  #isEscaped = false
  #hasItems = false
  /** Inside `items`: whether an item has just ended, so that a comma or the end has to follow. */
  #isAfterItem = false
  /** Whether items are found by the borders between them, without a look at each octet. */
  #isPlain = true
  /** The beginning of an item whose border has not come yet; it is put before the next chunk. */
  #begun: Buffer | null = null

  /**
   * What the List says beside its items.
   * @throws ApiError `format` where it has not ended, or is no List.
   */
  end(): Readonly<{ resourceVersion: string; continueToken: string }> {
    if (this.#depth !== 0 || this.#place !== 'head') throw new ApiError('format', 'a list that breaks off')
    const text = this.#head.take()
    let head: unknown
    try {
      head = JSON.parse(text)
    } catch {
      throw new ApiError('format', 'a list that is not JSON')
    }
    const { kind, metadata, items } = (head ?? {}) as { kind?: unknown; metadata?: unknown; items?: unknown }
    if (typeof kind !== 'string' || !kind.endsWith('List') || (items !== null && !Array.isArray(items))) {
      throw new ApiError('format', 'an answer that is no list')
    }
    const fields = (metadata ?? {}) as { resourceVersion?: unknown; continue?: unknown }
    if (typeof fields.resourceVersion !== 'string' || fields.resourceVersion === '') {
      throw new ApiError('format', 'a list without resourceVersion')
    }
    return {
      resourceVersion: fields.resourceVersion,
      continueToken: typeof fields.continue === 'string' ? fields.continue : ''
    }
  }

  /** The items that are left when nothing more comes. To be read to its end, before `end`. @throws ApiError `format` */
  *rest(): Generator {
    this.#isPlain = false
    yield* this.push(Buffer.alloc(0))
  }

  /**
   * The items that have become complete with this chunk; the last ones may wait for `rest`. To be read to its end.
   * @throws ApiError `format` for what is not a List, and for what is too large.
   */
  *push(arrived: Buffer): Generator {
    const chunk = this.#begun === null ? arrived : Buffer.concat([this.#begun, arrived])
    this.#begun = null
    let from = 0
    for (let at = 0; at < chunk.length; at++) {
      const octet = chunk[at]!
      if (this.#isInString) {
        if (this.#isEscaped) this.#isEscaped = false
        else if (octet === backslash) this.#isEscaped = true
        else if (octet === quote) this.#isInString = false
        continue
      }
      if (this.#place === 'between') {
        if (isOpening(octet) && !this.#isAfterItem) {
          if (this.#isPlain && isUsual(chunk, at)) {
            const last = chunk.indexOf(itemsBorder, at)
            if (last === -1 && chunk.length - at < quickItemOctets) {
              this.#begun = chunk.subarray(at)
              return
            }
            const item = last === -1 ? undefined : this.#tryItem(chunk, at, last)
            if (item !== undefined) {
              at = last
              this.#isAfterItem = true
              yield item
              continue
            }
          }
          this.#place = 'item'
          this.#depth++
          from = at
        } else if (octet === 0x5d) {
          this.#place = 'head'
          this.#depth--
          from = at
        } else if (octet === comma && this.#isAfterItem) {
          this.#isAfterItem = false
        } else if (!isSpace(octet)) {
          throw new ApiError('format', 'a list whose items are not objects')
        }
      } else if (octet === quote) {
        this.#isInString = true
      } else if (isOpening(octet)) {
        this.#depth++
        if (octet === openBracket && this.#depth === 2 && this.#place === 'head') {
          this.#head.add(chunk.subarray(from, at + 1))
          from = at + 1
          this.#beginItems()
        }
      } else if (isClosing(octet)) {
        this.#depth--
        if (this.#place === 'item' && this.#depth === 2) {
          this.#item.add(chunk.subarray(from, at + 1))
          this.#place = 'between'
          this.#isAfterItem = true
          yield parsed(this.#item.take())
        }
      }
    }
    if (this.#place !== 'between') (this.#place === 'head' ? this.#head : this.#item).add(chunk.subarray(from))
  }

  /**
   * The item in these octets. What looks like the border between items may be inside of one, but then what stands
   * before is no JSON, for its braces are open: undefined, and no border is trusted from there on.
   */
  #tryItem(chunk: Buffer, from: number, last: number): unknown {
    try {
      return JSON.parse(chunk.toString('utf8', from, last + 1))
    } catch {
      this.#isPlain = false
      return undefined
    }
  }

  #beginItems(): void {
    if (!/"items"\s*:\s*\[$/.test(this.#head.tail(64))) return
    if (this.#hasItems) throw new ApiError('format', 'a list with items twice')
    this.#hasItems = true
    this.#place = 'between'
    this.#isAfterItem = false
  }
}
