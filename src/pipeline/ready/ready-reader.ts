/**
 * Answers in a worker: what another thread has made ready in shared memory, as ReadyAnswers gives it, with the same
 * octets. Whatever is not ready, not plain or being written is left to that thread.
 */
import { readyAnswerOctets, readyAnswerSlots } from '../../base/limits.ts'
import type { ClientWords } from '../../server/mmsg/message-batch.ts'
import { noGroup } from './client-groups.ts'
import { ReadyCopy } from './ready-copy.ts'
import { audienceShift, ReadyQuestion } from './ready-question.ts'
import { field, maxDependencies, ReadyTable } from './ready-table.ts'
import type { ReadyUses } from './ready-uses.ts'
import { fact, shared, type SharedReady } from './shared-ready.ts'

export class ReadyReader {
  readonly #shared: SharedReady
  readonly #uses: ReadyUses
  readonly #table: ReadyTable
  readonly #copy: ReadyCopy
  readonly #question = new ReadyQuestion()
  #sinceLogged = 0

  constructor(sharedReady: SharedReady, worker: number, random: () => number) {
    this.#shared = sharedReady
    this.#uses = sharedReady.uses[worker]!
    this.#table = new ReadyTable(readyAnswerOctets, readyAnswerSlots, sharedReady.tableMemory)
    this.#copy = new ReadyCopy(this.#table, random)
  }

  /**
   * Writes the answer to a datagram into `out` and returns its octets; 0 where it is not for this thread.
   * @param nowMs by the clock of the thread that writes
   */
  answer(octets: Uint8Array, size: number, client: ClientWords, out: Uint8Array, nowMs: number): number {
    const { words, facts, clients } = this.#shared
    const question = this.#question
    if (words[shared.isOpen] === 0 || !question.read(octets, size, true)) return 0
    const logEvery = words[shared.logEvery]!
    if (logEvery > 0 && ++this.#sinceLogged >= logEvery) {
      this.#sinceLogged = 0
      return 0
    }
    const sequence = Atomics.load(words, shared.sequence)
    if ((sequence & 1) !== 0) return 0
    const generation = words[shared.generation]!
    const group = clients.find(client, generation)
    if (group === noGroup) return 0
    const { hash, end } = question
    const limit = question.limitOctets < out.length ? question.limitOctets : out.length
    const block = this.#table.find(hash, question.flags | (group << audienceShift), octets, end, limit)
    if (block < 0 || !this.#holds(block, generation)) return 0
    const number = this.#table.words[block + field.number]!
    const first = number * fact.perAnswer
    const revision = facts[first + fact.revision]!
    if (revision !== -1 && revision !== words[shared.revision]) return 0
    const zone = facts[first + fact.zone]!
    let ageSeconds: number | null = null
    let serial: number | null = null
    if (zone >= 0) {
      if (words[shared.isSilent] !== 0 || !(nowMs < this.#shared.liveUntilMs[zone]!)) return 0
      serial = this.#shared.serials[zone]!
    } else {
      if (!(nowMs < facts[first + fact.validUntilMs]!)) return 0
      ageSeconds = Math.max(0, Math.floor((nowMs - facts[first + fact.storedAtMs]!) / 1000))
    }
    const written = this.#copy.write(block, octets, end, out, ageSeconds, serial)
    this.#uses.orderReads()
    if (written === 0 || Atomics.load(words, shared.sequence) !== sequence) return 0
    this.#uses.note(number, nowMs)
    return written
  }

  #holds(block: number, generation: number): boolean {
    const { words } = this.#table
    const { versions } = this.#shared
    if (words[block + field.generation] !== generation) return false
    const dependencies = words[block + field.dependencies]!
    if (!(dependencies >= 0 && dependencies <= maxDependencies)) return false
    for (let at = block + field.firstDependency; at < block + field.firstDependency + dependencies * 2; at += 2) {
      if (versions[words[at]!] !== words[at + 1]) return false
    }
    return true
  }
}
