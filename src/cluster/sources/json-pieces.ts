/**
 * Cuts JSON text where it can be cut without parsing it: between values that follow one another, and between the
 * elements of a top-level object's `items`. It only follows brackets and strings; JSON.parse judges each piece.
 */
import { Snippet } from './snippet.ts'

/** Characters looked at between two pauses. */
const charactersPerTurn = 1 << 18

/** `objects` are made as they are asked for, in the order of the text. */
export type JsonPieces = { objects: Iterable<Snippet>; head: unknown }
type Extent = [start: number, end: number]
/** One top-level value: its extent, and its `items` where it has them. */
type Value = { start: number; end: number; items: { start: number; end: number; elements: Extent[] } | null }

const quote = 0x22
const backslash = 0x5c
const comma = 0x2c
const isOpening = (code: number) => code === 0x7b || code === 0x5b
const isClosing = (code: number) => code === 0x7d || code === 0x5d
const isSpace = (code: number) => code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09

/** The offset after the string that begins at `at`, or -1 where it does not end. */
function endOfString(text: string, at: number): number {
  for (let end = text.indexOf('"', at + 1); end >= 0; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === backslash) backslashes++
    if (backslashes % 2 === 0) return end + 1
  }
  return -1
}

/** The text's values with their `items` cut out, or null where the text is not plainly JSON. */
export function* cutJson(text: string): Generator<null, JsonPieces[] | null> {
  const values: Value[] = []
  let value: Value | null = null
  let depth = 0
  let elementStart = -1
  let wantsComma = false
  let isInItems = false
  let turnEnd = charactersPerTurn
  for (let at = 0; at < text.length; at++) {
    if (at > turnEnd) {
      turnEnd = at + charactersPerTurn
      yield null
    }
    const code = text.charCodeAt(at)
    if (isSpace(code)) continue
    if (isOpening(code)) {
      if (depth === 0) values.push((value = { start: at, end: -1, items: null }))
      if (isInItems && depth === 2) {
        if (wantsComma) return null
        elementStart = at
      }
      if (depth === 1 && code === 0x5b && /"items"\s*:\s*$/.test(text.slice(Math.max(0, at - 64), at))) {
        if (value === null || value.items !== null) return null
        value.items = { start: at, end: -1, elements: [] }
        isInItems = true
        wantsComma = false
      }
      depth++
    } else if (isClosing(code)) {
      if (--depth < 0 || value === null) return null
      if (isInItems && depth === 2) {
        value.items?.elements.push([elementStart, at + 1])
        wantsComma = true
      } else if (isInItems && depth === 1) {
        if (!wantsComma && (value.items?.elements.length ?? 0) > 0) return null
        if (value.items !== null) value.items.end = at
        isInItems = false
      }
      if (depth === 0) value.end = at + 1
    } else if (depth === 0) {
      return null
    } else if (isInItems && depth === 2) {
      if (code !== comma || !wantsComma) return null
      wantsComma = false
    } else if (code === quote) {
      at = endOfString(text, at) - 1
      if (at < 0) return null
    }
  }
  return depth === 0 ? piecesOf(text, values) : null
}

function piecesOf(text: string, values: readonly Value[]): JsonPieces[] {
  let line = 1
  let lineStart = 0
  let lineEnd = text.indexOf('\n')
  /** Called with growing offsets, so that each line is counted once. */
  const snippetOf = ([start, end]: Extent): Snippet => {
    while (lineEnd >= 0 && lineEnd < start) {
      line++
      lineStart = lineEnd + 1
      lineEnd = text.indexOf('\n', lineStart)
    }
    return new Snippet(text.slice(start, end), line, start - lineStart + 1, 'json')
  }
  function* snippets(extents: readonly Extent[]): Generator<Snippet> {
    for (const extent of extents) yield snippetOf(extent)
  }
  return values.map(({ start, end, items }) => {
    const whole = { objects: snippets([[start, end]]), head: null }
    if (items === null) return whole
    const around = text.slice(start, items.start + 1) + text.slice(items.end, end)
    const { value: head, error } = new Snippet(around, 1, 1, 'json').parse()
    const isList = error === null && String((head as { kind?: unknown }).kind).endsWith('List')
    return isList ? { objects: snippets(items.elements), head } : whole
  })
}
