/**
 * Reads the messages that answer AXFR or IXFR: what kind of answer it is, where it ends, and whether it holds together.
 * RFC 5936 §2.2, RFC 1995 §4.
 *
 * Whole zones are handed on as they come, so nothing is held here but the deltas of an incremental transfer, which are
 * bounded. Nobody but the sender vouches for what is handed on: it may still turn out to be cut off.
 */
import { getHeapStatistics } from 'node:v8'
import { incomingDeltaRecords, incomingDeltas, incomingTransferLimits } from '../base/transfer-limits.ts'
import { CLASS, OPCODE, RCODE, rcodeToText, RRTYPE } from '../wire/iana.ts'
import type { Message } from '../wire/message.ts'
import { isAtOrBelow, nameToText, type DomainName } from '../wire/name.ts'
import { readSoa } from '../wire/rdata.ts'
import type { ResourceRecord } from '../wire/rr.ts'
import { isLaterSerial } from '../zone/serial.ts'

const ofThisProcess = incomingTransferLimits(getHeapStatistics().heap_size_limit)

/**
 * Why a transfer is of no use.
 *
 * `rcode`: the server refuses it, or fails. `malformed`: it is no transfer of this zone. `delta`: the deltas do not
 * fit our version. `limit`: it is too large or too slow. `network`: the connection ended. `signature`: its TSIG is
 * wrong.
 */
export type TransferFaultKind = 'rcode' | 'malformed' | 'delta' | 'limit' | 'network' | 'signature'

/** What a server sent that is no usable transfer. */
export class TransferFault extends Error {
  readonly kind: TransferFaultKind
  /** The RCODE, where `kind` is `rcode`. */
  readonly rcode: number | null
  constructor(kind: TransferFaultKind, detail: string, rcode: number | null = null) {
    super(detail)
    this.name = 'TransferFault'
    this.kind = kind
    this.rcode = rcode
  }
}

/** One step of an incremental transfer, between two serials. The SOA records are not among the others. */
export type Delta = Readonly<{
  from: ResourceRecord
  to: ResourceRecord
  fromSerial: number
  toSerial: number
  deleted: readonly ResourceRecord[]
  added: readonly ResourceRecord[]
}>

export type TransferResult =
  /** One SOA alone: there is nothing newer than what was asked with. */
  | Readonly<{ kind: 'current'; soa: ResourceRecord; serial: number }>
  /** All of `onRecords` together, and this SOA, is the zone. */
  | Readonly<{ kind: 'zone'; soa: ResourceRecord; serial: number }>
  | Readonly<{ kind: 'deltas'; soa: ResourceRecord; serial: number; deltas: readonly Delta[] }>

export type TransferReaderOptions = Readonly<{
  apex: DomainName
  /** The serial that IXFR was asked with; null: AXFR was asked. */
  fromSerial: number | null
  /** A whole zone begins; called at most once, before `onRecords`. */
  onZone: (soa: ResourceRecord) => void
  /** Records of the whole zone, without its SOA, all of class IN and at or below the apex. */
  onRecords: (records: readonly ResourceRecord[]) => void
  limits?: Readonly<{ records?: number; octets?: number; deltaRecords?: number }>
}>

/** Types that are no data: they have no place in a zone. RFC 6895 §3.1 keeps 128 to 255 for them. */
const isMetaType = (type: number): boolean => type === RRTYPE.OPT || (type >= 128 && type <= 255)

type OpenDelta = {
  from: ResourceRecord
  to: ResourceRecord | null
  deleted: ResourceRecord[]
  added: ResourceRecord[]
}

export class TransferReader {
  readonly stats = { messages: 0, records: 0, octets: 0, outOfZone: 0 }
  readonly #options: TransferReaderOptions
  readonly #maxRecords: number
  readonly #maxOctets: number
  readonly #maxDeltaRecords: number
  #state: 'first' | 'second' | 'zone' | 'deltas' | 'done' = 'first'
  #soa: ResourceRecord | null = null
  #serial = 0
  #batch: ResourceRecord[] = []
  readonly #deltas: Delta[] = []
  #open: OpenDelta | null = null

  constructor(options: TransferReaderOptions) {
    this.#options = options
    this.#maxRecords = options.limits?.records ?? ofThisProcess.records
    this.#maxOctets = options.limits?.octets ?? ofThisProcess.octets
    this.#maxDeltaRecords = options.limits?.deltaRecords ?? incomingDeltaRecords
  }

  /**
   * Takes the next message; null: more have to come.
   * @throws TransferFault after which the reader is of no more use.
   */
  take(message: Message, sizeOctets: number): TransferResult | null {
    if (this.#state === 'done') throw new TransferFault('malformed', 'messages behind the end of the transfer')
    this.#checkHeader(message)
    this.stats.messages++
    this.stats.octets += sizeOctets
    this.stats.records += message.answer.length
    if (this.stats.octets > this.#maxOctets) throw new TransferFault('limit', `more than ${this.#maxOctets} octets`)
    if (this.stats.records > this.#maxRecords) throw new TransferFault('limit', `more than ${this.#maxRecords} records`)
    for (const record of message.answer) this.#takeRecord(record)
    this.#flush()
    if (this.#state === 'second' && this.#isCurrent(message)) this.#state = 'done'
    // The cast undoes what the compiler concluded from the first line: takeRecord has moved on since.
    return (this.#state as string) === 'done' ? this.#result() : null
  }

  #checkHeader(message: Message): void {
    const { apex, fromSerial } = this.#options
    if (!message.qr || message.opcode !== OPCODE.QUERY) throw new TransferFault('malformed', 'no response to a query')
    if (message.rcode !== RCODE.NOERROR) throw new TransferFault('rcode', rcodeToText(message.rcode), message.rcode)
    if (message.tc) throw new TransferFault('malformed', 'truncated')
    const question = message.questions[0]
    if (question === undefined) {
      // RFC 5936 §2.2.1 lets it out of every message but the first; some leave it out of all.
    } else if (
      message.questions.length > 1 ||
      question.name !== apex ||
      question.type !== (fromSerial === null ? RRTYPE.AXFR : RRTYPE.IXFR)
    ) {
      throw new TransferFault('malformed', `an answer to another question (${nameToText(question.name)})`)
    }
    if (message.answer.length === 0) throw new TransferFault('malformed', 'a message without records')
  }

  /** A lone SOA is the whole answer unless it is newer than ours: then it is the first record of more. */
  #isCurrent(message: Message): boolean {
    const { fromSerial } = this.#options
    if (fromSerial === null || this.stats.records > 1 || message.answer.length > 1) return false
    return !isLaterSerial(this.#serial, fromSerial)
  }

  #takeRecord(record: ResourceRecord): void {
    if (record.class !== CLASS.IN) throw new TransferFault('malformed', `a record of class ${record.class}`)
    if (isMetaType(record.type)) throw new TransferFault('malformed', `a record of type ${record.type}`)
    const isSoa = record.type === RRTYPE.SOA
    if (isSoa && record.owner !== this.#options.apex) {
      throw new TransferFault('malformed', `the SOA of ${nameToText(record.owner)}`)
    }
    switch (this.#state) {
      case 'first':
        if (!isSoa) throw new TransferFault('malformed', 'no SOA at the beginning')
        this.#soa = record
        this.#serial = readSoa(record.rdata).serial
        this.#state = 'second'
        return
      case 'second':
        this.#takeSecond(record, isSoa)
        return
      case 'zone':
        if (isSoa) this.#endZone(record)
        else this.#keep(record, this.#batch)
        return
      case 'deltas':
        this.#takeOfDelta(record, isSoa)
        return
      default:
        throw new TransferFault('malformed', 'records behind the last SOA')
    }
  }

  #takeSecond(record: ResourceRecord, isSoa: boolean): void {
    const { fromSerial } = this.#options
    if (isSoa && fromSerial !== null) {
      const serial = readSoa(record.rdata).serial
      if (serial === fromSerial && serial !== this.#serial) {
        this.#state = 'deltas'
        this.#open = { from: record, to: null, deleted: [], added: [] }
        return
      }
      if (serial !== this.#serial) {
        throw new TransferFault('delta', `deltas from serial ${serial}, while ${fromSerial} was asked for`)
      }
    }
    this.#state = 'zone'
    this.#options.onZone(this.#soa!)
    if (isSoa) this.#endZone(record)
    else this.#keep(record, this.#batch)
  }

  #endZone(record: ResourceRecord): void {
    const { serial } = readSoa(record.rdata)
    if (serial !== this.#serial) {
      throw new TransferFault('malformed', `it begins with serial ${this.#serial} and ends with ${serial}`)
    }
    this.#state = 'done'
  }

  #takeOfDelta(record: ResourceRecord, isSoa: boolean): void {
    const open = this.#open!
    if (!isSoa) {
      this.#keep(record, open.to === null ? open.deleted : open.added)
      if (this.stats.records > this.#maxDeltaRecords) {
        throw new TransferFault('limit', `deltas of more than ${this.#maxDeltaRecords} records`)
      }
      return
    }
    const { serial } = readSoa(record.rdata)
    const fromSerial = readSoa(open.from.rdata).serial
    if (open.to === null) {
      if (!isLaterSerial(serial, fromSerial)) {
        throw new TransferFault('delta', `a delta from serial ${fromSerial} back to ${serial}`)
      }
      open.to = record
      return
    }
    const toSerial = readSoa(open.to.rdata).serial
    const { from, to, deleted, added } = open
    this.#deltas.push({ from, to, fromSerial, toSerial, deleted, added })
    if (this.#deltas.length > incomingDeltas) throw new TransferFault('limit', `more than ${incomingDeltas} deltas`)
    if (serial !== toSerial) {
      throw new TransferFault('delta', `a delta to serial ${toSerial} is followed by one from ${serial}`)
    }
    if (toSerial === this.#serial) {
      this.#state = 'done'
      return
    }
    this.#open = { from: record, to: null, deleted: [], added: [] }
  }

  /** What lies outside of the zone is glue of somebody else, and dropped. */
  #keep(record: ResourceRecord, list: ResourceRecord[]): void {
    if (isAtOrBelow(record.owner, this.#options.apex)) list.push(record)
    else this.stats.outOfZone++
  }

  #flush(): void {
    if (this.#batch.length === 0) return
    const batch = this.#batch
    this.#batch = []
    this.#options.onRecords(batch)
  }

  #result(): TransferResult {
    const soa = this.#soa!
    const serial = this.#serial
    if (this.#deltas.length > 0) return { kind: 'deltas', soa, serial, deltas: this.#deltas }
    if (this.stats.records === 1) return { kind: 'current', soa, serial }
    return { kind: 'zone', soa, serial }
  }
}
