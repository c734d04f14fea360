/**
 * How many messages the codec reads and writes in one second of CPU time: `node bench/micro/wire.ts`.
 *
 * CPU time, not wall time, so that other work on the machine disturbs less; the best of several rounds counts.
 */
import { encodeEde } from '../../src/wire/edns.ts'
import { RRTYPE } from '../../src/wire/iana.ts'
import { decodeMessage, encodeMessage } from '../../src/wire/message.ts'
import { parseName } from '../../src/wire/name.ts'
import { parseQuery } from '../../src/wire/query.ts'
import { aRdata, nameRdata, soaRdata, srvRdata } from '../../src/wire/rdata.ts'
import { encodeResponse, type Response } from '../../src/wire/response.ts'
import type { RRset } from '../../src/wire/rr.ts'

const rounds = 7
const roundMs = 150

/** Keeps results alive, so that no work is optimised away. */
let sink = 0

function measure(name: string, operation: () => number): void {
  let best = 0
  for (let round = 0; round < rounds; round++) {
    let operations = 0
    const startedAt = process.cpuUsage()
    const until = performance.now() + roundMs
    do {
      for (let i = 0; i < 1000; i++) sink += operation()
      operations += 1000
    } while (performance.now() < until)
    const used = process.cpuUsage(startedAt)
    best = Math.max(best, operations / (used.user + used.system))
  }
  console.log(
    `${name.padEnd(44)} ${(best * 1e6).toFixed(0).padStart(10)} ops/s  ${(1000 / best).toFixed(0).padStart(6)} ns`
  )
}

const name = parseName('api.backend.svc.cluster.local')
const question = { name, type: RRTYPE.A, class: 1 }
const noEdns = { version: 0, udpPayloadOctets: 1232, dnssecOk: false, options: [] }
const cookie = { code: 10, data: new Uint8Array(8) }
const flags = { opcode: 0, aa: false, tc: false, ra: false, ad: false, cd: false, rcode: 0 }
const empty = { answer: [], authority: [], additional: [] }
const query = { id: 1, qr: false, rd: true, ...flags, ...empty, questions: [question], edns: null }

/** In a buffer that is larger, as the listener has it. */
function received(octets: Uint8Array): { octets: Buffer; size: number } {
  const buffer = Buffer.alloc(4096)
  buffer.set(octets)
  return { octets: buffer, size: octets.length }
}

const plain = received(encodeMessage(query))
const withOpt = received(encodeMessage({ ...query, edns: noEdns }))
const withCookie = received(encodeMessage({ ...query, edns: { ...noEdns, options: [cookie] } }))
const mixedCase = received(encodeMessage(query))
mixedCase.octets[13] = 0x41
const malformed = received(encodeMessage(query))

measure('parseQuery', () => parseQuery(plain.octets, plain.size).questionEnd)
measure('parseQuery, OPT', () => parseQuery(withOpt.octets, withOpt.size).questionEnd)
measure('parseQuery, OPT with a cookie', () => parseQuery(withCookie.octets, withCookie.size).questionEnd)
measure('parseQuery, a capital letter', () => parseQuery(mixedCase.octets, mixedCase.size).questionEnd)
measure('parseQuery, malformed', () => {
  try {
    return parseQuery(malformed.octets, malformed.size - 1).questionEnd
  } catch {
    return 1
  }
})

const addresses = (count: number): Uint8Array[] => Array.from({ length: count }, (_, i) => aRdata(`10.0.0.${i}`))
const setOf = (type: number, rdata: Uint8Array[], owner = name): RRset => ({ owner, type, ttlSeconds: 5, rdata })
const apex = parseName('cluster.local')
const soa = soaRdata({
  mname: parseName('ns.dns.cluster.local'),
  rname: parseName('hostmaster.cluster.local'),
  serial: 1,
  refreshSeconds: 7200,
  retrySeconds: 1800,
  expireSeconds: 86_400,
  minimumSeconds: 5
})
const pods = Array.from({ length: 3 }, (_, i) => parseName(`10-0-1-${i}.api.backend.svc.cluster.local`))
const srv = pods.map((target) => srvRdata({ priority: 0, weight: 33, port: 8080, target }))
const alias = parseName('db.example.org')

const response = (
  answer: RRset[],
  rest: Partial<Response> = {},
  more: Partial<Response['sections']> = {}
): Response => ({
  id: 1,
  opcode: 0,
  aa: true,
  rd: true,
  ra: true,
  cd: false,
  question: plain.octets.subarray(12, plain.size),
  sections: { rcode: 0, answer, authority: [], additional: [], ...more },
  edns: noEdns,
  ageSeconds: 0,
  maxTtlSeconds: 3600,
  ...rest
})

const responses: [string, Response, number][] = [
  ['one A', response([setOf(RRTYPE.A, addresses(1))]), 1232],
  ['one A, no OPT', response([setOf(RRTYPE.A, addresses(1))], { edns: null }), 512],
  ['NXDOMAIN with SOA', response([], {}, { rcode: 3, authority: [setOf(RRTYPE.SOA, [soa], apex)] }), 1232],
  ['REFUSED with EDE', response([], { edns: { ...noEdns, options: [encodeEde(20, 'no rule')] } }, { rcode: 5 }), 1232],
  ['CNAME and A', response([setOf(RRTYPE.CNAME, [nameRdata(alias)]), setOf(RRTYPE.A, addresses(1), alias)]), 1232],
  ['three A', response([setOf(RRTYPE.A, addresses(3))]), 1232],
  [
    'three SRV with addresses',
    response([setOf(RRTYPE.SRV, srv)], {}, { additional: pods.map((pod) => setOf(RRTYPE.A, addresses(1), pod)) }),
    1232
  ],
  ['100 A cut to 1232 octets', response([setOf(RRTYPE.A, addresses(100))]), 1232]
]
const out = Buffer.alloc(65_535)
for (const [what, given, limit] of responses) {
  measure(`encodeResponse, ${what}`, () => encodeResponse(out, given, limit, Math.random))
}

const answer = Array.from(addresses(3), (rdata) => ({ owner: name, type: RRTYPE.A, class: 1, ttlSeconds: 5, rdata }))
const message = { ...query, qr: true, answer, edns: noEdns }
const octets = encodeMessage(message)
measure('decodeMessage, three A', () => decodeMessage(octets).answer.length)
measure('encodeMessage, three A', () => encodeMessage(message).length)
if (sink === 0) throw new Error('nothing was measured')
