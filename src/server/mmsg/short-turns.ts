/**
 * Lets a thread that answers run soon when datagrams come, though another one is in the middle of its turn.
 *
 * Linux gives who has slept its turn sooner the shorter its turns are, and since 6.12 a thread may ask for shorter ones
 * than the usual three milliseconds, whoever it is. What the thread gets in all stays as it was.
 */
import { getPriority } from 'node:os'
import { linux, schedAttr } from './layout.ts'
import type { Libc } from './libc.ts'

/** The shortest that there are. */
const turnNanoseconds = 100_000n

/** For the calling thread. False where the kernel refuses, which changes nothing; one before 6.12 takes it for nothing. */
export function askForShortTurns(libc: Libc): boolean {
  const attributes = new Uint8Array(schedAttr.size)
  const view = new DataView(attributes.buffer)
  view.setUint32(schedAttr.octets, schedAttr.size, true)
  view.setBigUint64(schedAttr.flags, BigInt(linux.SCHED_FLAG_KEEP_POLICY), true)
  view.setInt32(schedAttr.nice, getPriority(), true)
  view.setBigUint64(schedAttr.runtime, turnNanoseconds, true)
  return libc.schedSetattr(0, attributes, 0) === 0
}
