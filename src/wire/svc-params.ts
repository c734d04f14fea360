/**
 * SvcParams of SVCB and HTTPS in presentation format. RFC 9460 §2.1, §7, appendix A; dohpath RFC 9461; ohttp RFC 9540.
 */
import { WireError } from '../base/errors.ts'
import { ipv4ToText, ipv6ToText, parseIpv4, parseIpv6 } from './address.ts'
import { escapeOctets } from './escape.ts'
import { concat, copyOf, latin1Of, octetsOf, readU16, u16Octets } from './octets.ts'
import { type Token, tokenNumber, tokenOctets } from './text-tokens.ts'

/** How a value is written. */
type ValueKind = 'keys' | 'alpn' | 'nothing' | 'port' | 'ipv4' | 'base64' | 'ipv6' | 'text'

/** By SvcParamKey. */
const known: readonly Readonly<{ name: string; kind: ValueKind }>[] = [
  { name: 'mandatory', kind: 'keys' },
  { name: 'alpn', kind: 'alpn' },
  { name: 'no-default-alpn', kind: 'nothing' },
  { name: 'port', kind: 'port' },
  { name: 'ipv4hint', kind: 'ipv4' },
  { name: 'ech', kind: 'base64' },
  { name: 'ipv6hint', kind: 'ipv6' },
  { name: 'dohpath', kind: 'text' },
  { name: 'ohttp', kind: 'nothing' }
]
const mandatoryKey = 0
const alpnKey = 1
const noDefaultAlpnKey = 2

/** 65535 is reserved. */
const maxKey = 65_534

const keyToText = (key: number): string => known[key]?.name ?? `key${key}`

/**
 * Each SvcParam as one word; null where the parameters contradict one another and so have no text that could be read
 * again. Their octets must have been checked (`checkRdata`).
 */
export function svcParamsToText(octets: Uint8Array, start: number, end: number): string[] | null {
  const values = new Map<number, Uint8Array>()
  for (let at = start; at < end;) {
    const next = at + 4 + readU16(octets, at + 2)
    values.set(readU16(octets, at), copyOf(octets, at + 4, next))
    at = next
  }
  return findContradiction(values) === null ? Array.from(values, ([key, value]) => paramToText(key, value)) : null
}

function paramToText(key: number, value: Uint8Array): string {
  const kind = known[key]?.kind
  const text = kind === undefined ? null : valueToText(kind, value)
  if (text !== null) return known[key]!.name + text
  // A value that its key cannot have is shown as that of an unknown key, which reads back to the same octets.
  return value.length === 0 ? `key${key}` : `key${key}=${quoted(latin1Of(value, 0, value.length))}`
}

const quoted = (latin1: string): string => `"${escapeOctets(latin1, '"\\')}"`

/** What follows the key's name; null where the value does not fit. */
function valueToText(kind: ValueKind, value: Uint8Array): string | null {
  if (kind === 'nothing') return value.length === 0 ? '' : null
  if (value.length === 0) return null
  switch (kind) {
    case 'keys':
      return isAscending(value) ? '=' + cut(value, 2, keyTextAt).join(',') : null
    case 'alpn': {
      const ids = alpnIds(value)
      return ids === null ? null : `=${quoted(ids.map(escapeListItem).join(','))}`
    }
    case 'port':
      return value.length === 2 ? `=${readU16(value, 0)}` : null
    case 'ipv4':
      return value.length % 4 === 0 ? '=' + cut(value, 4, ipv4ToText).join(',') : null
    case 'ipv6':
      return value.length % 16 === 0 ? '=' + cut(value, 16, ipv6ToText).join(',') : null
    case 'base64':
      return `=${quoted(Buffer.from(value).toString('base64'))}`
    default: // 'text'
      return `=${quoted(latin1Of(value, 0, value.length))}`
  }
}

/** Whether the octets are keys of 16 bits, each above the one before. */
function isAscending(value: Uint8Array): boolean {
  for (let at = 2; at + 2 <= value.length; at += 2) if (readU16(value, at) <= readU16(value, at - 2)) return false
  return value.length % 2 === 0
}

const keyTextAt = (octets: Uint8Array, at: number): string => keyToText(readU16(octets, at))

function cut(value: Uint8Array, size: number, toText: (octets: Uint8Array, at: number) => string): string[] {
  return Array.from({ length: value.length / size }, (_, i) => toText(value, i * size))
}

/**
 * Commas separate, so within an item they get a backslash (RFC 9460 appendix A.1), apart from the escapes of the
 * string.
 */
const escapeListItem = (item: string): string => item.replace(/[\\,]/g, '\\$&')

function alpnIds(value: Uint8Array): string[] | null {
  const ids: string[] = []
  for (let at = 0; at < value.length;) {
    const next = at + 1 + value[at]!
    if (next === at + 1 || next > value.length) return null
    ids.push(latin1Of(value, at + 1, next))
    at = next
  }
  return ids
}

/**
 * Reads words like `alpn=h2,h3`, `port=8443` or `key667="x"` in any order.
 * @throws WireError BAD_TEXT
 */
export function parseSvcParams(tokens: readonly Token[]): Uint8Array {
  const values = new Map<number, Uint8Array>()
  for (const token of tokens) {
    const equals = token.text.indexOf('=')
    const keyText = equals < 0 ? token.text : token.text.slice(0, equals)
    const value = equals < 0 ? null : { text: token.text.slice(equals + 1), at: token.at + equals + 1 }
    const { key, kind } = parseKey(keyText, token.at)
    if (values.has(key)) throw new WireError('BAD_TEXT', token.at, `${keyText} is given twice`)
    values.set(key, parseValue(kind, value, token.at))
  }
  const contradiction = findContradiction(values)
  if (contradiction !== null) throw new WireError('BAD_TEXT', tokens[0]?.at ?? 0, contradiction)
  const keys = [...values.keys()].sort((a, b) => a - b)
  return concat(keys.flatMap((key) => [u16Octets(key), u16Octets(values.get(key)!.length), values.get(key)!]))
}

/** A key by name; as `key123` it takes any octets, even if it has a name. */
function parseKey(text: string, at: number): { key: number; kind: ValueKind | 'octets' } {
  const index = known.findIndex(({ name }) => name === text)
  if (index >= 0) return { key: index, kind: known[index]!.kind }
  const number = /^key(0|[1-9]\d{0,4})$/.exec(text)?.[1]
  if (number === undefined || Number(number) > maxKey)
    throw new WireError('BAD_TEXT', at, `'${text}' is no SvcParamKey`)
  return { key: Number(number), kind: 'octets' }
}

function parseValue(kind: ValueKind | 'octets', token: Token | null, at: number): Uint8Array {
  if (kind === 'nothing') {
    if (token !== null) throw new WireError('BAD_TEXT', token.at, 'this SvcParam has no value')
    return new Uint8Array(0)
  }
  if (token === null || token.text === '' || token.text === '""') {
    if (kind === 'octets') return new Uint8Array(0)
    throw new WireError('BAD_TEXT', at, 'this SvcParam needs a value')
  }
  const octets = tokenOctets(token)
  const text = latin1Of(octets, 0, octets.length)
  switch (kind) {
    case 'keys':
      return keysValue(text, token.at)
    case 'alpn':
      return concat(splitList(text, token.at).map((id) => alpnValue(id, token.at)))
    case 'port':
      return u16Octets(tokenNumber({ text, at: token.at }, 0xffff))
    case 'ipv4':
      return concat(text.split(',').map((address) => parseIpv4(address) ?? noAddress(address, token.at)))
    case 'ipv6':
      return concat(text.split(',').map((address) => parseIpv6(address) ?? noAddress(address, token.at)))
    case 'base64':
      return parseBase64(text, token.at)
    default: // 'text' and 'octets'
      return octets
  }
}

function noAddress(text: string, at: number): never {
  throw new WireError('BAD_TEXT', at, `'${text}' is no address of this SvcParam's family`)
}

/** @throws WireError BAD_TEXT */
export function parseBase64(text: string, at: number): Uint8Array {
  const octets = Buffer.from(text, 'base64')
  // Node reads over what is no base64; written back it must be the same.
  if (text === '' || octets.toString('base64') !== text) throw new WireError('BAD_TEXT', at, 'no base64')
  return copyOf(octets, 0, octets.length)
}

/** The keys that `mandatory` lists, in ascending order whatever the order in the text. */
function keysValue(text: string, at: number): Uint8Array {
  const keys = text.split(',').map((name) => parseKey(name, at).key)
  keys.sort((a, b) => a - b)
  return concat(keys.map(u16Octets))
}

function alpnValue(id: string, at: number): Uint8Array {
  if (id.length === 0 || id.length > 255) throw new WireError('BAD_TEXT', at, 'an ALPN id has 1 to 255 octets')
  return octetsOf(String.fromCharCode(id.length) + id)
}

/** Cuts at commas without a backslash before them. */
function splitList(text: string, at: number): string[] {
  const items = ['']
  for (let i = 0; i < text.length; i++) {
    if (text[i] === ',') items.push('')
    else if (text[i] !== '\\') items[items.length - 1] += text[i]!
    else if (text[i + 1] === '\\' || text[i + 1] === ',') items[items.length - 1] += text[++i]!
    else throw new WireError('BAD_TEXT', at, 'in a list a backslash only escapes a comma or a backslash')
  }
  return items
}

/** What one SvcParam demands of the others and does not find, in words. RFC 9460 §7.1.1, §8. */
function findContradiction(values: ReadonlyMap<number, Uint8Array>): string | null {
  if (values.has(noDefaultAlpnKey) && !values.has(alpnKey)) return 'no-default-alpn needs alpn'
  const mandatory = values.get(mandatoryKey) ?? new Uint8Array(0)
  const listed = new Set<number>()
  for (let at = 0; at + 2 <= mandatory.length; at += 2) {
    const key = readU16(mandatory, at)
    if (key === mandatoryKey) return 'mandatory does not list itself'
    if (listed.has(key)) return `mandatory lists ${keyToText(key)} twice`
    if (!values.has(key)) return `mandatory ${keyToText(key)} is missing`
    listed.add(key)
  }
  return null
}
