/**
 * Transfers as octets, made once for all who ask for the same: hundreds of nodes take each change of their hub within a
 * moment. What differs from one to the next (id, OPT, the sender's clock, TSIG) is put in as each is sent.
 */
import { encodedTransfers, encodedTransfersOctets } from '../base/transfer-limits.ts'
import { ednsOctets, writeEdns, type Edns } from '../wire/edns.ts'
import { ARCOUNT_AT } from '../wire/header.ts'
import { RCODE } from '../wire/iana.ts'
import { latin1Of, writeU16, writeU48 } from '../wire/octets.ts'
import { MessagePacker, type Signer } from './message-packer.ts'
import type { Turns } from './part-snapshot.ts'
import { ZoneSender, type MetaSource } from './send-zone.ts'
import type { ZonePart } from './zone-part.ts'

export type EncodedTransfer = Readonly<{
  /** Without id, OPT and TSIG. */
  messages: readonly Uint8Array[]
  /** Where the sender's clock stands in them, 48 bits each. */
  clocks: readonly Readonly<{ message: number; at: number }>[]
  records: number
  octets: number
}>

/** What is asked, as far as answers to it differ. */
export type EncodedKey = Readonly<{
  part: ZonePart
  /** The serial of the asker's copy; null: the whole zone. */
  fromSerial: number | null
  toSerial: number
  toPeerdns: boolean
  question: Uint8Array
}>

/** Room for what is put in later: OPT with our option, TSIG with the longest names. */
const reservedOctets = 2_048

/** Makes the octets of one transfer. @param write gives the records. */
export async function encodeTransfer(
  { part, question }: Pick<EncodedKey, 'part' | 'question'>,
  meta: MetaSource | null,
  turns: Turns | null,
  write: (sender: ZoneSender) => Promise<boolean>
): Promise<EncodedTransfer> {
  const messages: Uint8Array[] = []
  const send = async (message: Uint8Array): Promise<boolean> => {
    messages.push(message)
    await turns?.pause()
    return true
  }
  const packer = new MessagePacker({ id: 0, question, edns: null, signer: null, reservedOctets, send })
  const sender = new ZoneSender(packer, part, meta)
  await write(sender)
  const octets = messages.reduce((sum, { length }) => sum + length, 0)
  return { messages, clocks: sender.clocks, records: sender.recordsSent, octets }
}

export type Recipient = Readonly<{
  id: number
  /** Only in the first message. */
  edns: Edns | null
  signer: Signer | null
  clockMs: () => number
  send(message: Uint8Array): Promise<boolean>
}>

/** Sends it to one of those who asked; false: nobody listens any more. */
export async function sendEncoded({ messages, clocks }: EncodedTransfer, to: Recipient): Promise<boolean> {
  const { id, edns, signer, clockMs, send } = to
  const roomOctets = (edns === null ? 0 : ednsOctets(edns)) + (signer?.roomOctets ?? 0)
  for (const [number, message] of messages.entries()) {
    const out = new Uint8Array(message.length + roomOctets)
    out.set(message)
    writeU16(out, 0, id)
    for (const clock of clocks) if (clock.message === number) writeU48(out, clock.at, clockMs())
    let size = message.length
    if (number === 0 && edns !== null) {
      size = writeEdns(out, size, edns, RCODE.NOERROR)
      writeU16(out, ARCOUNT_AT, 1)
    }
    if (signer !== null) size = signer.sign(out, size)
    if (!(await send(out.subarray(0, size)))) return false
  }
  return true
}

/** The transfers made last, and those being made. */
export class EncodedTransfers {
  /** By what was asked; the one used last is the last one. */
  readonly #kept = new Map<string, Promise<EncodedTransfer> | null>()
  readonly #octets = new Map<string, number>()
  #total = 0

  /** undefined: it was not made; null: it is known to be of no use. */
  get(key: EncodedKey): Promise<EncodedTransfer> | null | undefined {
    const text = textOf(key)
    const kept = this.#kept.get(text)
    if (kept === undefined) return undefined
    this.#kept.delete(text)
    this.#kept.set(text, kept)
    return kept
  }

  /** Keeps it for the next ones; one that fails is forgotten. */
  put(key: EncodedKey, made: Promise<EncodedTransfer> | null): void {
    const text = textOf(key)
    this.#drop(text)
    this.#kept.set(text, made)
    this.#shrink()
    made?.then(
      ({ octets }) => {
        if (this.#kept.get(text) !== made) return
        this.#octets.set(text, octets)
        this.#total += octets
        this.#shrink()
      },
      () => this.#kept.get(text) === made && this.#drop(text)
    )
  }

  clear(): void {
    this.#kept.clear()
    this.#octets.clear()
    this.#total = 0
  }

  #shrink(): void {
    for (const text of this.#kept.keys()) {
      if (this.#kept.size <= encodedTransfers && this.#total <= encodedTransfersOctets) return
      this.#drop(text)
    }
  }

  #drop(text: string): void {
    this.#kept.delete(text)
    this.#total -= this.#octets.get(text) ?? 0
    this.#octets.delete(text)
  }
}

const textOf = ({ part, fromSerial, toSerial, toPeerdns, question }: EncodedKey): string =>
  `${part.epoch} ${fromSerial ?? 'all'} ${toSerial} ${toPeerdns ? 'p' : ''} ${part.topic} ${latin1Of(question, 0, question.length)}`
