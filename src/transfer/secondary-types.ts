/** What a secondary is given, and the versions that it compares. */
import type { Clock } from '../base/clock.ts'
import type { Message } from '../wire/message.ts'
import type { DomainName } from '../wire/name.ts'
import { readSoa } from '../wire/rdata.ts'
import type { ResourceRecord, RRset } from '../wire/rr.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import type { Link } from './link.ts'
import type { TransferFault, TransferReaderOptions } from './transfer-reader.ts'

/** `store`: the copy; null where none has come, or none is kept. */
export type RefusedZone = Readonly<{ apex: DomainName; store: ZoneStore | null }>

export type SecondaryOptions = Readonly<{
  apex: DomainName
  link: Pick<Link, 'request' | 'drop' | 'markGood' | 'server'>
  clock: Clock
  random: () => number
  /** Names this process in our EDNS option; hex. */
  instanceId: string
  /** `<cluster>/<peer>`: not the server's own zone is meant, but its copy of another cluster's; null: its own. */
  copyOf?: string | null
  limits?: TransferReaderOptions['limits']
  /** Without a sign of life for this long, what is held does not stand for the zone itself. */
  leaseMs: number
  /** Nobody gives us this zone. `above`: the apex of the zone that the name lies in, where the server told. */
  onRefused: (zone: RefusedZone, why: string, above: DomainName | null) => void
  /** What is held is known to be equal to what the primary has. */
  onConfirmed?: (zone: Readonly<{ apex: DomainName }>) => void
  /** A transfer was of no use, and why. */
  onFault: (zone: Readonly<{ apex: DomainName }>, fault: TransferFault) => void
}>

/** A version of a zone, within one history. */
export type Version = Readonly<{ soa: RRset; serial: number; epoch: string }>

/** Takes the messages of one transfer; null: more have to come. */
export type TransferTaker<Outcome> = Readonly<{
  stats: Readonly<{ messages: number; records: number; octets: number }>
  take(message: Message, sizeOctets: number): Outcome | null
}>

export function versionOf({ owner, type, ttlSeconds, rdata }: ResourceRecord, epoch: string): Version {
  return { soa: { owner, type, ttlSeconds, rdata: [rdata] }, serial: readSoa(rdata).serial, epoch }
}
