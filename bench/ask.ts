/** One question over UDP and its answer; for checking servers, and for timing single questions. */
import { createSocket, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { CLASS, OPCODE, parseType } from '../src/wire/iana.ts'
import { decodeMessage, encodeMessage, type Message } from '../src/wire/message.ts'
import { parseName } from '../src/wire/name.ts'
import type { BenchQuestion } from './dataset.ts'

export type TimedAnswer = Readonly<{ message: Message; tookMs: number }>

/** Asks one server, one question at a time. */
export class Asker {
  readonly #socket: Socket
  #id = 0
  #onRefused: () => void = () => {}

  private constructor(socket: Socket) {
    this.#socket = socket
    // ECONNREFUSED of an earlier datagram may also come when nobody waits.
    socket.on('error', () => this.#onRefused())
  }

  static async to(port: number): Promise<Asker> {
    const socket = createSocket('udp4')
    socket.connect(port, '127.0.0.1')
    await once(socket, 'connect')
    return new Asker(socket)
  }

  /** Null when nothing came within `timeoutMs`, or nobody listens there. */
  async ask(question: BenchQuestion, timeoutMs: number): Promise<TimedAnswer | null> {
    this.#id = (this.#id + 1) & 0xffff
    const id = this.#id
    const query = encodeQuery(id, question)
    const { promise, resolve } = Promise.withResolvers<TimedAnswer | null>()
    const startedAtMs = performance.now()
    const onMessage = (octets: Uint8Array): void => {
      const tookMs = performance.now() - startedAtMs
      if (octets.length > 1 && ((octets[0]! << 8) | octets[1]!) === id)
        resolve({ message: decodeMessage(octets), tookMs })
    }
    this.#onRefused = () => resolve(null)
    const timer = setTimeout(resolve, timeoutMs, null)
    this.#socket.on('message', onMessage)
    this.#socket.send(query)
    const answer = await promise
    clearTimeout(timer)
    this.#socket.off('message', onMessage)
    return answer
  }

  close(): void {
    this.#socket.close()
  }
}

function encodeQuery(id: number, { name, type }: BenchQuestion): Uint8Array {
  const flags = { qr: false, aa: false, tc: false, rd: true, ra: false, ad: false, cd: false }
  const questions = [{ name: parseName(name), type: parseType(type)!, class: CLASS.IN }]
  const sections = { answer: [], authority: [], additional: [], edns: null }
  return encodeMessage({ id, opcode: OPCODE.QUERY, rcode: 0, ...flags, questions, ...sections })
}

/** `answers` null: any number, for sets that fit no datagram. */
export type Expectation = Readonly<{ rcode: number; answers: number | null }>

export const isAsExpected = (message: Message, { rcode, answers }: Expectation): boolean =>
  message.rcode === rcode && (answers === null || message.answer.length === answers)

/**
 * Asks until the answer is as expected, and tells what was wrong with the last one when it never was.
 * @returns null, or what is wrong in words
 */
export async function untilAnswers(
  port: number,
  question: BenchQuestion,
  expected: Expectation,
  options: { withinMs: number; hasEnded: () => boolean }
): Promise<string | null> {
  const asker = await Asker.to(port)
  let problem = 'no answer'
  try {
    for (const startedAtMs = performance.now(); performance.now() - startedAtMs < options.withinMs; await sleep(20)) {
      if (options.hasEnded()) return 'the process ended'
      const answer = await asker.ask(question, 500)
      if (answer === null) continue
      if (isAsExpected(answer.message, expected)) return null
      problem = `RCODE ${answer.message.rcode} and ${answer.message.answer.length} answers for ${question.name} ${question.type}`
    }
    return problem
  } finally {
    asker.close()
  }
}
