/**
 * A responder that does what the query's text says. A test query is twelve octets that look like a header (the id, and
 * QR clear) and a text behind them.
 */
import { DROP, MISS, STREAM, type Client, type MessageStream, type Responder } from '../../src/server/responder.ts'

const headerOctets = 12

export function testQuery(id: number, text: string): Buffer {
  const query = Buffer.alloc(headerOctets + text.length)
  query.writeUInt16BE(id, 0)
  query.write(text, headerOctets, 'latin1')
  return query
}

export const idOf = (message: Uint8Array): number => (message[0]! << 8) | message[1]!
export const textOf = (message: Uint8Array): string => Buffer.from(message.subarray(headerOctets)).toString('latin1')

function turnRound(query: Uint8Array, suffix = ''): Buffer {
  const answer = Buffer.concat([query, Buffer.from(suffix, 'latin1')])
  answer[2]! |= 0x80
  return answer
}

export type Waiting = { id: number; client: Client; answer: (suffix?: string) => void; nothing: () => void }

export class ScriptedResponder implements Responder {
  /** Who asked, in order, with what. */
  readonly asked: { id: number; text: string; client: Client }[] = []
  /** Calls of `resolve` that have no result yet. */
  readonly waiting: Waiting[] = []
  mostWaiting = 0

  answer(query: Uint8Array, size: number, client: Client, out: Uint8Array): number {
    if (size < headerOctets || (query[2]! & 0x80) !== 0) return DROP
    const text = textOf(query.subarray(0, size))
    // Over UDP the next query may be given the same object.
    const kept = client.transport === 'udp' ? { ...client } : client
    this.asked.push({ id: idOf(query), text, client: kept })
    if (text.startsWith('later') || text.startsWith('resolve')) return MISS
    if (text.startsWith('stream')) return STREAM
    if (text === 'drop') return DROP
    if (text === 'throw') throw new Error('answer throws')
    if (text.startsWith('size ')) {
      const octets = Number(text.slice(5))
      out.fill(0, 0, octets)
      out.set(turnRound(query))
      return octets
    }
    out.set(turnRound(query.subarray(0, size)))
    return size
  }

  /** Streams that were begun, in order. */
  readonly streams: MessageStream[] = []

  /** `stream 5 1000`: five messages of a thousand octets each. */
  async stream(query: Uint8Array, _client: Client, stream: MessageStream): Promise<void> {
    this.streams.push(stream)
    const [, count = '0', octets = '0'] = textOf(query).split(' ')
    const message = Buffer.alloc(Math.max(headerOctets, Number(octets)))
    message.set(turnRound(query.subarray(0, headerOctets)))
    for (let sent = 0; sent < Number(count); sent++) if (!(await stream.send(Buffer.from(message)))) return
  }

  // Not async: what it throws must be thrown, not rejected.
  // oxlint-disable-next-line typescript/promise-function-async
  resolve(query: Uint8Array, client: Client): Promise<Uint8Array | null> {
    const text = textOf(query)
    if (text === 'resolve throws') throw new Error('resolve throws')
    if (text === 'resolve rejects') return Promise.reject(new Error('resolve rejects'))
    const kept = Buffer.from(query)
    return new Promise((resolve) => {
      const waiting = {
        id: idOf(kept),
        client,
        answer: (suffix?: string) => finish(turnRound(kept, suffix)),
        nothing: () => finish(null)
      }
      const finish = (octets: Buffer | null) => {
        this.waiting.splice(this.waiting.indexOf(waiting), 1)
        resolve(octets)
      }
      this.waiting.push(waiting)
      this.mostWaiting = Math.max(this.mostWaiting, this.waiting.length)
    })
  }

  overload(query: Uint8Array): Uint8Array | null {
    return turnRound(query, ' SERVFAIL')
  }
}
