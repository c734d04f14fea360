/** What metrics, health, API and commands read of a running server. */
import type { Inspectable, Readiness, SourceStatus } from '../admin/inspectable.ts'
import { Trace } from '../pipeline/trace.ts'
import { accept } from '../pipeline/accept.ts'
import { policyOrder } from '../pipeline/by-policy.ts'
import { shownOrder } from '../pipeline/shown-order.ts'
import { respond } from '../pipeline/respond.ts'
import type { Query } from '../pipeline/query.ts'
import type { RunningServer } from '../main.ts'
import { simulate } from './simulate.ts'
import { makeTcpStats } from '../server/tcp-stats.ts'
import { makeUdpStats } from '../server/udp-stats.ts'
import { nameToText } from '../wire/name.ts'

/** Lost source clusters that are named. */
const namedSourceClusters = 10

function readinessOf(server: RunningServer): Readiness {
  const zone = nameToText(server.view.zones.zone.apex)
  const { hasSynced } = server.view.zones
  const readText = hasSynced ? 'has been read completely' : 'has not been read completely yet'
  const conditions = [
    {
      name: 'sockets',
      isMet: server.listeners !== null,
      detail: server.listeners === null ? 'addresses are not listened on yet' : 'every address is listened on'
    },
    {
      name: 'zone',
      isMet: hasSynced,
      detail: `${zone} ${readText}${sourceText(server.view.status())}${silenceText(server.view.silentForMs())}`
    },
    {
      name: 'serving',
      isMet: !server.isDraining,
      detail: server.isDraining ? 'the server is being stopped' : 'the server is not being stopped'
    }
  ]
  return { isReady: conditions.every(({ isMet }) => isMet), conditions }
}

const sourceText = (source: SourceStatus): string => ageText(source) + lostText(source)

/** A node goes on with what it has; its clients are told, and so is whoever looks. */
const silenceText = (silentForMs: number | null): string =>
  silentForMs === null ? '' : `; the hub has been silent for ${(silentForMs / 1000).toFixed(1)} s, so answers are stale`

/** Source clusters whose endpoints are left out: no reason not to serve, and worth to be seen. */
function lostText({ sourceClusters }: SourceStatus): string {
  const lost = (sourceClusters?.clusters ?? []).filter(({ isLost }) => isLost)
  const texts = lost
    .slice(0, namedSourceClusters)
    .map(({ cluster, lease, renewedAgoMs }) => `${cluster} (Lease ${lease}, ${(renewedAgoMs / 1000).toFixed(1)} s ago)`)
  if (lost.length > texts.length) texts.push(`${lost.length - texts.length} more`)
  return texts.length === 0 ? '' : `; source clusters that no longer renew their Lease: ${texts.join(', ')}`
}

/** How long ago each watch last gave a sign of life: what is served may be as old as the oldest. */
function ageText({ resources }: SourceStatus): string {
  if (resources.length === 0) return ''
  const ages = resources.map(({ name, lastSignOfLifeAgeMs: ageMs }) =>
    ageMs === null ? `${name} never` : `${name} ${(ageMs / 1000).toFixed(1)} s ago`
  )
  return `; last sign of life of ${ages.join(', ')}`
}

export function inspectionOf(server: RunningServer): Inspectable {
  const { clock, dataPlane } = server
  return {
    version: server.version,
    startedAtEpochMs: server.startedAtEpochMs,
    get dataPlane() {
      server.count()
      return dataPlane
    },
    get dnsAddresses() {
      return server.dnsAddresses.map(({ address, port }) => ({ host: address, port }))
    },
    config: () => server.config,
    configProblems: () => server.configProblems,
    reloads: () => ({ ...server.reloads }),
    parts: () => {
      server.count()
      return dataPlane.parts
    },
    readiness: () => readinessOf(server),
    source: () => server.view.status(),
    zones: () => [...server.view.zones.zones.all()],
    peers: () => server.peers.status(),
    endpoints: () => ({
      role: server.endpoints.role,
      down: [...server.endpoints.down],
      servicesDown: server.endpoints.servicesDown,
      ...server.endpoints.stats
    }),
    mirrors: () => server.mirrors.inspect(),
    copies: () => server.mirrors.copies(),
    events: server.operator.events,
    overrides: () => server.operator.status(),
    disablingOf: (policy) => server.operator.disablingOf(policy),
    act: async (request) => server.operator.act(request),
    policyOrder: (policy) => shownOrder(dataPlane.parts, policy, policyOrder(dataPlane.parts, policy)),
    listenerStats: () => {
      server.count()
      return server.listeners?.stats ?? { udp: makeUdpStats(), tcp: makeTcpStats() }
    },
    workers: () => ({
      ...(server.serving?.workers?.status ?? noWorkers),
      wanted: server.serving?.wantedWorkers ?? 0,
      whyNone: server.serving?.whyNoWorkers ?? null
    }),
    cacheEntries: (suffix, limit) => {
      const nowMs = clock.nowMs()
      const listings = server.cache.list(limit, suffix === null ? {} : { suffix })
      return listings.map((listing) => ({ ...listing, ageMs: nowMs - listing.entry.storedAtMs }))
    },
    flushCache(what) {
      if ('name' in what) return server.cache.flushName(what.name)
      return 'suffix' in what ? server.cache.flushSuffix(what.suffix) : server.cache.flush()
    },
    simulate: async (question) => simulate(server, question),
    async trace(question) {
      const startedAtMs = clock.nowMs()
      const trace = new Trace(startedAtMs)
      const query: Query = {
        message: null,
        qname: question.name,
        qtype: question.type,
        recursionDesired: question.recursionDesired,
        dnssecOk: false,
        checkingDisabled: false,
        client: { address: question.clientAddress, port: 0, transport: 'tcp' },
        peerdns: null,
        signature: null,
        receivedAtMs: startedAtMs,
        trace
      }
      const answer = accept(query, dataPlane.parts) ?? (await respond(dataPlane.parts, query))
      return { answer, steps: trace.steps, tookMs: clock.nowMs() - startedAtMs }
    }
  }
}

const noWorkers = { reading: 0, steered: 0, answered: 0, forwarded: 0, dropped: 0, lost: 0 }
