/** Small clients that show everything that comes back, and when the other side closes. */
import { createSocket } from 'node:dgram'
import { once } from 'node:events'
import { connect, isIPv6, type Socket } from 'node:net'
import { setTimeout as delay } from 'node:timers/promises'
import type { Test } from 'tap'
import { systemClock } from '../../src/base/clock.ts'
import { Listeners, type ListenersOptions } from '../../src/server/listeners.ts'
import { ManualClock } from '../support/manual-clock.ts'
import { ScriptedResponder } from './scripted-responder.ts'

/** Waits until something is so; fails after a minute. */
export async function until(what: string, isSo: () => boolean): Promise<void> {
  const endMs = systemClock.nowMs() + 60_000
  while (!isSo()) {
    if (systemClock.nowMs() > endMs) throw new Error(`still not so after a minute: ${what}`)
    await delay(1)
  }
}

export class UdpClient {
  readonly received: Buffer[] = []
  readonly #socket
  readonly #where

  constructor(t: Test, where: Readonly<{ address: string; port: number }>) {
    this.#where = where
    this.#socket = createSocket({ type: isIPv6(where.address) ? 'udp6' : 'udp4', recvBufferSize: 4 * 1024 * 1024 })
    this.#socket.on('message', (message) => this.received.push(message))
    t.teardown(() => this.#socket.close())
  }

  send(...messages: Uint8Array[]): void {
    for (const message of messages) this.#socket.send(message, this.#where.port, this.#where.address)
  }

  async gets(count: number): Promise<void> {
    await until(`${count} datagrams received (so far ${this.received.length})`, () => this.received.length >= count)
  }
}

export const frame = (message: Uint8Array): Buffer =>
  Buffer.concat([Buffer.from([message.length >> 8, message.length & 0xff]), message])

export class TcpClient {
  readonly socket: Socket
  readonly received: Buffer[] = []
  /** The server has closed its side. */
  isEnded = false
  isClosed = false
  #held: Buffer = Buffer.alloc(0)

  private constructor(t: Test, where: Readonly<{ address: string; port: number }>) {
    this.socket = connect({ host: where.address, port: where.port, allowHalfOpen: true, noDelay: true })
    this.socket.on('data', (chunk: Buffer) => this.#read(chunk))
    this.socket.on('end', () => (this.isEnded = true))
    this.socket.on('close', () => (this.isClosed = true))
    this.socket.on('error', () => {})
    t.teardown(() => this.socket.destroy())
  }

  static async open(t: Test, where: Readonly<{ address: string; port: number }>): Promise<TcpClient> {
    const client = new TcpClient(t, where)
    await once(client.socket, 'connect')
    return client
  }

  ask(...messages: Uint8Array[]): void {
    this.socket.write(Buffer.concat(messages.map((message) => frame(message))))
  }

  async gets(count: number): Promise<void> {
    await until(`${count} messages received (so far ${this.received.length})`, () => this.received.length >= count)
  }

  async ends(): Promise<void> {
    await until('the server has closed', () => this.isEnded || this.isClosed)
  }

  #read(chunk: Buffer): void {
    this.#held = Buffer.concat([this.#held, chunk])
    while (this.#held.length >= 2 && this.#held.length >= 2 + this.#held.readUInt16BE(0)) {
      const end = 2 + this.#held.readUInt16BE(0)
      this.received.push(this.#held.subarray(2, end))
      this.#held = this.#held.subarray(end)
    }
  }
}

export type Served = {
  listeners: Listeners
  responder: ScriptedResponder
  clock: ManualClock
  faults: string[]
  /** The first address. */
  where: { address: string; port: number }
}

/** Listeners on free ports with a scripted responder and a clock that stands still, closed after the test. */
export async function serve(t: Test, options: Partial<ListenersOptions> = {}): Promise<Served> {
  const responder = new ScriptedResponder()
  const clock = new ManualClock()
  const faults: string[] = []
  const listeners = await Listeners.open({
    addresses: [{ address: '127.0.0.1', port: 0 }],
    responder,
    clock,
    onFault: (error) => faults.push((error as Error).message),
    ...options
  })
  t.teardown(async () => listeners.stop({ drainTimeoutMs: 0, force: true }))
  return { listeners, responder, clock, faults, where: listeners.addresses[0]! }
}
