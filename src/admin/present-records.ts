/** Records, cached answers and traces as JSON. */
import { rcodeToText, typeToText } from '../wire/iana.ts'
import { nameToText } from '../wire/name.ts'
import { rdataToText } from '../wire/record-text.ts'
import type { RRset } from '../wire/rr.ts'
import type { Answer, Origin } from '../pipeline/answer.ts'
import type { CacheEntryJson, RecordJson, SourceJson, TraceJson, ZoneJson } from './api-types.ts'
import type { Inspectable, PeerStatus, TraceQuestion, TraceResult } from './inspectable.ts'
import type { ZoneStore } from '../zone/zone-store.ts'

/** One line for each record; `ttlSeconds` is that of the RRset unless the caller knows better. */
export function recordsOf(rrset: RRset, ttlSeconds = rrset.ttlSeconds): RecordJson[] {
  const name = nameToText(rrset.owner)
  const type = typeToText(rrset.type)
  return rrset.rdata.map((rdata) => ({ name, type, ttlSeconds, data: rdataToText(rrset.type, rdata) }))
}

export const presentZone = (zone: ZoneStore, peer: string | null, nowEpochMs: number): ZoneJson => ({
  zone: nameToText(zone.apex),
  peer,
  serial: zone.serial,
  epoch: zone.epoch,
  names: zone.sizes.names,
  rrsets: zone.sizes.rrsets,
  lastChangeAgeMs: Math.max(0, nowEpochMs - zone.lastChangeAtMs)
})

type CacheEntry = ReturnType<Inspectable['cacheEntries']>[number]

export function presentCacheEntry({ question, entry, ageMs, sizeOctets }: CacheEntry): CacheEntryJson {
  const ageSeconds = Math.floor(ageMs / 1000)
  const { answer, authority } = entry.sections
  return {
    name: nameToText(question.name),
    type: typeToText(question.type),
    target: entry.targetId,
    server: entry.server,
    kind: entry.kind,
    rcode: rcodeToText(entry.sections.rcode),
    ageMs,
    ttlSeconds: Math.max(0, entry.ttlSeconds - ageSeconds),
    staleForMs: Math.max(0, entry.storedAtMs + ageMs - entry.expiresAtMs),
    hits: entry.hits,
    sizeOctets,
    isEmpty: entry.isEmpty,
    dnssecOk: question.dnssecOk,
    failure: entry.failure,
    records: [...answer, ...authority].flatMap((rrset) => recordsOf(rrset, Math.max(0, rrset.ttlSeconds - ageSeconds)))
  }
}

export function presentTrace(
  question: TraceQuestion,
  { answer, steps, tookMs }: TraceResult,
  around: Readonly<{ cluster: string; peers: readonly PeerStatus[] }>
): TraceJson {
  const { sections } = answer
  const clusterOf = (server: string): string =>
    around.peers.find(({ servers }) => servers.some((it) => it.server === server))?.name ?? around.cluster
  return {
    cluster: around.cluster,
    name: nameToText(question.name),
    type: typeToText(question.type),
    client: question.clientAddress,
    recursionDesired: question.recursionDesired,
    tookMs,
    rcode: rcodeToText(sections.rcode),
    isAuthoritative: answer.authoritative,
    policy: answer.policy,
    source: presentOrigin(answer.origin),
    isEmpty: answer.isEmpty,
    extendedErrors: answer.ede,
    answer: asTheClientGetsThem(sections.answer, answer),
    authority: asTheClientGetsThem(sections.authority, answer),
    additional: asTheClientGetsThem(sections.additional, answer),
    steps: steps.map((step) => ({
      cluster: step.server === null ? around.cluster : clusterOf(step.server),
      step: step.step,
      detail: step.detail,
      server: step.server,
      atMs: step.atMs,
      tookMs: step.tookMs,
      ttlSeconds: step.ttlSeconds,
      ageMs: step.ageMs
    }))
  }
}

/** TTLs run down by the answer's age and capped, as the encoder writes them. */
const asTheClientGetsThem = (rrsets: readonly RRset[], { ageSeconds, maxTtlSeconds }: Answer): RecordJson[] =>
  rrsets.flatMap((rrset) => recordsOf(rrset, Math.max(0, Math.min(rrset.ttlSeconds - ageSeconds, maxTtlSeconds))))

function presentOrigin(origin: Origin): SourceJson {
  const none = {
    from: origin.from,
    zone: null,
    target: null,
    server: null,
    ageMs: null,
    changedAgoMs: null,
    staleForMs: 0
  }
  if (origin.from === 'zone') {
    const { zone, ageMs, changedAgoMs } = origin
    return { ...none, zone: nameToText(zone), ageMs, changedAgoMs }
  }
  if (origin.from === 'policy') return { ...none, target: origin.target }
  const { target, server } = origin
  if (origin.from === 'cache')
    return { ...none, target, server, ageMs: origin.ageMs + origin.sourceAgeMs, staleForMs: origin.staleForMs }
  if (origin.from === 'mirror') {
    const { zone, ageMs, staleForMs } = origin
    return { ...none, zone: nameToText(zone), target, server, ageMs, staleForMs }
  }
  // It was asked for just now, so it is as old as who gave it says.
  return { ...none, target, server, ageMs: origin.sourceAgeMs }
}
