/** RDATA from presentation format, by the layouts of rdata-format.ts. The way back is in record-text.ts. */
import { WireError } from '../base/errors.ts'
import { parseIpv4, parseIpv6 } from './address.ts'
import { RCODE, typeToText } from './iana.ts'
import { parseNameOctets } from './name.ts'
import { concat, octetsOf, u16Octets, u32Octets, u48Octets } from './octets.ts'
import { characterString, checkRdata } from './rdata.ts'
import { formatOf, type RdataField } from './rdata-format.ts'
import type { Rdata } from './rr.ts'
import { parseBase64, parseSvcParams } from './svc-params.ts'
import { inToken, splitTokens, type Token, tokenNumber, tokenOctets, TokenReader } from './text-tokens.ts'

/** A TSIG calls 16 by another name than a header does. RFC 8945 §3. */
export const badSig = 'BADSIG'

/**
 * Reads RDATA of a type in its presentation format, or in the one for unknown types, which every type may have.
 * @throws WireError BAD_TEXT, with the character's offset.
 */
export function parseRdata(type: number, text: string): Rdata {
  return rdataFromTokens(type, new TokenReader(splitTokens(text), text.length))
}

/** As `parseRdata`, from the words that are left of a line. */
export function rdataFromTokens(type: number, tokens: TokenReader): Rdata {
  const first = tokens.peek()
  const start = first?.at ?? 0
  const format = formatOf(type)
  if (first?.text === '\\#') {
    const rdata = unknownRdata(tokens)
    // An unknown type has no layout to check; a known one must fit it in this form as well.
    inToken(start, () => checkRdata(rdata, type))
    return rdata
  }
  if (format?.hasText !== true)
    throw new WireError('BAD_TEXT', start, `${typeToText(type)} is written '\\# length hex'`)
  const rdata = concat(format.fields.map((field) => fieldFromTokens(field, tokens)))
  const extra = tokens.peek()
  if (extra !== null) throw new WireError('BAD_TEXT', extra.at, `'${extra.text}' is too much`)
  if (rdata.length > 0xffff) throw new WireError('BAD_TEXT', start, 'over 65535 octets')
  return rdata
}

/** `\# length hex`: RFC 3597 §5. */
function unknownRdata(tokens: TokenReader): Rdata {
  tokens.next('\\#')
  const length = tokens.next('the length')
  const octets = tokenNumber(length, 0xffff)
  const rdata = hexFromTokens(tokens.rest())
  if (rdata.length !== octets) {
    throw new WireError('BAD_TEXT', length.at, `${octets} octets are announced, ${rdata.length} are there`)
  }
  return rdata
}

function hexFromTokens(tokens: readonly Token[]): Uint8Array {
  const hex = tokens.map(({ text }) => text).join('')
  if (hex.length % 2 !== 0 || !/^[0-9a-f]*$/i.test(hex)) {
    throw new WireError('BAD_TEXT', tokens[0]?.at ?? 0, 'no pairs of hex digits')
  }
  return octetsOf(Buffer.from(hex, 'hex').toString('latin1'))
}

function fieldFromTokens(field: RdataField, tokens: TokenReader): Uint8Array {
  switch (field) {
    case 'u8':
      return Uint8Array.of(tokenNumber(tokens.next('a number'), 0xff))
    case 'u16':
      return u16Octets(tokenNumber(tokens.next('a number'), 0xffff))
    case 'u32':
      return u32Octets(tokenNumber(tokens.next('a number'), 0xffff_ffff))
    case 'u48':
      return u48Octets(tokenNumber(tokens.next('a number'), 0xffff_ffff_ffff))
    case 'rcode':
      return u16Octets(rcodeFromToken(tokens.next('an RCODE')))
    case 'ipv4': {
      const { text, at } = tokens.next('an IPv4 address')
      return parseIpv4(text) ?? noAddress(text, at, 'IPv4')
    }
    case 'ipv6': {
      const { text, at } = tokens.next('an IPv6 address')
      return parseIpv6(text) ?? noAddress(text, at, 'IPv6')
    }
    case 'name': {
      const { text, at } = tokens.next('a name')
      return inToken(at, () => parseNameOctets(text))
    }
    case 'sized': {
      const size = tokenNumber(tokens.next('a size'), 0xffff)
      return concat([u16Octets(size), size === 0 ? new Uint8Array(0) : base64OfSize(size, tokens.next('base64'))])
    }
    case 'string':
      return stringFromToken(tokens.next('a string'))
    case 'strings':
      return concat([tokens.next('a string'), ...tokens.rest()].map(stringFromToken))
    case 'tag': {
      const { text, at } = tokens.next('a tag')
      if (!/^[0-9A-Za-z]{1,255}$/.test(text)) throw new WireError('BAD_TEXT', at, 'a tag has letters and digits only')
      return characterString(octetsOf(text))
    }
    case 'value':
      return tokenOctets(tokens.next('a value'))
    case 'digest': {
      const first = tokens.next('a digest')
      return hexFromTokens([first, ...tokens.rest()])
    }
    case 'params':
      return parseSvcParams(tokens.rest())
    default: // 'rest' has no text, and so no type that has text has it
      throw new TypeError(`field ${field} has no presentation format`)
  }
}

function noAddress(text: string, at: number, family: string): never {
  throw new WireError('BAD_TEXT', at, `'${text}' is no ${family} address`)
}

const stringFromToken = (token: Token): Uint8Array => inToken(token.at, () => characterString(tokenOctets(token)))

function base64OfSize(size: number, { text, at }: Token): Uint8Array {
  const octets = parseBase64(text, at)
  if (octets.length !== size)
    throw new WireError('BAD_TEXT', at, `${size} octets are announced, ${octets.length} are there`)
  return octets
}

function rcodeFromToken(token: Token): number {
  const text = token.text.toUpperCase()
  if (text === badSig) return RCODE.BADVERS
  if (Object.hasOwn(RCODE, text)) return RCODE[text as keyof typeof RCODE]
  return tokenNumber({ text: text.replace(/^RCODE/, ''), at: token.at }, 0xffff)
}
