/**
 * The way between two clusters: passes UDP and TCP on to one address, and lets every packet take longer.
 *
 *     node bench/relay.ts --listen 127.0.0.1:5399 --to 127.0.0.1:5301 --delay-ms 25
 *
 * The delay is for one direction, so a round trip takes twice as long, and a TCP connection takes one more to be set
 * up. Nothing is lost and nothing overtakes.
 */
import { createSocket, type RemoteInfo, type Socket } from 'node:dgram'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket as TcpSocket } from 'node:net'
import { parseArgs } from 'node:util'

export type Address = Readonly<{ host: string; port: number }>
export type RelayOptions = Readonly<{ listen: Address; to: Address; delayMs: number }>

/** Every UDP client gets a socket towards the server, so that answers find back; closed after this time without use. */
const udpIdleMs = 10_000
const receiveBufferOctets = 4 * 1024 * 1024

/**
 * Does things later, in the order they came, and never early: Node's own timers may fire a millisecond or two before
 * their time.
 */
export class DelayLine {
  readonly #delayMs: number
  readonly #waiting: { dueMs: number; run: () => void }[] = []
  #isTimed = false

  constructor(delayMs: number) {
    this.#delayMs = delayMs
  }

  push(run: () => void): void {
    if (this.#delayMs === 0) {
      run()
      return
    }
    this.#waiting.push({ dueMs: performance.now() + this.#delayMs, run })
    if (!this.#isTimed) setTimeout(this.#runDue, this.#delayMs)
    this.#isTimed = true
  }

  readonly #runDue = (): void => {
    let next = this.#waiting[0]
    while (next !== undefined && next.dueMs <= performance.now()) {
      this.#waiting.shift()
      next.run()
      next = this.#waiting[0]
    }
    this.#isTimed = next !== undefined
    if (next !== undefined) setTimeout(this.#runDue, Math.max(0, next.dueMs - performance.now()))
  }
}

export class Relay {
  readonly #options: RelayOptions
  readonly #udp: Socket
  readonly #tcp: Server
  readonly #way: DelayLine
  readonly #udpClients = new Map<string, UdpClient>()
  readonly #connections = new Set<TcpSocket>()

  private constructor(options: RelayOptions) {
    this.#options = options
    this.#way = new DelayLine(options.delayMs)
    this.#udp = createSocket({ type: 'udp4', recvBufferSize: receiveBufferOctets })
    // Half-closed stays half-closed on the other side.
    this.#tcp = createServer({ allowHalfOpen: true }, (client) => this.#accept(client))
  }

  /** @throws the system's error where the port is taken. */
  static async open(options: RelayOptions): Promise<Relay> {
    const relay = new Relay(options)
    const { host, port } = options.listen
    relay.#tcp.listen(port, host)
    await once(relay.#tcp, 'listening')
    relay.#udp.on('message', (datagram, from) => relay.#relayDatagram(datagram, from))
    relay.#udp.bind(relay.port, host)
    await once(relay.#udp, 'listening')
    return relay
  }

  get port(): number {
    return (this.#tcp.address() as { port: number }).port
  }

  async close(): Promise<void> {
    for (const connection of this.#connections) connection.destroy()
    for (const client of this.#udpClients.values()) client.close()
    this.#udp.close()
    this.#tcp.close()
    await once(this.#tcp, 'close')
  }

  readonly #later = (run: () => void): void => this.#way.push(run)

  #relayDatagram(datagram: Uint8Array, { address, port }: RemoteInfo): void {
    const key = `${address}:${port}`
    let client = this.#udpClients.get(key)
    if (client === undefined) {
      client = new UdpClient({
        to: this.#options.to,
        later: this.#later,
        // The listening socket may be closed while an answer is under way.
        onAnswer: (answer) => this.#udp.send(answer, port, address, () => {}),
        onIdle: () => this.#udpClients.delete(key)
      })
      this.#udpClients.set(key, client)
    }
    client.send(datagram)
  }

  /** The client believes to be connected at once; what it sends has to wait for the handshake all the same. */
  #accept(client: TcpSocket): void {
    client.on('error', () => client.destroy())
    this.#connections.add(client)
    client.on('close', () => this.#connections.delete(client))
    this.#later(() => this.#later(() => this.#relayConnection(client)))
  }

  #relayConnection(client: TcpSocket): void {
    if (client.destroyed) return
    const server = connect({ ...this.#options.to, allowHalfOpen: true })
    for (const [from, onto] of [
      [client, server],
      [server, client]
    ] as const) {
      this.#connections.add(from)
      from.setNoDelay()
      from.on('data', (chunk) => this.#later(() => onto.write(chunk)))
      from.on('end', () => this.#later(() => onto.end()))
      from.on('error', () => onto.destroy())
      from.on('close', () => this.#connections.delete(from))
    }
  }
}

type UdpClientOptions = Readonly<{
  to: Address
  later: (run: () => void) => void
  onAnswer: (answer: Uint8Array) => void
  onIdle: () => void
}>

/** One client's own socket towards the server. */
class UdpClient {
  readonly #options: UdpClientOptions
  readonly #socket: Socket
  readonly #timer: NodeJS.Timeout
  #isClosed = false

  constructor(options: UdpClientOptions) {
    this.#options = options
    this.#socket = createSocket({ type: 'udp4', recvBufferSize: receiveBufferOctets })
    this.#socket.on('message', (answer) => options.later(() => options.onAnswer(answer)))
    // Nobody listens there: for the client that is silence.
    this.#socket.on('error', () => {})
    this.#timer = setTimeout(() => {
      this.close()
      options.onIdle()
    }, udpIdleMs)
  }

  send(datagram: Uint8Array): void {
    this.#timer.refresh()
    const { to, later } = this.#options
    later(() => {
      if (!this.#isClosed) this.#socket.send(datagram, to.port, to.host, () => {})
    })
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#socket.close()
  }
}

function parseAddress(text: string): Address {
  const colon = text.lastIndexOf(':')
  return { host: text.slice(0, colon), port: Number(text.slice(colon + 1)) }
}

if (import.meta.main) {
  const { values } = parseArgs({
    options: { listen: { type: 'string' }, to: { type: 'string' }, 'delay-ms': { type: 'string', default: '0' } }
  })
  if (values.listen === undefined || values.to === undefined) {
    console.error('usage: node bench/relay.ts --listen HOST:PORT --to HOST:PORT [--delay-ms MS]')
    process.exit(2)
  }
  const delayMs = Number(values['delay-ms'])
  await Relay.open({ listen: parseAddress(values.listen), to: parseAddress(values.to), delayMs })
}
