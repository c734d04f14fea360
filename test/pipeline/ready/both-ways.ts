/**
 * Asks the same question with and without ready-made answers, and as workers give them, on a clock that stands still,
 * and compares the octets.
 */
import * as dnsPacket from 'dns-packet'
import type { Clock } from '../../../src/base/clock.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { DataPlane } from '../../../src/pipeline/data-plane.ts'
import type { Parts } from '../../../src/pipeline/parts.ts'
import { ReadyReader } from '../../../src/pipeline/ready/ready-reader.ts'
import { SharedReady, sharedReadyBuffers } from '../../../src/pipeline/ready/shared-ready.ts'
import type { ClientWords } from '../../../src/server/mmsg/message-batch.ts'
import { MISS, type Client } from '../../../src/server/responder.ts'
import type { EdnsOption } from '../../../src/wire/edns.ts'
import { OPTION } from '../../../src/wire/iana.ts'
import { encodePeerdnsOption } from '../../../src/wire/peerdns-option.ts'

export type Asked = Readonly<{ octets: Uint8Array; client?: Partial<Client> }>

/** The server's clock, stopped, and moved by hand. */
class StoppedClock implements Clock {
  #movedMs = 0
  readonly #nowMs = systemClock.nowMs()
  readonly #epochMs = systemClock.epochMs()
  nowMs = (): number => this.#nowMs + this.#movedMs
  epochMs = (): number => this.#epochMs + this.#movedMs
  after: Clock['after'] = (delayMs, callback) => systemClock.after(delayMs, callback)
  /** What is counted late is counted before. */
  beforeMove: () => void = () => {}
  move(ms: number): void {
    this.beforeMove()
    this.#movedMs += ms
  }
}

export class BothWays {
  readonly clock = new StoppedClock()
  readonly fast: DataPlane
  readonly slow: DataPlane
  /** Makes ready what `worker` gives. */
  readonly shared: DataPlane
  readonly worker: ReadyReader
  /** How often it had something to give. */
  servedByWorker = 0
  /** Fetches what has to be fetched, so that the others count the same. */
  readonly #fetching: DataPlane
  readonly #out = new Uint8Array(65_535)
  readonly #other = new Uint8Array(65_535)

  constructor(parts: Parts) {
    const stopped = { ...parts, clock: this.clock }
    this.fast = new DataPlane(stopped)
    this.slow = new DataPlane(stopped, { hasReadyAnswers: false })
    const buffers = sharedReadyBuffers(1)
    this.shared = new DataPlane(stopped, { shared: new SharedReady(buffers) })
    this.clock.beforeMove = () => this.shared.ready!.count()
    this.worker = new ReadyReader(new SharedReady(buffers), 0, () => Math.random())
    this.#fetching = new DataPlane(stopped, { hasReadyAnswers: false })
  }

  use(change: Partial<Parts>): void {
    const parts = { ...this.fast.parts, ...change }
    this.fast.use(parts)
    this.slow.use(parts)
    this.shared.use(parts)
    this.#fetching.use(parts)
  }

  get served(): number {
    return this.fast.ready!.stats.served
  }

  /** Asks three times, so that the third answer is a ready-made one if any is; what differs, or null. */
  difference({ octets, client }: Asked): string | null {
    const by: Client = { address: '127.0.0.1', port: 5353, transport: 'udp', ...client }
    for (let time = 0; time < 3; time++) {
      const query = octets.slice()
      query[0] = time
      const slow = this.slow.answer(query, query.length, by, this.#other)
      const wanted = this.#other.subarray(0, Math.max(slow, 0))
      const fast = this.fast.answer(query, query.length, by, this.#out)
      const difference = differenceBetween(fast, this.#out, slow, wanted)
      if (difference !== null) return difference
      const shared = differenceBetween(this.askShared(query, by, this.#out), this.#out, slow, wanted)
      if (shared !== null) return `of a worker: ${shared}`
    }
    return null
  }

  /** As a worker does, and the main thread for it. */
  askShared(query: Uint8Array, by: Client, out: Uint8Array): number {
    this.shared.standingsChanged()
    const isQuery = query.length >= 12 && (query[2]! & 0x80) === 0
    if (by.transport === 'udp' && isQuery) {
      const words = wordsOf(by.address)
      const size = this.worker.answer(query, query.length, words, out, this.clock.nowMs())
      if (size > 0) {
        this.servedByWorker++
        return size
      }
      this.shared.ready!.meet(words, by.address)
    }
    return this.shared.answer(query, query.length, by, out)
  }

  /** Asks until both planes have an answer in memory, as clients do. */
  async differenceWhenKnown(asked: Asked): Promise<string | null> {
    const by: Client = { address: '127.0.0.1', port: 5353, transport: 'udp', ...asked.client }
    if (this.#fetching.answer(asked.octets, asked.octets.length, by, this.#out) === MISS) {
      await this.#fetching.resolve(asked.octets, by)
    }
    return this.difference(asked)
  }
}

const wordsOf = (address: string): ClientWords => {
  const octets = address.split('.').map(Number)
  return { a: 0, b: 0, c: 0xffff_0000, d: octets.reduce((word, octet) => word * 256 + octet, 0) }
}

/** What differs of two results of `answer`, or null. */
function differenceBetween(fast: number, out: Uint8Array, slow: number, wanted: Uint8Array): string | null {
  if (fast <= 0 && fast === slow) return null
  const given = out.subarray(0, fast)
  if (Buffer.compare(given, wanted) === 0) return null
  const isTruncated = (wanted[2]! & 0x02) !== 0
  // A truncated set is a random part, and its records may be longer or shorter ones.
  if (isTruncated && Buffer.compare(given.subarray(0, 6), wanted.subarray(0, 6)) === 0) return null
  if (fast !== slow) return `${fast} and ${slow} octets`
  if (Buffer.compare(given.subarray(0, 12), wanted.subarray(0, 12)) !== 0) return 'other headers'
  if (octetsInOrder(given) !== octetsInOrder(wanted) && saidBy(given) !== saidBy(wanted)) {
    return `${Buffer.from(given).toString('hex')} and not ${Buffer.from(wanted).toString('hex')}`
  }
  return null
}

/** Equal for answers that differ only in the order of equally long pieces. */
const octetsInOrder = (octets: Uint8Array): string => octets.slice().sort().join()

/** All that a message says, in an order of its own: which name a pointer leads to depends on the order of records. */
function saidBy(octets: Uint8Array): string {
  const { answers, authorities, additionals, ...head } = dnsPacket.decode(Buffer.from(octets))
  const sections = [answers, authorities, additionals].map((records) => (records ?? []).map((record) => JSON.stringify(record)).toSorted()) // prettier-ignore
  return JSON.stringify([head, sections])
}

export type Variant = Readonly<{ name: string; flags?: number; opt?: { payload: number; isDo?: boolean; options?: readonly number[] } | null; transport?: 'tcp'; isUpper?: boolean }> // prettier-ignore

const optionOf = ({ code, data }: EdnsOption): number[] => [code >> 8, code & 0xff, data.length >> 8, data.length & 0xff, ...data] // prettier-ignore
const cookie = optionOf({ code: OPTION.COOKIE, data: Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8) })
const fromPeerdns = optionOf(encodePeerdnsOption({ instances: ['0011223344ff'] }))

/** What of a query an answer may depend on. */
export const variants: readonly Variant[] = [
  { name: 'plain' },
  { name: 'RD clear', flags: 0 },
  { name: 'CD', flags: 0x0110 },
  { name: 'AD and Z', flags: 0x0160 },
  { name: 'EDNS 1232', opt: { payload: 1232 } },
  { name: 'EDNS 0', opt: { payload: 0 } },
  { name: 'EDNS 700 and DO', opt: { payload: 700, isDo: true } },
  { name: 'EDNS 65535', opt: { payload: 65_535 } },
  { name: 'TCP', transport: 'tcp' },
  { name: 'TCP and EDNS', transport: 'tcp', opt: { payload: 512 } },
  { name: 'upper case', isUpper: true },
  { name: 'upper case and EDNS', isUpper: true, opt: { payload: 1232 } },
  { name: 'a cookie', opt: { payload: 1232, options: cookie } },
  { name: 'a cookie and padding', opt: { payload: 1232, options: [...cookie, 0, 12, 0, 3, 0, 0, 0] } },
  { name: 'half an option', opt: { payload: 1232, options: cookie.slice(0, -1) } },
  { name: 'half the head of an option', opt: { payload: 1232, options: [...cookie, 0, 12, 0] } },
  { name: 'what a peerdns asks with', opt: { payload: 1232, options: [...cookie, ...fromPeerdns] } },
  { name: 'what a peerdns asks with, and DO', opt: { payload: 1232, isDo: true, options: fromPeerdns } }
]

const sized = (octets: readonly number[]): number[] => [octets.length >> 8, octets.length & 0xff, ...octets]

/** @param name in the wire form */
export function query(name: string, type: number, { flags = 0x0100, opt = null, transport, isUpper }: Variant): Asked {
  const written = isUpper === true ? name.replaceAll(/[a-z]/g, (letter) => letter.toUpperCase()) : name
  const head = Buffer.from([0, 0, flags >> 8, flags & 0xff, 0, 1, 0, 0, 0, 0, 0, opt === null ? 0 : 1])
  const tail = Buffer.from([type >> 8, type & 0xff, 0, 1])
  const edns =
    opt === null
      ? Buffer.alloc(0)
      : Buffer.from([0, 0, 41, opt.payload >> 8, opt.payload & 0xff, 0, 0, opt.isDo === true ? 0x80 : 0, 0, ...sized(opt.options ?? [])]) // prettier-ignore
  const octets = Buffer.concat([head, Buffer.from(written, 'latin1'), tail, edns])
  return { octets: Uint8Array.from(octets), client: transport === undefined ? {} : { transport } }
}
