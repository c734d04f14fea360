/**
 * The few functions of the C library that sockets in batches need, called through the package koffi.
 *
 * koffi is optional: it is loaded only here, and only where it is installed. Its interface for polling is not
 * documented; the exact version is pinned, and the self-test uses it before anybody relies on it.
 */
import { schedSetattrNumber } from './layout.ts'
import type { AddressOf } from './message-batch.ts'

/** Functions return -1 for an error, and `errno` then tells which. Addresses are numbers below 2^53. */
export type Libc = Readonly<{
  socket(family: number, type: number, protocol: number): number
  bind(fd: number, name: Uint8Array, octets: number): number
  getsockname(fd: number, name: Uint8Array, octets: Uint8Array): number
  getpeername(fd: number, name: Uint8Array, octets: Uint8Array): number
  setsockopt(fd: number, level: number, option: number, value: Uint8Array, octets: number): number
  getsockopt(fd: number, level: number, option: number, value: Uint8Array, octets: Uint8Array): number
  connect(fd: number, name: Uint8Array, octets: number): number
  listen(fd: number, backlog: number): number
  accept4(fd: number, name: null, octets: null, flags: number): number
  sendmsg(fd: number, head: number, flags: number): number
  recvmsg(fd: number, head: number, flags: number): number
  recvmmsg(fd: number, heads: number, count: number, flags: number, timeout: 0): number
  sendmmsg(fd: number, heads: number, count: number, flags: number): number
  fcntl(fd: number, command: number, value: number): number
  /** poll(2), which waits; `heads` are `pollfd`. */
  waitFor(heads: Uint8Array, count: number, timeoutMs: number): number
  getrusage(who: number, usage: Uint8Array): number
  /** sched_setattr(2) for a thread of this process (0: the calling one), which has no function in the C library. */
  schedSetattr(thread: number, attributes: Uint8Array, flags: number): number
  /** Gives memory that was freed back to the system; null where the C library has no such function. */
  mallocTrim: ((keepOctets: number) => number) | null
  close(fd: number): number
  errno(): number
  addressOf: AddressOf
  /** Calls back in the event loop while the socket can be read (or, with `writable`, written). Must not throw. */
  poll(fd: number, callback: () => void): Poll
}>

export type Poll = Readonly<{
  /** What to wait for from now on. */
  start(events: Readonly<{ readable: boolean; writable: boolean }>, callback: () => void): void
  close(): void
}>

/** What of koffi is used; its own types are missing where it is not installed. */
type Koffi = Readonly<{
  // The functions are what their C prototypes say, which no type can know.
  load(library: null): { func(prototype: string): (...values: readonly unknown[]) => number }
  address(buffer: ArrayBuffer): bigint
  errno(): number
  node: { poll(fd: number, events: { readable: boolean }, callback: () => void): Poll }
}>

/** The C library of this process. @throws where this is no 64-bit Linux on x86_64 or aarch64, or koffi is missing. */
export async function loadLibc(): Promise<Libc> {
  const { platform, arch } = process
  if (platform !== 'linux' || (arch !== 'x64' && arch !== 'arm64'))
    throw new Error(`not made for ${platform} on ${arch}`)
  const name: string = 'koffi'
  const { default: koffi } = (await import(name)) as { default: Koffi }
  const library = koffi.load(null)
  const { node } = koffi
  const syscall = library.func('long syscall(long, long, uint8_t *, unsigned long)')
  return {
    socket: library.func('int socket(int, int, int)'),
    bind: library.func('int bind(int, uint8_t *, uint32_t)'),
    getsockname: library.func('int getsockname(int, _Out_ uint8_t *, _Inout_ uint8_t *)'),
    getpeername: library.func('int getpeername(int, _Out_ uint8_t *, _Inout_ uint8_t *)'),
    setsockopt: library.func('int setsockopt(int, int, int, uint8_t *, uint32_t)'),
    getsockopt: library.func('int getsockopt(int, int, int, _Out_ uint8_t *, _Inout_ uint8_t *)'),
    connect: library.func('int connect(int, uint8_t *, uint32_t)'),
    listen: library.func('int listen(int, int)'),
    accept4: library.func('int accept4(int, void *, void *, int)'),
    sendmsg: library.func('intptr_t sendmsg(int, uintptr_t, int)'),
    recvmsg: library.func('intptr_t recvmsg(int, uintptr_t, int)'),
    recvmmsg: library.func('int recvmmsg(int, uintptr_t, unsigned int, int, uintptr_t)'),
    sendmmsg: library.func('int sendmmsg(int, uintptr_t, unsigned int, int)'),
    fcntl: library.func('int fcntl(int, int, int)'),
    waitFor: library.func('int poll(_Inout_ uint8_t *, unsigned long, int)'),
    getrusage: library.func('int getrusage(int, _Out_ uint8_t *)'),
    schedSetattr: (thread, attributes, flags) => syscall(schedSetattrNumber[arch], thread, attributes, flags),
    mallocTrim: functionOrNull(() => library.func('int malloc_trim(size_t)')),
    close: library.func('int close(int)'),
    errno: () => koffi.errno(),
    addressOf: (buffer) => Number(koffi.address(buffer)),
    poll: (fd, callback) => node.poll(fd, { readable: true }, callback)
  }
}

function functionOrNull<Function>(find: () => Function): Function | null {
  try {
    return find()
  } catch {
    return null
  }
}
