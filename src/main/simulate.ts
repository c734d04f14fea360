/**
 * What a policy does, and would do if peers were down: from what is known and cached now, without touching what is
 * served.
 */
import type { SimulatedOrder, Simulation, SimulationQuestion } from '../admin/inspectable.ts'
import { StaleRefresh } from '../cache/stale-refresh.ts'
import { simulatedDraws, simulatedNames } from '../base/limits.ts'
import type { RunningServer } from '../main.ts'
import { answerText } from '../pipeline/answer-text.ts'
import { policyOrder } from '../pipeline/by-policy.ts'
import type { Parts } from '../pipeline/parts.ts'
import type { Query } from '../pipeline/query.ts'
import { shownOrder } from '../pipeline/shown-order.ts'
import { respond } from '../pipeline/respond.ts'
import { ClientRegions } from '../policy/client-regions.ts'
import { PolicyTable } from '../policy/policy-table.ts'
import type { Policy } from '../policy/policy.ts'
import { mappedZoneOf, toOurs, toTheirs, zoneMapping } from '../policy/zone-mapping.ts'
import type { Standings } from '../policy/standing.ts'
import { targetOrder, type TargetOrder } from '../policy/target-order.ts'
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'

type Question = Readonly<{ name: DomainName; type: number }>

/** null: no policy is called so. */
export async function simulate(server: RunningServer, question: SimulationQuestion): Promise<Simulation | null> {
  const policy = server.config.policies.find(({ name }) => name === question.policy)
  if (policy === undefined) return null
  // The policy alone, also where it is disabled or not enforced.
  const { zone, clustersetZone } = server.config.cluster
  const policies = new PolicyTable([policy], [zone, clustersetZone])
  const staleRefresh = new StaleRefresh(server.clock)
  staleRefresh.stop()
  const live = server.dataPlane.parts
  const [network] = policy.clients?.networks ?? []
  const clientAddress = question.clientAddress ?? network?.text.split('/')[0] ?? '127.0.0.1'
  const region = question.region ?? live.clientRegions.regionOf(clientAddress)
  const clientRegions = new ClientRegions([], region)
  const now: Parts = { ...live, policies, withUnenforced: null, staleRefresh, clientRegions }
  const down = standingsWith(now.standings, new Set(question.down), 'down')
  const order = policyOrder({ ...now, standings: down }, policy)
  // Where all are down, servers ask them all the same. These would not answer: here nobody asks them.
  const isNobodyLeft = order.allDown || order.excluded.length === policy.targets.length
  const ifDown: Parts = {
    ...now,
    standings: isNobodyLeft ? standingsWith(now.standings, new Set(question.down), 'drained') : down
  }
  const { serveStaleSeconds } = server.config.cache
  const questions = question.names.length > 0 ? question.names.map(addressOf) : cachedQuestions(server, policy)
  const answeredBothWays = async (one: Question): Promise<{ now: string; ifDown: string }> => {
    const given = await answered(now, one, clientAddress, [])
    const { down } = question
    return { now: given, ifDown: down.length === 0 ? given : await answered(ifDown, one, clientAddress, down) }
  }
  const names = await Promise.all(
    questions.map(async (one) => ({
      ...one,
      ...(await answeredBothWays(one))
    }))
  )
  return {
    clientAddress: question.clientAddress === null && question.region !== null ? null : clientAddress,
    region,
    now: presentOrder(now, policy, clientAddress),
    ifDown: presentOrder(ifDown, policy, clientAddress),
    staleForSeconds: isNobodyLeft ? serveStaleSeconds : null,
    names
  }
}

const standingsWith = (live: Standings, down: ReadonlySet<string>, standing: 'down' | 'drained'): Standings => ({
  of: (target) =>
    target.peer !== null && down.has(target.peer) && live.of(target) !== 'drained' ? standing : live.of(target),
  returnedShare: (target) => live.returnedShare(target),
  revision: () => live.revision()
})

const addressOf = (name: DomainName): Question => ({ name, type: RRTYPE.A })

/** What clients asked for lately below the policy's names: each target's answers are cached under its own names. */
function cachedQuestions(server: RunningServer, { dnsNames, targets }: Policy): Question[] {
  const { zone, clustersetZone } = server.config.cluster
  const found = new Map<string, Question>()
  for (const dnsName of dnsNames) {
    for (const target of targets) {
      const mapping = zoneMapping(mappedZoneOf(dnsName, [zone, clustersetZone]), target)
      const suffix = toTheirs(dnsName, mapping)
      if (suffix === null || target.peer === null) continue
      const filter = { suffix, targetId: target.id, kind: 'positive' } as const
      for (const { question } of server.cache.list(simulatedNames, filter)) {
        const name = toOurs(question.name, mapping)
        if (found.size < simulatedNames) found.set(`${question.type} ${name}`, { name, type: question.type })
      }
    }
  }
  return [...found.values()]
}

async function answered(
  parts: Parts,
  { name, type }: Question,
  clientAddress: string,
  down: readonly string[]
): Promise<string> {
  const query: Query = {
    message: null,
    qname: name,
    qtype: type,
    recursionDesired: true,
    dnssecOk: false,
    checkingDisabled: false,
    client: { address: clientAddress, port: 0, transport: 'tcp' },
    peerdns: null,
    signature: null,
    receivedAtMs: parts.clock.nowMs(),
    trace: null
  }
  const answer = await respond(parts, query)
  const { origin } = answer
  const by = 'target' in origin && origin.target !== null ? origin.target : origin.from === 'zone' ? 'local' : null
  const isLast = down.some((peer) => by === `peer:${peer}`)
  return `${answerText(answer)}${by === null ? '' : ` from ${by}`}${isLast ? ' (its last answer, going stale)' : ''}`
}

function presentOrder(parts: Parts, policy: Policy, clientAddress: string): SimulatedOrder {
  const id = (target: number): string => policy.targets[target]!.id
  // Where the client is decides with `geo`; what is drawn for each name and client stands in the shares.
  const order = policy.select === 'geo' ? orderFor(parts, policy, clientAddress) : policyOrder(parts, policy)
  const { asked, leftOut } = shownOrder(parts, policy, order)
  const reserves = asked.filter((target) => policy.targets[target]!.weight === 0)
  return {
    order: asked.map(id),
    // If there is nobody but them, they are those in use.
    reserves: reserves.length === asked.length ? [] : reserves.map(id),
    leftOut: leftOut.map(id),
    firstShares: firstShares(parts, policy)
  }
}

const orderFor = (parts: Parts, policy: Policy, clientAddress: string): TargetOrder =>
  targetOrder(policy, parts.standings, {
    name: policy.dnsNames[0]!,
    service: null,
    clientAddress,
    region: parts.clientRegions.regionOf(clientAddress),
    epochMs: parts.clock.epochMs()
  })

/**
 * For whom each target is asked first: exact enough to see a shift, from clients of one region that are spread over a
 * network.
 */
function firstShares(parts: Parts, policy: Policy): Record<string, number> {
  const counts = new Map<string, number>(policy.targets.map(({ id }) => [id, 0]))
  for (let draw = 0; draw < simulatedDraws; draw++) {
    const order = orderFor(parts, policy, `10.${draw >> 16}.${(draw >> 8) & 0xff}.${draw & 0xff}`)
    const [first] = shownOrder(parts, policy, order).asked
    if (first !== undefined) counts.set(policy.targets[first]!.id, counts.get(policy.targets[first]!.id)! + 1)
  }
  return Object.fromEntries([...counts].map(([target, count]) => [target, count / simulatedDraws]))
}
