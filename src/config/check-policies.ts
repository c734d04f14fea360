/** Checks of `policies`: targets that exist, names that can be peered, and one answer to "which policy is it". */
import { isAtOrBelow, joinLabels, nameToText, type DomainName } from '../wire/name.ts'
import { NetworkSet, networksOverlap, type Network } from '../base/network.ts'
import { inBackticks, WireError } from '../base/errors.ts'
import type { CheckOptions, FileDraft } from './file-draft.ts'
import { nearestWord } from './nearest.ts'
import { wordList } from './option.ts'
import type { PathStep } from './problem.ts'
import { hasUnknownKey } from './read-draft.ts'
import { readRecord } from './record-line.ts'
import { networkOfReverseName } from './reverse-name.ts'

type Policy = NonNullable<NonNullable<FileDraft['policies']>[number]>
type Target = NonNullable<NonNullable<Policy['targets']>[number]>

const targetKinds = ['peer', 'local', 'addresses'] as const

export function checkPolicies(draft: FileDraft, options: CheckOptions): void {
  const policies = (draft.policies ?? []).map((policy, index) => ({ policy: policy ?? {}, path: ['policies', index] }))
  for (const { policy, path } of policies) {
    checkTargets(policy, path, draft, options)
    checkReserved(policy, path, draft, options)
    checkLocal(policy, path, draft, options)
    checkTrickle(policy, path, options)
    warnOfIdle(policy, path, options)
  }
  checkUnique(policies, options)
}

/** The policy's dnsNames with their paths; a single one has the option's own path. */
function dnsNamesOf(policy: Policy, path: readonly PathStep[]): { name: DomainName; path: readonly PathStep[] }[] {
  const { dnsName } = policy
  if (dnsName === undefined) return []
  if (typeof dnsName === 'string') return [{ name: dnsName, path: [...path, 'dnsName'] }]
  return dnsName.flatMap((name, index) => (name === undefined ? [] : [{ name, path: [...path, 'dnsName', index] }]))
}

/** The dnsNames of all policies that `local` has a part in. */
export const namesOfLocal = ({ policies }: FileDraft): DomainName[] =>
  (policies ?? [])
    .flatMap((policy) => policy ?? [])
    .filter(({ targets }) => targets?.some((target) => target !== undefined && kindOf(target) === 'local') === true)
    .flatMap((policy) => dnsNamesOf(policy, []).map(({ name }) => name))

/** What kind of target this is; null where it is not exactly one. */
function kindOf(target: Target): (typeof targetKinds)[number] | null {
  if (typeof target === 'string') return target === 'local' ? 'local' : 'peer'
  const given = targetKinds.filter((kind) => target[kind] !== undefined)
  return given.length === 1 ? given[0]! : null
}

function checkTargets(policy: Policy, path: readonly PathStep[], draft: FileDraft, { report }: CheckOptions): void {
  const peers = Object.keys(draft.peers ?? {})
  const seen = new Set<string>()
  for (const [index, target] of (policy.targets ?? []).entries()) {
    if (target === undefined) continue
    const at = [...path, 'targets', index]
    const kind = kindOf(target)
    if (kind === null) {
      // A key of the target that is itself wrong has been told already.
      const given = typeof target === 'string' ? [] : targetKinds.filter((key) => Object.hasOwn(target, key))
      if (given.length === 1 || (typeof target !== 'string' && given.length === 0 && hasUnknownKey(target))) continue
      const message = given.length === 0 ? 'the target is nobody' : `the target is ${given.join(' and ')} at once`
      report({ path: at, at: 'value', message, expected: `exactly one of ${wordList(targetKinds)}` })
      continue
    }
    const zone = typeof target === 'string' ? undefined : target.zone
    if (kind === 'peer') {
      const name = typeof target === 'string' ? target : target.peer!
      if (!peers.includes(name))
        reportUnknownPeer(name, typeof target === 'string' ? at : [...at, 'peer'], peers, report)
    } else if (zone !== undefined) {
      report({
        path: [...at, 'zone'],
        at: 'key',
        message: `\`zone\` says what a peer calls its zone, and this is ${kind}`
      })
    }
    checkProbe(target, kind, at, draft, report)
    const { peer, addresses } = typeof target === 'string' ? { peer: target, addresses: undefined } : target
    const key = JSON.stringify([kind, kind === 'peer' ? peer : '', zone ?? '', addresses ?? []])
    if (seen.has(key)) report({ path: at, at: 'value', message: 'this target stands in the list twice' })
    seen.add(key)
  }
}

function checkProbe(
  target: Target,
  kind: (typeof targetKinds)[number],
  at: readonly PathStep[],
  { cluster }: FileDraft,
  report: CheckOptions['report']
): void {
  if (typeof target === 'string' || target.probe === undefined) return
  const path = [...at, 'probe']
  if (kind !== 'addresses') {
    report({ path, at: 'key', message: `\`probe\` checks \`addresses\`, and this is ${kind}` })
  } else if (cluster?.probes === 'off') {
    const message = '`cluster.probes` is off, so nothing would be checked'
    report({ path, at: 'key', message, expected: '`cluster: {probes: on}`' })
  }
}

function reportUnknownPeer(
  name: string,
  path: readonly PathStep[],
  peers: readonly string[],
  report: CheckOptions['report']
): void {
  const nearest = nearestWord(name, [...peers, 'local'])
  const expected =
    peers.length === 0 ? 'local, since there are no peers' : `local or one of the peers ${wordList(peers)}`
  const hint = nearest === null ? {} : { nearest }
  report({ path, at: 'value', message: `there is no peer ${inBackticks(name)}`, expected, ...hint })
}

/** Names that stay in their cluster: its API server and its DNS would depend on another cluster otherwise. */
function checkReserved(policy: Policy, path: readonly PathStep[], draft: FileDraft, { report }: CheckOptions): void {
  const zone = draft.cluster?.zone
  const isPeered = (policy.targets ?? []).some((target) => target !== undefined && kindOf(target) !== 'local')
  if (zone === undefined || !isPeered || policy.allowReserved !== false) return
  const reserved = [
    ['kubernetes', 'default', 'svc'],
    ['kube-system', 'svc'],
    ['kube-system', 'pod']
  ].flatMap((labels) => namesBelow(labels, zone))
  for (const { name, path: at } of dnsNamesOf(policy, path)) {
    const within = reserved.find((one) => isAtOrBelow(name, one))
    if (within === undefined) continue
    const message = `${nameToText(within)} is reserved: it is never peered`
    report({ path: at, at: 'value', message, expected: 'another name, or `allowReserved: true` on this policy' })
  }
}

/** The name in a list; none where it would be longer than a name can be. */
function namesBelow(labels: readonly string[], zone: DomainName): DomainName[] {
  try {
    return [joinLabels(labels, zone)]
  } catch (error) {
    if (error instanceof WireError) return []
    throw error
  }
}

/** `local` answers from our zones and hand-written records; elsewhere it has nothing to say. */
function checkLocal(policy: Policy, path: readonly PathStep[], draft: FileDraft, { report }: CheckOptions): void {
  const { zone, clustersetZone, reverse, records } = draft.cluster ?? {}
  const local = (policy.targets ?? []).findIndex((target) => target !== undefined && kindOf(target) === 'local')
  if (local < 0 || zone === undefined || clustersetZone === undefined || reverse === undefined) return
  const owners = (records ?? []).flatMap((line) => {
    const record = line === undefined ? null : readRecord(line)
    return record === null || record instanceof WireError ? [] : [record.owner]
  })
  const networks = reverse.flatMap((entry) => entry ?? [])
  const outside = dnsNamesOf(policy, path).find(({ name }) => {
    const isOurs = [zone, clustersetZone].some((own) => isAtOrBelow(name, own) || isAtOrBelow(own, name))
    const network = networkOfReverseName(name)
    const isReverse = network !== null && networks.some((own) => networksOverlap(own, network))
    return !isOurs && !isReverse && !owners.some((owner) => isAtOrBelow(owner, name))
  })
  if (outside === undefined) return
  const message = `\`local\` has nothing for ${nameToText(outside.name)}: it is outside of our zones`
  const expected = `a dnsName below ${nameToText(zone)}, or \`cluster.records\` below this one`
  report({ path: [...path, 'targets', local], at: 'value', message, expected })
}

/** A trickle goes to the second target before the first one: with `merge` all are asked together. */
function checkTrickle({ trickle, select }: Policy, path: readonly PathStep[], { report }: CheckOptions): void {
  if (trickle === undefined || trickle === 0 || select !== 'merge') return
  const message = '`merge` asks all targets together: there is no first and second'
  report({ path: [...path, 'trickle'], at: 'value', message, expected: '`select: first`, `weighted` or `geo`' })
}

/** Settings that change nothing beside the others. */
function warnOfIdle(policy: Policy, path: readonly PathStep[], { warn }: CheckOptions): void {
  const { targets = [], select, trickle, nextOn } = policy
  const tell = (step: PathStep[], message: string): void => {
    warn({ path: [...path, ...step], at: 'key', message })
  }
  if (trickle !== undefined && trickle > 0 && targets.length < 2) {
    tell(['trickle'], 'there is no second target, so `trickle` does nothing')
  } else if (trickle !== undefined && trickle > 0 && select === 'weighted') {
    tell(['trickle'], '`weighted` shares by weight already: `trickle` exchanges whom it drew')
  }
  if (nextOn?.length === 0 && targets.length > 1 && select === 'first') {
    tell(['nextOn'], 'no target but the first is ever asked, since `nextOn` is empty')
  }
  const weights = targets.flatMap((target) =>
    target === undefined ? [] : typeof target === 'string' ? 1 : (target.weight ?? 1)
  )
  if (weights.length > 0 && weights.every((weight) => weight === 0)) {
    tell(['targets'], 'every target has weight 0, which says: only when nothing else is up')
  } else if (select === 'first' || select === 'merge') {
    const at = weights.findIndex((weight) => weight > 1)
    if (at >= 0) tell(['targets', at, 'weight'], `\`weight\` shares nothing with \`select: ${select}\``)
  }
}

type PlacedPolicy = { policy: Policy; path: readonly PathStep[] }

function checkUnique(policies: readonly PlacedPolicy[], { report, lineOf }: CheckOptions): void {
  const byName = new Map<string, readonly PathStep[]>()
  const byDnsName = new Map<DomainName, PlacedPolicy[]>()
  for (const placed of policies) {
    const { policy, path } = placed
    if (policy.name !== undefined) {
      const other = byName.get(policy.name)
      if (other === undefined) byName.set(policy.name, [...path, 'name'])
      else {
        const message = `another policy is called ${inBackticks(policy.name)} already, on line ${lineOf(other)}`
        report({ path: [...path, 'name'], at: 'value', message, expected: 'a name of its own' })
      }
    }
    for (const { name, path: at } of dnsNamesOf(policy, path)) {
      const others = byDnsName.get(name) ?? []
      byDnsName.set(name, [...others, placed])
      const other = others.find((earlier) => clientsOverlap(earlier.policy, policy))
      if (other === undefined) continue
      const isSame = other.policy === policy
      const who = isSame ? 'this policy' : `the policy on line ${lineOf(other.path)}`
      const message = `${who} is for ${nameToText(name)} already, and for ${isSame ? 'the same' : 'overlapping'} clients`
      report({ path: at, at: 'value', message, expected: 'one policy for each dnsName and client' })
    }
  }
}

/** Null: everyone; undefined where it could not be read. */
function clientsOf({ clients }: Policy): NetworkSet | null | undefined {
  if (clients === undefined) return undefined
  if (clients === 'everyone') return null
  return new NetworkSet(clients.flatMap((entry): readonly Network[] => entry ?? []))
}

function clientsOverlap(one: Policy, other: Policy): boolean {
  const [ours, theirs] = [clientsOf(one), clientsOf(other)]
  if (one === other) return true
  if (ours === undefined || theirs === undefined) return false
  return ours === null || theirs === null || ours.overlaps(theirs)
}
