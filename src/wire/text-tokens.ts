/**
 * The words of a line in presentation format (RFC 1035 §5.1): quotes, escapes, parentheses and comments.
 */
import { WireError } from '../base/errors.ts'
import { readEscape } from './escape.ts'

/** A word as it is written, quotes and escapes included, and where it starts in the line. */
export type Token = Readonly<{ text: string; at: number }>

const isSpace = (character: string): boolean =>
  character === ' ' || character === '\t' || character === '\n' || character === '\r'

/**
 * Cuts a line into words. Parentheses, which join lines in a zone file, only separate words; `;` starts a comment that
 * runs to the end of the line.
 * @throws WireError BAD_TEXT for a quote or parenthesis without its partner.
 */
export function splitTokens(line: string): Token[] {
  const tokens: Token[] = []
  const open: number[] = []
  let at = 0
  while (at < line.length) {
    const character = line[at]!
    if (isSpace(character)) {
      at++
    } else if (character === '(') {
      open.push(at++)
    } else if (character === ')') {
      if (open.pop() === undefined) throw new WireError('BAD_TEXT', at, 'a closing parenthesis without an opening one')
      at++
    } else if (character === ';') {
      while (at < line.length && line[at] !== '\n') at++
    } else {
      const end = tokenEnd(line, at)
      tokens.push({ text: line.slice(at, end), at })
      at = end
    }
  }
  const unclosed = open.pop()
  if (unclosed !== undefined) throw new WireError('BAD_TEXT', unclosed, 'a parenthesis that is not closed')
  return tokens
}

/** A quote may begin a word or follow a `=` in it (SvcParams); the word ends with it. */
function tokenEnd(line: string, start: number): number {
  for (let at = start; at < line.length; at++) {
    const character = line[at]!
    if (character === '\\') at++
    else if (isSpace(character) || character === ';' || character === '(' || character === ')') return at
    else if (character === '"') {
      if (at > start && line[at - 1] !== '=') throw new WireError('BAD_TEXT', at, 'a quote within a word')
      return quoteEnd(line, at)
    }
  }
  return line.length
}

function quoteEnd(line: string, start: number): number {
  for (let at = start + 1; at < line.length; at++) {
    if (line[at] === '\\') at++
    else if (line[at] === '"') {
      const next = line[at + 1]
      if (next !== undefined && !isSpace(next) && !';()'.includes(next)) {
        throw new WireError('BAD_TEXT', at + 1, 'no space behind a closing quote')
      }
      return at + 1
    }
  }
  throw new WireError('BAD_TEXT', start, 'a quote that is not closed')
}

/**
 * The octets that a word stands for, without its quotes and escapes; characters outside of ASCII are taken as UTF-8.
 * @throws WireError BAD_TEXT
 */
export function tokenOctets({ text, at: start }: Token): Uint8Array {
  const isQuoted = text.startsWith('"')
  const end = isQuoted ? text.length - 1 : text.length
  const octets: number[] = []
  const encoder = new TextEncoder()
  for (let at = isQuoted ? 1 : 0; at < end;) {
    if (text[at] === '\\') {
      const escape = inToken(start, () => readEscape(text, at))
      octets.push(escape.octet)
      at += escape.length
    } else {
      const character = String.fromCodePoint(text.codePointAt(at)!)
      octets.push(...encoder.encode(character))
      at += character.length
    }
  }
  return Uint8Array.from(octets)
}

/** Runs a reader of one word, and makes what it throws a BAD_TEXT with the offset in the whole line. */
export function inToken<T>(tokenAt: number, read: () => T): T {
  try {
    return read()
  } catch (error) {
    if (!(error instanceof WireError)) throw error
    const offset = error.code === 'BAD_TEXT' ? error.offset : 0
    throw new WireError('BAD_TEXT', tokenAt + offset, error.detail === '' ? error.code : error.detail)
  }
}

/** Hands out words one after the other. */
export class TokenReader {
  readonly #tokens: readonly Token[]
  readonly #end: number
  #index = 0

  /** @param end the offset that is told where words are missing. */
  constructor(tokens: readonly Token[], end: number) {
    this.#tokens = tokens
    this.#end = end
  }

  get isAtEnd(): boolean {
    return this.#index >= this.#tokens.length
  }

  peek(): Token | null {
    return this.#tokens[this.#index] ?? null
  }

  /** @throws WireError BAD_TEXT where nothing is left. */
  next(what: string): Token {
    const token = this.peek()
    if (token === null) throw new WireError('BAD_TEXT', this.#end, `${what} is missing`)
    this.#index++
    return token
  }

  /** All that is left. */
  rest(): Token[] {
    const rest = this.#tokens.slice(this.#index)
    this.#index = this.#tokens.length
    return rest
  }
}

/**
 * Reads a whole number in decimal.
 * @throws WireError BAD_TEXT where it is none, or above `max`.
 */
export function tokenNumber({ text, at }: Token, max: number): number {
  const number = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN
  if (!(number <= max)) throw new WireError('BAD_TEXT', at, `'${text}' is no number from 0 to ${max}`)
  return number
}
