/**
 * TSIG as the asker sees it (RFC 8945 §5.3): signs a request, and checks the messages that answer it, one after the
 * other.
 *
 * Of a long answer some messages may come unsigned (§5.3.1): they are held until the next signed one has vouched for
 * them, so nobody reads what nobody signed.
 */
import { timingSafeEqual } from 'node:crypto'
import { unsignedTransferMessages } from '../base/transfer-limits.ts'
import { ANCOUNT_AT, ARCOUNT_AT, headerOctets, NSCOUNT_AT, QDCOUNT_AT } from '../wire/header.ts'
import { RRTYPE } from '../wire/iana.ts'
import { readName } from '../wire/name.ts'
import { copyOf, readU16, u16Octets, writeU16 } from '../wire/octets.ts'
import { readTsig, type Tsig } from '../wire/tsig.ts'
import type { Signer, Verifier } from './link.ts'
import { TransferFault } from './transfer-reader.ts'
import { algorithmOf, macOf, signRequest, timersOf, variablesOf, type TsigKey } from './tsig-signer.ts'

/** @param keyOf the key as it is now; null where it cannot be read: then nothing can be asked. */
export function tsigSigner(keyOf: () => TsigKey | null, nowSeconds: () => number): Signer {
  return {
    sign(request) {
      const key = keyOf()
      if (key === null) return { octets: request, verifier: unreadable }
      const octets = signRequest(request, key, nowSeconds())
      return { octets, verifier: new TsigVerifier(key, findTsig(octets)!.mac, nowSeconds) }
    }
  }
}

const wrong = (why: string): TransferFault => new TransferFault('signature', why)

const unreadable: Verifier = {
  take() {
    throw wrong('our key cannot be read')
  }
}

class TsigVerifier implements Verifier {
  readonly #key: TsigKey
  readonly #nowSeconds: () => number
  #lastMac: Uint8Array
  #isFirst = true
  #held: Uint8Array[] = []

  constructor(key: TsigKey, requestMac: Uint8Array, nowSeconds: () => number) {
    this.#key = key
    this.#lastMac = requestMac
    this.#nowSeconds = nowSeconds
  }

  take(octets: Uint8Array): readonly Uint8Array[] {
    const tsig = findTsig(octets)
    if (tsig === null) {
      if (this.#isFirst) throw wrong('an answer without signature')
      if (this.#held.length >= unsignedTransferMessages) throw wrong('too many messages without signature')
      this.#held.push(copyOf(octets, 0, octets.length))
      return []
    }
    this.#check(octets, tsig)
    const all = [...this.#held, octets]
    this.#held = []
    this.#isFirst = false
    this.#lastMac = tsig.mac
    return all
  }

  #check(octets: Uint8Array, tsig: Tsig): void {
    const key = this.#key
    if (tsig.keyName !== key.name || tsig.algorithm !== algorithmOf(key)) throw wrong('signed with another key')
    if (tsig.mac.length === 0) throw wrong(`the server says TSIG error ${tsig.error}`)
    const message = copyOf(octets, 0, tsig.start)
    writeU16(message, 0, tsig.originalId)
    writeU16(message, ARCOUNT_AT, readU16(message, ARCOUNT_AT) - 1)
    const rest = this.#isFirst ? variablesOf(key, tsig) : timersOf(tsig)
    const mac = macOf(key, [u16Octets(this.#lastMac.length), this.#lastMac, ...this.#held, message, rest])
    if (mac.length !== tsig.mac.length || !timingSafeEqual(mac, tsig.mac)) throw wrong('a wrong signature')
    if (tsig.error !== 0) throw wrong(`the server says TSIG error ${tsig.error}`)
    if (Math.abs(this.#nowSeconds() - tsig.timeSignedSeconds) > tsig.fudgeSeconds) {
      throw wrong('signed too long ago, or the clocks differ')
    }
  }
}

/** The TSIG record of a message; null where its last record is none. @throws WireError */
export function findTsig(octets: Uint8Array): Tsig | null {
  if (octets.length < headerOctets || readU16(octets, ARCOUNT_AT) === 0) return null
  let at = headerOctets
  for (let left = readU16(octets, QDCOUNT_AT); left > 0; left--) at = readName(octets, at).end + 4
  const records = readU16(octets, ANCOUNT_AT) + readU16(octets, NSCOUNT_AT) + readU16(octets, ARCOUNT_AT)
  for (let left = records; left > 0; left--) {
    const { name, end: fixedAt } = readName(octets, at)
    const end = fixedAt + 10 + readU16(octets, fixedAt + 8)
    if (left === 1 && readU16(octets, fixedAt) === RRTYPE.TSIG && end === octets.length) {
      return readTsig(octets, at, fixedAt, end, name)
    }
    at = end
  }
  return null
}
