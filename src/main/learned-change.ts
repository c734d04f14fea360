/**
 * A transferred change of a peer's zone as `Freshness` wants to know it: the names as our clients call them, and when.
 */
import type { Config } from '../config/config.ts'
import type { LearnedChange, TouchedName } from '../pipeline/freshness.ts'
import { mappedZoneOf, toOurs, zoneMapping, type ZoneMapping } from '../policy/zone-mapping.ts'
import type { Step, Times } from '../transfer/read-delta.ts'
import type { DomainName } from '../wire/name.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import { swapDifference, type TouchedSets } from './swap-difference.ts'

export type LearnedFrom = Readonly<{
  peer: string
  /** How names of that peer become ours, by its policies. */
  mappings: readonly ZoneMapping[]
  /** The server's clock less ours, in milliseconds; null where it does not tell. */
  clockOffsetMs: number | null
  /** Whether what is answered of a name comes from this zone: of two that hold it, one counts. */
  holds: (owner: DomainName) => boolean
}>

/** One for each moment that the steps tell; steps of a server that tells no times are left out. */
export function learnedChanges(from: LearnedFrom, change: TouchedSets, steps: readonly Step[]): LearnedChange[] {
  const types = touchedTypes(change)
  const where = { zone: change.zone, serial: change.toSerial, cameWhole: false }
  return steps.flatMap((step) => learnedOf(from, where, step, (owner) => types.get(owner)))
}

/** @param typesOf undefined: in the end nothing about the name has changed. */
function learnedOf(
  { peer, mappings, clockOffsetMs, holds }: LearnedFrom,
  where: Pick<LearnedChange, 'zone' | 'serial' | 'cameWhole'>,
  { owners, times, laterMs }: Step,
  typesOf: (owner: DomainName) => TouchedName['types'] | undefined
): LearnedChange[] {
  if (times === null) return []
  const held = owners.filter(holds)
  if (held.length === 0 && owners.length > 0) return []
  const touchedAt = new Map<number, TouchedName[]>([[times.originAtMs, []]])
  for (const owner of held) {
    const types = typesOf(owner)
    if (types === undefined) continue
    const originAtMs = times.originAtMs + (laterMs.get(owner) ?? 0)
    const touched = touchedAt.get(originAtMs) ?? []
    for (const mapping of mappings) touched.push({ name: toOurs(owner, mapping), types })
    touchedAt.set(originAtMs, touched)
  }
  return Array.from(touchedAt, ([originAtMs, touched]) => ({
    ...where,
    peer,
    target: `peer:${peer}`,
    clockOffsetMs,
    originAtMs,
    // The server tells when it learned of the first one.
    primaryAtMs: Math.max(times.learnedAtMs, originAtMs),
    touched
  }))
}

/**
 * What a zone that came whole brought: all that is known of when is the zone's last change. None where that is not
 * told.
 */
export function learnedBySwap(from: LearnedFrom, before: ZoneStore, after: ZoneStore, times: Times): LearnedChange[] {
  const change = times === null ? null : swapDifference(before, after)
  if (change === null) return []
  const types = touchedTypes(change)
  const step = { owners: [...types.keys()], serial: after.serial, times, laterMs: new Map<DomainName, number>() }
  const where = { zone: after.apex, serial: after.serial, cameWhole: true }
  return learnedOf(from, where, step, (owner) => types.get(owner))
}

/** The same where only the names are told: any answer about them may be another one now. */
export function learnedNames(from: LearnedFrom, zone: DomainName, steps: readonly Step[]): LearnedChange[] {
  return steps.flatMap((step) => learnedOf(from, { zone, serial: step.serial, cameWhole: false }, step, () => null))
}

/** A name that began or ceased to exist, or whose Service did in effect, has other answers for every type. */
function touchedTypes({ sets, existence, services }: TouchedSets): Map<DomainName, TouchedName['types']> {
  const types = new Map<DomainName, number[] | null>()
  for (const { owner, type } of sets) types.set(owner, [...(types.get(owner) ?? []), type])
  for (const { owner } of [...existence, ...services]) types.set(owner, null)
  return types
}

/** How names of a peer become ours, by each policy that has it as a target; each way once. */
export function mappingsOf({ cluster, policies }: Config, peer: string): ZoneMapping[] {
  const mappings = new Map<string, ZoneMapping>()
  for (const { targets, dnsNames } of policies) {
    for (const target of targets.filter((candidate) => candidate.peer === peer)) {
      for (const dnsName of dnsNames) {
        const mapping = zoneMapping(mappedZoneOf(dnsName, [cluster.zone, cluster.clustersetZone]), target)
        mappings.set(mapping === null ? '' : `${mapping.ours} ${mapping.theirs}`, mapping)
      }
    }
  }
  return [...mappings.values()]
}
