/**
 * The sockets that share one address (SO_REUSEPORT), and the program by which the kernel chooses among them.
 *
 * Without a program the kernel goes by a hash of addresses and ports, so few clients load sockets unevenly, and half as
 * many datagrams wait in each. With it, one socket gets everything while that can be borne: its batches stay full, and
 * the others sleep. The kernel counts the sockets in the order in which they were bound.
 */
import { linux, sockFilter, sockFprog } from './layout.ts'
import type { Libc } from './libc.ts'

/** Instructions of classic BPF, and where it finds a random number. `linux/filter.h`. */
export const bpf = {
  loadWord: 0x20,
  modulo: 0x94,
  jumpIfEqual: 0x15,
  returnValue: 0x06,
  random: 0xffff_f000 + 56
} as const

/**
 * Lets each datagram for an address go to one of these sockets, by chance; false where the kernel knows no programs.
 * @param fd any of the address's sockets
 * @param numbers of sockets, at least one; the first was bound first and has number 0
 */
export function steer(libc: Libc, fd: number, numbers: readonly number[]): boolean {
  const program = programFor(numbers)
  const fprog = new Uint8Array(sockFprog.size)
  new Uint16Array(fprog.buffer)[sockFprog.count] = program.length / sockFilter.size
  new BigUint64Array(fprog.buffer)[sockFprog.filter / 8] = BigInt(libc.addressOf(program.buffer))
  return libc.setsockopt(fd, linux.SOL_SOCKET, linux.SO_ATTACH_REUSEPORT_CBPF, fprog, fprog.length) === 0
}

function programFor(numbers: readonly number[]): Uint8Array<ArrayBuffer> {
  if (numbers.length === 0 || numbers.length > 200) throw new RangeError(`no number of sockets: ${numbers.length}`)
  const instructions: (readonly [code: number, ifTrue: number, ifFalse: number, value: number])[] = []
  if (numbers.length > 1) {
    instructions.push([bpf.loadWord, 0, 0, bpf.random], [bpf.modulo, 0, 0, numbers.length])
    // Behind each comparison that fails the next one follows; one that holds goes to the return below it.
    for (const [at, number] of numbers.slice(1).entries()) {
      instructions.push([bpf.jumpIfEqual, 0, 1, at + 1], [bpf.returnValue, 0, 0, number])
    }
  }
  instructions.push([bpf.returnValue, 0, 0, numbers[0]!])
  const program = new Uint8Array(instructions.length * sockFilter.size)
  const view = new DataView(program.buffer)
  for (const [at, [code, ifTrue, ifFalse, value]] of instructions.entries()) {
    const start = at * sockFilter.size
    view.setUint16(start + sockFilter.code, code, true)
    view.setUint8(start + sockFilter.ifTrue, ifTrue)
    view.setUint8(start + sockFilter.ifFalse, ifFalse)
    view.setUint32(start + sockFilter.value, value, true)
  }
  return program
}
