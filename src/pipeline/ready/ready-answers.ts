/**
 * Answers that are ready as octets: what was asked twice and still holds is copied, with id, question, TTLs, serial and
 * the order of addresses put right.
 *
 * What an answer rests on is in its key (the question, RD, CD, EDNS, DO, the client's limit, and the group of clients that
 * the configuration makes no difference between) or ends it: a change of a name in a zone of ours, the cached answer's
 * leaving the cache or expiring, a change of a target's standing, a zone that comes or goes, and every exchange of Parts. Nothing is allocated for a
 * query that is answered here, and everything is counted as it is elsewhere.
 */
import { readyAnswerOctets, readyAnswerSlots } from '../../base/limits.ts'
import type { Client } from '../../server/responder.ts'
import type { DomainName } from '../../wire/name.ts'
import type { ParsedQuery } from '../../wire/query.ts'
import type { ZoneChange } from '../../zone/zone-change.ts'
import type { Answer } from '../answer.ts'
import type { Parts } from '../parts.ts'
import type { PipelineStats } from '../pipeline-stats.ts'
import type { Query } from '../query.ts'
import { Audiences, noAudience } from './audiences.ts'
import { basisOf, type ReadySource } from './ready-basis.ts'
import { audienceShift, ReadyQuestion } from './ready-question.ts'
import { field, ReadyTable } from './ready-table.ts'
import { templateOf } from './ready-template.ts'

/** Names share versions: a change of one may end answers of another, which are then made anew. A power of two. */
const nameVersions = 16_384
/** Hashes of questions that were asked once. A power of two. */
const askedOnce = 16_384

export class ReadyAnswers {
  /** Answers that were given as they lay here, and that were made ready. */
  readonly stats = { served: 0, made: 0 }
  readonly #table = new ReadyTable(readyAnswerOctets, readyAnswerSlots)
  readonly #pipelineStats: PipelineStats
  readonly #question = new ReadyQuestion()
  readonly #versions = new Int32Array(nameVersions)
  readonly #asked = new Int32Array(askedOnce)
  #parts: Parts
  #audiences: Audiences
  #generation = 1
  #zonesRevision = 0
  #unsubscribe: (() => void)[] = []
  /** Octets that the client of the query looked up last takes. */
  #limitOctets = 0
  /** The query that was looked up last got nothing, and what will be said of it is worth keeping. */
  #isWanted = false

  constructor(parts: Parts, pipelineStats: PipelineStats) {
    this.#parts = parts
    this.#audiences = new Audiences(parts)
    this.#pipelineStats = pipelineStats
    this.#follow()
  }

  /** Octets of memory that answers take, or have taken at the most. */
  get usedOctets(): number {
    return this.#table.usedOctets
  }

  /** Whatever the Parts decide is decided anew. */
  use(parts: Parts): void {
    for (const end of this.#unsubscribe) end()
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
      this.#isWanted = this.#asked[hash & (askedOnce - 1)] === hash
      this.#asked[hash & (askedOnce - 1)] = hash
      return 0
    }
    const words = this.#table.words
    const source = this.#table.sources[words[block + field.slot]!] as ReadySource
    if (!this.#holds(block, source)) {
      this.#isWanted = true
      return 0
    }
    if (source.entry === null) this.#settleZone(block, source)
    else if (!this.#settleCached(block, source, source.entry)) return 0
    const written = this.#table.write(block, octets, end, out, this.#parts.random)
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
    const block = this.#table.put(this.#question.hash, this.#question.flags, this.#limitOctets, template, basis.source)
    if (block < 0) return
    const { words } = this.#table
    words[block + field.generation] = this.#generation
    words[block + field.dependencies] = basis.names.length
    for (const [index, name] of basis.names.entries()) {
      const bucket = bucketOf(name)
      words[block + field.firstDependency + index * 2] = bucket
      words[block + field.firstDependency + index * 2 + 1] = this.#versions[bucket]!
    }
    this.stats.made++
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
    return source.revision === null || source.revision === this.#parts.standings.revision()
  }

  #settleZone(block: number, source: ReadySource): void {
    const { words } = this.#table
    const serial = source.zone!.serial
    if (words[block + field.serialAt] !== 0 && words[block + field.serial] !== (serial | 0)) {
      this.#table.setSerial(block, serial)
    }
    this.#pipelineStats.countServed(
      source.rcode,
      'zone',
      this.#parts.own.signOfLifeAgeMs() ?? 0,
      source.policy,
      source.target
    )
  }

  /** False where the cached answer does not hold any more. */
  #settleCached(block: number, source: ReadySource, entry: NonNullable<ReadySource['entry']>): boolean {
    const nowMs = this.#parts.clock.nowMs()
    if (!entry.isHeld || nowMs >= source.validUntilMs) {
      this.#isWanted = true
      return false
    }
    const ageMs = Math.max(0, nowMs - entry.storedAtMs)
    const ageSeconds = Math.floor(ageMs / 1000)
    if (this.#table.words[block + field.ttlAgeSeconds] !== ageSeconds) this.#table.setAge(block, ageSeconds)
    this.#parts.cache.countUse(source.cacheKey, entry, nowMs)
    this.#parts.freshness.gaveReady(source, entry.storedAtMs, nowMs)
    this.#pipelineStats.countServed(source.rcode, 'cache', ageMs + entry.sourceAgeMs, source.policy, source.target)
    return true
  }

  #follow(): void {
    this.#zonesRevision = this.#parts.own.zones.revision
    this.#unsubscribe = this.#parts.own.zones.all().map((zone) => zone.subscribe(this.#end))
  }

  /** Ends the answers that rest on what has changed. */
  readonly #end = (change: ZoneChange): void => {
    for (const { owner } of change.sets) this.#touch(owner)
    for (const { owner } of change.services) this.#touch(owner)
    for (const { owner } of change.names) this.#touch(owner)
    for (const { owner } of change.existence) this.#touch(owner)
  }

  #touch(name: DomainName): void {
    const bucket = bucketOf(name)
    this.#versions[bucket] = (this.#versions[bucket]! + 1) | 0
  }
}

/** FNV-1a over the name. */
function bucketOf(name: DomainName): number {
  let hash = 0x811c9dc5
  for (let at = 0; at < name.length; at++) hash = Math.imul(hash ^ name.charCodeAt(at), 0x01000193)
  return (hash ^ (hash >>> 16)) & (nameVersions - 1)
}
