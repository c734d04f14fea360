/**
 * Resource records as the server holds them: RDATA stays in wire form, uncompressed, so a record of any type can be
 * kept, compared, cloned to another thread and sent without being understood (RFC 3597).
 *
 * The class is IN throughout, except where a decoded message says otherwise.
 */
import type { DomainName } from './name.ts'

/** RDATA octets with every name inside uncompressed (case kept). */
export type Rdata = Uint8Array

/**
 * The records of one owner and type. `rdata` has at least one element and no two equal ones. TTL in seconds, 0 to
 * 2^31-1.
 */
export type RRset = Readonly<{
  owner: DomainName
  type: number
  ttlSeconds: number
  rdata: readonly Rdata[]
}>

/** One record as it stood in a message, in the message's order. */
export type ResourceRecord = Readonly<{
  owner: DomainName
  type: number
  class: number
  ttlSeconds: number
  rdata: Rdata
}>

/** What an answer says, whoever made it. */
export type Sections = Readonly<{
  rcode: number
  answer: readonly RRset[]
  authority: readonly RRset[]
  additional: readonly RRset[]
}>
