/**
 * A client that asks one DNS server many questions at once over one socket and reads the answers with dns-packet, so
 * that our codec is not compared with itself.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { connect, type Socket as TcpSocket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { queryOctets, readReply, type Reply } from '../../support/in-process.ts'

export type Transport = 'udp' | 'tcp'
/** Without the final dot. */
export type Question = Readonly<{ name: string; type: string }>

/** What tests compare: TTLs and the order of records left out. */
export type LiveReply = Readonly<{
  rcode: string
  isAuthoritative: boolean
  isTruncated: boolean
  /** `owner TYPE data`, in lower case, sorted. */
  answer: readonly string[]
  /** Owners of SOA records in the authority section. */
  soa: readonly string[]
  /** Codes of Extended DNS Errors. */
  ede: readonly number[]
  /** Lowest TTL of the answer section; null where that is empty. */
  ttlSeconds: number | null
}>

/** Stands for no answer at all, of a server that is let do that. */
export const silence: LiveReply = {
  rcode: 'SILENCE',
  isAuthoritative: false,
  isTruncated: false,
  answer: [],
  soa: [],
  ede: [],
  ttlSeconds: null
}

const questionsInFlight = 64
const tries = 5

export class LiveClient {
  readonly port: number
  readonly #waiting = new Map<number, (octets: Buffer) => void>()
  readonly #timeoutMs: number
  #nextId = 1
  #udp: UdpSocket | null = null
  #tcp: TcpSocket | null = null
  #received: Buffer = Buffer.alloc(0)

  /** @param timeoutMs of one try; there are five. */
  constructor(port: number, timeoutMs = 1500) {
    this.port = port
    this.#timeoutMs = timeoutMs
  }

  /** What does not fit into a datagram is asked for again over TCP. @throws Error where no try is answered. */
  async ask(question: Question, transport: Transport = 'udp'): Promise<LiveReply> {
    const reply = await this.#askBy(question, transport)
    return reply.isTruncated && transport === 'udp' ? this.#askBy(question, 'tcp') : reply
  }

  async #askBy({ name, type }: Question, transport: Transport): Promise<LiveReply> {
    const octets = queryOctets(name, { type })
    for (let tried = 0; tried < tries; tried++) {
      const id = this.#freeId()
      octets.writeUInt16BE(id, 0)
      const reply = new Promise<Buffer>((resolve) => this.#waiting.set(id, resolve))
      this.#send(octets, transport)
      const abort = new AbortController()
      const got = await Promise.race([
        reply,
        sleep(this.#timeoutMs, null, { signal: abort.signal }).catch(() => null)
      ]).finally(() => this.#waiting.delete(id))
      abort.abort()
      if (got !== null) return asLiveReply(readReply(got))
    }
    throw new Error(`no answer for ${name} ${type} by ${transport} from ${this.port}`)
  }

  /**
   * The answers in the order of the questions. @throws Error where one is not answered, unless `silence` stands for
   * that.
   */
  async askAll(
    questions: readonly Question[],
    transport: Transport = 'udp',
    silence: LiveReply | null = null
  ): Promise<LiveReply[]> {
    const replies: LiveReply[] = []
    let next = 0
    const askNext = async (): Promise<void> => {
      while (next < questions.length) {
        const at = next++
        replies[at] = await this.ask(questions[at]!, transport).catch((error: unknown) => {
          if (silence === null) throw error
          return silence
        })
      }
    }
    await Promise.all(Array.from({ length: questionsInFlight }, askNext))
    return replies
  }

  close(): void {
    this.#udp?.close()
    this.#udp = null
    this.#tcp?.destroy()
    this.#tcp = null
  }

  #freeId(): number {
    do this.#nextId = (this.#nextId + 1) & 0xffff
    while (this.#waiting.has(this.#nextId))
    return this.#nextId
  }

  #send(octets: Buffer, transport: Transport): void {
    if (transport === 'udp') {
      this.#udp ??= this.#openUdp()
      this.#udp.send(octets, this.port, '127.0.0.1')
      return
    }
    this.#tcp ??= this.#openTcp()
    const length = Buffer.alloc(2)
    length.writeUInt16BE(octets.length)
    this.#tcp.write(Buffer.concat([length, octets]))
  }

  #openUdp(): UdpSocket {
    const socket = createSocket({ type: 'udp4', recvBufferSize: 1 << 20 })
    socket.on('message', (octets) => this.#take(octets))
    // Nobody listens: the try runs into its time-out.
    socket.on('error', () => {})
    // A test that fails in between still ends.
    socket.unref()
    return socket
  }

  #openTcp(): TcpSocket {
    const socket = connect(this.port, '127.0.0.1')
    this.#received = Buffer.alloc(0)
    socket.on('data', (chunk: Buffer) => {
      this.#received = Buffer.concat([this.#received, chunk])
      while (this.#received.length >= 2 && this.#received.length >= 2 + this.#received.readUInt16BE(0)) {
        const end = 2 + this.#received.readUInt16BE(0)
        this.#take(this.#received.subarray(2, end))
        this.#received = this.#received.subarray(end)
      }
    })
    socket.unref()
    socket.on('error', () => {})
    socket.once('close', () => {
      if (this.#tcp === socket) this.#tcp = null
    })
    return socket
  }

  #take(octets: Buffer): void {
    if (octets.length >= 12) this.#waiting.get(octets.readUInt16BE(0))?.(octets)
  }
}

function asLiveReply({ rcode, flags, answer, authority, ede }: Reply): LiveReply {
  const ttls = answer.map((line) => Number(line.split(' ')[1]))
  return {
    rcode,
    isAuthoritative: flags.aa,
    isTruncated: flags.tc,
    answer: answer.map(withoutTtl).sort(),
    soa: authority.filter((line) => line.split(' ')[2] === 'SOA').map((line) => line.split(' ')[0]!.toLowerCase()),
    ede: ede.map(({ code }) => code),
    ttlSeconds: ttls.length === 0 ? null : Math.min(...ttls)
  }
}

function withoutTtl(line: string): string {
  const [owner, , type, ...data] = line.split(' ')
  return `${owner!.toLowerCase()} ${type} ${data.join(' ').toLowerCase()}`
}
