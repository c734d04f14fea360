/** One non-blocking UDP socket of the C library: opened, read and sent to in batches. */
import { getSystemErrorName } from 'node:util'
import { isIPv6 } from 'node:net'
import { readAddress, addressWords } from '../../base/ip-address.ts'
import { linux, sockaddrIn, sockaddrIn6, timeval } from './layout.ts'
import type { Libc } from './libc.ts'
import type { MessageBatch } from './message-batch.ts'

/** What came of sending a batch. */
export type SendOutcome = {
  /** Answers that the kernel refused. */
  errors: number
  /** The first answer that it takes no more of at the moment, or the number of answers. */
  end: number
}

export class BatchedSocket {
  readonly fd: number
  readonly #libc: Libc
  readonly #batch: MessageBatch
  readonly #outcome: SendOutcome = { errors: 0, end: 0 }

  /**
   * Binds to an address of this machine, without zone id.
   * @param boundFd a socket that is bound to it already, by this class: it is ours from then on
   * @param isShared other sockets may be bound to the same address before (SO_REUSEPORT)
   * @throws an error with a `code`, as Node's sockets do.
   */
  constructor(
    libc: Libc,
    batch: MessageBatch,
    where: Readonly<{ address: string; port: number }>,
    boundFd: number | null = null,
    isShared = false
  ) {
    this.#libc = libc
    this.#batch = batch
    if (boundFd !== null) {
      this.fd = boundFd
      return
    }
    const isV6 = isIPv6(where.address)
    const { SOCK_DGRAM, SOCK_NONBLOCK, SOCK_CLOEXEC } = linux
    this.fd = libc.socket(isV6 ? linux.AF_INET6 : linux.AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
    if (this.fd < 0) throw this.#error('socket')
    try {
      if (isShared) this.share()
      if (isV6) this.#set(linux.IPPROTO_IPV6, linux.IPV6_V6ONLY, 1)
      // Where every address of the machine is listened on, answers must leave from the one that was asked.
      if (where.address === '0.0.0.0') this.#set(linux.IPPROTO_IP, linux.IP_PKTINFO, 1)
      if (isV6 && readsAsZero(where.address)) this.#set(linux.IPPROTO_IPV6, linux.IPV6_RECVPKTINFO, 1)
      const name = socketName(where.address, where.port)
      if (libc.bind(this.fd, name, name.length) < 0) throw this.#error('bind')
    } catch (error) {
      libc.close(this.fd)
      throw error
    }
  }

  get port(): number {
    const name = new Uint8Array(sockaddrIn6.size)
    const octets = new Uint8Array(Uint32Array.of(name.length).buffer)
    if (this.#libc.getsockname(this.fd, name, octets) < 0) throw this.#error('getsockname')
    return (name[sockaddrIn.port]! << 8) | name[sockaddrIn.port + 1]!
  }

  /** Asks for a receive buffer; the kernel may give less. False where it gives its default. */
  setReceiveBuffer(octets: number): boolean {
    const value = new Uint8Array(Int32Array.of(octets).buffer)
    return this.#libc.setsockopt(this.fd, linux.SOL_SOCKET, linux.SO_RCVBUF, value, value.length) === 0
  }

  /** Lets sockets of this user that are bound from now on have the same address. */
  share(): void {
    this.#set(linux.SOL_SOCKET, linux.SO_REUSEPORT, 1)
  }

  /**
   * Lets `receive` wait, for the shortest time that the kernel knows unless another one is given, in microseconds below
   * a second; false where it cannot. All else says MSG_DONTWAIT with each call. To be called behind whoever makes the
   * socket non-blocking, as the event loop does.
   */
  allowWaiting(microseconds = 1): boolean {
    const { SOL_SOCKET, SO_RCVTIMEO, F_GETFL, F_SETFL, SOCK_NONBLOCK } = linux
    const time = new Uint8Array(timeval.size)
    new Uint32Array(time.buffer)[timeval.microseconds >> 2] = microseconds
    if (this.#libc.setsockopt(this.fd, SOL_SOCKET, SO_RCVTIMEO, time, time.length) < 0) return false
    const flags = this.#libc.fcntl(this.fd, F_GETFL, 0)
    return flags >= 0 && this.#libc.fcntl(this.fd, F_SETFL, flags & ~SOCK_NONBLOCK) >= 0
  }

  /**
   * Takes what there is, as far as the batch has room: the number of messages, 0 for none, -1 for an error.
   * @param isWaiting for the first message, a moment; only after `allowWaiting`
   */
  receive(isWaiting = false): number {
    const flags = isWaiting ? linux.MSG_WAITFORONE : linux.MSG_DONTWAIT
    const count = this.#libc.recvmmsg(this.fd, this.#batch.prepareReceive(), this.#batch.slots, flags, 0)
    this.#batch.noteReceived(count < 0 ? 0 : count)
    if (count >= 0) return count
    const errno = this.#libc.errno()
    return errno === linux.EAGAIN || errno === linux.EINTR ? 0 : -1
  }

  /** Sends the batch's answers from one on. What is returned is good until the next call. */
  send(from = 0): SendOutcome {
    const batch = this.#batch
    const outcome = this.#outcome
    const count = batch.answered
    outcome.errors = 0
    let at = from
    while (at < count) {
      const sent = this.#libc.sendmmsg(this.fd, batch.sendFrom(at), count - at, linux.MSG_DONTWAIT)
      if (sent > 0) {
        at += sent
        continue
      }
      const errno = this.#libc.errno()
      if (errno === linux.EAGAIN) break
      if (errno === linux.EINTR) continue
      outcome.errors += 1
      at += 1
    }
    outcome.end = at
    return outcome
  }

  close(): void {
    this.#libc.close(this.fd)
  }

  #set(level: number, option: number, value: number): void {
    const octets = new Uint8Array(Int32Array.of(value).buffer)
    if (this.#libc.setsockopt(this.fd, level, option, octets, octets.length) < 0) throw this.#error('setsockopt')
  }

  #error(call: string): NodeJS.ErrnoException {
    const code = getSystemErrorName(-this.#libc.errno())
    return Object.assign(new Error(`${call} ${code}`), { code, syscall: call })
  }
}

const readsAsZero = (address: string): boolean => readAddress(address) === 6 && addressWords.every((word) => word === 0)

/** The socket address in the kernel's form. The address must be one (`isIP`). */
export function socketName(address: string, port: number): Uint8Array {
  const family = isIPv6(address) ? 6 : 4
  const name = new Uint8Array(family === 6 ? sockaddrIn6.size : sockaddrIn.size)
  name[sockaddrIn.family] = family === 6 ? linux.AF_INET6 : linux.AF_INET
  name[sockaddrIn.port] = port >>> 8
  name[sockaddrIn.port + 1] = port
  const view = new DataView(name.buffer)
  readAddress(address)
  if (family === 4) view.setUint32(sockaddrIn.address, addressWords[0]!)
  else for (let word = 0; word < 4; word++) view.setUint32(sockaddrIn6.address + word * 4, addressWords[word]!)
  return name
}
