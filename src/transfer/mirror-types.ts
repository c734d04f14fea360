/** What a zone that is followed tells of itself. */
import type { DomainName } from '../wire/name.ts'
import type { TransferFault } from './transfer-reader.ts'

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
