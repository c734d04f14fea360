/**
 * Answers that are ready as octets: what was asked twice and still holds is copied, with id, question, TTLs, serial and
 * the order of addresses put right.
 *
 * What an answer rests on is in its key (the question, RD, CD, EDNS, DO, the client's limit, and the group of clients that
 * the configuration makes no difference between) or ends it: a change of a name in a zone of ours, the cached answer's
 * leaving the cache or expiring, a copy of a peer's zone being exchanged or losing its peer, a change of a target's standing, a zone that comes or goes, and every exchange of Parts. Nothing is allocated for a
 * query that is answered here, and everything is counted as it is elsewhere.
 */
import { fnv1a, fnvOffset } from '../../base/fnv1a.ts'
import { readyAnswerOctets, readyAnswerSlots } from '../../base/limits.ts'
import type { CachedAnswer } from '../../cache/answer-cache.ts'
import type { ClientWords } from '../../server/mmsg/message-batch.ts'
import type { Client } from '../../server/responder.ts'
import type { ParsedQuery } from '../../wire/query.ts'
import type { MirroredZone } from '../../transfer/mirrored-zone.ts'
import type { ZoneChange } from '../../zone/zone-change.ts'
import type { ZoneStore } from '../../zone/zone-store.ts'
import type { Answer } from '../answer.ts'
import type { Parts } from '../parts.ts'
import type { PipelineStats } from '../pipeline-stats.ts'
import type { Query } from '../query.ts'
import { AskedBefore } from './asked-before.ts'
import { Audiences, noAudience } from './audiences.ts'
import { basisOf, type ReadyBasis, type ReadySource } from './ready-basis.ts'
import { audienceShift, ReadyQuestion } from './ready-question.ts'
import { field, ReadyTable } from './ready-table.ts'
import { templateOf, type ReadyTemplate } from './ready-template.ts'
import { nameVersions, type SharedReady } from './shared-ready.ts'
import { SharedWriter } from './shared-writer.ts'

/** Sources of zones' answers that are shared; more are forgotten and made anew. */
const sharedSources = 64

export class ReadyAnswers {
  /** Answers that were given as they lay here, and that were made ready. */
  readonly stats = { served: 0, made: 0 }
  /** Those of `served` that workers gave. */
  servedByWorkers = 0
  /** Gives what lies here to workers; null: there are none. */
  readonly shared: SharedWriter | null
  readonly #table: ReadyTable
  readonly #pipelineStats: PipelineStats
  readonly #question = new ReadyQuestion()
  readonly #versions: Int32Array
  readonly #asked = new AskedBefore()
  #parts: Parts
  #audiences: Audiences
  #generation = 1
  #zonesRevision = 0
  #unsubscribe: (() => void)[] = []
  /** Copies of peers' zones that answers rest on, and how to stop following each. */
  readonly #copies = new Map<MirroredZone, Readonly<{ copyNumber: number; end: () => void }>>()
  readonly #zoneSources: ReadySource[] = []
  /** Octets that the client of the query looked up last takes. */
  #limitOctets = 0
  /** The query that was looked up last got nothing, and what will be said of it is worth keeping. */
  #isWanted = false

  /** @param memory that workers read; null: there are none */
  constructor(parts: Parts, pipelineStats: PipelineStats, memory: SharedReady | null = null) {
    this.#parts = parts
    this.#audiences = new Audiences(parts)
    this.#pipelineStats = pipelineStats
    this.#table = new ReadyTable(readyAnswerOctets, readyAnswerSlots, memory?.tableMemory)
    this.#versions = memory?.versions ?? new Int32Array(nameVersions)
    this.shared = memory === null ? null : new SharedWriter(memory, this.#table)
    this.#follow()
  }

  /** Octets of memory that answers take, or have taken at the most. */
  get usedOctets(): number {
    return this.#table.usedOctets
  }

  /** Whatever the Parts decide is decided anew. */
  use(parts: Parts): void {
    for (const end of this.#unsubscribe) end()
    this.#leaveCopies()
    this.#zoneSources.length = 0
    this.#parts = parts
    this.#audiences = new Audiences(parts)
    this.#generation = (this.#generation + 1) | 0
    this.#follow()
  }

  /** Writes the answer into `out` and returns its octets; 0 where none is ready. */
  answer(octets: Uint8Array, size: number, client: Client, out: Uint8Array): number {
    const question = this.#question
    this.#isWanted = false
    if (this.#zonesRevision !== this.#parts.own.zones.revision) this.use(this.#parts)
    if (!question.read(octets, size, client.transport === 'udp')) return 0
    const audience = this.#audiences.of(client.address)
    if (audience === noAudience) return 0
    question.flags |= audience << audienceShift
    const { hash, end } = question
    const limit = question.limitOctets < out.length ? question.limitOctets : out.length
    this.#limitOctets = limit
    const block = this.#table.find(hash, question.flags, octets, end, limit)
    if (block < 0) {
      this.#isWanted = this.#asked.note(hash)
      return 0
    }
    const words = this.#table.words
    const source = this.#table.sources[words[block + field.number]!] as ReadySource
    if (!this.#holds(block, source)) {
      this.#isWanted = true
      return 0
    }
    const written = this.#write(block, source, octets, end, out)
    if (written === 0) return 0
    this.stats.served++
    if ((out[2]! & 0x02) !== 0) this.#pipelineStats.truncated++
    return written
  }

  /** Keeps what was said of the query that `answer` had nothing for, if it is worth it. To be called in the same tick. */
  offer(octets: Uint8Array, query: Query, message: ParsedQuery, answer: Answer, recursionAvailable: boolean): void {
    if (!this.#isWanted) return
    this.#isWanted = false
    const basis = basisOf(this.#parts, query, answer)
    if (basis === null) return
    const { entry } = basis.source
    const ageSeconds = entry === null ? 0 : answer.ageSeconds
    const template = templateOf(octets, query, message, answer, { recursionAvailable, ageSeconds })
    if (template === null || (template.isCaseExact && !this.#question.isLowerCase(octets))) return
    if (this.shared === null) {
      this.#put(template, basis)
      return
    }
    // What was given of the answers that make room is counted while it is known whose it was.
    this.count()
    this.shared.write(() => this.#put(template, basis))
  }

  /** Counts what workers have given since the last time. */
  count(): void {
    this.shared?.takeUses(this.#countUses)
  }

  /** Tells workers which clients this one is like. Only where there are workers. */
  meet(address: ClientWords, text: string): void {
    if (this.#zonesRevision !== this.#parts.own.zones.revision) this.use(this.#parts)
    const audience = this.#audiences.of(text)
    if (audience !== noAudience) this.shared?.putClient(address, audience)
  }

  /**
   * One object for all answers of a zone that are counted alike: a hundred thousand names are not as many objects. Its
   * name and type, which nobody asks a zone's answer for, are those of the first.
   */
  #shared(source: ReadySource): ReadySource {
    if (source.from !== 'zone') return source
    const { zone, policy, revision, rcode } = source
    const known = this.#zoneSources.find(
      (other) => other.zone === zone && other.rcode === rcode && other.policy === policy && other.revision === revision
    )
    if (known !== undefined) return known
    if (this.#zoneSources.length >= sharedSources) this.#zoneSources.length = 0
    this.#zoneSources.push(source)
    return source
  }

  #put(template: ReadyTemplate, basis: ReadyBasis): void {
    const { hash, flags } = this.#question
    const names = this.shared === null ? basis.names : sharedNamesOf(basis)
    const block = this.#table.put(hash, flags, this.#limitOctets, template, this.#shared(basis.source), names.length)
    if (block < 0) return
    const { words } = this.#table
    if (basis.source.mirror !== null) this.#followCopy(basis.source.mirror)
    words[block + field.generation] = this.#generation
    for (const [index, name] of names.entries()) {
      const bucket = bucketOf(name)
      words[block + field.firstDependency + index * 2] = bucket
      words[block + field.firstDependency + index * 2 + 1] = this.#versions[bucket]!
    }
    this.shared?.putFacts(words[block + field.number]!, basis.source)
    this.stats.made++
  }

  #write(block: number, source: ReadySource, octets: Uint8Array, end: number, out: Uint8Array): number {
    const { shared } = this
    if (source.mirror !== null) {
      const written = this.#writeZone(block, source.mirror.store!, octets, end, out)
      if (written > 0) this.#countMirror(source, source.mirror)
      return written
    }
    if (source.entry === null) {
      const written = this.#writeZone(block, source.zone!, octets, end, out)
      if (written > 0) this.#countZone(source)
      return written
    }
    const nowMs = this.#parts.clock.nowMs()
    if (!source.entry.isHeld || nowMs >= source.validUntilMs) {
      this.#isWanted = true
      return 0
    }
    const ageSeconds = Math.floor(Math.max(0, nowMs - source.entry.storedAtMs) / 1000)
    let written: number
    if (shared === null) {
      if (this.#table.words[block + field.ttlAgeSeconds] !== ageSeconds) this.#table.setAge(block, ageSeconds)
      written = this.#table.write(block, octets, end, out, this.#parts.random)
    } else {
      written = shared.copy.write(block, octets, end, out, ageSeconds, null)
    }
    if (written > 0) this.#countCached(source, source.entry, nowMs)
    return written
  }

  #writeZone(block: number, { serial }: ZoneStore, octets: Uint8Array, end: number, out: Uint8Array): number {
    // Workers read what lies here: it is left as it is.
    if (this.shared !== null) return this.shared.copy.write(block, octets, end, out, null, serial)
    const { words } = this.#table
    if (words[block + field.serialAt] !== 0 && words[block + field.serial] !== (serial | 0)) {
      this.#table.setSerial(block, serial)
    }
    return this.#table.write(block, octets, end, out, this.#parts.random)
  }

  readonly #countUses = (number: number, times: number, lastAtMs: number): void => {
    const source = this.#table.sources[number] as ReadySource | null
    const stats = this.#pipelineStats
    this.stats.served += times
    this.servedByWorkers += times
    stats.queriesUdp += times
    if (source === null) return
    if (this.#table.isTruncated(number)) stats.truncated += times
    for (let time = 0; time < times; time++) {
      if (source.mirror !== null) this.#countMirror(source, source.mirror)
      else if (source.entry === null) this.#countZone(source)
      else this.#countCached(source, source.entry, lastAtMs)
    }
  }

  #holds(block: number, source: ReadySource): boolean {
    const { words } = this.#table
    if (words[block + field.generation] !== this.#generation) return false
    const dependencies = words[block + field.dependencies]!
    for (let at = block + field.firstDependency; at < block + field.firstDependency + dependencies * 2; at += 2) {
      if (this.#versions[words[at]!] !== words[at + 1]) return false
    }
    // What a silent hub's copy says is said with a reason.
    if (source.from === 'zone' && (this.#parts.own.silentForMs?.() ?? null) !== null) return false
    if (source.mirror !== null && !isSameCopy(source.mirror, source.copyNumber)) return false
    return source.revision === null || source.revision === this.#parts.standings.revision()
  }

  #countZone({ rcode, policy, target }: ReadySource): void {
    this.#pipelineStats.countServed(rcode, 'zone', this.#parts.own.signOfLifeAgeMs() ?? 0, policy, target)
  }

  #countMirror(source: ReadySource, mirror: MirroredZone): void {
    this.#parts.freshness.gaveReady(source, Number.NEGATIVE_INFINITY, this.#parts.clock.nowMs())
    this.#pipelineStats.countServed(source.rcode, 'mirror', mirror.ageMs() ?? 0, source.policy, source.target)
  }

  #countCached(source: ReadySource, entry: CachedAnswer, nowMs: number): void {
    const ageMs = Math.max(0, nowMs - entry.storedAtMs)
    this.#parts.cache.countUse(source.cacheKey, entry, nowMs)
    this.#parts.freshness.gaveReady(source, entry.storedAtMs, nowMs)
    this.#pipelineStats.countServed(source.rcode, 'cache', ageMs + entry.sourceAgeMs, source.policy, source.target)
  }

  #follow(): void {
    this.#zonesRevision = this.#parts.own.zones.revision
    const zones = this.#parts.own.zones.all()
    this.#unsubscribe = zones.map((zone) => zone.subscribe(this.#end))
    if (this.shared === null) return
    this.#unsubscribe.push(
      this.#parts.own.zones.subscribe(() => this.use(this.#parts)),
      this.shared.follow(this.#parts, zones, this.#generation),
      this.#parts.cache.onGone(this.#touch)
    )
  }

  #followCopy(mirror: MirroredZone): void {
    const { store, copyNumber } = mirror
    const followed = this.#copies.get(mirror)
    if (store === null || followed?.copyNumber === copyNumber) return
    followed?.end()
    const endNames = store.subscribe(this.#end)
    const { shared } = this
    shared?.followCopy(mirror)
    // Workers cannot look which copy it is, nor whether it tells all: another version of its key says so.
    const endTaken = mirror.onTaken(() => {
      if (mirror.copyNumber !== copyNumber || !mirror.copy!.coverage.isWhole) this.#touch(copyKeyOf(mirror))
      shared?.followCopy(mirror)
    })
    const end = (): void => {
      endNames()
      endTaken()
    }
    this.#copies.set(mirror, { copyNumber, end })
  }

  #leaveCopies(): void {
    for (const { end } of this.#copies.values()) end()
    this.#copies.clear()
  }

  /** Ends the answers that rest on what has changed. */
  readonly #end = (change: ZoneChange): void => {
    if (change.isWhole === true) {
      for (let bucket = 0; bucket < nameVersions; bucket++) this.#versions[bucket] = (this.#versions[bucket]! + 1) | 0
      return
    }
    for (const { owner } of change.sets) this.#touch(owner)
    for (const { owner } of change.services) this.#touch(owner)
    for (const { owner } of change.names) this.#touch(owner)
    for (const { owner } of change.existence) this.#touch(owner)
  }

  /** @param name one of our zones, or the key of a cached answer */
  readonly #touch = (name: string): void => {
    const bucket = bucketOf(name)
    this.#versions[bucket] = (this.#versions[bucket]! + 1) | 0
  }
}

/** Whether that copy is still the one, speaks for the peer, and tells all that its zone says. */
const isSameCopy = (mirror: MirroredZone, copyNumber: number): boolean =>
  mirror.copyNumber === copyNumber && mirror.copy!.coverage.isWhole && mirror.isLive()

/** Workers cannot look whether the cached answer is still held: its leaving changes the version of its key. */
function sharedNamesOf({ source, names }: ReadyBasis): readonly string[] {
  if (source.entry !== null) return [source.cacheKey]
  return source.mirror === null ? names : [...names, copyKeyOf(source.mirror)]
}

/** Like no name, and like no key of the cache, which begin with a target. */
const copyKeyOf = ({ apex }: MirroredZone): string => `copy ${apex}`

function bucketOf(name: string): number {
  const hash = fnv1a(fnvOffset, name, 0, name.length)
  return (hash ^ (hash >>> 16)) & (nameVersions - 1)
}
