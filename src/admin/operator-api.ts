/**
 * `/api/v1`: the operator's hand. Drains and disabled policies are set and taken back, and what happened lately is
 * listed.
 *
 * Every action is a POST of JSON on the admin listener alone, and leaves a line in the log.
 */
import { inBackticks, TextError } from '../base/errors.ts'
import { overrideMaxMs, overrideTextCharacters, simulatedNames } from '../base/limits.ts'
import { durationToText, parseDurationMs } from '../base/quantity.ts'
import type { Config } from '../config/config.ts'
import type { Override, OverrideAction } from '../operator/overrides.ts'
import { typeToText } from '../wire/iana.ts'
import { nameToText } from '../wire/name.ts'
import type { ActionJson, EventsJson } from './api-types.ts'
import type { Inspectable } from './inspectable.ts'
import { presentEvent, presentOverride, presentOverrides } from './present-overrides.ts'
import { errorReply, jsonReply, type AdminRequest, type Handler, type Reply } from './reply.ts'
import { readNameOf, readOptionalAddress, refuseOthers } from './request-values.ts'
import type { Route } from './router.ts'
import type { SimulationJson } from './simulation-types.ts'

const root = '/api/v1'

export function operatorApiRoutes(inspect: Inspectable): Route[] {
  const post = (path: string, handler: (request: AdminRequest) => Promise<Reply> | Reply): Route => ({
    method: 'POST',
    path: `${root}${path}`,
    handler
  })
  return [
    {
      method: 'GET',
      path: `${root}/events`,
      handler: ({ query }) => {
        refuseOthers(query, ['since'])
        return jsonReply(200, events(inspect, query.get('since')))
      }
    },
    { method: 'GET', path: `${root}/overrides`, handler: () => jsonReply(200, presentOverrides(inspect)) },
    { method: 'GET', path: `${root}/policies/:name/simulate`, handler: simulateHandler(inspect) },
    post('/peers/:name/drain', (request) => drain(inspect, request)),
    post('/peers/:name/undrain', (request) => undrain(inspect, request)),
    post('/policies/disable', (request) => disable(inspect, request, null)),
    post('/policies/enable', (request) => enable(inspect, request, null)),
    post('/policies/:name/disable', (request) => disable(inspect, request, request.params['name']!)),
    post('/policies/:name/enable', (request) => enable(inspect, request, request.params['name']!))
  ]
}

function events(inspect: Inspectable, since: string | null): EventsJson {
  const { clock } = inspect.parts()
  const sinceEpochMs = since === null ? 0 : clock.epochMs() - readDuration('since', since)
  return { events: inspect.events.since(sinceEpochMs).map(presentEvent) }
}

/** A simulation asks peers as a query would, for some names at once: one at a time. */
function simulateHandler(inspect: Inspectable): Handler {
  let isRunning = false
  return async ({ params, query }) => {
    refuseOthers(query, ['down', 'name', 'client', 'region'])
    const policy = params['name']!
    const policies = inspect.config().policies.map(({ name }) => name)
    if (!policies.includes(policy)) return unknown('policy', policy, policies)
    const down = query.getAll('down')
    const names = query.getAll('name').map((name) => readNameOf('name', name))
    const config = inspect.config()
    const peers = config.peers.map(({ name }) => name)
    const stranger = down.find((name) => !peers.includes(name))
    if (stranger !== undefined) return unknown('peer', stranger, peers)
    const clientAddress = readOptionalAddress('client', query.get('client'))
    const { clients } = config.policies.find(({ name }) => name === policy) ?? { clients: null }
    if (clientAddress !== null && clients?.contains(clientAddress) === false) {
      throw new TextError(`client: policy ${inBackticks(policy)} is not for ${clientAddress}`)
    }
    const region = query.get('region')
    const regions = regionsOf(config)
    if (region !== null && !regions.includes(region)) return unknown('region', region, regions)
    if (names.length > simulatedNames) throw new TextError(`name: at most ${simulatedNames} of them`)
    if (isRunning) return errorReply(503, 'a simulation is running already')
    isRunning = true
    try {
      const result = await inspect.simulate({ policy, down, names, clientAddress, region })
      if (result === null) return unknown('policy', policy, policies)
      const answer: SimulationJson = {
        policy,
        down,
        client: { address: result.clientAddress, region: result.region },
        now: result.now,
        ifDown: result.ifDown,
        staleForSeconds: result.staleForSeconds,
        areExamples: names.length === 0,
        names: result.names.map((one) => ({ ...one, name: nameToText(one.name), type: typeToText(one.type) }))
      }
      return jsonReply(200, answer)
    } finally {
      isRunning = false
    }
  }
}

/** Every region that the configuration speaks of, each once. */
function regionsOf({ cluster, peers, policies, regions }: Config): string[] {
  const found = [
    cluster.region,
    ...peers.map(({ region }) => region),
    ...policies.flatMap(({ targets }) => targets.map(({ region }) => region)),
    ...regions.map(({ region }) => region)
  ]
  return [...new Set(found)].filter((region) => region !== '')
}

async function drain(inspect: Inspectable, request: AdminRequest): Promise<Reply> {
  const peer = request.params['name']!
  const override = readOverride(inspect, request.body)
  const peers = inspect.config().peers.map(({ name }) => name)
  if (!peers.includes(peer)) return unknown('peer', peer, peers)
  return act(inspect, request, { kind: 'drain', peer, override })
}

async function undrain(inspect: Inspectable, request: AdminRequest): Promise<Reply> {
  const peer = request.params['name']!
  readNothing(request.body)
  // A peer that is no longer configured may still be drained, for other servers or a configuration to come.
  if (!inspect.overrides().drainedPeers.has(peer)) {
    const peers = inspect.config().peers.map(({ name }) => name)
    return peers.includes(peer)
      ? errorReply(409, `peer ${inBackticks(peer)} is not drained`)
      : unknown('peer', peer, peers)
  }
  return act(inspect, request, { kind: 'undrain', peer })
}

async function disable(inspect: Inspectable, request: AdminRequest, policy: string | null): Promise<Reply> {
  const override = readOverride(inspect, request.body)
  const policies = inspect.config().policies.map(({ name }) => name)
  if (policy !== null && !policies.includes(policy)) return unknown('policy', policy, policies)
  return act(inspect, request, { kind: 'disable', policy, override })
}

async function enable(inspect: Inspectable, request: AdminRequest, policy: string | null): Promise<Reply> {
  readNothing(request.body)
  const { allPolicies, disabledPolicies } = inspect.overrides()
  const isAny = allPolicies !== null || disabledPolicies.size > 0
  if (policy === null && !isAny) return errorReply(409, 'no policy is disabled')
  // One that is no longer configured may still be disabled, for other servers or a configuration to come.
  if (policy !== null && !disabledPolicies.has(policy)) {
    const policies = inspect.config().policies.map(({ name }) => name)
    if (!policies.includes(policy)) return unknown('policy', policy, policies)
    if (inspect.disablingOf(policy) === null) return errorReply(409, `policy ${inBackticks(policy)} is not disabled`)
  }
  return act(inspect, request, { kind: 'enable', policy })
}

async function act(inspect: Inspectable, { clientAddress }: AdminRequest, action: OverrideAction): Promise<Reply> {
  const before = 'override' in action ? heldBefore(inspect, action) : null
  const problem = await inspect.act({ action, clientAddress })
  if (problem !== null) return errorReply(503, problem)
  const override = 'override' in action ? presentOverride(inspect, action.override) : null
  const answer: ActionJson = {
    action: action.kind,
    peer: 'peer' in action ? action.peer : null,
    policy: 'policy' in action ? action.policy : null,
    override,
    replaced: before === null ? null : presentOverride(inspect, before),
    keptIn: inspect.overrides().where
  }
  return jsonReply(200, answer)
}

function heldBefore(inspect: Inspectable, action: OverrideAction): Override | null {
  const { drainedPeers, disabledPolicies, allPolicies } = inspect.overrides()
  if ('peer' in action) return drainedPeers.get(action.peer) ?? null
  return action.policy === null ? allPolicies : (disabledPolicies.get(action.policy) ?? null)
}

function unknown(what: 'peer' | 'policy' | 'region', name: string, known: readonly string[]): Reply {
  const list = known.slice(0, 20).join(', ') || 'none'
  return errorReply(404, `no ${what} is called ${inBackticks(name)}; there are ${list}`)
}

/** @throws TextError */
function readDuration(what: string, text: string): number {
  try {
    return parseDurationMs(text)
  } catch (error) {
    if (error instanceof TextError) throw new TextError(`${what}: ${error.message}`)
    throw error
  }
}

/** @throws TextError */
function readNothing(body: unknown): void {
  if (body === null || (typeof body === 'object' && Object.keys(body).length === 0)) return
  throw new TextError('the body must be {}')
}

/** @throws TextError */
function readOverride(inspect: Inspectable, body: unknown): Override {
  const wanted = 'the body must be {"for": DURATION, "reason": TEXT, "by": TEXT}, each of which may be left out'
  if (body !== null && (typeof body !== 'object' || Array.isArray(body))) throw new TextError(wanted)
  const fields = Object.entries(body ?? {}) as [string, unknown][]
  if (fields.some(([key, value]) => !['for', 'reason', 'by'].includes(key) || typeof value !== 'string')) {
    throw new TextError(wanted)
  }
  const { for: duration, reason = '', by = '' } = Object.fromEntries(fields) as Record<string, string>
  const sinceEpochMs = inspect.parts().clock.epochMs()
  const durationMs = duration === undefined ? null : readDuration('for', duration)
  if (durationMs !== null && (durationMs < 1 || durationMs > overrideMaxMs)) {
    throw new TextError(`for: ${duration} is out of bounds: 1ms to ${durationToText(overrideMaxMs)}`)
  }
  for (const [what, text] of [
    ['reason', reason],
    ['by', by]
  ] as const) {
    if (text.length > overrideTextCharacters)
      throw new TextError(`${what}: longer than ${overrideTextCharacters} characters`)
  }
  return { sinceEpochMs, untilEpochMs: durationMs === null ? null : sinceEpochMs + durationMs, reason, by }
}
