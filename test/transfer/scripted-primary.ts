/**
 * A server of one zone without sockets, on a clock moved by hand: it gives transfers as it should, unless a test tells
 * it to lie, to cut, to stall or to go on for ever.
 */
import type { Channel, ChannelHandlers } from '../../src/transfer/link.ts'
import { CLASS, OPCODE, RCODE, RRTYPE } from '../../src/wire/iana.ts'
import { decodeMessage, encodeMessage, type Message } from '../../src/wire/message.ts'
import { joinLabels, parseName, type DomainName } from '../../src/wire/name.ts'
import { encodePeerdnsOption } from '../../src/wire/peerdns-option.ts'
import { aRdata, readSoa, soaRdata } from '../../src/wire/rdata.ts'
import type { ResourceRecord } from '../../src/wire/rr.ts'
import { metaRecord } from '../../src/transfer/private-records.ts'
import type { ManualClock } from '../support/manual-clock.ts'

export const apex = parseName('shop.example.org')

export const recordAt = (label: string, address: string, ttlSeconds = 60): ResourceRecord => ({
  owner: joinLabels([label], apex),
  type: RRTYPE.A,
  class: CLASS.IN,
  ttlSeconds,
  rdata: aRdata(address)
})

export const soaOf = (serial: number, owner: DomainName = apex): ResourceRecord => ({
  owner,
  type: RRTYPE.SOA,
  class: CLASS.IN,
  ttlSeconds: 60,
  rdata: soaRdata({
    mname: joinLabels(['ns'], apex),
    rname: joinLabels(['hostmaster'], apex),
    serial,
    refreshSeconds: 3_600,
    retrySeconds: 600,
    expireSeconds: 86_400,
    minimumSeconds: 5
  })
})

export const nsOf = (): ResourceRecord => ({
  owner: apex,
  type: RRTYPE.NS,
  class: CLASS.IN,
  ttlSeconds: 60,
  rdata: joinedOctets(joinLabels(['ns'], apex))
})

const joinedOctets = (name: DomainName): Uint8Array => Uint8Array.from(name, (character) => character.charCodeAt(0))

export type Version = Readonly<{ serial: number; records: readonly ResourceRecord[] }>

export type Asked = Readonly<{ kind: 'SOA' | 'AXFR' | 'IXFR'; fromSerial: number | null; epoch: string | null }>

/** What is sent for one request: messages of records, then perhaps the end of the connection, or nothing more. */
export type Reply = Readonly<{ messages: readonly (readonly ResourceRecord[])[]; rcode?: number; thenClose?: boolean }>

export class ScriptedPrimary {
  readonly asked: Asked[] = []
  readonly versions: Version[] = []
  /** Records in one message of a transfer. */
  perMessage = 3
  /** Its history, where it is a peerdns; null: a foreign server. */
  epoch: string | null = null
  /** How far its wall clock is ahead. */
  clockSkewMs = 0
  /** Says how to answer instead; null: as it should. */
  tamper: (asked: Asked, proper: Reply) => Reply | null = () => null
  isSilent = false
  connections = 0
  answers: Message[] = []
  readonly #clock: ManualClock
  #handlers: ChannelHandlers | null = null

  constructor(clock: ManualClock) {
    this.#clock = clock
  }

  get version(): Version {
    return this.versions.at(-1)!
  }

  /** Another version of the zone. */
  set(serial: number, ...records: readonly ResourceRecord[]): void {
    this.versions.push({ serial, records: [nsOf(), ...records] })
  }

  readonly open = (_server: string, handlers: ChannelHandlers): Channel => {
    this.connections++
    this.#handlers = handlers
    let isClosed = false
    this.#clock.after(0, () => {
      if (!isClosed) handlers.onOpen()
    })
    return {
      send: (octets) => {
        const message = decodeMessage(octets)
        if (message.qr) this.answers.push(message)
        else if (!this.isSilent) this.#clock.after(1, () => (isClosed ? undefined : this.#answer(message, handlers)))
      },
      close: () => {
        isClosed = true
      }
    }
  }

  /** Octets as they come, on the newest connection. */
  sendRaw(octets: Uint8Array): void {
    this.#handlers!.onMessage(octets)
  }

  end(why = 'closed by the server'): void {
    const handlers = this.#handlers!
    this.#handlers = null
    handlers.onEnd(why)
  }

  /** A NOTIFY of the newest version. */
  notify(serial = this.version.serial): void {
    this.sendRaw(
      encodeMessage({
        ...head(4711, { name: apex, type: RRTYPE.SOA, class: CLASS.IN }),
        qr: false,
        opcode: OPCODE.NOTIFY,
        answer: [soaOf(serial)],
        edns: this.#edns()
      })
    )
  }

  #edns(): Message['edns'] {
    if (this.epoch === null) return null
    const clockMs = this.#clock.epochMs() + this.clockSkewMs
    const options = [encodePeerdnsOption({ epoch: this.epoch, clockMs, ageMs: 0 })]
    return { version: 0, udpPayloadOctets: 1232, dnssecOk: false, options }
  }

  #answer(message: Message, handlers: ChannelHandlers): void {
    const question = message.questions[0]!
    const kind = question.type === RRTYPE.SOA ? 'SOA' : question.type === RRTYPE.AXFR ? 'AXFR' : 'IXFR'
    const soa = message.authority[0]
    const asked: Asked = { kind, fromSerial: soa === undefined ? null : readSoa(soa.rdata).serial, epoch: null }
    this.asked.push(asked)
    const proper: Reply = question.name === apex ? this.#proper(asked) : { messages: [[]], rcode: RCODE.REFUSED }
    const reply = this.tamper(asked, proper) ?? proper
    for (const answer of reply.messages) {
      if (this.#handlers !== handlers) return
      handlers.onMessage(
        encodeMessage({
          ...head(message.id, question),
          rcode: reply.rcode ?? RCODE.NOERROR,
          answer,
          edns: this.#edns()
        })
      )
    }
    if (reply.thenClose === true && this.#handlers === handlers) this.end()
  }

  #proper({ kind, fromSerial }: Asked): Reply {
    const { serial } = this.version
    if (kind === 'SOA') return { messages: [[soaOf(serial)]] }
    if (kind === 'IXFR' && fromSerial === serial) return { messages: [[soaOf(serial)]] }
    const from = kind === 'IXFR' ? this.versions.findIndex((version) => version.serial === fromSerial) : -1
    const records = from < 0 ? this.#whole() : this.#deltas(from)
    const messages: ResourceRecord[][] = []
    for (let at = 0; at < records.length; at += this.perMessage) messages.push(records.slice(at, at + this.perMessage))
    return { messages }
  }

  #whole(): ResourceRecord[] {
    const { serial, records } = this.version
    return [soaOf(serial), ...this.#meta(), ...records, soaOf(serial)]
  }

  #deltas(from: number): ResourceRecord[] {
    const records = [soaOf(this.version.serial)]
    for (let at = from; at < this.versions.length - 1; at++) {
      const [old, next] = [this.versions[at]!, this.versions[at + 1]!]
      records.push(soaOf(old.serial), ...without(old.records, next.records))
      records.push(soaOf(next.serial), ...this.#meta(), ...without(next.records, old.records))
    }
    return [...records, soaOf(this.version.serial)]
  }

  #meta(): ResourceRecord[] {
    if (this.epoch === null) return []
    const nowMs = this.#clock.epochMs() + this.clockSkewMs
    const times = { originAtMs: nowMs - 20, learnedAtMs: nowMs - 10, sentAtMs: nowMs }
    return [metaRecord(apex, { epoch: this.epoch, ...times, pods: { mode: 'disabled', ttlSeconds: 0 } })]
  }
}

export const keyOf = ({ owner, type, ttlSeconds, rdata }: ResourceRecord): string =>
  `${owner} ${type} ${ttlSeconds} ${rdata.join('.')}`

function without(records: readonly ResourceRecord[], others: readonly ResourceRecord[]): ResourceRecord[] {
  const keys = new Set(others.map(keyOf))
  return records.filter((record) => !keys.has(keyOf(record)))
}

const head = (id: number, question: Message['questions'][number]): Message => ({
  id,
  qr: true,
  opcode: OPCODE.QUERY,
  aa: true,
  tc: false,
  rd: false,
  ra: false,
  ad: false,
  cd: false,
  rcode: RCODE.NOERROR,
  questions: [question],
  answer: [],
  authority: [],
  additional: [],
  edns: null
})
