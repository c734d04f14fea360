/** `peerdns policies list`, `describe`, `simulate`, `disable` and `enable`. */
import type { Command } from 'commander'
import type { PoliciesJson, PolicyJson, TargetJson, WouldChangeJson } from '../admin/api-types.ts'
import { overrideText, setOverride, takeBack, withOverrideOptions, type OverrideOptions } from './actions.ts'
import { AdminClient } from './admin-client.ts'
import { wrongUse, type CommandIo } from './command-io.ts'
import { print, withAdmin, withExamples, withOutput, type ListOptions } from './shared-options.ts'
import { addSimulate } from './simulate.ts'
import { counted, elapsed, fields, healthText, percent, printable, table } from './table.ts'

export function addPolicies(program: Command, io: CommandIo): void {
  const policies = program.command('policies').description('which names are peered to whom')
  const list = policies.command('list').description('every policy, with the order in which its targets are asked now')
  withExamples(withAdmin(withOutput(list)), 'policies list', 'policies list -o json').action(
    async (options: ListOptions) => {
      const answer = await AdminClient.from(options.admin, io).get<PoliciesJson>('/policies')
      print(io, options, answer, policiesText)
    }
  )
  const describe = policies
    .command('describe')
    .description('one policy: its targets with their alternative name servers, order and health now, and all defaults')
    .argument('<name>', 'name of the policy')
  withExamples(withAdmin(withOutput(describe)), 'policies describe backend-from-a').action(
    async (name: string, options: ListOptions) => {
      const client = AdminClient.from(options.admin, io)
      const answer = await client.get<PolicyJson>(`/policies/${encodeURIComponent(name)}`)
      print(io, options, answer, (policy) => policyText(policy, io))
    }
  )
  addSimulate(policies, io)
  addDisable(policies, io)
}

function addDisable(policies: Command, io: CommandIo): void {
  const disable = policies
    .command('disable')
    .description('answer as if a policy were not there, on every replica')
    .argument('[name]', 'name of the policy')
    .option('--all', 'all policies, those that a reload adds too')
  withExamples(
    withAdmin(withOutput(withOverrideOptions(disable))),
    'policies disable backend-from-a --for 30m',
    'policies disable --all --for 30m --reason incident'
  ).action(async (name: string | undefined, options: OverrideOptions & AllOption) => {
    const { path, what } = policyOrAll(name, options)
    await setOverride(io, `${path}/disable`, options, () => `${what} disabled`)
  })
  const enable = policies
    .command('enable')
    .description(
      'put a policy in force again, one or all of those that are disabled; exit code 1 where it is not disabled'
    )
    .argument('[name]', 'name of the policy')
    .option('--all', 'all policies, those that were disabled one by one too')
  withExamples(withAdmin(withOutput(enable)), 'policies enable backend-from-a', 'policies enable --all').action(
    async (name: string | undefined, options: ListOptions & AllOption) => {
      const { path, what } = policyOrAll(name, options)
      await takeBack(io, `${path}/enable`, options, `${what} in force again`)
    }
  )
}

type AllOption = Readonly<{ all?: true }>

function policyOrAll(name: string | undefined, { all }: AllOption): { path: string; what: string } {
  if ((name === undefined) === (all === undefined)) throw wrongUse('the name of a policy or --all: one of them')
  return name === undefined
    ? { path: '/policies', what: 'all policies are' }
    : { path: `/policies/${encodeURIComponent(name)}`, what: `policy ${name} is` }
}

const policiesText = ({ policies }: PoliciesJson): string =>
  policies.length === 0
    ? 'no policies: nothing is peered\n'
    : table(
        ['NAME', 'DNSNAMES', 'ORDER NOW', 'SELECT', 'CLIENTS', 'ANSWERS'],
        policies.map((policy) => [
          policy.name,
          policy.dnsNames.join(','),
          orderText(policy),
          policy.select,
          clientsText(policy),
          String(policy.answers)
        ])
      )

const clientsText = ({ clients }: PolicyJson): string => (clients === null ? 'everyone' : clients.join(','))

function orderText({ effectiveOrder, targets, isAllDown, disabled, enforce }: PolicyJson): string {
  if (disabled !== null) return overrideText('disabled', disabled)
  const isReserve = (id: string): boolean => targets.some((target) => target.id === id && target.weight === 0)
  const isAnyInUse = effectiveOrder.some((id) => !isReserve(id))
  const order = effectiveOrder.map((id) => (isAnyInUse && isReserve(id) ? `${id} (reserve)` : id))
  return `${order.join(',') || 'nobody'}${isAllDown ? ' (all down)' : ''}${enforce ? '' : ' (not enforced)'}`
}

const yesOrNo = (value: boolean): string => (value ? 'yes' : 'no')

function policyText(policy: PolicyJson, io: CommandIo): string {
  const { maxTtlSeconds, lastChange } = policy
  const settings = fields([
    ['name', policy.name],
    ['dnsName', policy.dnsNames.join(', ')],
    ['clients', clientsText(policy)],
    ['select', policy.select],
    ['nextOn', policy.nextOn.join(', ') || 'never'],
    ['maxTtl', maxTtlSeconds === null ? 'none' : `${maxTtlSeconds}s`],
    ['maxNegativeTtl', `${policy.maxNegativeTtlSeconds}s`],
    ['transit', yesOrNo(policy.transit)],
    ['allowReserved', yesOrNo(policy.allowReserved)],
    ['enforce', policy.wouldChange === null ? 'yes' : `no: ${countsText(policy.wouldChange)}`],
    ['order now', orderText(policy)],
    [
      'answers',
      `${policy.answers}, of which ${policy.madeHereAnswers} ${policy.madeHereAnswers === 1 ? 'was' : 'were'} made here (denials by rule, failures)`
    ],
    ['adaptive TTL', adaptiveText(policy)],
    ['last change', lastChange === null ? 'none' : printable(`${lastChange.at} ${lastChange.kind}: ${lastChange.text}`)]
  ])
  const targets = table(
    ['ORDER', 'TARGET', 'NAME SERVER', 'HEALTH', 'RTT', 'ZONE', 'WEIGHT', 'REGION', 'ANSWERS', 'SHARE', 'WHY'],
    policy.targets.flatMap((target) => targetRows(target, io))
  )
  return `${settings}\n${targets}${examplesText(policy)}`
}

/** Peers that tell of no changes, and how many of their names have lower TTLs since they were seen to change. */
function adaptiveText({ targets }: PolicyJson): string {
  const capped = targets.filter(({ adaptiveTtlNames }) => adaptiveTtlNames > 0)
  return (
    capped.map(({ id, adaptiveTtlNames }) => `${id}: ${counted(adaptiveTtlNames, 'name')} that changed`).join(', ') ||
    'no caps'
  )
}

const countsText = ({ same, changed, skipped }: WouldChangeJson): string =>
  `${counted(changed, 'answer')} would be ${changed === 1 ? 'another' : 'others'}, ${same} the same, ${skipped} not looked at`

/** What a policy that is not enforced would have changed lately. */
function examplesText({ wouldChange }: PolicyJson): string {
  if (wouldChange === null || wouldChange.examples.length === 0) return ''
  const rows = wouldChange.examples.map(({ at, name, type, given, instead }) => [at, name, type, given, instead])
  return `\n${table(['LAST', 'NAME', 'TYPE', 'ANSWERED', 'WOULD HAVE BEEN'], rows)}`
}

/** One row for each alternative name server; what concerns the target as a whole stands in the first one. */
function targetRows(target: TargetJson, io: CommandIo): (string | null)[][] {
  const place = target.place === null ? 'left out' : String(target.place)
  const whole = [
    target.zone,
    String(target.weight),
    target.region || null,
    String(target.answers),
    percent(target.answerShare)
  ]
  const drained = target.drained === null ? null : overrideText('drained', target.drained)
  if (target.servers.length === 0) {
    const addresses = target.addresses.join(',') || null
    return [
      [
        place,
        target.id,
        addresses,
        healthText(target.health, io),
        null,
        ...whole,
        drained ?? (target.why === null ? null : printable(target.why))
      ]
    ]
  }
  return target.servers.map(({ server, health, rttMs, reason }, at) => [
    ...(at === 0 ? [place, target.id] : ['', '']),
    server,
    healthText(health, io),
    elapsed(rttMs),
    ...(at === 0 ? whole : whole.map(() => '')),
    drained ?? (printable(reason) || null)
  ])
}
