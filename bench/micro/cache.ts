/**
 * What cached answers take, beside what the cache believes they take; and what putting in and looking up costs.
 *
 *     node --expose-gc bench/micro/cache.ts [entries, default 50000]
 */
import { AnswerCache, answerKey, type AnswerKey } from '../../src/cache/answer-cache.ts'
import { decodeMessage, encodeMessage, groupRRsets } from '../../src/wire/message.ts'
import { RCODE, RRTYPE, CLASS } from '../../src/wire/iana.ts'
import { parseName, type DomainName } from '../../src/wire/name.ts'
import { aRdata, nameRdata, soaRdata, srvRdata } from '../../src/wire/rdata.ts'
import type { ResourceRecord, Sections } from '../../src/wire/rr.ts'
import { microsecondsEach, settledHeapOctets } from './measure.ts'

const zone = parseName('cluster.local')
const caps = { maxTtlSeconds: 3_600, maxNegativeTtlSeconds: 3_600 }

const record = (owner: DomainName, type: number, rdata: Uint8Array): ResourceRecord => ({
  owner,
  type,
  class: CLASS.IN,
  ttlSeconds: 30,
  rdata
})

const soaTimers = { serial: 1, refreshSeconds: 1, retrySeconds: 1, expireSeconds: 1, minimumSeconds: 30 }
const soa = record(zone, RRTYPE.SOA, soaRdata({ mname: zone, rname: zone, ...soaTimers }))
const address = (owner: DomainName, last: number) => record(owner, RRTYPE.A, aRdata(`192.0.2.${last}`))

/** Each kind of answer as a peer's message would bring it: decoded, so that it owns its strings and RDATA. */
const kinds: Record<
  string,
  (name: DomainName) => Partial<Record<'answer' | 'authority' | 'additional', ResourceRecord[]>>
> = {
  'one address': (name) => ({ answer: [address(name, 1)] }),
  'ten addresses': (name) => ({ answer: Array.from({ length: 10 }, (_, at) => address(name, at)) }),
  denial: () => ({ authority: [soa] }),
  'alias and address': (name) => {
    const end = `\x03end${name}` as DomainName
    return { answer: [record(name, RRTYPE.CNAME, nameRdata(end)), address(end, 1)] }
  },
  'three SRV, addresses': (name) => {
    const hosts = [1, 2, 3].map((host) => `\x02h${host}${name}` as DomainName)
    const service = { priority: 0, weight: 33, port: 80 }
    return {
      answer: hosts.map((target) => record(name, RRTYPE.SRV, srvRdata({ ...service, target }))),
      additional: hosts.map((host, at) => address(host, at))
    }
  }
}

function sectionsOf(name: DomainName, make: (typeof kinds)[string]): Sections {
  const { answer = [], authority = [], additional = [] } = make(name)
  const flags = { id: 0, qr: true, opcode: 0, aa: true, tc: false, rd: false, ra: false, ad: false, cd: false }
  const rcode = RCODE.NOERROR
  const message = decodeMessage(
    encodeMessage({ ...flags, rcode, questions: [], answer, authority, additional, edns: null })
  )
  return {
    rcode,
    answer: groupRRsets(message.answer),
    authority: groupRRsets(message.authority),
    additional: groupRRsets(message.additional)
  }
}

const nameOf = (entry: number): DomainName => parseName(`service-${entry}.backend.svc.cluster.local`)

const keyOf = (name: DomainName): AnswerKey =>
  answerKey({ target: 'a', name, type: RRTYPE.A, class: CLASS.IN, dnssecOk: false, checkingDisabled: false })

const srvKeyOf = (name: DomainName): AnswerKey =>
  answerKey({ target: 'a', name, type: RRTYPE.SRV, class: CLASS.IN, dnssecOk: false, checkingDisabled: false })

const entries = Number(process.argv[2] ?? 50_000)
const put = { nowMs: 0, targetId: 'a', server: '192.0.2.53:53', ...caps }
function fill(title: string): AnswerCache {
  const cache = new AnswerCache({ maxBytes: 1e9, serveStaleMs: 0 })
  const key = title.includes('SRV') ? srvKeyOf : keyOf
  for (let entry = 0; entry < entries; entry++) {
    cache.put(key(nameOf(entry)), sectionsOf(nameOf(entry), kinds[title]!), put)
  }
  return cache
}

for (const title of Object.keys(kinds)) {
  // Once before, so that code and caches of the engine are not counted.
  fill(title)
  const before = await settledHeapOctets()
  const cache = fill(title)
  const real = (await settledHeapOctets()) - before
  const each = (octets: number): string => (octets / cache.stats.entries).toFixed(0)
  const ratio = ((cache.stats.octets / real) * 100).toFixed(0)
  console.log(`${title}: ${each(cache.stats.octets)} octets counted, ${each(real)} real: ${ratio} %`)
}

const names = Array.from({ length: entries }, (_, entry) => nameOf(entry))
const answers = names.map((name) => sectionsOf(name, kinds['one address']!))
const cache = new AnswerCache({ maxBytes: 1e9, serveStaleMs: 0 })
const small = new AnswerCache({ maxBytes: 4e6, serveStaleMs: 0 })
const at = (round: number): number => round % entries
const into = (target: AnswerCache) => (round: number) =>
  void target.put(keyOf(names[at(round)]!), answers[at(round)]!, put)
console.log(`put: ${microsecondsEach(entries, into(cache)).toFixed(2)} us`)
console.log(`put, evicting: ${microsecondsEach(entries, into(small)).toFixed(2)} us`)
console.log(`get: ${microsecondsEach(entries * 10, (round) => cache.get(keyOf(names[at(round)]!), 1)).toFixed(2)} us`)
