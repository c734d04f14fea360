/**
 * The side of shared ready-made answers that writes: what workers have to know besides the octets of an answer, and
 * when nothing of it holds any more.
 */
import { maxSharedZones } from '../../base/limits.ts'
import { processTimeMs } from '../../base/clock.ts'
import type { ClientWords } from '../../server/mmsg/message-batch.ts'
import type { MirroredZone } from '../../transfer/mirrored-zone.ts'
import type { ZoneStore } from '../../zone/zone-store.ts'
import type { Parts } from '../parts.ts'
import { ReadyCopy } from './ready-copy.ts'
import type { ReadySource } from './ready-basis.ts'
import type { ReadyTable } from './ready-table.ts'
import { fact, shared, type SharedReady, type SharedReadyBuffers } from './shared-ready.ts'

/** For what no worker may give. */
const neverValidMs = Number.NEGATIVE_INFINITY

export class SharedWriter {
  /** Reads an answer without altering it. */
  readonly copy: ReadyCopy
  readonly #memory: SharedReady
  #parts: Parts | null = null
  #zones = new Map<ZoneStore, number>()
  /** Copies of peers' zones that answers rest on, numbered behind our own zones. */
  readonly #copies = new Map<MirroredZone, number>()

  constructor(memory: SharedReady, table: ReadyTable) {
    this.#memory = memory
    this.copy = new ReadyCopy(table, () => this.#parts!.random())
  }

  /** Takes a new generation: nothing that lies ready holds, and these zones' serials are told. The function returned ends that. */
  follow(parts: Parts, zones: readonly ZoneStore[], generation: number): () => void {
    const { words, serials, liveUntilMs } = this.#memory
    this.#parts = parts
    this.#copies.clear()
    this.#zones = new Map(zones.slice(0, maxSharedZones).map((zone, at) => [zone, at]))
    const ends = [...this.#zones].flatMap(([zone, at]) => {
      const tell = (): void => {
        serials[at] = zone.serial | 0
      }
      tell()
      liveUntilMs[at] = Number.POSITIVE_INFINITY
      return [zone.subscribe(tell), zone.subscribeBatches(tell)]
    })
    this.tell()
    Atomics.store(words, shared.generation, generation)
    return () => {
      for (const end of ends) end()
    }
  }

  /** Answers rest on what this copy of a peer's zone is now. */
  followCopy(copy: MirroredZone): void {
    const number = this.#copies.get(copy) ?? this.#zones.size + this.#copies.size
    if (number >= maxSharedZones) return
    this.#copies.set(copy, number)
    this.#tellCopy(copy, number)
  }

  #tellCopy(copy: MirroredZone, number: number): void {
    const { serials, liveUntilMs } = this.#memory
    serials[number] = copy.store === null ? 0 : copy.store.serial | 0
    liveUntilMs[number] = this.#parts!.clock.nowMs() + copy.liveForMs()
  }

  /**
   * Tells what changes without a word: how the standings, the clock and the copies are, and whether anything may be
   * answered.
   */
  tell(): void {
    const parts = this.#parts
    if (parts === null) return
    const { words } = this.#memory
    this.#memory.clockOffsetMs = parts.clock.nowMs() - processTimeMs()
    for (const [copy, number] of this.#copies) this.#tellCopy(copy, number)
    words[shared.revision] = parts.standings.revision() | 0
    words[shared.isSilent] = (parts.own.silentForMs?.() ?? null) === null ? 0 : 1
    words[shared.logEvery] = parts.logQueriesEvery ?? 0
    Atomics.store(words, shared.isOpen, parts.withUnenforced === null ? 1 : 0)
  }

  get buffers(): SharedReadyBuffers {
    return this.#memory.buffers
  }

  write<Result>(change: () => Result): Result {
    return this.#memory.write(change)
  }

  /** Within `write`, for the answer that was just put in under a number. */
  putFacts(number: number, { entry, zone, mirror, validUntilMs, revision }: ReadySource): void {
    const { facts } = this.#memory
    const first = number * fact.perAnswer
    let zoneNumber: number | null = -1
    if (zone !== null) zoneNumber = this.#zones.get(zone) ?? null
    else if (mirror !== null) zoneNumber = this.#copies.get(mirror) ?? null
    facts[first + fact.validUntilMs] = zoneNumber === null ? neverValidMs : validUntilMs
    facts[first + fact.storedAtMs] = entry?.storedAtMs ?? 0
    facts[first + fact.revision] = revision === null ? -1 : revision | 0
    facts[first + fact.zone] = zoneNumber ?? -1
  }

  putClient(address: ClientWords, group: number): void {
    const { words, clients } = this.#memory
    const generation = words[shared.generation]!
    if (clients.find(address, generation) === group) return
    this.#memory.write(() => clients.put(address, generation, group))
  }

  takeUses(each: (number: number, times: number, lastAtMs: number) => void): void {
    for (const uses of this.#memory.uses) uses.take(each)
  }
}
