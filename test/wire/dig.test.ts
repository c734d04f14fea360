/** dig and kdig, where they are installed, read what we write, and we read what they print. */
import { execFile } from 'node:child_process'
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { promisify } from 'node:util'
import { test } from 'tap'
import { CLASS, parseType } from '../../src/wire/iana.ts'
import { parseName } from '../../src/wire/name.ts'
import { type ParsedQuery, parseQuery } from '../../src/wire/query.ts'
import { parseRdata } from '../../src/wire/rdata-from-text.ts'
import { parseRecordLine } from '../../src/wire/record-text.ts'
import { encodeResponse } from '../../src/wire/response.ts'
import type { RRset } from '../../src/wire/rr.ts'

const run = promisify(execFile)

const qname = 'Api.backend.example.org'

/** One record of each type that has a presentation format, for one owner. */
const texts: [string, string][] = [
  ['A', '192.0.2.1'],
  ['AAAA', '2001:db8::1'],
  ['NS', 'ns.Example.org.'],
  ['CNAME', 'a\\.b\\000c\\255.example.org.'],
  ['SOA', 'ns.example.org. host\\.master.example.org. 4294967295 7200 1800 86400 5'],
  ['PTR', 'x.backend.example.org.'],
  ['MX', '10 mail.backend.example.org.'],
  ['TXT', '"a b" "" "\\"\\\\;\\000\\255"'],
  ['SRV', '0 100 8080 api.backend.example.org.'],
  ['NAPTR', '100 10 "u" "E2U+sip" "!^.*$!sip:i@x!" .'],
  ['CAA', '128 issue "ca.example.net; account=7"'],
  ['DS', '60485 5 1 2BB183AF5F22588179A53B0A98631FAD1A292118'],
  ['HTTPS', '1 . alpn="h2,h3" no-default-alpn port=8443 ipv4hint=192.0.2.1 key667="x\\001"'],
  ['SVCB', '0 svc.example.org.'],
  ['HINFO', '"RFC8482" ""'],
  ['RP', 'a.example.org. .'],
  ['TLSA', '3 1 1 00FF'],
  ['TYPE65400', '\\# 4 0A0B0C0D']
]

const answer: RRset[] = texts.map(([type, text], i) => ({
  owner: parseName(qname),
  type: parseType(type)!,
  ttlSeconds: i,
  rdata: [parseRdata(parseType(type)!, text)]
}))

type Server = { socket: Socket; port: number; queries: ParsedQuery[] }

/** Answers every question with the records above. */
async function startServer(): Promise<Server> {
  const socket = createSocket('udp4')
  const queries: ParsedQuery[] = []
  const out = Buffer.alloc(4096)
  socket.on('message', (octets, { port, address }) => {
    const query = parseQuery(octets, octets.length)
    queries.push(query)
    const { id, opcode, recursionDesired: rd, checkingDisabled: cd } = query
    const question = octets.subarray(12, query.questionEnd)
    const edns = query.edns === null ? null : { version: 0, udpPayloadOctets: 1232, dnssecOk: false, options: [] }
    const sections = { rcode: 0, answer, authority: [], additional: [] }
    const size = encodeResponse(
      out,
      { id, opcode, aa: true, rd, ra: true, cd, question, sections, edns, ageSeconds: 0, maxTtlSeconds: 3600 },
      4096,
      Math.random
    )
    socket.send(out.subarray(0, size), port, address)
  })
  socket.bind(0, '127.0.0.1')
  await once(socket, 'listening')
  return { socket, port: socket.address().port, queries }
}

const tools = [
  { tool: 'dig', once: ['+tries=1', '+time=5', '+noall', '+answer', '+comments'] },
  { tool: 'kdig', once: ['+retry=0', '+time=5', '+noall', '+answer', '+header'] }
]

async function isInstalled(tool: string): Promise<boolean> {
  try {
    await run(tool, ['-v'])
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ENOENT'
  }
}

for (const { tool, once: flags } of tools) {
  test(`${tool} reads our records, and parseRecordLine what it prints`, async (t) => {
    if (!(await isInstalled(tool))) {
      t.pass('its records', { skip: `${tool} is not installed` })
      return
    }
    const { socket, port, queries } = await startServer()
    t.teardown(() => socket.close())
    const { stdout } = await run(tool, ['@127.0.0.1', '-p', String(port), ...flags, '+ignore', qname, 'A'])
    t.match(stdout, /flags: qr aa rd ra;/i, 'the flags')
    t.match(stdout, /NOERROR/)
    t.notMatch(stdout, /malformed|warning|mismatch|trunc/i, 'nothing to complain about')
    const records = stdout
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith(';'))
      .map((line) => parseRecordLine(line, { defaultTtlSeconds: -1 }))
    t.equal(records.length, answer.length)
    for (const { owner, type, ttlSeconds, rdata } of answer) {
      const record = records.find((each) => each.type === type)
      t.same(record, { owner, type, ttlSeconds, rdata: rdata[0] }, texts[ttlSeconds]!.join(' '))
    }
    t.match(queries[0], { qname: parseName(qname), qtype: 1, qclass: CLASS.IN, tsig: null }, 'its query')
  })
}
