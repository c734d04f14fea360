/**
 * A secondary as the RFCs describe it, written apart from the code it tests: a list of records, exchanged by a whole
 * zone or changed by the sequences of an IXFR. What does not fit throws.
 */
import { decodeMessage, type Message } from '../../src/wire/message.ts'
import { nameToText, parseName, type DomainName } from '../../src/wire/name.ts'
import { RRTYPE, typeToText } from '../../src/wire/iana.ts'
import { readSoa } from '../../src/wire/rdata.ts'
import type { ResourceRecord } from '../../src/wire/rr.ts'
import { decodeMeta, privateType, type TransferMeta } from '../../src/transfer/private-records.ts'

export const recordKey = ({ owner, type, ttlSeconds, rdata }: Omit<ResourceRecord, 'class'>): string =>
  `${nameToText(owner)} ${ttlSeconds} ${typeToText(type)} ${Buffer.from(rdata).toString('hex')}`

const isSoa = ({ type }: ResourceRecord): boolean => type === RRTYPE.SOA
const serialOf = (soa: ResourceRecord): number => readSoa(soa.rdata).serial

/** Whether these records are a whole answer to a transfer: as a stream is read, this is when it ends. */
export function isComplete(records: readonly ResourceRecord[], serial: number | null): boolean {
  const first = records[0]
  if (first === undefined) return false
  if (records.length === 1) return serial !== null && serialOf(first) === serial
  const last = records.at(-1)!
  if (!isSoa(last) || serialOf(last) !== serialOf(first)) return false
  const soas = records.filter((record) => isSoa(record) && serialOf(record) === serialOf(first)).length
  // Differences have the new SOA in front, before what comes, and at the end.
  return isSoa(records[1]!) ? soas >= 3 : soas === 2
}

export type Transfer = 'current' | 'whole' | 'differences'

export class ZoneCopy {
  readonly apex: DomainName
  serial: number | null = null
  meta: TransferMeta | null = null
  records = new Set<string>()
  /** The meta record of each sequence, oldest first. */
  metas: TransferMeta[] = []

  constructor(apex: string) {
    this.apex = parseName(apex)
  }

  /** Takes an answer over; says what it was. */
  take(messages: readonly Uint8Array[]): Transfer {
    const records = messages.map((octets): Message => decodeMessage(octets)).flatMap(({ answer }) => answer)
    if (!isComplete(records, this.serial)) throw new Error('half a transfer')
    const first = records[0]!
    if (records.length === 1) return 'current'
    if (isSoa(records[1]!)) {
      this.#change(records.slice(1, -1), serialOf(first))
      return 'differences'
    }
    this.records = new Set()
    for (const record of records.slice(0, -1)) this.#add(record)
    this.serial = serialOf(first)
    return 'whole'
  }

  #change(records: readonly ResourceRecord[], newest: number): void {
    let isAdding = true
    for (const record of records) {
      if (isSoa(record)) {
        isAdding = !isAdding
        if (!isAdding && serialOf(record) !== this.serial) throw new Error('a sequence from another serial')
        if (isAdding) this.serial = serialOf(record)
        for (const key of this.records) if (key.includes(' SOA ')) this.records.delete(key)
        this.#add(record)
      } else if (isAdding) {
        this.#add(record)
      } else if (!this.records.delete(recordKey(record))) {
        throw new Error(`taken away, but not there: ${recordKey(record)}`)
      }
    }
    if (this.serial !== newest) throw new Error('the sequences end before the newest serial')
  }

  #add(record: ResourceRecord): void {
    if (record.type === privateType.meta) {
      this.meta = decodeMeta(record.rdata)
      this.metas.push(this.meta)
      return
    }
    const key = recordKey(record)
    if (this.records.has(key)) throw new Error(`added, but there already: ${key}`)
    this.records.add(key)
  }
}
