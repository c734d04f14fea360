/** A DNS message for people, in the manner of dig, and as JSON. */
import type { RecordJson, TraceJson } from '../admin/api-types.ts'
import { decodeEde } from '../wire/edns.ts'
import { classToText, rcodeToText, typeToText } from '../wire/iana.ts'
import type { Message } from '../wire/message.ts'
import { nameToText } from '../wire/name.ts'
import { rdataToText } from '../wire/record-text.ts'
import type { ResourceRecord } from '../wire/rr.ts'
import { sourceText } from './source-text.ts'
import { elapsed, printable, table } from './table.ts'

type ClassedRecord = RecordJson & Readonly<{ class: string }>

export type QueryJson = Readonly<{
  /** `host:port`. */
  server: string
  transport: string
  wasTruncated: boolean
  tookMs: number
  sizeOctets: number
  id: number
  rcode: string
  flags: readonly string[]
  question: Readonly<{ name: string; class: string; type: string }> | null
  answer: readonly ClassedRecord[]
  authority: readonly ClassedRecord[]
  additional: readonly ClassedRecord[]
  edns: Readonly<{ version: number; udpPayloadOctets: number; dnssecOk: boolean }> | null
  extendedErrors: readonly Readonly<{ code: number; text: string }>[]
  /** What the server tells of where it has the answer from; null: not told. */
  source: (TraceJson['source'] & Readonly<{ policy: string | null }>) | null
}>

type Exchange = Readonly<{
  server: string
  transport: string
  wasTruncated: boolean
  tookMs: number
  octets: Uint8Array
}>

const flagNames = ['qr', 'aa', 'tc', 'rd', 'ra', 'ad', 'cd'] as const

export function messageJson(message: Message, exchange: Exchange, trace: TraceJson | null): QueryJson {
  const { edns } = message
  const question = message.questions[0]
  return {
    server: exchange.server,
    transport: exchange.transport,
    wasTruncated: exchange.wasTruncated,
    tookMs: exchange.tookMs,
    sizeOctets: exchange.octets.length,
    id: message.id,
    rcode: rcodeToText(message.rcode),
    flags: flagNames.filter((flag) => message[flag]),
    question:
      question === undefined
        ? null
        : { name: nameToText(question.name), class: classToText(question.class), type: typeToText(question.type) },
    answer: message.answer.map(recordJson),
    authority: message.authority.map(recordJson),
    additional: message.additional.map(recordJson),
    edns:
      edns === null
        ? null
        : { version: edns.version, udpPayloadOctets: edns.udpPayloadOctets, dnssecOk: edns.dnssecOk },
    extendedErrors: (edns?.options ?? []).map(decodeEde).filter((ede) => ede !== null),
    source: trace === null ? null : { ...trace.source, policy: trace.policy }
  }
}

const recordJson = ({ owner, type, class: rrclass, ttlSeconds, rdata }: ResourceRecord): ClassedRecord => ({
  name: nameToText(owner),
  ttlSeconds,
  class: classToText(rrclass),
  type: typeToText(type),
  data: rdataToText(type, rdata)
})

export function messageText(shown: QueryJson): string {
  const { question, edns, source } = shown
  const lines = [
    `;; status: ${shown.rcode}, id: ${shown.id}, flags: ${shown.flags.join(' ')}`,
    ...(edns === null
      ? []
      : [`;; EDNS: version ${edns.version}, flags:${edns.dnssecOk ? ' do' : ''}, udp ${edns.udpPayloadOctets}`]),
    ...shown.extendedErrors.map(
      ({ code, text }) => `;; EDE: ${code}${edeName(code)}${text === '' ? '' : `: ${printable(text)}`}`
    ),
    ...(question === null ? [] : [`;; question: ${question.name} ${question.class} ${question.type}`])
  ]
  const sections = (['answer', 'authority', 'additional'] as const).map((section) =>
    sectionText(section, shown[section])
  )
  const policy = source === null || source.policy === null ? '' : `, policy ${source.policy}`
  const footer = [
    `;; source: ${source === null ? 'not told' : sourceText(source)}${policy}`,
    `;; server: ${shown.server} over ${shown.transport.toUpperCase()}${shown.wasTruncated ? ' (truncated over UDP)' : ''}`,
    `;; time: ${elapsed(shown.tookMs)}, size: ${shown.sizeOctets} octets`
  ]
  return [`${lines.join('\n')}\n`, ...sections.filter((text) => text !== ''), `${footer.join('\n')}\n`].join('\n')
}

function sectionText(title: string, records: readonly ClassedRecord[]): string {
  if (records.length === 0) return ''
  const rows = records.map((record) => [record.name, String(record.ttlSeconds), record.class, record.type, record.data])
  const [first, ...rest] = rows
  return `;; ${title}:\n${table(first!, rest)}`
}

/** Purposes of the extended errors that a peerdns sends. RFC 8914 §4. */
const edeNames: Readonly<Record<number, string>> = {
  0: 'Other',
  3: 'Stale Answer',
  13: 'Cached Error',
  14: 'Not Ready',
  15: 'Blocked',
  18: 'Prohibited',
  19: 'Stale NXDOMAIN Answer',
  20: 'Not Authoritative',
  22: 'No Reachable Authority',
  23: 'Network Error',
  24: 'Invalid Data'
}

const edeName = (code: number): string => (edeNames[code] === undefined ? '' : ` (${edeNames[code]})`)
