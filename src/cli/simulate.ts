/** `peerdns policies simulate NAME [--down PEER]`. */
import type { Command } from 'commander'
import type { SimulatedOrderJson, SimulationJson } from '../admin/simulation-types.ts'
import { AdminClient } from './admin-client.ts'
import type { CommandIo } from './command-io.ts'
import { print, withAdmin, withExamples, withOutput, type ListOptions } from './shared-options.ts'
import { elapsed, fields, percent, printable, table } from './table.ts'

type SimulateOptions = ListOptions &
  Readonly<{ down?: readonly string[]; name?: readonly string[]; client?: string; region?: string }>

export function addSimulate(policies: Command, io: CommandIo): void {
  const simulate = policies
    .command('simulate')
    .description(
      'what a policy does, and would do if peers were down: order, shares, and answers to names that are in use'
    )
    .argument('<name>', 'name of the policy')
    .option('--down <peer...>', 'peers that are taken to be down (default: none, and the present decision is shown)')
    .option('--client <address>', 'as if this client asked (default: one that the policy is for, else 127.0.0.1)')
    .option('--region <region>', 'as if the client were in this region (default: where `regions` has its address)')
    .option('--name <name...>', 'names to answer both ways (default: those that are cached of its targets)')
  withExamples(
    withAdmin(withOutput(simulate)),
    'policies simulate backend-from-a',
    'policies simulate backend-from-a --down cluster-a',
    'policies simulate backend-from-a --down cluster-a --name api.backend.svc.cluster.local',
    'policies simulate near --down cluster-a --region eu-west'
  ).action(async (policy: string, { down, name, client, region, ...options }: SimulateOptions) => {
    const path = `/policies/${encodeURIComponent(policy)}/simulate`
    const answer = await AdminClient.from(options.admin, io).get<SimulationJson>(path, { down, name, client, region })
    print(io, options, answer, simulationText)
  })
}

function simulationText(simulation: SimulationJson): string {
  const { down, client, now, ifDown, staleForSeconds } = simulation
  const isIf = down.length > 0
  const then = staleForSeconds === null ? orderText(ifDown) : nobodyText(staleForSeconds)
  const head = fields([
    ['policy', simulation.policy],
    ...(isIf ? [['down', down.join(', ')] as const] : []),
    ['client', client.address ?? 'any in this region'],
    ['region', client.region || 'none'],
    ['order now', orderText(now)],
    ...(isIf ? [['order then', then] as const] : []),
    ['first now', sharesText(now)],
    ...(isIf ? [['first then', sharesText(ifDown)] as const] : [])
  ])
  return `${head}\n${namesText(simulation)}`
}

function namesText({ down, staleForSeconds, areExamples, names }: SimulationJson): string {
  const [isIf, isStale] = [down.length > 0, staleForSeconds !== null && staleForSeconds > 0]
  if (names.length === 0)
    return `no name of its targets is cached: --name NAME answers one${isIf ? ' both ways' : ''}\n`
  const rows = names.map((one) => {
    const then = one.now === one.ifDown ? 'the same' : `${isStale ? 'stale, then ' : ''}${printable(one.ifDown)}`
    return [one.name, one.type, printable(one.now), ...(isIf ? [then] : [])]
  })
  const about = areExamples ? 'Examples: names that are cached of its targets.\n' : ''
  return `${about}${table(['NAME', 'TYPE', 'NOW', ...(isIf ? ['THEN'] : [])], rows)}`
}

const orderText = ({ order, reserves, leftOut }: SimulatedOrderJson): string =>
  `${order.map((id) => (reserves.includes(id) ? `${id} (reserve)` : id)).join(', ') || 'nobody'}${leftOut.length === 0 ? '' : ` (left out: ${leftOut.join(', ')})`}`

const nobodyText = (staleForSeconds: number): string =>
  staleForSeconds === 0
    ? 'nobody: SERVFAIL'
    : `nobody: stale answers for up to ${elapsed(staleForSeconds * 1000)}, then SERVFAIL`

const sharesText = ({ firstShares }: SimulatedOrderJson): string =>
  Object.entries(firstShares)
    .filter(([, share]) => share > 0)
    .map(([target, share]) => `${target} ${percent(share)}`)
    .join(', ') || 'nobody'
