/**
 * The listening sockets of this process that another one may take over, and those that were taken over.
 *
 * One descriptor of each is kept here, and whoever listens gets a copy: closing that copy neither closes the socket nor
 * loses what waits in it. So the sockets live as long as this is not closed, here or in the process that has been given
 * them.
 */
import { getSystemErrorName } from 'node:util'
import { isIPv6 } from 'node:net'
import type { ListenAddress } from '../listen-address.ts'
import { socketName } from '../mmsg/batched-socket.ts'
import { linux, sockaddrIn, sockaddrIn6 } from '../mmsg/layout.ts'
import type { Libc } from '../mmsg/libc.ts'

/** Node's own. */
const backlog = 511

type Transport = 'udp' | 'tcp'

/** How two processes name a socket: `udp 127.0.0.1:53`, and `udp 127.0.0.1:53 #1` for the next one on that address. */
export const socketKey = (transport: Transport, { address, port }: ListenAddress, number = 0): string =>
  `${transport} ${isIPv6(address) ? `[${address}]` : address}:${port}${number === 0 ? '' : ` #${number}`}`

export class ListeningSockets {
  readonly #libc: Libc
  readonly #kept: Map<string, number>
  readonly #used = new Set<string>()

  /** @param taken what another process has given, by `socketKey` */
  constructor(libc: Libc, taken: ReadonlyMap<string, number> = new Map()) {
    this.#libc = libc
    this.#kept = new Map(taken)
  }

  /** All of them, by `socketKey`. */
  get kept(): ReadonlyMap<string, number> {
    return this.#kept
  }

  /** How many UDP sockets are kept for an address. */
  udpSockets(where: ListenAddress): number {
    let number = 0
    while (this.#kept.has(socketKey('udp', where, number))) number++
    return number
  }

  /**
   * A copy of the UDP socket that is kept for an address, by its number there; null: there is none.
   * @throws Error with a `code` where the process may not have another descriptor (EMFILE)
   */
  udp(where: ListenAddress, number = 0): number | null {
    return this.#copyOf(socketKey('udp', where, number))
  }

  /**
   * Keeps a UDP socket that was bound elsewhere.
   * @throws Error with a `code` where the process may not have another descriptor (EMFILE)
   */
  keepUdp(where: ListenAddress, fd: number, number = 0): void {
    const key = socketKey('udp', where, number)
    this.#used.add(key)
    if (!this.#kept.has(key)) this.#kept.set(key, this.#copy(fd))
  }

  /**
   * A copy of the TCP socket that is kept for an address, or of a new one, bound to it.
   * @returns the descriptor and its port; null for an address with a zone id, which is left to those who know
   * interfaces
   * @throws Error with a `code`, as Node's sockets do: EADDRINUSE, EADDRNOTAVAIL, EACCES, EMFILE
   */
  tcp(where: ListenAddress, options: Readonly<{ ipv6Only: boolean }>): Readonly<{ fd: number; port: number }> | null {
    if (where.address.includes('%')) return null
    const known = this.#copyOf(socketKey('tcp', where))
    if (known !== null) return { fd: known, port: where.port }
    const fd = this.#bindTcp(where, options.ipv6Only)
    const port = this.#portOf(fd)
    const key = socketKey('tcp', { ...where, port })
    this.#kept.set(key, fd)
    return { fd: this.#copyOf(key)!, port }
  }

  /** Closes what was taken over and nobody asked for. */
  closeUnused(): void {
    for (const [key, fd] of this.#kept) {
      if (this.#used.has(key)) continue
      this.#libc.close(fd)
      this.#kept.delete(key)
    }
  }

  close(): void {
    for (const fd of this.#kept.values()) this.#libc.close(fd)
    this.#kept.clear()
  }

  #copyOf(key: string): number | null {
    this.#used.add(key)
    const fd = this.#kept.get(key)
    return fd === undefined ? null : this.#copy(fd)
  }

  #copy(fd: number): number {
    const copy = this.#libc.fcntl(fd, linux.F_DUPFD_CLOEXEC, 0)
    if (copy < 0) throw this.#error('fcntl')
    return copy
  }

  /** A socket that is listened on as Node would. */
  #bindTcp(where: ListenAddress, ipv6Only: boolean): number {
    const libc = this.#libc
    const family = isIPv6(where.address) ? linux.AF_INET6 : linux.AF_INET
    const fd = libc.socket(family, linux.SOCK_STREAM | linux.SOCK_NONBLOCK | linux.SOCK_CLOEXEC, 0)
    if (fd < 0) throw this.#error('socket')
    const set = (level: number, option: number, value: number): void => {
      const octets = new Uint8Array(Int32Array.of(value).buffer)
      if (libc.setsockopt(fd, level, option, octets, octets.length) < 0) throw this.#error('setsockopt')
    }
    try {
      set(linux.SOL_SOCKET, linux.SO_REUSEADDR, 1)
      if (family === linux.AF_INET6) set(linux.IPPROTO_IPV6, linux.IPV6_V6ONLY, ipv6Only ? 1 : 0)
      const name = socketName(where.address, where.port)
      if (libc.bind(fd, name, name.length) < 0) throw this.#error('bind')
      if (libc.listen(fd, backlog) < 0) throw this.#error('listen')
      return fd
    } catch (error) {
      libc.close(fd)
      throw error
    }
  }

  #portOf(fd: number): number {
    const name = new Uint8Array(sockaddrIn6.size)
    const octets = new Uint8Array(Uint32Array.of(name.length).buffer)
    if (this.#libc.getsockname(fd, name, octets) < 0) throw this.#error('getsockname')
    return (name[sockaddrIn.port]! << 8) | name[sockaddrIn.port + 1]!
  }

  #error(call: string): NodeJS.ErrnoException {
    const code = getSystemErrorName(-this.#libc.errno())
    return Object.assign(new Error(`${call} ${code}`), { code, syscall: call })
  }
}
