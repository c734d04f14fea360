/** What clients of the status API write: read strictly, with a TextError that says what would be right. */
import { TextError, WireError } from '../base/errors.ts'
import { canonicalAddress } from '../base/ip-address.ts'
import { apiMaxPageEntries } from '../base/limits.ts'
import { parseType, RRTYPE } from '../wire/iana.ts'
import { parseName, type DomainName } from '../wire/name.ts'

/** @throws TextError */
export function readNameOf(what: string, text: string): DomainName {
  try {
    return parseName(text)
  } catch (error) {
    if (error instanceof WireError) throw new TextError(`${what}: \`${text}\` is not a domain name: ${error.message}`)
    throw error
  }
}

export const readOptionalName = (what: string, text: string | null): DomainName | null =>
  text === null ? null : readNameOf(what, text)

/** Types that mean a transfer or belong to a message: nobody asks for them like this. */
const metaTypes: ReadonlySet<number> = new Set([RRTYPE.OPT, RRTYPE.TSIG, RRTYPE.TKEY, RRTYPE.AXFR, RRTYPE.IXFR])

/** @throws TextError */
export function readQuestionType(text: string | null): number {
  if (text === null) return RRTYPE.A
  const type = parseType(text)
  if (type === null) throw new TextError(`type: \`${text}\` is not a record type like A, SRV or TYPE65`)
  if (metaTypes.has(type)) throw new TextError(`type: ${text} cannot be traced`)
  return type
}

/** @throws TextError */
export function readLimit(text: string | null, fallback: number): number {
  if (text === null) return fallback
  const limit = /^\d{1,7}$/.test(text) ? Number(text) : 0
  if (limit >= 1 && limit <= apiMaxPageEntries) return limit
  throw new TextError(`limit: \`${text}\` is not a number from 1 to ${apiMaxPageEntries}`)
}

/** @throws TextError */
export function readOffset(text: string | null): number {
  if (text === null) return 0
  if (/^\d{1,9}$/.test(text)) return Number(text)
  throw new TextError(`offset: \`${text}\` is not a whole number`)
}

/** @throws TextError */
export function readFlag(what: string, text: string | null, fallback: boolean): boolean {
  if (text === null) return fallback
  if (/^(1|true|yes)$/i.test(text)) return true
  if (/^(0|false|no)$/i.test(text)) return false
  throw new TextError(`${what}: \`${text}\` is neither 1 nor 0`)
}

/** @throws TextError */
export function readAddress(what: string, text: string): string {
  const address = canonicalAddress(text)
  if (address === null) throw new TextError(`${what}: \`${text}\` is not an IP address`)
  return address
}

/** Refuses a parameter that is not known: it would be ignored in silence. @throws TextError */
export const readOptionalAddress = (what: string, text: string | null): string | null =>
  text === null ? null : readAddress(what, text)

export function refuseOthers(query: URLSearchParams, known: readonly string[]): void {
  for (const key of query.keys()) {
    if (!known.includes(key))
      throw new TextError(`unknown parameter \`${key}\`; known here: ${known.join(', ') || 'none'}`)
  }
}
