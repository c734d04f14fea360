/**
 * A node's resolver as its hub sees it: one connection, zones followed by NOTIFY and IXFR, and nothing kept of what
 * comes but its serial.
 */
import type { Clock } from '../../src/base/clock.ts'
import { openMessageStream } from '../../src/peer/message-stream.ts'
import { Link } from '../../src/transfer/link.ts'
import { peerdnsOf } from '../../src/transfer/transfer-query.ts'
import { SecondaryZone } from '../../src/transfer/secondary-zone.ts'
import { versionOf, type TransferTaker, type Version } from '../../src/transfer/secondary-types.ts'
import { TransferReader } from '../../src/transfer/transfer-reader.ts'
import { OPCODE, RRTYPE } from '../../src/wire/iana.ts'
import { encodeMessage, type Message } from '../../src/wire/message.ts'
import type { DomainName } from '../../src/wire/name.ts'
import { readSoa } from '../../src/wire/rdata.ts'

class LightZone extends SecondaryZone {
  #held: Version | null = null
  readonly #onVersion: (serial: number) => void

  constructor(options: ConstructorParameters<typeof SecondaryZone>[0], onVersion: (serial: number) => void) {
    super(options, true)
    this.#onVersion = onVersion
  }

  get store(): null {
    return null
  }

  isExpired(): boolean {
    return false
  }

  protected get held(): Version | null {
    return this.#held
  }

  protected tookVersion({ serial, epoch }: Version): boolean {
    if (this.#held?.serial === serial && this.#held.epoch === epoch) return true
    this.#transfer(this.#held?.epoch === epoch ? this.#held : null)
    return false
  }

  protected takeLater(): void {
    this.#transfer(this.#held)
  }

  #transfer(from: Version | null): void {
    let epoch: string | null = null
    const reader = new TransferReader({
      apex: this.apex,
      fromSerial: from?.serial ?? null,
      onZone: () => {},
      onRecords: () => {}
    })
    const taker = (sentAtMs: number): TransferTaker<Version> => ({
      stats: reader.stats,
      take: (message, sizeOctets) => {
        if (reader.stats.messages === 0) epoch = this.primary.take(message, sentAtMs)
        const result = reader.take(message, sizeOctets)
        return result === null ? null : versionOf(result.soa, epoch ?? this.connectionEpoch)
      }
    })
    this.take(from, taker, {
      onTaken: (version, sentAtMs) => {
        this.#held = version
        this.confirm(sentAtMs)
        this.#onVersion(version.serial)
      },
      onFail: (fault) => this.failed(fault)
    })
  }
}

export type LightNodeOptions = Readonly<{
  server: string
  apexes: readonly DomainName[]
  clock: Clock
  instanceId: string
  /** A zone has this serial here now. */
  onVersion: (apex: DomainName, serial: number) => void
  onFault: (why: string) => void
}>

export class LightNode {
  readonly #link: Link
  readonly #zones: ReadonlyMap<DomainName, LightZone>

  constructor({ server, apexes, clock, instanceId, onVersion, onFault }: LightNodeOptions) {
    const random = Math.random
    this.#link = new Link({
      servers: () => [server],
      open: openMessageStream,
      clock,
      random,
      signer: null,
      onUp: (to, number) => {
        for (const zone of this.#zones.values()) zone.linkUp(to, number)
      },
      onDown: (_, why) => {
        onFault(why)
        for (const zone of this.#zones.values()) zone.linkDown()
      },
      onNotify: (message) => this.#notified(message)
    })
    const around = { link: this.#link, clock, random, instanceId, leaseMs: 5_000 }
    this.#zones = new Map(
      apexes.map((apex) => [
        apex,
        new LightZone(
          {
            ...around,
            apex,
            onRefused: (_, why) => onFault(why),
            onFault: (_, fault) => onFault(fault.message)
          },
          (serial) => onVersion(apex, serial)
        )
      ])
    )
  }

  start(): void {
    this.#link.start()
  }

  stop(): void {
    for (const zone of this.#zones.values()) zone.stop()
    this.#link.stop()
  }

  #notified(message: Message): Uint8Array | null {
    const question = message.questions[0]
    if (question === undefined) return null
    const soa = message.answer.find(({ type }) => type === RRTYPE.SOA)
    const serial = soa === undefined ? null : readSoa(soa.rdata).serial
    this.#zones.get(question.name)?.notified(serial, peerdnsOf(message)?.epoch ?? null)
    return encodeMessage({
      ...message,
      qr: true,
      opcode: OPCODE.NOTIFY,
      questions: [question],
      answer: [],
      authority: [],
      additional: [],
      edns: message.edns === null ? null : { ...message.edns, options: [] }
    })
  }
}
