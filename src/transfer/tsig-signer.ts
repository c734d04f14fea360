/**
 * TSIG with shared secrets (RFC 8945): checks signed requests, and signs what answers them, message by message.
 *
 * A key that is not known, a wrong MAC and a wrong time are outcomes, not errors: the answer says which (§5.2).
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import { ARCOUNT_AT } from '../wire/header.ts'
import { badSignature, CLASS, RCODE } from '../wire/iana.ts'
import { parseName, type DomainName } from '../wire/name.ts'
import { octetsOf, readU16, u16Octets, writeU16, writeU32, writeU48 } from '../wire/octets.ts'
import { appendTsig, tsigRdata, type Tsig } from '../wire/tsig.ts'

export type TsigAlgorithm = 'hmac-sha256' | 'hmac-sha512'

export type TsigKey = Readonly<{ name: DomainName; algorithm: TsigAlgorithm; secret: Uint8Array }>

/** How far the clocks may be apart, in seconds, for what we sign. RFC 8945 §10. */
const fudgeSeconds = 300

const algorithms: Readonly<Record<TsigAlgorithm, Readonly<{ name: DomainName; hash: string; macOctets: number }>>> = {
  'hmac-sha256': { name: parseName('hmac-sha256'), hash: 'sha256', macOctets: 32 },
  'hmac-sha512': { name: parseName('hmac-sha512'), hash: 'sha512', macOctets: 64 }
}

/** Owner, type, class, TTL, RDLENGTH, and the fixed fields of the RDATA. */
const fixedOctets = 10 + 16
/** The server's time, which BADTIME brings along. */
const timeOctets = 6

/** What came of looking at a signed request, and how its answer is signed. */
export type TsigCheck = Readonly<{
  /** The key that it is signed with; null where the signature is not good. */
  key: TsigKey | null
  /** The TSIG error: 0, or BADSIG (16), BADKEY (17), BADTIME (18), BADTRUNC (22). */
  error: number
  /** Octets that the signature of each answer takes at most. */
  roomOctets: number
  /** Signs the next message of the answer, which has `size` octets, and returns its new size; there must be room. */
  sign(out: Uint8Array, size: number): number
}>

/**
 * Checks a request whose TSIG record, the last one, has been read.
 * @param keys by name.
 */
export function checkTsig(
  octets: Uint8Array,
  tsig: Tsig,
  keys: ReadonlyMap<DomainName, TsigKey>,
  nowSeconds: () => number
): TsigCheck {
  const key = keys.get(tsig.keyName)
  if (key === undefined || algorithms[key.algorithm].name !== tsig.algorithm) return unsigned(tsig, RCODE.BADKEY)
  const { macOctets } = algorithms[key.algorithm]
  // Shortened MACs are allowed to be refused (§5.2.2.1), and nobody who has a key needs them.
  if (tsig.mac.length < macOctets) return unsigned(tsig, RCODE.BADTRUNC)
  const message = octets.slice(0, tsig.start)
  writeU16(message, 0, tsig.originalId)
  writeU16(message, ARCOUNT_AT, readU16(message, ARCOUNT_AT) - 1)
  const mac = macOf(key, [message, variablesOf(key, tsig)])
  if (mac.length !== tsig.mac.length || !timingSafeEqual(mac, tsig.mac)) return unsigned(tsig, badSignature)
  const isInTime = Math.abs(nowSeconds() - tsig.timeSignedSeconds) <= tsig.fudgeSeconds
  return new SignedAnswer(key, tsig, isInTime ? RCODE.NOERROR : RCODE.BADTIME, nowSeconds)
}

/** Signs a request of ours (such as NOTIFY) and returns it with its TSIG record. */
export function signRequest(message: Uint8Array, key: TsigKey, nowSeconds: number): Uint8Array {
  const { name: algorithm, macOctets } = algorithms[key.algorithm]
  const fields = { timeSignedSeconds: nowSeconds, fudgeSeconds, error: 0, other: nothing }
  const mac = macOf(key, [message, variablesOf(key, fields)])
  const out = new Uint8Array(message.length + key.name.length + fixedOctets + algorithm.length + macOctets)
  out.set(message)
  const rdata = tsigRdata({ algorithm, mac, originalId: readU16(message, 0), ...fields })
  const size = appendTsig(out, message.length, key.name, rdata)
  return out.slice(0, size)
}

const nothing = new Uint8Array(0)

/** The name that a key's algorithm has in TSIG records. */
export const algorithmOf = ({ algorithm }: TsigKey): DomainName => algorithms[algorithm].name

/** An answer to what we cannot check carries a TSIG without MAC. §5.3.2 */
const unsigned = (tsig: Tsig, error: number): TsigCheck => ({
  key: null,
  error,
  roomOctets: tsig.keyName.length + fixedOctets + tsig.algorithm.length,
  sign: (out, size) => appendTsig(out, size, tsig.keyName, tsigRdata({ ...tsig, mac: nothing, other: nothing, error }))
})

/**
 * The messages that answer one request: the first one's MAC covers the request's, each later one that of the one
 * before.
 */
class SignedAnswer implements TsigCheck {
  readonly key: TsigKey | null
  readonly error: number
  readonly roomOctets: number
  readonly #key: TsigKey
  readonly #nowSeconds: () => number
  readonly #request: Tsig
  #lastMac: Uint8Array
  #isFirst = true

  constructor(key: TsigKey, request: Tsig, error: number, nowSeconds: () => number) {
    const { name, macOctets } = algorithms[key.algorithm]
    this.key = error === 0 ? key : null
    this.error = error
    this.roomOctets = key.name.length + fixedOctets + name.length + macOctets + timeOctets
    this.#key = key
    this.#request = request
    this.#nowSeconds = nowSeconds
    this.#lastMac = request.mac
  }

  sign(out: Uint8Array, size: number): number {
    const key = this.#key
    const fields = this.#fields()
    const before = [u16Octets(this.#lastMac.length), this.#lastMac, out.subarray(0, size)]
    const mac = macOf(key, [...before, this.#isFirst ? variablesOf(key, fields) : timersOf(fields)])
    this.#isFirst = false
    this.#lastMac = mac
    const { name: algorithm } = algorithms[key.algorithm]
    return appendTsig(out, size, key.name, tsigRdata({ algorithm, mac, originalId: readU16(out, 0), ...fields }))
  }

  #fields(): TsigFields {
    const nowSeconds = this.#nowSeconds()
    if (this.error !== RCODE.BADTIME) return { timeSignedSeconds: nowSeconds, fudgeSeconds, error: 0, other: nothing }
    // The client's own time signed, and ours beside it. §5.2.3
    const other = new Uint8Array(timeOctets)
    writeU48(other, 0, nowSeconds)
    return { timeSignedSeconds: this.#request.timeSignedSeconds, fudgeSeconds, error: this.error, other }
  }
}

type TsigFields = Pick<Tsig, 'timeSignedSeconds' | 'fudgeSeconds' | 'error' | 'other'>

/** The MAC over these parts. */
export function macOf({ algorithm, secret }: TsigKey, parts: readonly Uint8Array[]): Uint8Array {
  const hmac = createHmac(algorithms[algorithm].hash, secret)
  for (const part of parts) hmac.update(part)
  return hmac.digest()
}

/** What is signed beside the message. §4.3.3 */
export function variablesOf({ name, algorithm }: TsigKey, fields: TsigFields): Uint8Array {
  const algorithmName = algorithms[algorithm].name
  const fixed = new Uint8Array(6)
  writeU16(fixed, 0, CLASS.ANY)
  writeU32(fixed, 2, 0)
  const tail = new Uint8Array(4)
  writeU16(tail, 0, fields.error)
  writeU16(tail, 2, fields.other.length)
  return Buffer.concat([octetsOf(name), fixed, octetsOf(algorithmName), timersOf(fields), tail, fields.other])
}

/** What is signed beside a message that is not the first one of a stream. §5.3.1 */
export function timersOf({ timeSignedSeconds, fudgeSeconds: fudge }: TsigFields): Uint8Array {
  const octets = new Uint8Array(8)
  writeU48(octets, 0, timeSignedSeconds)
  writeU16(octets, 6, fudge)
  return octets
}
