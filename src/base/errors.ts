/**
 * The three kinds of failure: expected outcomes are values, bad input is one of the typed errors below,
 * and anything else that is thrown is a bug.
 */

/** Why octets or text are not a DNS message, name or record. docs/errors.md lists them. */
export type WireErrorCode =
  | 'TRUNCATED' // runs off the end
  | 'BAD_LABEL' // reserved label type, or a label over 63 octets
  | 'BAD_POINTER' // a compression pointer that does not point strictly backwards
  | 'TOO_MANY_POINTERS'
  | 'NAME_TOO_LONG' // over 255 octets
  | 'BAD_COUNT' // the header promises other than what is there
  | 'BAD_QTYPE' // a type that cannot be asked for: OPT, TSIG
  | 'BAD_RDATA' // RDATA that does not fit its type
  | 'BAD_EDNS' // a malformed or second OPT
  | 'BAD_TSIG' // TSIG elsewhere than last, or with a class or TTL that it cannot have
  | 'TRAILING_OCTETS'
  | 'BAD_TEXT' // presentation format that does not parse
  | 'TOO_LARGE' // does not fit a message

/** Bad octets or text: `offset` is the octet (or character) where it went wrong. */
export class WireError extends Error {
  readonly code: WireErrorCode
  readonly offset: number
  /** What is wrong in words, for people; may be empty. */
  readonly detail: string
  constructor(code: WireErrorCode, offset: number, detail = '') {
    super(detail === '' ? `${code} at ${offset}` : `${code} at ${offset}: ${detail}`)
    this.name = 'WireError'
    this.code = code
    this.offset = offset
    this.detail = detail
  }
}

/** An address that cannot be listened on; `code` is the system's (EADDRINUSE, EADDRNOTAVAIL, EACCES...). */
export class ListenError extends Error {
  readonly address: string
  readonly port: number
  readonly transport: 'udp' | 'tcp'
  readonly code: string
  constructor(where: { address: string; port: number; transport: 'udp' | 'tcp' }, code: string, cause: string) {
    const host = where.address.includes(':') ? `[${where.address}]` : where.address
    super(`cannot listen on ${host}:${where.port} (${where.transport}): ${cause} (${code})`)
    this.name = 'ListenError'
    this.address = where.address
    this.port = where.port
    this.transport = where.transport
    this.code = code
  }
}

/** Text of an operator (a duration, a size, a network, an address) that does not parse; the message says why. */
export class TextError extends Error {
  constructor(message: string) {
    super(message)
    this.name = 'TextError'
  }
}

/** Text as it is shown in a message: in backticks, on one line, and not longer than a reader needs. */
export function inBackticks(text: string): string {
  const line = text.replaceAll(/\s/g, ' ')
  return `\`${line.length > 80 ? `${line.slice(0, 77)}...` : line}\``
}
