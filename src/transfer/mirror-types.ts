/** What goes into a mirrored zone, and what it tells of itself. */
import type { Clock } from '../base/clock.ts'
import { RCODE, RRTYPE } from '../wire/iana.ts'
import type { Message } from '../wire/message.ts'
import { isAtOrBelow, type DomainName } from '../wire/name.ts'
import type { ResourceRecord } from '../wire/rr.ts'
import type { ZoneChange } from '../zone/zone-change.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import type { IncomingOptions } from './incoming-transfer.ts'
import type { Step, Times } from './read-delta.ts'
import type { Link } from './link.ts'
import type { MirroredZone } from './mirrored-zone.ts'
import type { TransferFault } from './transfer-reader.ts'

export type MirroredZoneOptions = Readonly<{
  apex: DomainName
  link: Pick<Link, 'request' | 'drop' | 'markGood' | 'server'>
  clock: Clock
  random: () => number
  /** Names this process in our EDNS option; hex. */
  instanceId: string
  synthesize?: IncomingOptions['synthesize']
  limits?: IncomingOptions['limits']
  /** Without a sign of life for this long, the copy is not answered from as if it were the zone itself. */
  leaseMs: number
  /** Another store has taken the place of `before`. */
  onSwap: (zone: MirroredZone, store: ZoneStore, before: ZoneStore | null, times: Times) => void
  /** The store was changed by deltas. */
  onChange: (zone: MirroredZone, change: ZoneChange, steps: readonly Step[]) => void
  /** Nobody gives us this zone. `above`: the apex of the zone that the name lies in, where the server told. */
  onRefused: (zone: MirroredZone, why: string, above: DomainName | null) => void
  /** The copy is known to be equal to what the primary has. */
  onConfirmed?: (zone: Readonly<{ apex: DomainName }>) => void
  /** A transfer was of no use, and why. */
  onFault: (zone: Readonly<{ apex: DomainName }>, fault: TransferFault) => void
}>

export type MirrorState = 'connecting' | 'asking' | 'transferring' | 'current' | 'refused' | 'failing'

export type MirrorStatus = Readonly<{
  apex: DomainName
  state: MirrorState
  /** false: only its changes are heard of. */
  keepsCopy: boolean
  /** null before the first transfer. */
  serial: number | null
  epoch: string | null
  server: string | null
  /** Since it was known to be right at the zone's origin; null before. */
  ageMs: number | null
  /** The server's wall clock less ours, in milliseconds; null where it does not tell. */
  clockOffsetMs: number | null
  pushes: boolean
  isLive: boolean
  /** Older than its SOA lets it be given out at all. */
  isExpired: boolean
  lastFault: string | null
  stats: Readonly<MirrorStats>
}>

export type MirrorStats = {
  checks: number
  notifies: number
  wholeTransfers: number
  deltaTransfers: number
  /** Transfers that ended without use, by why. */
  faults: Record<TransferFault['kind'], number>
  records: number
  octets: number
}

export const newMirrorStats = (): MirrorStats => ({
  checks: 0,
  notifies: 0,
  wholeTransfers: 0,
  deltaTransfers: 0,
  faults: { rcode: 0, malformed: 0, delta: 0, limit: 0, network: 0, signature: 0 },
  records: 0,
  octets: 0
})

/** RCODEs that say that a server does not give a zone. */
export const refusals: ReadonlySet<number> = new Set([RCODE.REFUSED, RCODE.NOTAUTH, RCODE.NXDOMAIN])

/** The zone that the asked name lies in, as the SOA of a denial tells it. */
export function zoneAbove({ authority }: Message, apex: DomainName): DomainName | null {
  const soa = authority.find(({ owner, type }: ResourceRecord) => type === RRTYPE.SOA && isAtOrBelow(apex, owner))
  return soa === undefined || soa.owner === apex ? null : soa.owner
}
