/**
 * A connection between two processes of this machine that carries short texts, and sockets with them (SCM_RIGHTS).
 *
 * Names are abstract: they belong to the network namespace, as the addresses do that are served in it, leave no file
 * behind, and go with the process that has them. Both sides may ask who the other one is; only processes of one user
 * talk to each other.
 */
import { getSystemErrorName } from 'node:util'
import { takeoverMessageOctets } from '../../base/socket-limits.ts'
import { cmsghdr, iovec, linux, mmsghdr, sockaddrUn, ucred } from '../mmsg/layout.ts'
import type { Libc, Poll } from '../mmsg/libc.ts'

export type ChannelEvents = Readonly<{
  /** `fd` is the receiver's from then on; null: none came with the text. */
  onMessage(text: string, fd: number | null): void
  /** The other side is gone. Called once, and not after `close`. */
  onClose(): void
}>

const descriptorOctets = 4
/** A control message with one descriptor, padded as the kernel wants it. */
const controlOctets = cmsghdr.data + 8
/** Where the parts of one message lie in the memory that the kernel is given. */
const at = { head: 0, vector: 64, control: 80, text: 80 + controlOctets } as const

export class UnixChannel {
  readonly #libc: Libc
  readonly #fd: number
  readonly #memory: ArrayBuffer
  readonly #octets: Uint8Array
  readonly #view: DataView
  readonly #address: number
  #events: ChannelEvents | null = null
  #poll: Poll | null = null
  #isReadDue = false
  #isClosed = false

  /**
   * Null where nobody of our user has this name.
   * @throws RangeError for a name of more than 107 octets
   */
  static connect(libc: Libc, name: string): UnixChannel | null {
    const { SOCK_SEQPACKET, SOCK_NONBLOCK, SOCK_CLOEXEC } = linux
    // One that accepts nobody any more must not hold us.
    const fd = libc.socket(linux.AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
    if (fd < 0) return null
    const address = abstractAddress(name)
    if (libc.connect(fd, address, address.length) === 0 && isOurUser(libc, fd)) return new UnixChannel(libc, fd)
    libc.close(fd)
    return null
  }

  /** Takes over a connected socket. */
  constructor(libc: Libc, fd: number) {
    this.#libc = libc
    this.#fd = fd
    this.#memory = new ArrayBuffer(at.text + takeoverMessageOctets)
    this.#octets = new Uint8Array(this.#memory)
    this.#view = new DataView(this.#memory)
    this.#address = libc.addressOf(this.#memory)
  }

  /** From now on messages are read. */
  start(events: ChannelEvents): void {
    this.#events = events
    // The callback of a poll runs no promises, and must not throw.
    this.#poll = this.#libc.poll(this.#fd, () => {
      if (this.#isReadDue) return
      this.#isReadDue = true
      // In the loop's next step, which runs promises.
      setImmediate(() => {
        this.#isReadDue = false
        this.#read()
      })
    })
  }

  /**
   * False where the other side is gone, or takes nothing more.
   * @param text at most `takeoverMessageOctets` in UTF-8
   * @throws RangeError where it is longer
   */
  send(text: string, fd: number | null = null): boolean {
    const octets = new TextEncoder().encode(text)
    if (octets.length > takeoverMessageOctets) throw new RangeError(`too long for a message: ${octets.length} octets`)
    if (this.#isClosed) return false
    this.#prepare(octets.length, fd === null ? 0 : controlOctets)
    this.#octets.set(octets, at.text)
    if (fd !== null) {
      this.#setNumber(at.control + cmsghdr.octets, cmsghdr.data + descriptorOctets)
      this.#view.setInt32(at.control + cmsghdr.level, linux.SOL_SOCKET, true)
      this.#view.setInt32(at.control + cmsghdr.type, linux.SCM_RIGHTS, true)
      this.#view.setInt32(at.control + cmsghdr.data, fd, true)
    }
    const flags = linux.MSG_DONTWAIT | linux.MSG_NOSIGNAL
    return this.#libc.sendmsg(this.#fd, this.#address + at.head, flags) === octets.length
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#poll?.close()
    this.#libc.close(this.#fd)
  }

  #read(): void {
    while (!this.#isClosed) {
      this.#prepare(takeoverMessageOctets, controlOctets)
      const flags = linux.MSG_DONTWAIT | linux.MSG_CMSG_CLOEXEC
      const size = this.#libc.recvmsg(this.#fd, this.#address + at.head, flags)
      if (size < 0) {
        const errno = this.#libc.errno()
        if (errno === linux.EINTR) continue
        if (errno === linux.EAGAIN) return
      }
      if (size <= 0) {
        this.close()
        this.#events!.onClose()
        return
      }
      const text = new TextDecoder().decode(this.#octets.subarray(at.text, at.text + size))
      this.#events!.onMessage(text, this.#descriptor())
    }
  }

  /** The descriptor that came with the last message. */
  #descriptor(): number | null {
    const octets = this.#view.getUint32(at.head + mmsghdr.controlOctets, true)
    const isWhole =
      octets >= cmsghdr.data + descriptorOctets &&
      this.#view.getUint32(at.control + cmsghdr.octets, true) === cmsghdr.data + descriptorOctets &&
      this.#view.getInt32(at.control + cmsghdr.level, true) === linux.SOL_SOCKET &&
      this.#view.getInt32(at.control + cmsghdr.type, true) === linux.SCM_RIGHTS
    return isWhole ? this.#view.getInt32(at.control + cmsghdr.data, true) : null
  }

  /** One message head for a text with room for so many octets, and a control message. */
  #prepare(textOctets: number, control: number): void {
    this.#octets.fill(0, 0, at.text)
    this.#setNumber(at.head + mmsghdr.iov, this.#address + at.vector)
    this.#setNumber(at.head + mmsghdr.iovCount, 1)
    this.#setNumber(at.vector + iovec.base, this.#address + at.text)
    this.#setNumber(at.vector + iovec.octets, textOctets)
    if (control === 0) return
    this.#setNumber(at.head + mmsghdr.control, this.#address + at.control)
    this.#setNumber(at.head + mmsghdr.controlOctets, control)
  }

  /** Writes a number below 2^53 into a field of 64 bits. */
  #setNumber(offset: number, value: number): void {
    this.#view.setUint32(offset, value >>> 0, true)
    this.#view.setUint32(offset + 4, Math.floor(value / 0x1_0000_0000), true)
  }
}

/** Waits for connections under an abstract name. */
export class UnixListener {
  readonly #libc: Libc
  readonly #fd: number
  readonly #poll: Poll
  #isClosed = false

  /**
   * @param onConnection gets connections of our user only.
   * @throws Error with a `code` where the name is taken (EADDRINUSE); RangeError for a name of more than 107 octets
   */
  constructor(libc: Libc, name: string, onConnection: (channel: UnixChannel) => void) {
    this.#libc = libc
    const { SOCK_SEQPACKET, SOCK_NONBLOCK, SOCK_CLOEXEC } = linux
    this.#fd = libc.socket(linux.AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)
    if (this.#fd < 0) throw systemError(libc, 'socket')
    const address = abstractAddress(name)
    try {
      if (libc.bind(this.#fd, address, address.length) < 0) throw systemError(libc, 'bind')
      if (libc.listen(this.#fd, 8) < 0) throw systemError(libc, 'listen')
    } catch (error) {
      libc.close(this.#fd)
      throw error
    }
    this.#poll = libc.poll(this.#fd, () => {
      // In the loop's next step, which runs promises.
      setImmediate(() => this.#accept(onConnection))
    })
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#poll.close()
    this.#libc.close(this.#fd)
  }

  #accept(onConnection: (channel: UnixChannel) => void): void {
    while (!this.#isClosed) {
      const fd = this.#libc.accept4(this.#fd, null, null, linux.SOCK_CLOEXEC)
      if (fd < 0) return
      if (isOurUser(this.#libc, fd)) onConnection(new UnixChannel(this.#libc, fd))
      else this.#libc.close(fd)
    }
  }
}

function abstractAddress(name: string): Uint8Array {
  const octets = new TextEncoder().encode(name)
  if (octets.length + 1 > sockaddrUn.size - sockaddrUn.path) throw new RangeError(`too long for a name: ${name}`)
  const address = new Uint8Array(sockaddrUn.path + 1 + octets.length)
  address[sockaddrUn.family] = linux.AF_UNIX
  address.set(octets, sockaddrUn.path + 1)
  return address
}

/** Whether the other side of a connected socket runs as the user that we are. */
function isOurUser(libc: Libc, fd: number): boolean {
  const value = new Uint8Array(ucred.size)
  const octets = new Uint8Array(Uint32Array.of(value.length).buffer)
  if (libc.getsockopt(fd, linux.SOL_SOCKET, linux.SO_PEERCRED, value, octets) < 0) return false
  return new DataView(value.buffer).getUint32(ucred.uid, true) === process.geteuid?.()
}

function systemError(libc: Libc, call: string): NodeJS.ErrnoException {
  const code = getSystemErrorName(-libc.errno())
  return Object.assign(new Error(`${call} ${code}`), { code, syscall: call })
}
