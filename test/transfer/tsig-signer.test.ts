/** TSIG by shared secrets: what is accepted, what is said of the rest, and chains of messages (RFC 8945). */
import { createHmac } from 'node:crypto'
import { readFileSync } from 'node:fs'
import * as fc from 'fast-check'
import { test } from 'tap'
import { checkTsig, signRequest, type TsigCheck, type TsigKey } from '../../src/transfer/tsig-signer.ts'
import { badSignature, RCODE, RRTYPE } from '../../src/wire/iana.ts'
import { decodeMessage, encodeMessage, type Message } from '../../src/wire/message.ts'
import { parseName } from '../../src/wire/name.ts'
import { readU16 } from '../../src/wire/octets.ts'
import { parseQuery } from '../../src/wire/query.ts'
import { readTsig } from '../../src/wire/tsig.ts'
import { seed } from '../wire/arbitraries.ts'
import { hex, messageToLines } from '../wire/message-text.ts'

const nowSeconds = 1_700_000_000
const key: TsigKey = { name: parseName('key.example'), algorithm: 'hmac-sha256', secret: Buffer.from('secret') }
const long: TsigKey = { name: parseName('long.example'), algorithm: 'hmac-sha512', secret: Buffer.from('another') }
const keys = new Map([key, long].map((each) => [each.name, each]))

const plain: Message = {
  id: 0x1234,
  qr: false,
  opcode: 0,
  aa: false,
  tc: false,
  rd: false,
  ra: false,
  ad: false,
  cd: false,
  rcode: 0,
  questions: [{ name: parseName('cluster.local'), type: RRTYPE.SOA, class: 1 }],
  answer: [],
  authority: [],
  additional: [],
  edns: { version: 0, udpPayloadOctets: 1232, dnssecOk: false, options: [] }
}
const query = encodeMessage(plain)

const check = (octets: Uint8Array, atSeconds = nowSeconds): TsigCheck =>
  checkTsig(octets, parseQuery(octets, octets.length).tsig!, keys, () => atSeconds)

test('checkTsig takes what signRequest signs, with either algorithm, and an id that a forwarder changed', async (t) => {
  for (const each of [key, long]) {
    const signed = signRequest(query, each, nowSeconds)
    t.match(check(signed), { key: each, error: 0 })
    const forwarded = Uint8Array.from(signed)
    forwarded[0]! ^= 0xff
    t.equal(check(forwarded).error, 0, 'the id is not part of what is signed, the original id is')
    t.equal(check(signed, nowSeconds + 300).error, 0)
    t.equal(check(signed, nowSeconds - 300).error, 0)
    t.equal(check(signed, nowSeconds + 301).error, RCODE.BADTIME)
    t.equal(check(signed, nowSeconds - 301).error, RCODE.BADTIME)
    t.equal(check(signed, nowSeconds + 301).key, null)
  }
})

test('checkTsig takes what dig signs', async (t) => {
  const text = readFileSync(new URL('../vectors/query-dig-tsig.hex', import.meta.url), 'latin1')
  const octets = hex(text.split('\n').filter((line) => /^[0-9a-f]/.test(line)).join('')) // prettier-ignore
  const tsig = parseQuery(octets, octets.length).tsig!
  const ofDig = { ...key, name: parseName('nokey.example'), secret: Buffer.from('c2VjcmV0', 'base64') }
  const outcome = checkTsig(octets, tsig, new Map([[ofDig.name, ofDig]]), () => 1_796_042_198)
  t.match(outcome, { key: ofDig, error: 0 })
})

test('checkTsig: no octet of a signed request can change', async (t) => {
  const signed = signRequest(query, key, nowSeconds)
  fc.assert(
    fc.property(fc.nat(signed.length - 1), fc.integer({ min: 1, max: 255 }), (at, change) => {
      const changed = Uint8Array.from(signed)
      changed[at]! ^= change
      let outcome: TsigCheck | null = null
      try {
        const { tsig } = parseQuery(changed, changed.length)
        if (tsig !== null) outcome = checkTsig(changed, tsig, keys, () => nowSeconds)
      } catch {
        return
      }
      // The id of the header is not signed, nor is the case of names.
      const isCase = (change & ~0x20) === 0
      if (at >= 2 && !isCase) t.ok(outcome === null || outcome.key === null, `octet ${at}`)
    }),
    { seed, numRuns: 2_000 }
  )
})

test('TsigCheck.sign: what cannot be checked is answered without MAC, a wrong time with ours', async (t) => {
  const stranger = { ...key, name: parseName('nokey.example') }
  const rows: [name: string, request: Uint8Array, atSeconds: number, error: number, tsig: RegExp][] = [
    ['another key', signRequest(query, stranger, nowSeconds), nowSeconds, RCODE.BADKEY, /hmac-sha256\. 1700000000 300 0 4660 BADKEY 0$/],
    ['another algorithm', signRequest(query, { ...key, algorithm: 'hmac-sha512' }, nowSeconds), nowSeconds, RCODE.BADKEY, /hmac-sha512\. .* BADKEY 0$/],
    ['another secret', signRequest(query, { ...key, secret: Buffer.from('x') }, nowSeconds), nowSeconds, badSignature, /hmac-sha256\. 1700000000 300 0 4660 \S+ 0$/],
    ['another time', signRequest(query, key, nowSeconds), nowSeconds + 1_000, RCODE.BADTIME, /1700000000 300 32 \S+ 4660 BADTIME 6 /]
  ] // prettier-ignore
  for (const [name, request, atSeconds, error, tsig] of rows) {
    const outcome = check(request, atSeconds)
    t.equal(outcome.error, error, name)
    t.equal(outcome.key, null, name)
    const out = new Uint8Array(1_000)
    out.set(encodeMessage({ ...plain, qr: true, rcode: RCODE.NOTAUTH }))
    const size = outcome.sign(out, query.length)
    t.ok(size - query.length <= outcome.roomOctets, `${name}: within its room`)
    const message = decodeMessage(out.subarray(0, size))
    t.match(
      messageToLines(message).find((line) => line.includes(' TSIG ')),
      tsig,
      name
    )
  }
  const short = signRequest(query, key, nowSeconds)
  const tsig = parseQuery(short, short.length).tsig!
  const cut = checkTsig(short, { ...tsig, mac: tsig.mac.subarray(0, 16) }, keys, () => nowSeconds)
  t.equal(cut.error, RCODE.BADTRUNC)
  const vector =
    '05 6e6f6b6579 00 00fa 00ff 00000000 003d 0b 686d61632d736861323536 00 00006553f100 012c 0020 00*32 1122 0000 0000'
  const asked = hex('1122 0100 0001 0000 0000 0001 00 0001 0001')
  t.equal(check(Uint8Array.from([...asked, ...hex(vector)])).error, RCODE.BADKEY, 'as it comes over the wire')
})

test('TsigCheck.sign: each message of an answer covers the one before it', async (t) => {
  for (const each of [key, long]) {
    const request = signRequest(query, each, nowSeconds)
    const outcome = check(request)
    let before = parseQuery(request, request.length).tsig!.mac
    for (let index = 0; index < 3; index++) {
      const out = new Uint8Array(2_000)
      const body = encodeMessage({ ...plain, qr: true, aa: true, questions: index === 0 ? plain.questions : [] })
      out.set(body)
      const size = outcome.sign(out, body.length)
      t.ok(size - body.length <= outcome.roomOctets)
      // By the letter of RFC 8945 §4.3: the MAC before, the message as it was, then variables, or timers alone.
      const record = readRecord(out, body.length, size)
      const hmac = createHmac(each.algorithm.slice(5), each.secret)
      hmac.update(Uint8Array.of(before.length >> 8, before.length & 0xff))
      hmac.update(before)
      hmac.update(body)
      const time = hex(`${nowSeconds.toString(16).padStart(12, '0')} 012c`)
      const names = [each.name, parseName(each.algorithm)].map((name) => Buffer.from(name, 'latin1'))
      if (index === 0) hmac.update(Buffer.concat([names[0]!, hex('00ff 00000000'), names[1]!, time, hex('0000 0000')]))
      else hmac.update(time)
      t.same(record.mac, Uint8Array.from(hmac.digest()), `${each.algorithm}, message ${index}`)
      t.match(record, { error: 0, originalId: plain.id, timeSignedSeconds: nowSeconds, fudgeSeconds: 300 })
      before = record.mac
    }
  }
})

function readRecord(octets: Uint8Array, start: number, end: number) {
  let at = start
  while (octets[at] !== 0) at += octets[at]! + 1
  const fixedAt = at + 1
  if (fixedAt + 10 + readU16(octets, fixedAt + 8) !== end) throw new Error('not the last record')
  return readTsig(octets, start, fixedAt, end, parseName('any'))
}
