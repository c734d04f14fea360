/** `peerdns policies simulate NAME --down PEER`. */
import type { Command } from 'commander'
import type { SimulatedOrderJson, SimulationJson } from '../admin/api-types.ts'
import { AdminClient } from './admin-client.ts'
import { wrongUse, type CommandIo } from './command-io.ts'
import { print, withAdmin, withExamples, withOutput, type ListOptions } from './shared-options.ts'
import { elapsed, fields, percent, printable, table } from './table.ts'

type SimulateOptions = ListOptions &
  Readonly<{ down?: readonly string[]; name?: readonly string[]; client?: string; region?: string }>

export function addSimulate(policies: Command, io: CommandIo): void {
  const simulate = policies
    .command('simulate')
    .description('what a policy would do if peers were down: order, shares, and answers to names that are in use now')
    .argument('<name>', 'name of the policy')
    .option('--down <peer...>', 'peers that are taken to be down')
    .option('--client <address>', 'as if this client asked (default: one that the policy is for, else 127.0.0.1)')
    .option('--region <region>', 'as if the client were in this region (default: where `regions` has its address)')
    .option('--name <name...>', 'names to answer both ways (default: those that are cached of its targets)')
  withExamples(
    withAdmin(withOutput(simulate)),
    'policies simulate backend-from-a --down cluster-a',
    'policies simulate backend-from-a --down cluster-a --name api.backend.svc.cluster.local',
    'policies simulate near --down cluster-a --region eu-west'
  ).action(async (policy: string, { down, name, client, region, ...options }: SimulateOptions) => {
    if (down === undefined) throw wrongUse('--down PEER: which peer is taken to be down')
    const path = `/policies/${encodeURIComponent(policy)}/simulate`
    const answer = await AdminClient.from(options.admin, io).get<SimulationJson>(path, { down, name, client, region })
    print(io, options, answer, simulationText)
  })
}

function simulationText(simulation: SimulationJson): string {
  const { down, now, ifDown, staleForSeconds, names } = simulation
  const head = fields([
    ['policy', simulation.policy],
    ['down', down.join(', ')],
    ['client', simulation.client.address],
    ['region', simulation.client.region || 'none'],
    ['order now', orderText(now)],
    ['order then', staleForSeconds === null ? orderText(ifDown) : nobodyText(staleForSeconds)],
    ['first now', sharesText(now)],
    ['first then', sharesText(ifDown)]
  ])
  if (names.length === 0) return `${head}\nno name of its targets is cached: --name NAME answers one both ways\n`
  const isStale = staleForSeconds !== null && staleForSeconds > 0
  const rows = names.map((one) => [
    one.name,
    one.type,
    printable(one.now),
    one.now === one.ifDown ? 'the same' : `${isStale ? 'stale, then ' : ''}${printable(one.ifDown)}`
  ])
  return `${head}\n${table(['NAME', 'TYPE', 'NOW', 'THEN'], rows)}`
}

const orderText = ({ order, leftOut }: SimulatedOrderJson): string =>
  `${order.join(', ') || 'nobody'}${leftOut.length === 0 ? '' : ` (left out: ${leftOut.join(', ')})`}`

const nobodyText = (staleForSeconds: number): string =>
  staleForSeconds === 0
    ? 'nobody: SERVFAIL'
    : `nobody: stale answers for up to ${elapsed(staleForSeconds * 1000)}, then SERVFAIL`

const sharesText = ({ firstShares }: SimulatedOrderJson): string =>
  Object.entries(firstShares)
    .filter(([, share]) => share > 0)
    .map(([target, share]) => `${target} ${percent(share)}`)
    .join(', ') || 'nobody'
