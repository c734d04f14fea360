/** What a zone says of a name and type. */
import type { DomainName } from '../wire/name.ts'
import type { FoundAlias, FoundAnswer } from './name-tree.ts'

export type ZoneLookup =
  | FoundAnswer // of the asked type; for ANY one RRset (RFC 8482 §4.1)
  | FoundAlias // a CNAME at the name, while another type was asked
  | Readonly<{ kind: 'nodata' }>
  | Readonly<{ kind: 'nxdomain' }>

/** Answers computed from the name instead of kept (pod records in mode insecure); null: not mine. Never throws. */
export type Synthesize = (qname: DomainName, qtype: number) => ZoneLookup | null

export const nodata: ZoneLookup = { kind: 'nodata' }
export const nxdomain: ZoneLookup = { kind: 'nxdomain' }
