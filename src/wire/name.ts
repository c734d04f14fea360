/**
 * Domain names in their one canonical form.
 *
 * A `DomainName` is the uncompressed wire form (RFC 1035 §3.1: length octet and label, ending in the root's zero
 * octet), lower-cased, held in a string with one character for each octet. So a name is a map key, compares with
 * `===`, survives binary labels and dots inside labels, can be cut at any label, and is written to a packet with one
 * copy. Only this file makes them. Case is kept where it matters: in the octets of the question and of RDATA.
 */
import { WireError } from '../base/errors.ts'
import { maxCompressionPointers } from '../base/limits.ts'

declare const brand: unique symbol
export type DomainName = string & { readonly [brand]: 'DomainName' }

export const rootName = '\0' as DomainName

/** Longest name on the wire, the root's octet included. RFC 1035 §2.3.4. */
export const maxNameOctets = 255
export const maxLabelOctets = 63

const isDigit = (code: number): boolean => code >= 0x30 && code <= 0x39

const lower = (octet: number): number => (octet >= 0x41 && octet <= 0x5a ? octet + 32 : octet)

/**
 * Reads a name in presentation format; relative names end at the root too, so a missing last dot is fine.
 *
 * `\.` and `\DDD` escapes are understood (RFC 1035 §5.1).
 * @throws WireError BAD_TEXT, BAD_LABEL or NAME_TOO_LONG, with the character's offset.
 */
export function parseName(text: string): DomainName {
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
    let code = text.charCodeAt(at)
    if (code === 0x2e) {
      endLabel(at)
      continue
    }
    if (code === 0x5c) {
      const next = text.charCodeAt(at + 1)
      if (Number.isNaN(next)) throw new WireError('BAD_TEXT', at, 'an escape without a character')
      if (isDigit(next)) {
        const digits = text.slice(at + 1, at + 4)
        code = /^\d{3}$/.test(digits) ? Number(digits) : 256
        if (code > 255) throw new WireError('BAD_TEXT', at, 'an escape is \\DDD with DDD up to 255')
        at += 3
      } else {
        code = next
        at += 1
      }
    }
    if (code > 255) throw new WireError('BAD_TEXT', at, 'a character outside of Latin-1: use its A-label')
    label += String.fromCharCode(lower(code))
  }
  if (label !== '') endLabel(text.length)
  name += '\0'
  if (name.length > maxNameOctets) throw new WireError('NAME_TOO_LONG', text.length)
  return name as DomainName
}

/** The label's octets in presentation format: special characters get a backslash, others than print `\DDD`. */
export function labelToText(label: string): string {
  let text = ''
  for (let at = 0; at < label.length; at++) {
    const code = label.charCodeAt(at)
    if (code <= 0x20 || code >= 0x7f) text += '\\' + String(code).padStart(3, '0')
    else if ('.\\"();@$'.includes(label[at]!)) text += '\\' + label[at]!
    else text += label[at]!
  }
  return text
}

/** The name in presentation format, absolute (with its last dot). */
export function nameToText(name: DomainName): string {
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
 * Puts labels before a suffix.
 * @throws WireError BAD_LABEL or NAME_TOO_LONG.
 */
export function joinLabels(labels: readonly string[], suffix: DomainName): DomainName {
  let name = ''
  for (const label of labels) {
    if (label.length === 0 || label.length > maxLabelOctets) throw new WireError('BAD_LABEL', 0)
    name += String.fromCharCode(label.length)
    for (let at = 0; at < label.length; at++) name += String.fromCharCode(lower(label.charCodeAt(at) & 0xff))
  }
  if (name.length + suffix.length > maxNameOctets) throw new WireError('NAME_TOO_LONG', 0)
  return (name + suffix) as DomainName
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

/** Exchanges the suffix `from` of a name for `to`; null where the name is not at or below `from` or would be too long. */
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
  return Buffer.from(name, 'latin1')
}

/** Where the name ends in the octets as written: the first octet behind it (behind a pointer, if it ends in one). */
export type NameRead = { name: DomainName; end: number }

/**
 * Reads a possibly compressed name. Pointers must point strictly backwards, and their number is bounded.
 *
 * RFC 1035 §4.1.4; RFC 9267 tells what goes wrong elsewhere.
 * @throws WireError TRUNCATED, BAD_LABEL, BAD_POINTER, TOO_MANY_POINTERS or NAME_TOO_LONG.
 */
export function readName(octets: Uint8Array, offset: number): NameRead {
  let name = ''
  let end = -1
  let at = offset
  let pointers = 0
  for (;;) {
    const length = octets[at]
    if (length === undefined) throw new WireError('TRUNCATED', at, 'a name runs off the message')
    if (length >= 0xc0) {
      const low = octets[at + 1]
      if (low === undefined) throw new WireError('TRUNCATED', at, 'half a compression pointer')
      if (end < 0) end = at + 2
      const target = ((length & 0x3f) << 8) | low
      if (target >= at) throw new WireError('BAD_POINTER', at)
      if (++pointers > maxCompressionPointers) throw new WireError('TOO_MANY_POINTERS', at)
      at = target
      continue
    }
    if (length > maxLabelOctets) throw new WireError('BAD_LABEL', at, 'a reserved label type')
    if (at + 1 + length > octets.length) throw new WireError('TRUNCATED', at, 'a label runs off the message')
    name += String.fromCharCode(length)
    if (length === 0) break
    for (let i = at + 1; i <= at + length; i++) name += String.fromCharCode(lower(octets[i]!))
    if (name.length >= maxNameOctets) throw new WireError('NAME_TOO_LONG', at)
    at += length + 1
  }
  return { name: name as DomainName, end: end < 0 ? at + 1 : end }
}
