/**
 * Records in presentation format, both ways (RFC 1035 §5.1, RFC 3597 §5), by the layouts of rdata-format.ts.
 *
 * Text that is made here reads back to the same octets. Names are absolute, with or without their last dot.
 */
import { WireError } from '../base/errors.ts'
import { ipv4ToText, ipv6ToText } from './address.ts'
import { escapeOctets } from './escape.ts'
import { CLASS, classToText, parseType, RCODE, rcodeToText, RRTYPE, typeToText } from './iana.ts'
import { type DomainName, nameLengthAt, nameToText, parseName, wireFormToText } from './name.ts'
import { latin1Of, readU16, readU32, readU48 } from './octets.ts'
import { checkRdata, fieldEnd } from './rdata.ts'
import { formatOf, type RdataField, type RdataFormat } from './rdata-format.ts'
import type { Rdata, ResourceRecord } from './rr.ts'
import { badSig, rdataFromTokens } from './rdata-from-text.ts'
import { svcParamsToText } from './svc-params.ts'
import { inToken, splitTokens, type Token, TokenReader } from './text-tokens.ts'

/** `owner TTL class type RDATA` with single spaces. */
export function recordToText({ owner, type, class: rrclass, ttlSeconds, rdata }: ResourceRecord): string {
  return `${nameToText(owner)} ${ttlSeconds} ${classToText(rrclass)} ${typeToText(type)} ${rdataToText(type, rdata)}`
}

/** RDATA in its type's presentation format; as `\# length hex` where the type has none, or the octets do not fit it. */
export function rdataToText(type: number, rdata: Rdata): string {
  const format = formatOf(type)
  const words = format?.hasText === true && fits(type, rdata) ? fieldsToWords(format, rdata) : null
  return (words ?? ['\\#', String(rdata.length), ...hexWords(rdata, 0, rdata.length)]).join(' ')
}

function fits(type: number, rdata: Rdata): boolean {
  try {
    checkRdata(rdata, type)
    return true
  } catch (error) {
    if (error instanceof WireError) return false
    throw error
  }
}

/** Null where a field has no text of its own. */
function fieldsToWords(format: RdataFormat, rdata: Rdata): string[] | null {
  const words: string[] = []
  let at = 0
  for (const field of format.fields) {
    const end = field === 'name' ? at + nameLengthAt(rdata, at) : fieldEnd(rdata, at, rdata.length, field)
    const fieldWords = fieldToWords(field, rdata, at, end)
    if (fieldWords === null) return null
    words.push(...fieldWords)
    at = end
  }
  return words
}

function fieldToWords(field: RdataField, rdata: Rdata, at: number, end: number): string[] | null {
  switch (field) {
    case 'u8':
      return [String(rdata[at]!)]
    case 'u16':
      return [String(readU16(rdata, at))]
    case 'u32':
      return [String(readU32(rdata, at))]
    case 'u48':
      return [String(readU48(rdata, at))]
    case 'rcode':
      return [readU16(rdata, at) === RCODE.BADVERS ? badSig : rcodeToText(readU16(rdata, at))]
    case 'ipv4':
      return [ipv4ToText(rdata, at)]
    case 'ipv6':
      return [ipv6ToText(rdata, at)]
    case 'name':
      return [wireFormToText(latin1Of(rdata, at, end))]
    case 'string':
      return [quoted(rdata, at + 1, end)]
    case 'strings':
      return stringsToWords(rdata, at, end)
    case 'sized':
      return [String(end - at - 2), ...base64Words(rdata, at + 2, end)]
    case 'tag': {
      const tag = latin1Of(rdata, at + 1, end)
      return /^[0-9A-Za-z]+$/.test(tag) ? [tag] : null
    }
    case 'value':
      return [quoted(rdata, at, end)]
    case 'digest':
      return hexWords(rdata, at, end)
    case 'params':
      return svcParamsToText(rdata, at, end)
    default: // 'rest'
      return null
  }
}

const quoted = (rdata: Rdata, start: number, end: number): string =>
  `"${escapeOctets(latin1Of(rdata, start, end), '"\\')}"`

function stringsToWords(rdata: Rdata, start: number, end: number): string[] {
  const words: string[] = []
  for (let at = start; at < end; at += rdata[at]! + 1) words.push(quoted(rdata, at + 1, at + 1 + rdata[at]!))
  return words
}

/** One word in upper case, none for no octets. */
const hexWords = (rdata: Rdata, start: number, end: number): string[] =>
  start === end ? [] : [Buffer.from(rdata.subarray(start, end)).toString('hex').toUpperCase()]

const base64Words = (rdata: Rdata, start: number, end: number): string[] =>
  start === end ? [] : [Buffer.from(rdata.subarray(start, end)).toString('base64')]

export type ParsedRecord = Readonly<{ owner: DomainName; type: number; ttlSeconds: number; rdata: Rdata }>

/**
 * Reads one record of class IN as a zone file has it: `owner [TTL] [class] type RDATA`, TTL and class in any order. The
 * TTL is in seconds or in parts like `1h30m`.
 * @throws WireError BAD_TEXT, with the character's offset.
 */
export function parseRecordLine(line: string, options: { defaultTtlSeconds: number }): ParsedRecord {
  const tokens = new TokenReader(splitTokens(line), line.length)
  const ownerToken = tokens.next('the owner name')
  if (ownerToken.text === '@')
    throw new WireError('BAD_TEXT', ownerToken.at, 'there is no origin: write the whole name')
  const owner = inToken(ownerToken.at, () => parseName(ownerToken.text))
  let ttlSeconds: number | null = null
  let hasClass = false
  for (;;) {
    const token = tokens.next('the type')
    const ttl: number | null = ttlSeconds === null ? parseTtl(token.text) : null
    if (ttl !== null) {
      if (ttl > 0x7fff_ffff) throw new WireError('BAD_TEXT', token.at, 'a TTL is at most 2147483647 seconds')
      ttlSeconds = ttl
    } else if (!hasClass && isClass(token.text)) {
      if (token.text.toUpperCase() !== 'IN') throw new WireError('BAD_TEXT', token.at, 'only class IN is served')
      hasClass = true
    } else {
      const type = parseDataType(token)
      return { owner, type, ttlSeconds: ttlSeconds ?? options.defaultTtlSeconds, rdata: rdataFromTokens(type, tokens) }
    }
  }
}

const isClass = (text: string): boolean => Object.hasOwn(CLASS, text.toUpperCase()) && text.toUpperCase() !== 'ANY'

const secondsOf: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3_600, d: 86_400, w: 604_800 }

/** Null where the word is no TTL. */
function parseTtl(text: string): number | null {
  if (/^\d+$/.test(text)) return Number(text)
  if (!/^(\d+[smhdw])+$/i.test(text)) return null
  return [...text.matchAll(/(\d+)([smhdw])/gi)].reduce(
    (sum, [, amount, unit]) => sum + Number(amount) * secondsOf[unit!.toLowerCase()]!,
    0
  )
}

/**
 * A type that a zone can hold: not OPT, and none of those that only stand in questions and messages (RFC 6895 §3.1).
 */
function parseDataType({ text, at }: Token): number {
  const type = parseType(text)
  if (type === null) throw new WireError('BAD_TEXT', at, `'${text}' is no TTL, class or type`)
  if (type === 0 || type === RRTYPE.OPT || (type >= 128 && type <= 255)) {
    throw new WireError('BAD_TEXT', at, `${typeToText(type)} is no type of records in a zone`)
  }
  return type
}
