/**
 * Two independent codecs read what we write and write what we read: dns-packet 5.6.1 and dns2 3.1.1.
 *
 * What one of them is known to get wrong is left out, each time with the reason.
 */
import assert from 'node:assert/strict'
import dnsPacket from 'dns-packet'
import dns2 from 'dns2'
import * as fc from 'fast-check'
import { test } from 'tap'
import type { Edns } from '../../src/wire/edns.ts'
import { CLASS, RRTYPE, typeToText } from '../../src/wire/iana.ts'
import { decodeMessage, encodeMessage, type Message } from '../../src/wire/message.ts'
import { nameToText } from '../../src/wire/name.ts'
import { rdataKey } from '../../src/wire/rdata.ts'
import { parseRdata } from '../../src/wire/rdata-from-text.ts'
import type { ResourceRecord } from '../../src/wire/rr.ts'
import { edns as anyEdns, plain, recordTypes, seed } from './arbitraries.ts'

/** A record as another library has it: its fields have that library's names. */
type Theirs = Record<string, unknown>

const absolute = (name: unknown): string => (name === '.' || name === '' ? '.' : `${String(name)}.`)
const quoted = (text: unknown): string => `"${String(text)}"`
const hexOf = (octets: unknown): string => Buffer.from(octets as Uint8Array).toString('hex')
const unknown = (octets: unknown): string => `\\# ${(octets as Uint8Array).length} ${hexOf(octets)}`

function messageWith(answer: ResourceRecord[], rest: Partial<Message> = {}): Message {
  const flags = { qr: true, opcode: 0, aa: true, tc: false, rd: true, ra: false, ad: false, cd: true, rcode: 3 }
  const questions = [{ name: answer[0]!.owner, type: answer[0]!.type, class: CLASS.IN }]
  return { id: 0x1234, ...flags, questions, answer, authority: [], additional: [], edns: null, ...rest }
}

/** Owner, TTL and RDATA of a record of ours. */
const said = ({ owner, ttlSeconds, rdata }: ResourceRecord): unknown[] => [nameToText(owner), ttlSeconds, hexOf(rdata)]

/** Messages of one type, names and texts such that every codec can say them. */
const messagesOf = (type: number): fc.Arbitrary<Message> =>
  fc.array(plain.recordOf(type), { minLength: 1, maxLength: 4 }).map((records) => messageWith(records))

/** RDATA as dns-packet has it, in presentation format. */
const dnsPacketText: Readonly<Record<string, (data: Theirs) => string>> = {
  A: String,
  AAAA: String,
  NS: absolute,
  CNAME: absolute,
  PTR: absolute,
  DNAME: absolute,
  SOA: ({ mname, rname, serial, refresh, retry, expire, minimum }) =>
    [absolute(mname), absolute(rname), serial, refresh, retry, expire, minimum].join(' '),
  MX: ({ preference, exchange }) => `${String(preference)} ${absolute(exchange)}`,
  TXT: (data) => (data as unknown as Buffer[]).map((text) => quoted(text.toString('latin1'))).join(' '),
  HINFO: ({ cpu, os }) => `${quoted(cpu)} ${quoted(os)}`,
  RP: ({ mbox, txt }) => `${absolute(mbox)} ${absolute(txt)}`,
  SRV: ({ priority, weight, port, target }) => [priority, weight, port, absolute(target)].join(' '),
  NAPTR: ({ order, preference, flags, services, regexp, replacement }) =>
    [order, preference, quoted(flags), quoted(services), quoted(regexp), absolute(replacement)].join(' '),
  CAA: ({ flags, tag, value }) => [flags, tag, quoted(value)].join(' '),
  DS: ({ keyTag, algorithm, digestType, digest }) => [keyTag, algorithm, digestType, hexOf(digest)].join(' '),
  TLSA: ({ usage, selector, matchingType, certificate }) =>
    [usage, selector, matchingType, hexOf(certificate)].join(' ')
}

/** Types that dns-packet cannot carry as we write them. */
const dnsPacketSkips: ReadonlyMap<number, string> = new Map([
  [RRTYPE.NSEC, 'it understands the bitmap, and ours is any octets'],
  [RRTYPE.DNSKEY, 'it wants a valid key, and ours is any octets'],
  [RRTYPE.RRSIG, 'it names the covered type, and ours is any number'],
  [RRTYPE.SSHFP, 'it wants a fingerprint of the length of its hash']
])

test('dns-packet reads what encodeMessage writes, and decodeMessage what it writes', async (t) => {
  for (const type of recordTypes) {
    const name = typeToText(type)
    const reason = dnsPacketSkips.get(type)
    if (reason !== undefined) {
      t.pass(`${name} left out: ${reason}`)
      continue
    }
    const check = (message: Message): void => {
      const theirs = dnsPacket.decode(Buffer.from(encodeMessage(message)))
      const { id, flag_aa: aa, flag_rd: rd, flag_ra: ra, flag_cd: cd } = theirs as unknown as Theirs
      assert.deepEqual({ id, aa, rd, ra, cd }, { id: 0x1234, aa: true, rd: true, ra: false, cd: true })
      const read = (theirs.answers ?? []).map((answer) => {
        const { name: owner, ttl, data } = answer as unknown as Theirs
        const text = (dnsPacketText[name] ?? unknown)(data as Theirs)
        return [absolute(owner).toLowerCase(), ttl, hexOf(parseRdata(type, text))]
      })
      assert.deepEqual(read, message.answer.map(said))
      // It keeps only the first of the eight flags of CAA when it writes one.
      if (type !== RRTYPE.CAA) assert.deepEqual(decodeMessage(dnsPacket.encode(theirs)), message)
    }
    fc.assert(fc.property(messagesOf(type), check), { seed, numRuns: 50 })
    t.pass(name)
  }
})

test('dns-packet reads our OPT record with its options', async (t) => {
  const check = (record: ResourceRecord, edns: Edns): void => {
    const theirs = dnsPacket.decode(Buffer.from(encodeMessage(messageWith([record], { edns }))))
    const opt = theirs.additionals![0] as unknown as Theirs
    assert.deepEqual(
      {
        version: opt['ednsVersion'],
        udpPayloadOctets: opt['udpPayloadSize'],
        dnssecOk: opt['flag_do'],
        options: (opt['options'] as Theirs[]).map(({ code, data }) => ({ code, data: Uint8Array.from(data as Buffer) }))
      },
      edns
    )
  }
  // It takes the data of the options apart that it knows, and ours are any octets.
  const edns = anyEdns.filter(({ options }) => options.every(({ code }) => code > 20))
  fc.assert(fc.property(plain.recordOf(RRTYPE.A), edns, check), { seed, numRuns: 100 })
  t.pass('size, DO and options')
})

/** RDATA as dns2 has it, in presentation format. */
const dns2Text: Readonly<Record<string, (record: Theirs) => string>> = {
  A: ({ address }) => String(address),
  AAAA: ({ address }) => String(address),
  NS: ({ ns }) => absolute(ns),
  CNAME: ({ domain }) => absolute(domain),
  PTR: ({ domain }) => absolute(domain),
  SOA: ({ primary, admin, serial, refresh, retry, expiration, minimum }) =>
    [absolute(primary), absolute(admin), serial, refresh, retry, expiration, minimum].join(' '),
  MX: ({ priority, exchange }) => `${String(priority)} ${absolute(exchange)}`,
  TXT: ({ data }) => (data as string[]).map(quoted).join(' '),
  SPF: ({ data }) => (data as string[]).map(quoted).join(' '),
  SRV: ({ priority, weight, port, target }) => [priority, weight, port, absolute(target)].join(' '),
  CAA: ({ flags, tag, value }) => [flags, tag, quoted(value)].join(' ')
}

/** Types that dns2 cannot carry as we write them. */
const dns2Skips: ReadonlyMap<number, string> = new Map([
  [RRTYPE.DNSKEY, 'it wants a valid key, and ours is any octets']
])

test('dns2 reads what encodeMessage writes, and decodeMessage what it writes', async (t) => {
  for (const type of recordTypes) {
    const name = typeToText(type)
    const reason = dns2Skips.get(type)
    if (reason !== undefined) {
      t.pass(`${name} left out: ${reason}`)
      continue
    }
    const check = (message: Message): void => {
      const theirs = dns2.Packet.parse(Buffer.from(encodeMessage(message)))
      assert.deepEqual(theirs.errors, [])
      const { id, qr, aa, rd, ra, rcode } = theirs.header
      assert.deepEqual({ id, qr, aa, rd, ra, rcode }, { id: 0x1234, qr: 1, aa: 1, rd: 1, ra: 0, rcode: 3 })
      const read = theirs.answers.map((answer) => {
        const record = answer as unknown as Theirs
        const text = (dns2Text[name] ?? (({ data }: Theirs) => unknown(data)))(record)
        return [absolute(record['name']).toLowerCase(), record['ttl'], hexOf(parseRdata(type, text))]
      })
      assert.deepEqual(read, message.answer.map(said))
      // It caps the minimum of SOA at 2^31-1 when it writes one.
      if (type === RRTYPE.SOA) return
      const again = decodeMessage(theirs.toBuffer())
      assert.deepEqual(again.questions, message.questions)
      // It gives compressed names the case of their first appearance, in RDATA as well.
      const key = ({ owner, ttlSeconds, rdata }: ResourceRecord): unknown[] => [
        owner,
        ttlSeconds,
        rdataKey(type, rdata)
      ]
      assert.deepEqual(again.answer.map(key), message.answer.map(key))
    }
    fc.assert(fc.property(messagesOf(type), check), { seed, numRuns: 50 })
    t.pass(name)
  }
})
