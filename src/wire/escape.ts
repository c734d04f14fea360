/**
 * Escapes of the presentation format (RFC 1035 §5.1): `\X` for a character that would mean something, `\DDD` for any
 * octet.
 */
import { WireError } from '../base/errors.ts'

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39

/** The octet that an escape stands for, and the number of characters that the escape takes. */
export type Escape = Readonly<{ octet: number; length: number }>

/**
 * Reads the escape whose backslash is at `at`.
 * @throws WireError BAD_TEXT
 */
export function readEscape(text: string, at: number): Escape {
  const next = text.charCodeAt(at + 1)
  if (Number.isNaN(next)) throw new WireError('BAD_TEXT', at, 'an escape without a character')
  if (!isDigit(next)) {
    if (next > 0x7e) throw new WireError('BAD_TEXT', at, 'a character outside of ASCII is written \\DDD')
    return { octet: next, length: 2 }
  }
  const digits = text.slice(at + 1, at + 4)
  if (!/^\d{3}$/.test(digits) || Number(digits) > 255) {
    throw new WireError('BAD_TEXT', at, 'an escape is \\DDD with DDD up to 255')
  }
  return { octet: Number(digits), length: 4 }
}

/**
 * Octets (one character each) as text: what does not print becomes `\DDD`, and what `special` names gets a backslash.
 */
export function escapeOctets(latin1: string, special: string): string {
  let text = ''
  for (let at = 0; at < latin1.length; at++) {
    const code = latin1.charCodeAt(at)
    if (code < 0x20 || code >= 0x7f) text += '\\' + String(code).padStart(3, '0')
    else if (special.includes(latin1[at]!)) text += code === 0x20 ? '\\032' : '\\' + latin1[at]!
    else text += latin1[at]!
  }
  return text
}
