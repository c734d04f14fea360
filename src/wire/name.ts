/**
 * Domain names in their one canonical form.
 *
 * A `DomainName` is the uncompressed wire form (RFC 1035 §3.1: length octet and label, ending in the root's zero
 * octet), lower-cased, held in a string with one character for each octet. So a name is a map key, compares with
 * `===`, survives binary labels and dots inside labels, can be cut at any label, and is written to a packet with one
 * copy. Only this file makes them. Case is kept where it matters: in the octets of the question and of RDATA.
 */
import { WireError, type WireErrorCode } from '../base/errors.ts'
import { maxCompressionPointers } from '../base/limits.ts'
import { escapeOctets, readEscape } from './escape.ts'
import { headerOctets } from './header.ts'
import { latin1Of, octetsOf } from './octets.ts'

declare const brand: unique symbol
export type DomainName = string & { readonly [brand]: 'DomainName' }

export const rootName = '\0' as DomainName

/** Longest name on the wire, the root's octet included. RFC 1035 §2.3.4. */
export const maxNameOctets = 255
export const maxLabelOctets = 63

const isUpper = (octet: number): boolean => octet >= 0x41 && octet <= 0x5a

/**
 * Each octet in lower case: only ASCII's letters have one (RFC 4343).
 * The table may be used on whole names, since no length octet looks like a letter.
 */
export const lowerCaseOf: Uint8Array = Uint8Array.from({ length: 256 }, (_, octet) =>
  isUpper(octet) ? octet + 32 : octet
)

// Not `toLowerCase` on everything: it would change Latin-1 letters, which are mere octets here.
const lowerCase = (octets: string): string => octets.replace(/[A-Z]+/g, (letters) => letters.toLowerCase())

/**
 * Reads a name in presentation format; relative names end at the root too, so a missing last dot is fine.
 *
 * `\.` and `\DDD` escapes are understood (RFC 1035 §5.1). Spaces and what is outside of ASCII must be escaped.
 * @throws WireError BAD_TEXT, BAD_LABEL or NAME_TOO_LONG, with the character's offset.
 */
export function parseName(text: string): DomainName {
  return lowerCase(textToWireForm(text)) as DomainName
}

/**
 * The octets of a name in presentation format, in the case it is written in, as RDATA keeps it. Throws like
 * `parseName`.
 */
export function parseNameOctets(text: string): Uint8Array {
  return octetsOf(textToWireForm(text))
}

function textToWireForm(text: string): string {
  if (text === '.') return rootName
  if (text === '') throw new WireError('BAD_TEXT', 0, 'an empty name')
  let name = ''
  let label = ''
  const endLabel = (at: number): void => {
    if (label === '') throw new WireError('BAD_TEXT', at, 'an empty label')
    if (label.length > maxLabelOctets) throw new WireError('BAD_LABEL', at, 'a label over 63 octets')
    name += String.fromCharCode(label.length) + label
    label = ''
  }
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code === 0x2e) {
      endLabel(at)
    } else if (code === 0x5c) {
      const escape = readEscape(text, at)
      label += String.fromCharCode(escape.octet)
      at += escape.length - 1
    } else if (code > 0x20 && code < 0x7f) {
      label += text[at]!
    } else if (code < 0x80) {
      throw new WireError('BAD_TEXT', at, 'a space or control character in a name is written \\DDD')
    } else {
      throw new WireError('BAD_TEXT', at, 'a character outside of ASCII: use the A-label (xn--...)')
    }
  }
  if (label !== '') endLabel(text.length)
  name += '\0'
  if (name.length > maxNameOctets) throw new WireError('NAME_TOO_LONG', text.length)
  return name
}

/** The label's octets in presentation format: special characters get a backslash, others than print `\DDD`. */
export function labelToText(label: string): string {
  return escapeOctets(label, ' .\\"();@$')
}

/** The name in presentation format, absolute (with its last dot). */
export function nameToText(name: DomainName): string {
  return wireFormToText(name)
}

/** An uncompressed name of any case, one character for each octet, in presentation format. */
export function wireFormToText(name: string): string {
  if (name === rootName) return '.'
  let text = ''
  for (let at = 0; name.charCodeAt(at) !== 0; at += name.charCodeAt(at) + 1) {
    text += labelToText(name.slice(at + 1, at + 1 + name.charCodeAt(at))) + '.'
  }
  return text
}

/** The name without its first label, or null for the root. */
export function parentOf(name: DomainName): DomainName | null {
  return name === rootName ? null : (name.slice(name.charCodeAt(0) + 1) as DomainName)
}

/** The labels of a name at or below `ancestor` that stand before it, leftmost first. */
export const labelsBelow = (name: DomainName, ancestor: DomainName): string[] =>
  labelsOf(name).slice(0, -labelCount(ancestor) || undefined)

/** The name's labels, first one first, the root's left out; one character an octet, lower case. */
export function labelsOf(name: DomainName): string[] {
  const labels: string[] = []
  for (let at = 0; name.charCodeAt(at) !== 0; at += name.charCodeAt(at) + 1) {
    labels.push(name.slice(at + 1, at + 1 + name.charCodeAt(at)))
  }
  return labels
}

export function labelCount(name: DomainName): number {
  let count = 0
  for (let at = 0; name.charCodeAt(at) !== 0; at += name.charCodeAt(at) + 1) count++
  return count
}

/**
 * Puts labels (one character an octet) before a suffix.
 * @throws WireError BAD_LABEL or NAME_TOO_LONG.
 */
export function joinLabels(labels: readonly string[], suffix: DomainName): DomainName {
  let name = ''
  let isLower = true
  for (const label of labels) {
    if (label.length === 0 || label.length > maxLabelOctets) throw new WireError('BAD_LABEL', 0)
    for (let at = 0; at < label.length; at++) {
      const octet = label.charCodeAt(at)
      if (octet > 255) throw new WireError('BAD_LABEL', at, 'a character that is no octet')
      if (isUpper(octet)) isLower = false
    }
    name += String.fromCharCode(label.length) + label
  }
  if (name.length + suffix.length > maxNameOctets) throw new WireError('NAME_TOO_LONG', 0)
  return ((isLower ? name : lowerCase(name)) + suffix) as DomainName
}

/** Whether the name is the ancestor itself or below it. */
export function isAtOrBelow(name: DomainName, ancestor: DomainName): boolean {
  if (!name.endsWith(ancestor)) return false
  // The suffix must begin at a label: walk there, since a label's octets may look like a length and a label.
  const start = name.length - ancestor.length
  let at = 0
  while (at < start) at += name.charCodeAt(at) + 1
  return at === start
}

/**
 * Exchanges the suffix `from` of a name for `to`; null where the name is not at or below `from` or would be too long.
 */
export function replaceSuffix(name: DomainName, from: DomainName, to: DomainName): DomainName | null {
  if (!isAtOrBelow(name, from)) return null
  const head = name.slice(0, name.length - from.length)
  return head.length + to.length > maxNameOctets ? null : ((head + to) as DomainName)
}

/** The octets of an uncompressed name, `offset` being where its first length octet lies. */
export function nameFromOctets(octets: Uint8Array, offset: number): DomainName {
  return readName(octets, offset).name
}

/** The name's octets, uncompressed and in lower case. */
export function nameToOctets(name: DomainName): Uint8Array {
  return octetsOf(name)
}

/** Octets that an uncompressed name takes, the root's included; the name must be known to be whole. */
export function nameLengthAt(octets: Uint8Array, offset: number): number {
  let at = offset
  while (octets[at]! > 0) at += octets[at]! + 1
  return at + 1 - offset
}

/**
 * Where a name ends if it needs no more work than a copy: not compressed, in lower case and not too long. Else -1, also
 * where it is malformed. `limit` is where the octets that may be read end.
 */
export function plainNameEnd(octets: Uint8Array, offset: number, limit: number): number {
  let at = offset
  for (;;) {
    if (at >= limit) return -1
    const length = octets[at]!
    const next = at + 1 + length
    if (length === 0) return next - offset > maxNameOctets ? -1 : next
    if (length > maxLabelOctets || next >= limit) return -1
    for (at++; at < next; at++) {
      const octet = octets[at]!
      if (octet >= 0x41 && octet <= 0x5a) return -1
    }
  }
}

/**
 * Copies a possibly compressed name to `into` at `intoAt` (room for 255 octets), uncompressed, case kept, and returns
 * where it ends as written: the first octet behind it, or behind the pointer that it ends in.
 *
 * Each pointer must lead to before the labels that it follows, and behind the header: what is really a prior
 * occurrence (RFC 1035 §4.1.4) always is there, and so no chain can run in a circle. RFC 9267 tells what goes wrong
 * elsewhere.
 * @throws WireError `overrun` where it crosses `limit`, BAD_LABEL, BAD_POINTER, TOO_MANY_POINTERS or NAME_TOO_LONG.
 */
export function expandName(
  octets: Uint8Array,
  offset: number,
  limit: number,
  into: Uint8Array,
  intoAt: number,
  overrun: WireErrorCode
): number {
  let end = -1
  let at = offset
  let labelsStart = offset
  let pointers = 0
  let written = 0
  for (;;) {
    if (at >= limit) throw new WireError(overrun, at, 'a name runs off its end')
    const length = octets[at]!
    if (length >= 0xc0) {
      if (at + 1 >= limit) throw new WireError(overrun, at, 'half a compression pointer')
      if (end < 0) end = at + 2
      const target = ((length & 0x3f) << 8) | octets[at + 1]!
      if (target >= labelsStart || target < headerOctets) throw new WireError('BAD_POINTER', at)
      if (++pointers > maxCompressionPointers) throw new WireError('TOO_MANY_POINTERS', at)
      labelsStart = target
      at = target
      continue
    }
    if (length > maxLabelOctets) throw new WireError('BAD_LABEL', at, 'a reserved label type')
    if (at + 1 + length > limit) throw new WireError(overrun, at, 'a label runs off its end')
    if (length === 0) {
      into[intoAt + written] = 0
      return end < 0 ? at + 1 : end
    }
    // The root's octet has to follow.
    if (written + length + 2 > maxNameOctets) throw new WireError('NAME_TOO_LONG', at)
    for (const next = at + 1 + length; at < next; at++) into[intoAt + written++] = octets[at]!
  }
}

/** Where the name ends in the octets as written: the first octet behind it (behind a pointer, if it ends in one). */
export type NameRead = { name: DomainName; end: number }

const scratch = new Uint8Array(maxNameOctets)

/**
 * Reads a possibly compressed name; `limit` is where the octets that may be read end.
 *
 * RFC 1035 §4.1.4.
 * @throws WireError TRUNCATED, BAD_LABEL, BAD_POINTER, TOO_MANY_POINTERS or NAME_TOO_LONG.
 */
export function readName(octets: Uint8Array, offset: number, limit: number = octets.length): NameRead {
  const plainEnd = plainNameEnd(octets, offset, limit)
  if (plainEnd >= 0) return { name: latin1Of(octets, offset, plainEnd) as DomainName, end: plainEnd }
  const end = expandName(octets, offset, limit, scratch, 0, 'TRUNCATED')
  const length = nameLengthAt(scratch, 0)
  for (let i = 0; i < length; i++) scratch[i] = lowerCaseOf[scratch[i]!]!
  return { name: latin1Of(scratch, 0, length) as DomainName, end }
}
