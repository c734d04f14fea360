/**
 * Cuts YAML text where it can be cut without parsing it: between documents, and between the items of a List.
 *
 * Both cuts are exact, not guesses: `---` at the start of a line ends a document wherever it stands, and what belongs
 * to an item of a block sequence is indented deeper than the item's dash. YAML 1.2 §9.1.2, §8.2.1.
 */
import { Snippet } from './snippet.ts'

/** Lines looked at between two pauses. */
const linesPerTurn = 20_000

export type YamlDocument = Readonly<{ text: string; line: number; end: number }>

/** Whether the character ends a marker such as `---` or `-`. */
const endsMarker = (text: string, at: number) => at >= text.length || ' \t\r\n'.includes(text[at] ?? '')

function countLines(text: string): number {
  let lines = 0
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) lines++
  return lines
}

/** Nothing but comments and directives: they belong to the document behind them. */
const isPrologue = (text: string) => !/^[ \t]*[^%#\s]/m.test(text)

/** The document after the given one (null: the first), from its `---` up to the next; null at the end of the text. */
export function nextYamlDocument(text: string, previous: YamlDocument | null): YamlDocument | null {
  const start = previous?.end ?? 0
  if (start >= text.length) return null
  const line = previous === null ? 1 : previous.line + countLines(previous.text)
  let end = start
  do {
    const marker = text.indexOf('\n---', end)
    end = marker < 0 ? text.length : marker + 1
  } while (end < text.length && (!endsMarker(text, end + 3) || isPrologue(text.slice(start, end))))
  return { text: text.slice(start, end), line, end }
}

/** The offset of the top-level key `items` with nothing behind it on its line, or -1. */
function findItemsKey(text: string): number {
  const key = text.startsWith('items:') ? 0 : text.indexOf('\nitems:') + 1
  if (key === 0 && !text.startsWith('items:')) return -1
  return /^items:[ \t]*(#.*)?\r?$/.test(text.slice(key, text.indexOf('\n', key))) ? key : -1
}

/** An anchor may be named from anywhere in its document, so the pieces would not stand alone. */
const hasAnchor = (text: string) => text.includes('&') && /(^|[\s,[{:-])&[^\s,[\]{}]/.test(text)

/** `items` gives the items one by one, and null where a pause is due; `head` is the text around them. */
export type YamlList = { head: readonly Snippet[]; items: () => Generator<Snippet | null> }

/** The items of a document that has `items` as a block sequence at its top, or null where it cannot be cut. */
export function* cutYamlList(document: Snippet): Generator<null, YamlList | null> {
  const { text } = document
  const key = findItemsKey(text)
  if (key < 0 || hasAnchor(text)) return null
  const firstLine = document.positionAt(0).line
  const starts: { offset: number; line: number }[] = []
  let line = firstLine + countLines(text.slice(0, key)) + 1
  let at = text.indexOf('\n', key) + 1
  let indent = -1
  let turn = 0
  while (at > 0 && at < text.length) {
    const next = text.indexOf('\n', at) + 1
    let column = at
    while (text[column] === ' ') column++
    const character = text[column] ?? '\n'
    const isBlank = character === '\n' || character === '\r' || character === '#'
    if (!isBlank) {
      const isDash = character === '-' && endsMarker(text, column + 1)
      if (indent < 0) {
        if (!isDash) return null
        indent = column - at
      }
      if (column - at < indent || (column - at === indent && !isDash)) break
      if (column - at === indent) starts.push({ offset: at, line })
    }
    line++
    at = next === 0 ? text.length : next
    if (++turn % linesPerTurn === 0) yield null
  }
  if (starts.length === 0) return null
  const end = at
  const head = [new Snippet(text.slice(0, key), firstLine, 1), new Snippet(text.slice(end), line, 1)]
  const items = function* (): Generator<Snippet | null> {
    for (const [index, start] of starts.entries()) {
      yield new Snippet(text.slice(start.offset, starts[index + 1]?.offset ?? end), start.line, 1, 'item')
    }
  }
  return { head, items }
}
