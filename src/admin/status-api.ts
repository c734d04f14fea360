/** `/api/v1`: what the server knows, as JSON (api-types.ts), and flushing the cache. Other actions: operator-api.ts. */
import { TextError } from '../base/errors.ts'
import { apiPageEntries, tracesInFlight } from '../base/limits.ts'
import { nameToText, type DomainName } from '../wire/name.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import type {
  CacheJson,
  FlushJson,
  PeersJson,
  PoliciesJson,
  RecordJson,
  RecordsJson,
  TraceJson,
  ZonesJson
} from './api-types.ts'
import { presentConfig } from './config-json.ts'
import type { Inspectable } from './inspectable.ts'
import { presentCacheEntry, presentTrace, presentZone, recordsOf } from './present-records.ts'
import { presentPeer, presentPolicies, presentStatus } from './present-state.ts'
import { readRecordFilter, type RecordFilter } from './record-filter.ts'
import { errorReply, jsonReply, type AdminRequest, type Handler, type Reply } from './reply.ts'
import {
  readAddress,
  readFlag,
  readLimit,
  readNameOf,
  readOffset,
  readOptionalName,
  readQuestionType,
  refuseOthers
} from './request-values.ts'
import type { Route } from './router.ts'

const root = '/api/v1'

export function statusApiRoutes(inspect: Inspectable): Route[] {
  const get = (path: string, parameters: readonly string[], handler: Handler): Route => ({
    method: 'GET',
    path: `${root}${path}`,
    handler: (request) => {
      refuseOthers(request.query, parameters)
      return handler(request)
    }
  })
  return [
    get('/status', [], () => jsonReply(200, presentStatus(inspect))),
    get('/config', [], () => jsonReply(200, presentConfig(inspect.config()))),
    get('/policies', [], () => jsonReply(200, policies(inspect))),
    get('/policies/:name', [], ({ params }) => onePolicy(inspect, params['name']!)),
    get('/peers', [], () => jsonReply(200, peers(inspect))),
    get('/zones', [], () => jsonReply(200, zones(inspect))),
    get('/records', ['zone', 'peer', 'filter', 'offset', 'limit'], ({ query }) => records(inspect, query)),
    get('/cache', ['name', 'suffix', 'limit'], ({ query }) => jsonReply(200, cache(inspect, query))),
    { method: 'POST', path: `${root}/cache/flush`, handler: ({ body }) => jsonReply(200, flush(inspect, body)) },
    get('/trace', ['name', 'type', 'client', 'rd'], traceHandler(inspect))
  ]
}

const policies = (inspect: Inspectable): PoliciesJson => ({
  policies: presentPolicies(inspect, inspect.config().policies)
})

function onePolicy(inspect: Inspectable, name: string): Reply {
  const policy = inspect.config().policies.find((it) => it.name === name)
  return policy === undefined
    ? errorReply(404, `no policy is called \`${name}\``)
    : jsonReply(200, presentPolicies(inspect, [policy])[0])
}

const peers = (inspect: Inspectable): PeersJson => ({
  peers: inspect.peers().map((peer) => presentPeer(inspect, peer))
})

const zones = (inspect: Inspectable): ZonesJson => ({
  zones: allZones(inspect).map(({ peer, zone }) => presentZone(zone, peer, inspect.parts().clock.epochMs()))
})

/** Our own ones first. */
const allZones = (inspect: Inspectable): Readonly<{ peer: string | null; zone: ZoneStore }>[] => [
  ...inspect.zones().map((zone) => ({ peer: null, zone })),
  ...inspect.copies()
]

function records(inspect: Inspectable, query: URLSearchParams): Reply {
  const apex = readOptionalName('zone', query.get('zone')) ?? inspect.config().cluster.zone
  const filter = readRecordFilter(query.getAll('filter'))
  const limit = readLimit(query.get('limit'), apiPageEntries)
  const wanted = query.get('peer')
  const all = allZones(inspect)
  const found = all.find(({ peer, zone }) => zone.apex === apex && (wanted === null || peer === wanted))
  if (found === undefined) {
    const known = all.map(({ peer, zone }) => `${nameToText(zone.apex)}${peer === null ? '' : ` (of ${peer})`}`)
    return errorReply(
      404,
      `no zone${wanted === null ? '' : ` of ${wanted}`} is called \`${nameToText(apex)}\`; there are ${known.slice(0, 20).join(', ') || 'none'}`
    )
  }
  const offset = readOffset(query.get('offset'))
  const { peer, zone } = found
  const answer: RecordsJson = {
    zone: nameToText(apex),
    peer,
    serial: zone.serial,
    ...pageOf(zone, filter, offset, limit)
  }
  return jsonReply(200, answer)
}

/** The records from `offset` on; the serial tells whoever asks for the next page whether the zone is still the same. */
function pageOf(
  zone: ZoneStore,
  filter: RecordFilter,
  offset: number,
  limit: number
): Readonly<{ records: RecordJson[]; isComplete: boolean }> {
  const records: RecordJson[] = []
  let skip = offset
  for (const rrset of zone.records()) {
    if (!filter(rrset)) continue
    if (skip >= rrset.rdata.length) {
      skip -= rrset.rdata.length
      continue
    }
    const rest = recordsOf(rrset).slice(skip)
    skip = 0
    const room = limit - records.length
    for (const record of rest.slice(0, room)) records.push(record)
    if (rest.length > room) return { records, isComplete: false }
  }
  return { records, isComplete: true }
}

function cache(inspect: Inspectable, query: URLSearchParams): CacheJson {
  const name = readOptionalName('name', query.get('name'))
  const suffix = readOptionalName('suffix', query.get('suffix'))
  if (name !== null && suffix !== null) throw new TextError('name or suffix, not both')
  const limit = readLimit(query.get('limit'), apiPageEntries)
  // One more than wanted tells whether there are more. What lies below a name is left out here, so it is not limited.
  const found =
    name === null
      ? inspect.cacheEntries(suffix, limit + 1)
      : inspect.cacheEntries(name, Number.MAX_SAFE_INTEGER).filter(({ question }) => question.name === name)
  return { entries: found.slice(0, limit).map(presentCacheEntry), isComplete: found.length <= limit }
}

function flush(inspect: Inspectable, body: unknown): FlushJson {
  return { flushedEntries: inspect.flushCache(readFlush(body)) }
}

/** @throws TextError */
function readFlush(body: unknown): Readonly<{ name: DomainName } | { suffix: DomainName } | { all: true }> {
  const wanted = 'the body must be one of {"name": NAME}, {"suffix": NAME}, {"all": true}'
  if (typeof body !== 'object' || body === null) throw new TextError(wanted)
  const entries = Object.entries(body) as [string, unknown][]
  const [key, value] = entries[0] ?? []
  if (entries.length !== 1) throw new TextError(wanted)
  if (key === 'all' && value === true) return { all: true }
  if (key === 'name' && typeof value === 'string') return { name: readNameOf('name', value) }
  if (key === 'suffix' && typeof value === 'string') return { suffix: readNameOf('suffix', value) }
  throw new TextError(wanted)
}

/** A trace asks whoever a query would, so only a few run at a time. */
function traceHandler(inspect: Inspectable): Handler {
  let inFlight = 0
  return async ({ query }: AdminRequest) => {
    const text = query.get('name')
    if (text === null) throw new TextError('name is missing: /trace?name=NAME&type=TYPE')
    const question = {
      name: readNameOf('name', text),
      type: readQuestionType(query.get('type')),
      clientAddress: readAddress('client', query.get('client') ?? '127.0.0.1'),
      recursionDesired: readFlag('rd', query.get('rd'), true)
    }
    if (inFlight >= tracesInFlight) return errorReply(503, `${tracesInFlight} traces are running already`)
    inFlight++
    try {
      const result = await inspect.trace(question)
      const around = { cluster: inspect.config().cluster.name, peers: inspect.peers() }
      const answer: TraceJson = presentTrace(question, result, around)
      return jsonReply(200, answer)
    } finally {
      inFlight--
    }
  }
}
