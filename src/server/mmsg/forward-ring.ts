/**
 * Queries that a worker hands to the thread that can answer everything: octets with who sent them, in shared memory
 * with one writer and one reader.
 *
 * Each lies in one piece; what does not fit behind the last one begins anew at the front. Where there is no room, the
 * query is lost, as it is in a socket's receive buffer that is full.
 */
import type { MessageBatch } from './message-batch.ts'

/** Words before the records; those that different threads write lie in cache lines of their own. */
const head = { written: 0, read: 16, isAwake: 32, octets: 192 } as const
/** Words of a record before its octets; `octets` of -1: the next record is at the front. */
const record = { octets: 0, socket: 1, name: 2, control: 3, query: 4, atMs: 5, words: 6 } as const
const atFront = -1

export const forwardRingOctets = (octets: number): number => head.octets + octets

export class ForwardRing {
  readonly #head: Int32Array
  readonly #words: Int32Array
  readonly #octets: Uint8Array

  /** @param buffer of `forwardRingOctets` of a multiple of 8 */
  constructor(buffer: SharedArrayBuffer) {
    this.#head = new Int32Array(buffer, 0, head.octets / 4)
    this.#words = new Int32Array(buffer, head.octets)
    this.#octets = new Uint8Array(buffer, head.octets)
  }

  get isEmpty(): boolean {
    return Atomics.load(this.#head, head.read) === Atomics.load(this.#head, head.written)
  }

  /** For the reader: the socket that the next query came to; -1: there is none. */
  get nextSocket(): number {
    const at = this.#next()
    return at < 0 ? -1 : this.#words[(at >> 2) + record.socket]!
  }

  /**
   * For the worker: hands over a message of its batch that came to a socket; false where there is no room.
   * @param nowMs a time that both threads agree on
   */
  push(socket: number, batch: MessageBatch, slot: number, nowMs: number): boolean {
    const name = batch.nameOf(slot)
    const control = batch.controlOf(slot)
    const querySize = batch.querySize(slot)
    const need = roundUp(record.words * 4 + name.length + control.length + querySize)
    const at = this.#place(need)
    if (at < 0) return false
    const words = this.#words
    const first = at >> 2
    words[first + record.octets] = need
    words[first + record.socket] = socket
    words[first + record.name] = name.length
    words[first + record.control] = control.length
    words[first + record.query] = querySize
    words[first + record.atMs] = nowMs | 0
    let to = at + record.words * 4
    this.#octets.set(name, to)
    this.#octets.set(control, (to += name.length))
    this.#octets.set(batch.queries[slot]!.subarray(0, querySize), to + control.length)
    Atomics.store(this.#head, head.written, at + need === this.#octets.length ? 0 : at + need)
    return true
  }

  /** For the worker: whether the reader sleeps and has to be woken. It is awake from then on. */
  mustWake(): boolean {
    return Atomics.exchange(this.#head, head.isAwake, 1) === 0
  }

  /** For the reader: says that it sleeps; false where something has come meanwhile, and it stays awake. */
  sleep(): boolean {
    Atomics.store(this.#head, head.isAwake, 0)
    return this.isEmpty || Atomics.exchange(this.#head, head.isAwake, 1) !== 0
  }

  /**
   * For the reader: puts messages that came to `nextSocket` into a batch, as if it had received them. Those that were
   * handed over before `sinceMs` are left out; null: none is.
   * @returns how many were left out
   */
  take(batch: MessageBatch, sinceMs: number | null = null): number {
    batch.prepareReceive()
    const socket = this.nextSocket
    let leftOut = 0
    while (batch.received < batch.slots) {
      const at = this.#next()
      const words = this.#words
      const first = at >> 2
      if (at < 0 || words[first + record.socket] !== socket) break
      // By their difference: the numbers begin anew after some weeks.
      if (sinceMs !== null && ((sinceMs - words[first + record.atMs]!) | 0) > 0) leftOut += 1
      else this.#addTo(batch, at)
      const end = at + words[first + record.octets]!
      Atomics.store(this.#head, head.read, end === this.#octets.length ? 0 : end)
    }
    return leftOut
  }

  #addTo(batch: MessageBatch, at: number): void {
    const words = this.#words
    const octets = this.#octets
    const first = at >> 2
    const start = at + record.words * 4
    const control = start + words[first + record.name]!
    const query = control + words[first + record.control]!
    batch.addReceived(
      octets.subarray(start, control),
      octets.subarray(control, query),
      octets.subarray(query, query + words[first + record.query]!)
    )
  }

  /** Where a record of so many octets fits; -1: nowhere. One place stays free, so that full is not empty. */
  #place(need: number): number {
    const written = this.#head[head.written]!
    const read = Atomics.load(this.#head, head.read)
    const end = this.#octets.length
    if (written < read) return written + need < read ? written : -1
    if (written + need < end || (written + need === end && read > 0)) return written
    if (need >= read) return -1
    this.#words[written >> 2] = atFront
    return 0
  }

  /** Where the next record is; -1: there is none. */
  #next(): number {
    const read = this.#head[head.read]!
    if (read === Atomics.load(this.#head, head.written)) return -1
    return this.#words[read >> 2] === atFront ? 0 : read
  }
}

const roundUp = (octets: number): number => Math.ceil(octets / 8) * 8
