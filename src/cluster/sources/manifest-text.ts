/**
 * Reads the objects in the text of one manifest file: multi-document YAML, JSON, and Lists of either, opened up.
 *
 * Parsing YAML is slow (about 2 MB a second), and it happens in the thread that answers queries. So everything here is
 * a generator that hands out one object after the other, and a pause (null) wherever it has worked for a while; Lists
 * are cut into their items before they are parsed. What cannot be cut (a List in flow style, or with anchors) is
 * parsed in one go, and therefore limited in size.
 */
import { manifestListDepth, manifestPieceCharacters } from '../../base/limits.ts'
import { cutJson } from './json-pieces.ts'
import { Snippet } from './snippet.ts'
import type { Position } from './snippet.ts'
import { cutYamlList, nextYamlDocument } from './yaml-pieces.ts'

export type { Position } from './snippet.ts'

/** `locate` gives the place of a field such as `spec.ports[1].port`, or of what stands nearest above it. */
export type ManifestObject = Readonly<{ value: unknown; position: Position; locate: (path: string) => Position }>
export type TextError = Readonly<{ position: Position; reason: string }>
/** null: a good moment to let others run. */
export type Found = Readonly<{ object: ManifestObject }> | Readonly<{ error: TextError }> | null

type ListHead = { kind: string; apiVersion: unknown }

/** Every object of the text in its order, and every error that keeps a part of it from being read. */
export function* readManifest(text: string): Generator<Found> {
  if (/^\s*[{[]/.test(text)) {
    const pieces = yield* cutJson(text)
    if (pieces !== null) {
      for (const { objects, head } of pieces) {
        for (const snippet of objects) yield* readSnippet(snippet, headOf(head))
      }
      return
    }
  }
  for (let document = nextYamlDocument(text, null); document !== null; document = nextYamlDocument(text, document)) {
    yield* readYamlDocument(new Snippet(document.text, document.line, 1))
  }
}

function* readYamlDocument(document: Snippet): Generator<Found> {
  const pieces = yield* cutYamlList(document)
  const heads = pieces?.head.map((snippet) => snippet.parse())
  const head =
    heads?.every((it) => it.error === null) === true ? headOf(mergeHeads(heads.map(({ value }) => value))) : null
  if (pieces === null || head === null) {
    yield* readSnippet(document, null)
    return
  }
  for (const item of pieces.items()) {
    if (item === null) yield null
    else yield* readSnippet(item, head)
  }
}

const mergeHeads = (values: readonly unknown[]): object => Object.assign({}, ...values)

/** A List's kind and version, or null for what is no List. */
function headOf(value: unknown): ListHead | null {
  if (typeof value !== 'object' || value === null) return null
  const { kind, apiVersion } = value as { kind?: unknown; apiVersion?: unknown }
  return typeof kind === 'string' && kind.endsWith('List') ? { kind, apiVersion } : null
}

function* readSnippet(snippet: Snippet, list: ListHead | null): Generator<Found> {
  if (snippet.text.length > manifestPieceCharacters) {
    const reason = `one document of more than ${manifestPieceCharacters} characters: write it as several, or as a List in block style`
    yield { error: { position: snippet.positionAt(0), reason } }
    return
  }
  const { value, error } = snippet.parse()
  if (error !== null) yield { error }
  else if (value !== null) yield* openLists(snippet, snippet.root(value), '', list, 0)
  yield null
}

/** The object itself, or the items of a List, at any depth up to the limit. */
function* openLists(
  snippet: Snippet,
  value: unknown,
  path: string,
  list: ListHead | null,
  depth: number
): Generator<Found> {
  const head = headOf(value)
  const items = head === null ? undefined : (value as { items?: unknown }).items
  if (head === null || (items !== undefined && items !== null && !Array.isArray(items))) {
    const locate = (below: string) => snippet.locate(joinPath(path, below))
    yield { object: { value: withListKind(value, list), position: snippet.positionOf(path), locate } }
  } else if (depth >= manifestListDepth) {
    yield {
      error: { position: snippet.positionOf(path), reason: `Lists inside Lists, more than ${manifestListDepth} deep` }
    }
  } else {
    for (const [index, item] of ((items ?? []) as unknown[]).entries()) {
      yield* openLists(snippet, item, joinPath(path, `items[${index}]`), head, depth + 1)
    }
  }
}

const joinPath = (above: string, below: string) => (above === '' || below === '' ? above + below : `${above}.${below}`)

/** Items of a typed list (ServiceList) as API servers write it have no kind of their own. */
function withListKind(value: unknown, list: ListHead | null): unknown {
  if (list === null || list.kind === 'List' || typeof value !== 'object' || value === null) return value
  return { kind: list.kind.slice(0, -'List'.length), apiVersion: list.apiVersion, ...value }
}
