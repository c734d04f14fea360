/** What a policy is: which names and clients it is for, which targets answer them, and when the next one is asked. */
import type { DomainName } from '../wire/name.ts'

/** Names a target in cache keys, metrics and traces: `local`, `peer:cluster-a`, `addresses:10.9.0.7`. */
export type TargetId = string

export type TargetKind = 'local' | 'peer' | 'mirror' | 'addresses'

export type Target = Readonly<{
  id: TargetId
  kind: TargetKind
  /** The peer's name; null for `local` and `addresses`. */
  peer: string | null
  /** What that cluster calls its zone; null: as ours. */
  zone: DomainName | null
  /** Only for `addresses`: IPv4 and IPv6 addresses as text. */
  addresses: readonly string[]
  /** How these are checked, where `cluster.probes` is on; null: they are not. */
  probe: string | null
  /** 0 to 100; 0 is used only when nothing else is up. */
  weight: number
  region: string
}>

export type Select = 'first' | 'weighted' | 'geo' | 'merge'

/** Why the next target may be asked. */
export type NextReason = 'unreachable' | 'absent' | 'empty'

/** Whom a policy is for; a set of networks that can be asked. */
export type ClientSet = { contains(address: string): boolean }

/** What becomes of a target of which every endpoint is unhealthy: the next one, all that it has, or nothing. */
export type AllDown = 'next' | 'open' | 'closed'

export type Policy = Readonly<{
  name: string
  dnsNames: readonly DomainName[]
  targets: readonly Target[]
  select: Select
  nextOn: ReadonlySet<NextReason>
  /** Cap of every TTL in seconds; null: none. */
  maxTtlSeconds: number | null
  maxNegativeTtlSeconds: number
  /** null: everyone. */
  clients: ClientSet | null
  /** Whether queries with RD=0 may use this policy too. */
  transit: boolean
  allowReserved: boolean
  enforce: boolean
  allDown: AllDown
  /** Percent of names and clients for which the second target is asked first. */
  tricklePercent: number
}>
