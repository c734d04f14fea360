/** One piece of a manifest's text that is parsed at once, and that knows where in the file it stands. */
import { isAlias, isMap, isNode, isPair, isScalar, isSeq, LineCounter, parseDocument } from 'yaml'
import type { Document, Node } from 'yaml'

/** Both count from 1. */
export type Position = Readonly<{ line: number; column: number }>
type Parsed = Readonly<{ value: unknown; error: Readonly<{ position: Position; reason: string }> | null }>

/** Aliases that one document may expand to; more is an attack on memory ("billion laughs"). */
const maxAliases = 100

export class Snippet {
  readonly text: string
  readonly #line: number
  readonly #column: number
  /** The text holds a YAML sequence with the object as its only element. */
  readonly #isItem: boolean
  readonly #isJson: boolean
  #document: Document.Parsed | null = null
  #lines: LineCounter | null = null

  constructor(text: string, line: number, column: number, form: 'whole' | 'item' | 'json' = 'whole') {
    this.text = text
    this.#line = line
    this.#column = column
    this.#isItem = form === 'item'
    this.#isJson = form === 'json'
  }

  /** The value in it (null: nothing but comments), or the first error. Never throws. */
  parse(): Parsed {
    if (this.#isJson) {
      try {
        return { value: JSON.parse(this.text), error: null }
      } catch {
        // YAML reads what is nearly JSON (as kubectl does), and says where it is not even that.
      }
    }
    const document = this.#parseYaml()
    const error = document.errors[0]
    if (error !== undefined) return this.#failure(error.pos[0], inWords(error.message))
    const twice = findRepeatedKey(document.contents)
    if (twice !== null) return this.#failure(twice, 'a key is given twice in one mapping')
    try {
      return { value: document.toJS({ maxAliasCount: maxAliases }) as unknown, error: null }
    } catch (thrown) {
      // Unknown anchors, too many aliases, or more depth than the stack has.
      return this.#failure(0, inWords(thrown instanceof Error ? thrown.message : String(thrown)))
    }
  }

  /** The object in the parsed value. */
  root(value: unknown): unknown {
    return this.#isItem && Array.isArray(value) ? (value[0] as unknown) : value
  }

  /** Where in the file the character at this offset of the text stands. */
  positionAt(offset: number): Position {
    if (offset === 0) return { line: this.#line, column: this.#column }
    if (this.#lines === null) this.#parseYaml()
    const { line, col } = this.#lines?.linePos(offset) ?? { line: 1, col: 1 }
    return { line: this.#line + line - 1, column: line === 1 ? this.#column + col - 1 : col }
  }

  /** Where the value at the path begins, as well as that is known without parsing anything again. */
  positionOf(path: string): Position {
    return this.#document === null ? this.positionAt(0) : this.locate(path)
  }

  /** Where the field stands; of a field that is missing, where the nearest one above it begins. */
  locate(path: string): Position {
    const document = this.#document ?? this.#parseYaml()
    let node: unknown = document.contents
    let offset = 0
    const steps = [...(this.#isItem ? [0] : []), ...stepsOf(path)]
    for (const step of [null, ...steps]) {
      if (step !== null) node = isMap(node) || isSeq(node) ? node.get(step, true) : null
      if (!isNode(node) || isAlias(node)) break
      offset = node.range?.[0] ?? offset
    }
    return this.positionAt(offset)
  }

  #parseYaml(): Document.Parsed {
    this.#lines = new LineCounter()
    this.#document = parseDocument(this.text, {
      lineCounter: this.#lines,
      prettyErrors: false,
      logLevel: 'error',
      merge: true,
      // The package compares every key with every other; findRepeatedKey needs one look at each.
      uniqueKeys: false
    })
    return this.#document
  }

  #failure(offset: number, reason: string): Parsed {
    return { value: null, error: { position: this.positionAt(offset), reason } }
  }
}

/** What the package says of more depth than the stack has is the runtime's word. */
const inWords = (reason: string): string => (/call stack/i.test(reason) ? 'nested too deeply' : reason)

const stepsOf = (path: string): (string | number)[] =>
  [...path.matchAll(/\[(\d+)\]|[^.[\]]+/g)].map((match) => (match[1] === undefined ? match[0] : Number(match[1])))

/** The offset of a key that its mapping has already, or null. */
function findRepeatedKey(root: Node | null): number | null {
  const waiting: unknown[] = [root]
  while (waiting.length > 0) {
    const node = waiting.pop()
    if (isSeq(node)) waiting.push(...node.items)
    if (!isMap(node)) continue
    const keys = new Set<unknown>()
    for (const pair of node.items) {
      if (!isPair(pair)) continue
      if (isScalar(pair.key) && pair.key.value !== '<<') {
        if (keys.has(pair.key.value)) return pair.key.range?.[0] ?? 0
        keys.add(pair.key.value)
      }
      waiting.push(pair.value)
    }
  }
  return null
}
