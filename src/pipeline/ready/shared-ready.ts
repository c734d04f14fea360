/**
 * Ready-made answers in memory that threads share: one thread writes (it has the zones, the cache and the policies),
 * workers read and copy.
 *
 * Nothing is told to a worker: what ends an answer (a version of a name, the generation, the revision of the standings)
 * is a number in this memory, so it ends in all threads at the moment it is written. A number that is odd while
 * something is being written, and another one afterwards, tells a reader that what it has copied may be torn.
 */
import { maxSharedZones, readyAnswerOctets, readyAnswerSlots, sharedClientGroups } from '../../base/limits.ts'
import { ClientGroups, clientGroupsOctets } from './client-groups.ts'
import { ReadyUses, readyUsesOctets } from './ready-uses.ts'
import { readyIndexOctets, type ReadyMemory } from './ready-table.ts'

/** Names share versions: a change of one may end answers of another, which are then made anew. A power of two. */
export const nameVersions = 131_072

/** Words that are written often lie in cache lines of their own. */
export const shared = {
  /** Odd while the table or the groups of clients are being written. */
  sequence: 0,
  generation: 16,
  /** That of the standings. */
  revision: 17,
  /** 0: every query is for the thread that writes. */
  isOpen: 18,
  /** 1: what our zones say is said with a reason, so nothing of them is ready. */
  isSilent: 19,
  /** One query in this many is for the thread that writes, which logs it; 0: none. */
  logEvery: 20
} as const
const sharedWords = 32

/** Numbers for each answer of the table. */
export const fact = {
  /** By the clock of the thread that writes, in milliseconds. */
  validUntilMs: 0,
  storedAtMs: 1,
  /** That of the standings which the answer rests on; -1: on none. */
  revision: 2,
  /** Whose serial a denial carries, as an index of `serials` and `liveUntilMs`; -1: the answer comes from the cache. */
  zone: 3,
  perAnswer: 4
} as const

export type SharedReadyBuffers = Readonly<{
  octets: SharedArrayBuffer
  index: SharedArrayBuffer
  facts: SharedArrayBuffer
  versions: SharedArrayBuffer
  words: SharedArrayBuffer
  clockOffset: SharedArrayBuffer
  serials: SharedArrayBuffer
  liveUntilMs: SharedArrayBuffer
  clients: SharedArrayBuffer
  uses: readonly SharedArrayBuffer[]
}>

const memory = (octets: number): SharedArrayBuffer => new SharedArrayBuffer(octets)

/** New memory, which costs nothing until it is used. */
export function sharedReadyBuffers(workers: number): SharedReadyBuffers {
  return {
    octets: memory(Math.floor(readyAnswerOctets / 16) * 16),
    index: memory(readyIndexOctets(readyAnswerSlots)),
    facts: memory(readyAnswerSlots * fact.perAnswer * 8),
    versions: memory(nameVersions * 4),
    words: memory(sharedWords * 4),
    clockOffset: memory(8),
    serials: memory(maxSharedZones * 4),
    liveUntilMs: memory(maxSharedZones * 8),
    clients: memory(clientGroupsOctets(sharedClientGroups)),
    uses: Array.from({ length: workers }, () => memory(readyUsesOctets(readyAnswerSlots)))
  }
}

export class SharedReady {
  readonly buffers: SharedReadyBuffers
  readonly facts: Float64Array
  readonly versions: Int32Array
  readonly words: Int32Array
  /** Of our zones, and of copies of peers' zones. */
  readonly serials: Int32Array
  /** Until when each of them may be answered from, by the clock of the thread that writes. */
  readonly liveUntilMs: Float64Array
  readonly clients: ClientGroups
  /** One for each worker. */
  readonly uses: readonly ReadyUses[]
  readonly #clockOffset: Float64Array

  constructor(buffers: SharedReadyBuffers) {
    this.buffers = buffers
    this.facts = new Float64Array(buffers.facts)
    this.versions = new Int32Array(buffers.versions)
    this.words = new Int32Array(buffers.words)
    this.serials = new Int32Array(buffers.serials)
    this.liveUntilMs = new Float64Array(buffers.liveUntilMs)
    this.clients = new ClientGroups(buffers.clients)
    this.uses = buffers.uses.map((buffer) => new ReadyUses(buffer))
    this.#clockOffset = new Float64Array(buffers.clockOffset)
  }

  get tableMemory(): ReadyMemory {
    return this.buffers
  }

  /** What is to be added to the time of the process for that of the clock of the thread that writes, in milliseconds. */
  get clockOffsetMs(): number {
    return this.#clockOffset[0]!
  }

  set clockOffsetMs(offsetMs: number) {
    this.#clockOffset[0] = offsetMs
  }

  /** Runs what writes the table or the groups of clients. Only for the one thread that writes. */
  write<Result>(change: () => Result): Result {
    const { words } = this
    Atomics.store(words, shared.sequence, words[shared.sequence]! + 1)
    // A load behind the store keeps what is written next behind it, on every processor.
    Atomics.load(words, shared.sequence)
    try {
      return change()
    } finally {
      Atomics.store(words, shared.sequence, words[shared.sequence]! + 1)
    }
  }
}

/** New memory for so many workers; null for none. */
export const sharedReadyFor = (workers: number): SharedReady | null =>
  workers === 0 ? null : new SharedReady(sharedReadyBuffers(workers))
