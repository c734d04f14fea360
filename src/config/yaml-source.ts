/** A YAML file as plain content, and the place in the file where each part of it stands. */
import {
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  parseDocument,
  visit,
  type Document,
  type Node
} from 'yaml'
import { configAliases, configFileOctets, configYamlMistakes } from '../base/limits.ts'
import type { Mistake } from './read-draft.ts'
import type { PathStep, Position } from './problem.ts'

/** A mistake in the YAML itself. */
export type YamlMistake = Readonly<{ position: Position; message: string }>

const start: Position = { line: 1, column: 1 }

/** What the parser's own words leave open. */
const plainWords: Readonly<Record<string, string>> = {
  MULTIPLE_DOCS: 'a second document begins here: the configuration is one YAML document',
  TAB_AS_INDENT: 'YAML is indented by spaces, not by tabs'
}

export class YamlSource {
  readonly #text: string
  readonly #lines = new LineCounter()
  readonly #document: Document.Parsed | null
  /** Null where the YAML does not parse; `mistakes` says why. */
  readonly content: unknown
  readonly mistakes: readonly YamlMistake[]

  constructor(text: string) {
    this.#text = text
    const mistakes: YamlMistake[] = []
    let content: unknown = null
    let document: Document.Parsed | null = null
    if (Buffer.byteLength(text) > configFileOctets) {
      mistakes.push({ position: start, message: `the file is larger than ${configFileOctets} octets` })
    } else {
      try {
        document = parseDocument(text, {
          lineCounter: this.#lines,
          prettyErrors: false,
          logLevel: 'error',
          uniqueKeys: false
        })
        mistakes.push(...this.#mistakesOf(document))
        if (mistakes.length === 0) content = document.toJS({ maxAliasCount: configAliases })
      } catch (error) {
        // The parser gives up in its own way on what is nested too deep or repeated by too many aliases.
        const reason = error instanceof RangeError ? 'it is nested too deep' : (error as Error).message
        mistakes.push({ position: start, message: `the YAML cannot be read: ${reason}` })
      }
    }
    this.#document = document
    this.content = content
    this.mistakes = mistakes
  }

  #mistakesOf(document: Document.Parsed): YamlMistake[] {
    const errors = [...document.errors, ...document.warnings]
    const tooDeep = errors.find(({ message }) => message.includes('call stack'))
    if (tooDeep !== undefined) return [{ position: this.#position(tooDeep.pos[0]), message: 'this is nested too deep' }]
    const mistakes = errors.map((error) => ({
      position: this.#position(error.pos[0]),
      message: plainWords[error.code] ?? error.message
    }))
    let aliases = 0
    visit(document, {
      Pair: (_, pair) => {
        if (isScalar(pair.key) || !isNode(pair.key)) return undefined
        mistakes.push({ position: this.#position(pair.key.range?.[0] ?? 0), message: 'a key is text here' })
        return undefined
      },
      // The parser's own check compares each key with each other one.
      Map: (_, map) => {
        const keys = new Set<string>()
        for (const { key } of map.items) {
          const text = keyText(key)
          if (keys.has(text)) {
            mistakes.push({
              position: this.#position(startOf(key) ?? 0),
              message: 'this key stands in the mapping twice'
            })
          }
          keys.add(text)
        }
        return undefined
      },
      Alias: (_, alias) => {
        const position = this.#position(alias.range?.[0] ?? 0)
        if (++aliases > configAliases) {
          mistakes.push({ position, message: `more than ${configAliases} aliases` })
          return visit.BREAK
        }
        if (alias.resolve(document) === undefined)
          mistakes.push({ position, message: `no \`&${alias.source}\` before it` })
        return undefined
      }
    })
    return mistakes.slice(0, configYamlMistakes)
  }

  /** Where a mistake stands, as near as can be told. */
  positionOf({ path, at, offset }: Pick<Mistake, 'path' | 'at' | 'offset'>): Position {
    let node: unknown = this.#document?.contents
    let found = startOf(node) ?? 0
    for (const [depth, step] of path.entries()) {
      const { key, value } = this.#entry(node, step)
      if (key === null && value === null) return this.#position(found)
      const isLast = depth === path.length - 1
      const ofValue = isEmpty(value) ? null : startOf(value)
      found = (isLast && at === 'key' ? startOf(key) : null) ?? ofValue ?? startOf(key) ?? found
      if (isLast && at === 'value') return this.#position(found + this.#offsetInside(value, offset ?? 0))
      node = value
    }
    return this.#position(found)
  }

  /** Where each top-level key stands, and each key of a mapping below one (`threads`, `cluster`, `cluster.source`). */
  sectionPositions(): ReadonlyMap<string, Position> {
    const positions = new Map<string, Position>()
    const root = this.content as Readonly<Record<string, unknown>>
    for (const [key, value] of Object.entries(root)) {
      positions.set(key, this.positionOf({ path: [key], at: 'key' }))
      if (typeof value !== 'object' || value === null || Array.isArray(value)) continue
      for (const below of Object.keys(value)) {
        positions.set(`${key}.${below}`, this.positionOf({ path: [key, below], at: 'key' }))
      }
    }
    return positions
  }

  /** The key and value nodes of a step; of a list only the value. */
  #entry(node: unknown, step: PathStep): { key: unknown; value: unknown } {
    const holder = isAlias(node) && this.#document !== null ? node.resolve(this.#document) : node
    if (isSeq(holder)) return { key: null, value: holder.items[Number(step)] ?? null }
    if (!isMap(holder)) return { key: null, value: null }
    const pair = holder.items.find(({ key }) => keyText(key) === String(step))
    return { key: pair?.key ?? null, value: pair?.value ?? null }
  }

  /** Characters from a scalar's start in the file to the one that `offset` counts; 0 where escapes make it unclear. */
  #offsetInside(value: unknown, offset: number): number {
    if (!isScalar(value) || typeof value.value !== 'string' || offset === 0) return 0
    const quote = value.type === 'PLAIN' ? 0 : 1
    const from = startOf(value)! + quote
    return this.#text.startsWith(value.value, from) ? quote + Math.min(offset, value.value.length) : 0
  }

  #position(offset: number): Position {
    const { line, col } = this.#lines.linePos(offset)
    return line === 0 ? start : { line, column: col }
  }
}

/** A key as it is in the plain content. */
const keyText = (key: unknown): string => String(isScalar(key) ? (key.value ?? '') : key)

/** Nothing was written: `key:` and a line end. */
const isEmpty = (value: unknown): boolean =>
  value === null || (isScalar(value) && value.value === null && (value.source ?? '') === '')

const startOf = (node: unknown): number | null => (isNode(node) ? ((node as Node).range?.[0] ?? null) : null)
