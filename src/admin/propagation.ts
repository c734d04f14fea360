/** `/api/v1/propagation`: the last changes of one name, and how far and how fast each has come. */
import { TextError } from '../base/errors.ts'
import { changesOfNameKept } from '../base/limits.ts'
import type { ChangeOfName } from '../pipeline/freshness.ts'
import { typeToText } from '../wire/iana.ts'
import { isAtOrBelow, nameToText, type DomainName } from '../wire/name.ts'
import type { ZoneChange } from '../zone/zone-change.ts'
import type { PropagationJson, PropagationStepJson } from './api-types.ts'
import type { Inspectable } from './inspectable.ts'
import { jsonReply, type AdminRequest, type Reply } from './reply.ts'
import { readNameOf, refuseOthers } from './request-values.ts'
import type { Route } from './router.ts'

export const propagationRoute = (inspect: Inspectable): Route => ({
  method: 'GET',
  path: '/api/v1/propagation',
  handler: (request) => propagation(inspect, request)
})

function propagation(inspect: Inspectable, { query }: AdminRequest): Reply {
  refuseOthers(query, ['name'])
  const text = query.get('name')
  if (text === null) throw new TextError('name is missing: /propagation?name=NAME')
  const name = readNameOf('name', text)
  const learned = inspect.parts().freshness.changesOf(name)
  const changes = [...ownChanges(inspect, name), ...learned.map(learnedChange)]
  // Newest first, whatever zone they are of: RFC 3339 texts sort by time.
  changes.sort((one, other) => (one.originAt < other.originAt ? 1 : -1))
  const answer: PropagationJson = { cluster: inspect.config().cluster.name, name: nameToText(name), changes }
  return jsonReply(200, answer)
}

/** What the journal of our own zone still knows of the name. */
function ownChanges(inspect: Inspectable, name: DomainName): PropagationStepJson[] {
  const zone = inspect.zones().find(({ apex }) => isAtOrBelow(name, apex))
  const changes = (zone?.changesSince(zone.oldestSerial) ?? []).filter((change) => typesIn(change, name) !== null)
  return changes.slice(-changesOfNameKept).map((change) => ({
    zone: nameToText(change.zone),
    peer: null,
    serial: change.toSerial,
    types: typesIn(change, name) ?? [],
    originAt: timeText(change.originAtMs),
    cameWhole: false,
    clockOffsetMs: 0,
    storeMs: Math.max(0, change.learnedAtMs - change.originAtMs),
    hereMs: Math.max(0, change.learnedAtMs - change.originAtMs),
    staleAnswers: 0,
    staleMs: null,
    firstAnswerMs: null
  }))
}

/** null: it does not touch the name; none: the name as a whole began or ceased to exist. */
function typesIn({ sets, existence, services }: ZoneChange, name: DomainName): string[] | null {
  const types = sets.filter(({ owner }) => owner === name).map(({ type }) => typeToText(type))
  if (types.length > 0) return types
  return [...existence, ...services].some(({ owner }) => owner === name) ? [] : null
}

function learnedChange(change: ChangeOfName): PropagationStepJson {
  const { zone, peer, serial, types, originAtMs, primaryAtMs, clockOffsetMs, cameWhole, happenedAtMs } = change
  const sinceMs = (atMs: number | null): number | null => (atMs === null ? null : Math.max(0, atMs - happenedAtMs))
  return {
    zone: nameToText(zone),
    peer,
    serial,
    types: types?.map(typeToText) ?? [],
    originAt: timeText(originAtMs),
    cameWhole,
    clockOffsetMs,
    storeMs: Math.max(0, primaryAtMs - originAtMs),
    hereMs: sinceMs(change.hereAtMs)!,
    staleAnswers: change.staleAnswers,
    staleMs: sinceMs(change.lastStaleAtMs),
    firstAnswerMs: sinceMs(change.firstFreshAtMs)
  }
}

const timeText = (epochMs: number): string => new Date(epochMs).toISOString()
