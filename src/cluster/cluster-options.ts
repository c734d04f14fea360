/** What the cluster's own zones are made by, beside the objects. */
import type { Network } from '../base/network.ts'
import type { DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import type { ExportPolicy } from './export-zone.ts'
import type { LeftOutObject } from './left-out.ts'
import type { PodMode } from './pod-records.ts'
import { reverseZones } from './reverse.ts'

export type ClusterOptions = Readonly<{
  /** Our cluster's id, for imported slices that do not say whence they come. */
  clusterName: string
  zone: DomainName
  clustersetZone: DomainName
  /** TTL of all records that no annotation gives another, and of denials. */
  ttlSeconds: number
  pods: PodMode
  reverse: readonly Network[]
  /** Whether a ServiceImport without a Service of its name is answered in the cluster zone too. */
  importsInZone: boolean
  /** Hand-written records; each replaces what is generated of its owner and type. */
  records: readonly RRset[]
  /** Apexes for those of `records` that fall into no other zone; else each such name is a zone of its own. */
  recordZones?: readonly DomainName[]
  /** Where we can be asked, as long as no Service says it: addresses without port. */
  nsAddresses: readonly string[]
  /** What others get of Services where that differs from what our clients see. */
  exports?: ExportPolicy
  /** Called once for each object that is left out or served with a warning, for the log. */
  onLeftOut?: (object: LeftOutObject) => void
  /** The history that the serials belong to; made up by default. */
  epoch?: string
}>

/** Whether the zones of both have the same apexes, SOA and NS, hand-written records aside. */
export const isOfSameZones = (one: ClusterOptions, other: ClusterOptions): boolean =>
  one.zone === other.zone &&
  one.clustersetZone === other.clustersetZone &&
  one.ttlSeconds === other.ttlSeconds &&
  JSON.stringify(one.exports) === JSON.stringify(other.exports) &&
  sameTexts(reverseZones(one.reverse), reverseZones(other.reverse))

/** Whether both hold the same texts, in any order. */
export const sameTexts = (one: readonly string[], other: readonly string[]): boolean =>
  one.length === other.length && one.every((text) => other.includes(text))
