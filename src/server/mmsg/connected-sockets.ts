/**
 * UDP sockets that are connected to one server each, for who asks it: opened, read and sent to by the C library.
 *
 * node:dgram takes 64 KiB of memory for each datagram that comes, and several objects for each that goes; here one
 * batch of messages serves all sockets, and a system call sends. It is what `OpenUdpSocket` of the peers' side
 * describes.
 */
import { getSystemErrorName } from 'node:util'
import { connectedBatchDatagrams, connectedBatchesPerTurn } from '../../base/socket-limits.ts'
import { copyOf } from '../../wire/octets.ts'
import { BatchedSocket, socketName } from './batched-socket.ts'
import { linux, sockaddrIn6 } from './layout.ts'
import type { Libc, Poll } from './libc.ts'
import { MessageBatch, type Destination } from './message-batch.ts'

type Server = Readonly<{ address: string; port: number; family: 4 | 6 }>

type Events = Readonly<{
  connected(): void
  message(octets: Uint8Array, isFromServer: boolean): void
  failed(error: Error): void
}>

type Socket = Readonly<{ send(octets: Uint8Array): void; close(onClosed: () => void): void }>
type Open = (server: Server, events: Events) => Socket

/** A connected socket sends to its server, and the kernel knows from where. */
const noDestination: Destination = { name: new Uint8Array(0), control: new Uint8Array(0) }

/** @param otherwise opens what this cannot: addresses with a zone id are for those who know the names of interfaces. */
export function connectedSockets(libc: Libc, otherwise: Open): Open {
  const batch = new MessageBatch(connectedBatchDatagrams, libc.addressOf)
  const turn = new Turn()
  return (server, events) =>
    server.address.includes('%')
      ? otherwise(server, events)
      : new ConnectedSocket({ libc, batch, turn }, server, events)
}

type Parts = Readonly<{ libc: Libc; batch: MessageBatch; turn: Turn }>

/**
 * The callback of a poll does not run what promises have become due in it, as Node's own callbacks do: so a step of the
 * loop is asked for that does.
 */
class Turn {
  #isDue = false

  ask(): void {
    if (this.#isDue) return
    this.#isDue = true
    // Runs in this turn of the loop, with all that promises have become due behind it.
    setImmediate(() => {
      this.#isDue = false
    })
  }
}

class ConnectedSocket implements Socket {
  readonly #parts: Parts
  readonly #events: Events
  /** The server's address as the kernel gives it. */
  #name: Uint8Array
  #socket: BatchedSocket | null = null
  #poll: Poll | null = null

  constructor(parts: Parts, server: Server, events: Events) {
    this.#parts = parts
    this.#events = events
    this.#name = socketName(server.address, server.port)
    try {
      this.#open(server)
      // As with node:dgram what is under way now goes first: a datagram that is sent again before one that asks why.
      queueMicrotask(() => {
        if (this.#socket !== null) events.connected()
      })
      parts.turn.ask()
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  send(octets: Uint8Array): void {
    if (this.#socket === null) return
    const { libc, batch } = this.#parts
    batch.beginSend()
    batch.addAnswer(noDestination, octets)
    // What a full buffer does not take is lost as on the way: it is sent again by who waits for the answer.
    if (libc.sendmmsg(this.#socket.fd, batch.sendFrom(0), 1, linux.MSG_DONTWAIT) >= 0) return
    const errno = libc.errno()
    if (errno !== linux.EAGAIN && errno !== linux.EINTR) this.#fail(systemError('send', errno))
  }

  close(onClosed: () => void): void {
    this.#poll?.close()
    this.#poll = null
    this.#socket?.close()
    this.#socket = null
    queueMicrotask(onClosed)
    this.#parts.turn.ask()
  }

  #open({ family }: Server): void {
    const { libc, batch } = this.#parts
    const { AF_INET, AF_INET6, SOCK_DGRAM, SOCK_NONBLOCK, SOCK_CLOEXEC } = linux
    const fd = libc.socket(family === 6 ? AF_INET6 : AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
    if (fd < 0) throw systemError('socket', libc.errno())
    this.#socket = new BatchedSocket(libc, batch, { address: '', port: 0 }, fd)
    // The kernel binds it to a free port of its choice, by chance.
    if (libc.connect(fd, this.#name, this.#name.length) < 0) throw systemError('connect', libc.errno())
    this.#name = peerName(libc, fd)
    this.#poll = libc.poll(fd, this.#read)
  }

  /** Called by the event loop. Nothing catches what it throws, so it must not. */
  readonly #read = (): void => {
    const { libc, batch, turn } = this.#parts
    turn.ask()
    try {
      for (let batches = 0; batches < connectedBatchesPerTurn; batches++) {
        const received = this.#socket?.receive() ?? 0
        if (received < 0) {
          this.#fail(systemError('recvmsg', libc.errno()))
          return
        }
        // An event without a datagram may be an error's, behind which a poll ends.
        if (received === 0 && batches === 0) this.#poll?.start({ readable: true, writable: false }, this.#read)
        const messages = Array.from({ length: received }, (_, slot) => ({
          octets: copyOf(batch.queries[slot]!, 0, batch.querySize(slot)),
          isFromServer: this.#isFromServer(slot)
        }))
        // Whoever hears of one may send, for which the batch is needed, or close the socket.
        for (const { octets, isFromServer } of messages) {
          if (this.#socket !== null) this.#events.message(octets, isFromServer)
        }
        if (received < batch.slots) return
      }
    } catch (error) {
      this.#fail(error as Error)
    }
  }

  /** Before it was connected the port was open to everybody. Only address and port are looked at. */
  #isFromServer(slot: number): boolean {
    const name = this.#parts.batch.nameOf(slot)
    if (name.length !== this.#name.length) return false
    const isV6 = this.#parts.batch.isIpv6(slot)
    // Of IPv6, what stands between port and address is the flow, and behind the address the interface.
    for (let at = 0; at < (isV6 ? 24 : 8); at++) {
      if (name[at] !== this.#name[at] && !(isV6 && at >= 4 && at < 8)) return false
    }
    return true
  }

  #fail(error: Error): void {
    queueMicrotask(() => this.#events.failed(error))
    this.#parts.turn.ask()
  }
}

/** The server's address, which is not always as it was given: 0.0.0.0 is this machine. */
function peerName(libc: Libc, fd: number): Uint8Array {
  const name = new Uint8Array(sockaddrIn6.size)
  const octets = Uint32Array.of(name.length)
  if (libc.getpeername(fd, name, new Uint8Array(octets.buffer)) < 0) throw systemError('getpeername', libc.errno())
  return name.subarray(0, octets[0])
}

function systemError(syscall: string, errno: number): NodeJS.ErrnoException {
  const code = getSystemErrorName(-errno)
  return Object.assign(new Error(`${syscall} ${code}`), { code, syscall })
}
