/**
 * What an operator's hand set beside the configuration: peers that are drained, policies that are disabled; each until
 * some time, or until it is taken back. Pure; where it is kept, override-store.ts and its places know.
 */
import { isDeepStrictEqual } from 'node:util'
import { inBackticks, TextError } from '../base/errors.ts'
import { overrideEntries, overrideOctets, overrideTextCharacters } from '../base/limits.ts'

export type Override = Readonly<{
  sinceEpochMs: number
  /** null: until it is taken back. */
  untilEpochMs: number | null
  /** In the operator's words; may be empty. */
  reason: string
  /** Who did it, as they said themselves; may be empty. */
  by: string
}>

export type Overrides = Readonly<{
  /** By the peer's name. */
  drainedPeers: ReadonlyMap<string, Override>
  /** By the policy's name. */
  disabledPolicies: ReadonlyMap<string, Override>
  /** Every policy at once, those that are added later too. */
  allPolicies: Override | null
  /** Policies that are in force though all are disabled; empty while not all are. */
  enabledPolicies: ReadonlySet<string>
}>

export const noOverrides: Overrides = {
  drainedPeers: new Map(),
  disabledPolicies: new Map(),
  allPolicies: null,
  enabledPolicies: new Set()
}

/** What disables a policy; null: nothing does. */
export const disablingOf = (
  { disabledPolicies, allPolicies, enabledPolicies }: Overrides,
  policy: string
): Override | null => disabledPolicies.get(policy) ?? (enabledPolicies.has(policy) ? null : allPolicies)

export type OverrideAction =
  | Readonly<{ kind: 'drain'; peer: string; override: Override }>
  | Readonly<{ kind: 'undrain'; peer: string }>
  /** `policy` null: all of them. */
  | Readonly<{ kind: 'disable'; policy: string | null; override: Override }>
  /** `policy` null: all of them, also those that were disabled one by one. One alone is also taken out of all. */
  | Readonly<{ kind: 'enable'; policy: string | null }>

export function withAction(overrides: Overrides, action: OverrideAction): Overrides {
  const drainedPeers = new Map(overrides.drainedPeers)
  const disabledPolicies = new Map(overrides.disabledPolicies)
  const enabledPolicies = new Set(overrides.enabledPolicies)
  let { allPolicies } = overrides
  if (action.kind === 'drain') drainedPeers.set(action.peer, action.override)
  else if (action.kind === 'undrain') drainedPeers.delete(action.peer)
  else if (action.kind === 'disable' && action.policy === null) {
    allPolicies = action.override
    enabledPolicies.clear()
  } else if (action.kind === 'disable') {
    disabledPolicies.set(action.policy!, action.override)
    enabledPolicies.delete(action.policy!)
  } else if (action.policy === null) {
    allPolicies = null
    disabledPolicies.clear()
    enabledPolicies.clear()
  } else {
    disabledPolicies.delete(action.policy)
    if (allPolicies !== null) enabledPolicies.add(action.policy)
  }
  return { drainedPeers, disabledPolicies, allPolicies, enabledPolicies }
}

/** What holds at a moment: without all that is over. */
export function holdingAt(overrides: Overrides, epochMs: number): Overrides {
  const holds = ({ untilEpochMs }: Override): boolean => untilEpochMs === null || untilEpochMs > epochMs
  const left = (all: ReadonlyMap<string, Override>): Map<string, Override> =>
    new Map([...all].filter(([, override]) => holds(override)))
  const { drainedPeers, disabledPolicies, allPolicies, enabledPolicies } = overrides
  const areAllDisabled = allPolicies !== null && holds(allPolicies)
  return {
    drainedPeers: left(drainedPeers),
    disabledPolicies: left(disabledPolicies),
    allPolicies: areAllDisabled ? allPolicies : null,
    enabledPolicies: areAllDisabled ? enabledPolicies : noOverrides.enabledPolicies
  }
}

const allOf = ({ drainedPeers, disabledPolicies, allPolicies }: Overrides): Override[] => [
  ...drainedPeers.values(),
  ...disabledPolicies.values(),
  ...(allPolicies === null ? [] : [allPolicies])
]

/** How many entries they are, in what they are kept in. */
export const entriesOf = (overrides: Overrides): number => allOf(overrides).length + overrides.enabledPolicies.size

/** When the next of them ends by itself; null where none does. */
export function nextEndEpochMs(overrides: Overrides): number | null {
  const ends = allOf(overrides).flatMap(({ untilEpochMs }) => untilEpochMs ?? [])
  return ends.length === 0 ? null : Math.min(...ends)
}

/** What is different, as the actions that lead from one to the other. */
export function actionsBetween(before: Overrides, after: Overrides): OverrideAction[] {
  const actions: OverrideAction[] = []
  for (const [peer, override] of after.drainedPeers) {
    if (!isDeepStrictEqual(before.drainedPeers.get(peer), override)) actions.push({ kind: 'drain', peer, override })
  }
  for (const peer of before.drainedPeers.keys()) {
    if (!after.drainedPeers.has(peer)) actions.push({ kind: 'undrain', peer })
  }
  // Policies as they are after the actions so far.
  let policies = before
  const push = (action: OverrideAction): void => {
    actions.push(action)
    policies = withAction(policies, action)
  }
  for (const policy of before.disabledPolicies.keys()) {
    if (!after.disabledPolicies.has(policy)) push({ kind: 'enable', policy })
  }
  const { allPolicies } = after
  if (allPolicies === null && before.allPolicies !== null) push({ kind: 'enable', policy: null })
  const isAnyDisabledAnew = [...policies.enabledPolicies].some(
    (policy) => !after.enabledPolicies.has(policy) && !after.disabledPolicies.has(policy)
  )
  if (allPolicies !== null && (isAnyDisabledAnew || !isDeepStrictEqual(before.allPolicies, allPolicies))) {
    push({ kind: 'disable', policy: null, override: allPolicies })
  }
  for (const policy of after.enabledPolicies) {
    if (!policies.enabledPolicies.has(policy)) push({ kind: 'enable', policy })
  }
  for (const [policy, override] of after.disabledPolicies) {
    if (isDeepStrictEqual(policies.disabledPolicies.get(policy), override)) continue
    push({ kind: 'disable', policy, override })
  }
  return actions
}

const written = ({ sinceEpochMs, untilEpochMs, reason, by }: Override): object => ({
  since: new Date(sinceEpochMs).toISOString(),
  ...(untilEpochMs === null ? {} : { until: new Date(untilEpochMs).toISOString() }),
  ...(reason === '' ? {} : { reason }),
  ...(by === '' ? {} : { by })
})

/** As it is kept: JSON that a person can read and write too. */
export function overridesToText(overrides: Overrides): string {
  const all = (entries: ReadonlyMap<string, Override>): object =>
    Object.fromEntries([...entries].map(([name, override]) => [name, written(override)]))
  const { drainedPeers, disabledPolicies, allPolicies, enabledPolicies } = overrides
  const content = {
    drainedPeers: all(drainedPeers),
    disabledPolicies: all(disabledPolicies),
    ...(allPolicies === null ? {} : { allPolicies: written(allPolicies) }),
    ...(enabledPolicies.size === 0 ? {} : { enabledPolicies: [...enabledPolicies] })
  }
  return `${JSON.stringify(content, null, 2)}\n`
}

/**
 * Reads what overridesToText wrote, or a person.
 * @throws TextError
 */
export function parseOverrides(text: string): Overrides {
  if (text.length > overrideOctets) throw new TextError(`longer than ${overrideOctets} octets`)
  if (text.trim() === '') return noOverrides
  let content: unknown
  try {
    content = JSON.parse(text)
  } catch (error) {
    if (error instanceof SyntaxError) throw new TextError(`not JSON: ${error.message}`)
    throw error
  }
  const keys = ['drainedPeers', 'disabledPolicies', 'allPolicies', 'enabledPolicies']
  const fields = readFields(content, keys, 'the whole')
  const overrides: Overrides = {
    drainedPeers: readAll(fields['drainedPeers'], 'drainedPeers'),
    disabledPolicies: readAll(fields['disabledPolicies'], 'disabledPolicies'),
    allPolicies: fields['allPolicies'] === undefined ? null : readOverride(fields['allPolicies'], 'allPolicies'),
    enabledPolicies: readNames(fields['enabledPolicies'], 'enabledPolicies')
  }
  if (entriesOf(overrides) > overrideEntries) throw new TextError(`more than ${overrideEntries} entries`)
  return overrides
}

function readFields(value: unknown, known: readonly string[] | null, path: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new TextError(`${path} is not a JSON object`)
  }
  const unknown = known === null ? undefined : Object.keys(value).find((key) => !known.includes(key))
  if (unknown !== undefined) {
    throw new TextError(`${path}: unknown key ${inBackticks(unknown)}; known here: ${known!.join(', ')}`)
  }
  return value as Record<string, unknown>
}

function readAll(value: unknown, path: string): ReadonlyMap<string, Override> {
  if (value === undefined) return new Map()
  const entries = Object.entries(readFields(value, null, path))
  return new Map(entries.map(([name, one]) => [name, readOverride(one, `${path}.${name.slice(0, 80)}`)]))
}

function readNames(value: unknown, path: string): ReadonlySet<string> {
  if (value === undefined) return new Set()
  if (!Array.isArray(value) || !value.every((name) => typeof name === 'string')) {
    throw new TextError(`${path} is not a list of names`)
  }
  return new Set(value)
}

function readOverride(value: unknown, path: string): Override {
  const { since, until, reason = '', by = '' } = readFields(value, ['since', 'until', 'reason', 'by'], path)
  if (typeof reason !== 'string' || typeof by !== 'string') throw new TextError(`${path}: reason and by are text`)
  return {
    sinceEpochMs: readTime(since, `${path}.since`),
    untilEpochMs: until === undefined || until === null ? null : readTime(until, `${path}.until`),
    reason: reason.slice(0, overrideTextCharacters),
    by: by.slice(0, overrideTextCharacters)
  }
}

function readTime(value: unknown, path: string): number {
  const epochMs = typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value) ? Date.parse(value) : Number.NaN
  if (Number.isNaN(epochMs)) throw new TextError(`${path} is not a time like 2026-01-31T12:00:00Z`)
  return epochMs
}
