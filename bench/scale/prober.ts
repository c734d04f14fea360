/** Many questions at once from one socket, answered by yes or no: does the answer hold this address? */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { CLASS, OPCODE, RRTYPE } from '../../src/wire/iana.ts'
import { encodeMessage } from '../../src/wire/message.ts'
import type { DomainName } from '../../src/wire/name.ts'

/** A datagram that has no answer by now is asked again. */
const timeoutMs = 250

type Waiting = { octets: Uint8Array | null; resolve: (isRight: boolean) => void }

export class Prober {
  readonly #socket: Socket
  readonly #waiting = new Map<number, Waiting>()
  #id = 0

  private constructor(socket: Socket) {
    this.#socket = socket
    socket.on('message', (answer) => this.#take(answer))
    // Nobody listens yet, which is known at once: waiting for the time-out would make a start look longer by that.
    socket.on('error', () => {
      for (const id of this.#waiting.keys()) this.#end(id, false)
    })
  }

  static async to(port: number): Promise<Prober> {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 })
    socket.connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new Prober(socket)
  }

  /** Whether the answer holds these octets; of null: whether there is any answer at all. */
  async ask(query: Buffer, octets: Uint8Array | null): Promise<boolean> {
    this.#id = (this.#id + 1) & 0xffff
    const id = this.#id
    query.writeUInt16BE(id, 0)
    const { promise, resolve } = Promise.withResolvers<boolean>()
    this.#waiting.set(id, { octets, resolve })
    const timer = setTimeout(() => this.#end(id, false), timeoutMs)
    this.#socket.send(query)
    const isRight = await promise
    clearTimeout(timer)
    return isRight
  }

  close(): void {
    this.#socket.close()
  }

  #take(answer: Buffer): void {
    const id = answer.readUInt16BE(0)
    const waiting = this.#waiting.get(id)
    if (waiting !== undefined) this.#end(id, waiting.octets === null || answer.includes(waiting.octets))
  }

  #end(id: number, isRight: boolean): void {
    this.#waiting.get(id)?.resolve(isRight)
    this.#waiting.delete(id)
  }
}

export function addressQuery(name: DomainName): Buffer {
  const flags = { qr: false, aa: false, tc: false, rd: true, ra: false, ad: false, cd: false }
  const questions = [{ name, type: RRTYPE.A, class: CLASS.IN }]
  const rest = { answer: [], authority: [], additional: [], edns: null }
  return Buffer.from(encodeMessage({ id: 0, opcode: OPCODE.QUERY, rcode: 0, ...flags, questions, ...rest }))
}

/** Waits without the millisecond that a timer takes at least. */
export async function untilMs(atMs: number): Promise<void> {
  const leftMs = atMs - performance.now()
  if (leftMs > 3) await new Promise((resolve) => void setTimeout(resolve, leftMs - 2))
  while (performance.now() < atMs) await new Promise((resolve) => void setImmediate(resolve))
}
