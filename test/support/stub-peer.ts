/**
 * A DNS server for tests, on UDP and TCP of one port, that misbehaves on demand. Its octets come from dns-packet, so
 * that our codec is not compared with itself.
 */
import { createSocket, type Socket as UdpSocket } from 'node:dgram'
import { createServer, type Server, type Socket } from 'node:net'
import * as dnsPacket from 'dns-packet'
import type { Answer, DecodedPacket, Packet, SoaAnswer } from 'dns-packet'
import { freePort } from './free-port.ts'
import { loopClock } from './loop-clock.ts'

export type StubRecord = Answer

/**
 * What the server does wrong. Those with `tcp-` behave well over UDP, except that they send TC.
 *
 * `slow` answers right after `delayMs` by `loopClock`; `lossy` loses every second datagram; `no-edns` gives FORMERR to
 * every OPT; `bare-formerr` the same with a header alone; `truncated` sends TC and one record over UDP;
 * `always-truncated` also over TCP; `other-name` answers with records of another owner; `extra-records` adds records
 * nobody asked for; `no-soa` sends denials without SOA; `tcp-once` closes each connection behind its first answer.
 */
export type StubFault =
  | 'none'
  | 'silent'
  | 'slow'
  | 'lossy'
  | 'wrong-id'
  | 'wrong-question'
  | 'wrong-source-port'
  | 'query-back'
  | 'servfail'
  | 'refused'
  | 'notimp'
  | 'formerr'
  | 'no-edns'
  | 'bare-formerr'
  | 'broken-rdata'
  | 'garbage'
  /** Over UDP the last octets of each answer are missing. */
  | 'udp-cut'
  | 'truncated'
  | 'always-truncated'
  | 'other-name'
  | 'extra-records'
  | 'no-soa'
  | 'tcp-hang'
  | 'tcp-reset'
  | 'tcp-close'
  | 'tcp-half'
  | 'tcp-garbage'
  | 'tcp-once'

/** One query as it arrived. */
export type StubQuery = {
  transport: 'udp' | 'tcp'
  packet: DecodedPacket
  name: string
  type: string
  clientPort: number
  hasEdns: boolean
}

export type StubOptions = {
  records: StubRecord[]
  /** The zone whose SOA denials carry. */
  zone: string
  host?: string
  port?: number
}

const rcodes: Partial<Record<StubFault, number>> = { servfail: 2, refused: 5, notimp: 4, formerr: 1 }

export class StubPeer {
  readonly host: string
  port: number
  fault: StubFault = 'none'
  /** Names that get no answer, whatever the fault. */
  silentAbout: ReadonlySet<string> = new Set()
  /** Names that are answered well over UDP, whatever the fault. */
  faultExceptFor: ReadonlySet<string> = new Set()
  delayMs = 0
  records: StubRecord[]
  readonly queries: StubQuery[] = []
  /** Connections ever accepted. */
  connectionsTotal = 0
  readonly #zone: string
  readonly #connections = new Set<Socket>()
  readonly #waiting = new Set<() => void>()
  #udp: UdpSocket | null = null
  #otherUdp: UdpSocket | null = null
  #tcp: Server | null = null
  #datagrams = 0

  constructor(options: StubOptions) {
    this.host = options.host ?? '127.0.0.1'
    this.port = options.port ?? 0
    this.records = options.records
    this.#zone = options.zone
  }

  get connections(): number {
    return this.#connections.size
  }

  /** `host:port` as peers name it. */
  get text(): string {
    return this.host.includes(':') ? `[${this.host}]:${this.port}` : `${this.host}:${this.port}`
  }

  get address(): { host: string; port: number } {
    return { host: this.host, port: this.port }
  }

  /** Opens both sockets; after stop(), on the same port again. */
  async start(): Promise<this> {
    if (this.port === 0) this.port = await freePort()
    await this.#listen()
    return this
  }

  /** Closes sockets and connections (by a reset), as a process that dies. */
  async stop(): Promise<void> {
    for (const cancel of this.#waiting) cancel()
    this.#waiting.clear()
    for (const connection of this.#connections) connection.resetAndDestroy()
    this.#connections.clear()
    const { promise, resolve } = Promise.withResolvers<void>()
    if (this.#tcp?.listening === true) this.#tcp.close(() => resolve())
    else resolve()
    for (const socket of [this.#udp, this.#otherUdp]) if (socket !== null) await closeUdp(socket)
    this.#udp = null
    this.#otherUdp = null
    await promise
    this.#tcp = null
  }

  /** Sends something over every open TCP connection that nobody asked for. */
  sendUnasked(octets: Uint8Array): void {
    for (const connection of this.#connections) connection.write(octets)
  }

  /** Closes every open TCP connection in the usual way. */
  endConnections(): void {
    for (const connection of this.#connections) connection.end()
  }

  async #listen(): Promise<void> {
    const tcp = createServer((connection) => this.#accept(connection))
    this.#tcp = tcp
    await new Promise<void>((resolve, reject) => {
      tcp.once('error', reject)
      tcp.listen(this.port, this.host, resolve)
    })
    this.#udp = await bindUdp(this.host, this.port)
    this.#otherUdp = await bindUdp(this.host, 0)
    this.#udp.on('message', (octets, sender) => {
      this.#datagrams++
      const query = this.#note(octets, 'udp', sender.port)
      if (query === null || (this.fault === 'lossy' && this.#datagrams % 2 === 1)) return
      const reply = this.#reply(query)
      if (reply === null) return
      const socket = this.fault === 'wrong-source-port' ? this.#otherUdp : this.#udp
      this.#later(() => socket?.send(reply, sender.port, sender.address))
    })
  }

  #accept(connection: Socket): void {
    this.connectionsTotal++
    this.#connections.add(connection)
    connection.on('close', () => this.#connections.delete(connection))
    connection.on('error', () => connection.destroy())
    if (this.fault === 'tcp-close') {
      connection.resume()
      connection.end()
      return
    }
    let held = Buffer.alloc(0)
    connection.on('data', (chunk: Buffer) => {
      held = Buffer.concat([held, chunk])
      while (held.length >= 2 && held.length >= 2 + held.readUInt16BE(0)) {
        const octets = held.subarray(2, 2 + held.readUInt16BE(0))
        held = held.subarray(2 + octets.length)
        const query = this.#note(octets, 'tcp', connection.remotePort ?? 0)
        if (query !== null) this.#answerTcp(connection, query)
      }
    })
  }

  #answerTcp(connection: Socket, query: StubQuery): void {
    if (this.fault === 'tcp-hang') return
    if (this.fault === 'tcp-reset') {
      connection.resetAndDestroy()
      return
    }
    const reply = this.#reply(query)
    if (reply === null) return
    const framed = Buffer.concat([Buffer.from([reply.length >> 8, reply.length & 0xff]), reply])
    if (this.fault === 'tcp-half') {
      connection.write(framed.subarray(0, framed.length >> 1))
      return
    }
    if (this.fault === 'tcp-garbage') {
      connection.write(Buffer.from([0, 3, 1, 2, 3]))
      return
    }
    this.#later(() => {
      if (this.fault === 'tcp-once') connection.end(framed)
      else if (!connection.destroyed) connection.write(framed)
    })
  }

  #note(octets: Buffer, transport: 'udp' | 'tcp', clientPort: number): StubQuery | null {
    const packet = dnsPacket.decode(octets)
    const question = packet.questions?.[0]
    if (packet.flag_qr || question === undefined) return null
    const hasEdns = (packet.additionals ?? []).some(({ type }) => type === 'OPT')
    const query = { transport, packet, name: question.name, type: question.type as string, clientPort, hasEdns }
    this.queries.push(query)
    return query
  }

  #later(send: () => void): void {
    if (this.fault !== 'slow') {
      send()
      return
    }
    const cancel = loopClock.after(this.delayMs, () => {
      this.#waiting.delete(cancel)
      send()
    })
    this.#waiting.add(cancel)
  }

  /** The octets of the answer, as wrong as the fault wants; null for silence. */
  #reply(query: StubQuery): Buffer | null {
    const { packet, transport } = query
    const fault = this.faultExceptFor.has(query.name) ? 'none' : this.fault
    if (fault === 'silent' || this.silentAbout.has(query.name)) return null
    if (fault === 'garbage') {
      // The right header and question, and then nothing of what the header promises.
      const reply = dnsPacket.encode({ ...this.#headOf(packet), flags: 0 })
      reply.writeUInt16BE(7, 6)
      return reply
    }
    if (fault === 'bare-formerr' && query.hasEdns) {
      const reply = Buffer.alloc(12)
      reply.writeUInt16BE(packet.id ?? 0, 0)
      reply.writeUInt16BE(0x8001, 2)
      return reply
    }
    const rcode = fault === 'no-edns' && query.hasEdns ? 1 : rcodes[fault]
    if (rcode !== undefined) return dnsPacket.encode({ ...this.#headOf(packet), flags: rcode })
    const reply: Packet = this.#answer(query)
    const isTcpFault = fault.startsWith('tcp-')
    if (fault === 'always-truncated' || (transport === 'udp' && (fault === 'truncated' || isTcpFault))) {
      reply.flags = (reply.flags ?? 0) | dnsPacket.TRUNCATED_RESPONSE
      reply.answers = reply.answers?.slice(0, 1)
    }
    if (fault === 'wrong-id') reply.id = ((reply.id ?? 0) + 1) & 0xffff
    if (fault === 'wrong-question') reply.questions = [{ name: `not.${query.name}`, type: 'A' }]
    if (fault === 'query-back') reply.type = 'query'
    if (fault === 'other-name') {
      reply.answers = reply.answers?.map((record) => ({ ...record, name: 'other.example.net' }))
    }
    if (fault === 'extra-records') {
      reply.answers?.push(
        { type: 'A', name: `www.${this.#zone}`, ttl: 9_999, data: '192.0.2.66' },
        { type: 'A', name: 'www.example.com', ttl: 9_999, data: '192.0.2.66' }
      )
      reply.authorities?.push({ type: 'NS', name: 'com', ttl: 9_999, data: 'ns.evil.example' })
      reply.additionals?.push({ type: 'A', name: 'ns.evil.example', ttl: 9_999, data: '192.0.2.66' })
    }
    const octets = dnsPacket.encode(reply)
    if (fault === 'udp-cut' && transport === 'udp') return octets.subarray(0, octets.length - 3)
    if (fault === 'broken-rdata') {
      // An A record of two octets that says it has four.
      return octets.subarray(0, octets.length - 2)
    }
    return octets
  }

  #headOf(packet: DecodedPacket): Packet {
    return {
      type: 'response',
      id: packet.id,
      questions: packet.questions,
      answers: [],
      authorities: [],
      additionals: []
    }
  }

  /** The right answer: aliases followed, NODATA and NXDOMAIN with the zone's SOA. */
  #answer({ packet, name, type }: StubQuery): Packet {
    const reply = { ...this.#headOf(packet), flags: dnsPacket.AUTHORITATIVE_ANSWER }
    const answers: Answer[] = []
    let at = name.toLowerCase()
    for (let aliases = 0; aliases < 16; aliases++) {
      const here = this.records.filter((record) => record.name.toLowerCase() === at)
      const wanted = here.filter((record) => record.type === type || type === 'ANY')
      answers.push(...wanted)
      const alias = wanted.length > 0 ? undefined : here.find((record) => record.type === 'CNAME')
      if (alias?.type !== 'CNAME') break
      answers.push(alias)
      at = alias.data.toLowerCase()
    }
    const hasWanted = answers.some((record) => record.type === type || type === 'ANY')
    const exists = this.records.some(({ name }) => name.toLowerCase() === at || name.toLowerCase().endsWith(`.${at}`))
    const rcode = hasWanted || exists || at === this.#zone ? 0 : 3
    const soa: SoaAnswer = {
      type: 'SOA',
      name: this.#zone,
      ttl: 300,
      data: {
        mname: `ns.${this.#zone}`,
        rname: `admin.${this.#zone}`,
        serial: 1,
        refresh: 60,
        retry: 60,
        expire: 600,
        minimum: 5
      }
    }
    const isSoaAnswer = type === 'SOA' && at === this.#zone
    return {
      ...reply,
      flags: reply.flags | rcode,
      answers: isSoaAnswer ? [soa] : answers,
      authorities: hasWanted || isSoaAnswer || this.fault === 'no-soa' ? [] : [soa],
      additionals: answers.flatMap((record) =>
        record.type === 'SRV'
          ? this.records.filter(({ name, type }) => name === record.data.target && type === 'A')
          : []
      )
    }
  }
}

/** A running stub. */
export const startStubPeer = (options: StubOptions): Promise<StubPeer> => new StubPeer(options).start()

async function bindUdp(host: string, port: number): Promise<UdpSocket> {
  const socket = createSocket(host.includes(':') ? 'udp6' : 'udp4')
  await new Promise<void>((resolve, reject) => {
    socket.once('error', reject)
    socket.bind(port, host, resolve)
  })
  return socket
}

const closeUdp = (socket: UdpSocket): Promise<void> => new Promise((resolve) => socket.close(() => resolve()))
