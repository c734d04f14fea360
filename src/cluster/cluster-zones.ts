/**
 * The cluster's own zones, kept equal to the Kubernetes objects: the cluster zone, the clusterset zone, the reverse
 * zones, and zones for hand-written records that fall into none of these.
 *
 * Work follows the changes: an event touches one Service name, namespace or Pod, and only what was touched is computed
 * again. Each call of `apply` makes at most one edit for each zone, so one change enters each journal.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.ts'
import { RRTYPE } from '../wire/iana.ts'
import { parentOf, type DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import type { Synthesize, ZoneLookup, ZoneStore } from '../zone/zone-store.ts'
import { Zones } from '../zone/zones.ts'
import { isOfSameZones, sameTexts, type ClusterOptions } from './cluster-options.ts'
import { EditBatch, isHidden, type ZoneCopies } from './edit-batch.ts'
import type { EndpointGroup } from './endpoint-objects.ts'
import { ExportZones } from './export-zone.ts'
import { writeFixed, writeNameServer } from './fixed-records.ts'
import { collectHandWritten, extraApexes, writeHandWritten, type HandWrittenRecords } from './hand-written.ts'
import { checkedAddresses, recordsInBoth, servicesBetween, type CheckedAddress } from './healthy-addresses.ts'
import { LeftOutObjects, type LeftOutObject } from './left-out.ts'
import type { ObjectEvent } from './object-event.ts'
import { ObjectTables, serviceKey } from './object-tables.ts'
import { isObjectKind, type KubernetesObject, type ObjectKind, type Pod } from './objects.ts'
import { buildPodRecords, synthesizePod } from './pod-records.ts'
import { PodZone } from './pod-zone.ts'
import { nameBelow } from './record-sets.ts'
import { PointerRecords } from './pointer-records.ts'
import { reverseZones } from './reverse.ts'
import { describeIn, type ServiceDescription } from './service-description.ts'
import { ServiceZone } from './service-zone.ts'
import { makeZone } from './zone-making.ts'

export type { ClusterOptions } from './cluster-options.ts'

const localRank = 0
const clustersetRank = 1

export class ClusterZones {
  /** All zones that we are authoritative for. */
  readonly zones = new Zones()
  /** Counts since the start; never reset. */
  readonly stats = {
    eventsTotal: 0,
    rejectedTotal: 0,
    recomputedServicesTotal: 0,
    batchesTotal: 0,
    zoneChangesTotal: 0
  }
  readonly #clock: Clock
  readonly #epoch: string
  readonly #tables = new ObjectTables()
  readonly #pointers = new PointerRecords()
  /** `<namespace>.pod.<zone>` of the namespaces that exist. */
  readonly #podParents = new Set<DomainName>()
  /** Source clusters whose imported endpoints are not given out. */
  readonly #lostClusters = new Set<string>()
  /** Checked addresses that are down, by `endpointKey`. */
  #downEndpoints: ReadonlySet<string> = new Set()
  readonly #leftOut: LeftOutObjects
  readonly #services: ServiceZone
  readonly #imports: ServiceZone
  readonly #pods: PodZone
  /** The cluster zone as others get it. */
  readonly exports: ExportZones
  readonly #copies: ZoneCopies
  readonly #stores = (): readonly ZoneStore[] => [...this.zones.all(), ...this.exports.stores]
  #options: ClusterOptions
  #handWritten: HandWrittenRecords
  /** Services that wait for their endpoints while everything is read for the first time; null: nothing waits. */
  #deferred: Set<string> | null = null
  #hasSynced = false

  constructor(options: ClusterOptions, clock: Clock) {
    this.#options = options
    this.#clock = clock
    this.#epoch = options.epoch ?? randomBytes(8).toString('hex')
    this.#leftOut = new LeftOutObjects((object) => this.#options.onLeftOut?.(object))
    const zone = this.#addZone(options.zone, options.zone)
    const clustersetZone = this.#addZone(options.clustersetZone, options.clustersetZone)
    this.#services = new ServiceZone(zone, this.#pointers, localRank)
    this.#imports = new ServiceZone(clustersetZone, this.#pointers, clustersetRank)
    this.#pods = new PodZone(zone)
    this.exports = new ExportZones(zone, options, (epochEnd) => this.#makeZone(zone.apex, zone.apex, epochEnd))
    this.#copies = new Map([[zone, this.exports.stores]])
    for (const apex of reverseZones(options.reverse)) this.#pointers.zones.add(this.#addZone(apex, options.zone))
    this.#handWritten = collectHandWritten(options.records)
    for (const apex of this.#extraApexes(options)) this.#addZone(apex, options.zone)
    const batch = new EditBatch(this.#handWritten.byOwner, this.#copies)
    this.#writeHandWritten(batch)
    this.#writeFixed(batch)
    batch.apply(clock.epochMs())
  }

  /** As last taken over. */
  get options(): ClusterOptions {
    return this.#options
  }

  /** The zone of the cluster's own Services. */
  get zone(): ZoneStore {
    return this.#services.store
  }

  get clustersetZone(): ZoneStore {
    return this.#imports.store
  }

  /** Whether the objects are complete: before that, nothing may be denied. */
  get hasSynced(): boolean {
    return this.#hasSynced
  }

  markSynced(): void {
    this.#hasSynced = true
    for (const store of this.#stores()) store.endLoading()
  }

  /**
   * From now on a Service is computed once its endpoints are known, and not before: a source that tells everything for
   * the first time would have each computed twice. `writeDeferred` ends that.
   */
  deferServices(): void {
    this.#deferred = new Set()
    for (const store of this.#stores()) store.beginLoading()
  }

  /** Computes at most so many of the Services that still wait; whether there are more. */
  writeDeferred(most: number, originAtMs: number): boolean {
    const keys: string[] = []
    for (const key of this.#deferred ?? []) {
      if (keys.length === most) break
      keys.push(key)
      this.#deferred!.delete(key)
    }
    if (keys.length > 0) this.rewrite(keys, originAtMs)
    if (this.#deferred?.size === 0) this.#deferred = null
    return this.#deferred !== null
  }

  /**
   * Takes in a batch of changes and brings the zones up to date, in one change of each zone.
   * @param originAtMs when it happened, by the wall clock of where it happened; milliseconds since 1970.
   */
  apply(events: readonly ObjectEvent[], originAtMs: number): void {
    for (const event of events) this.#take(event)
    this.stats.eventsTotal += events.length
    this.stats.batchesTotal += 1
    const batch = new EditBatch(this.#handWritten.byOwner, this.#copies)
    this.#writeTouched(batch)
    this.stats.zoneChangesTotal += batch.apply(originAtMs)
  }

  /**
   * Says that the imported endpoints of a source cluster are left out from now on, or given out again.
   * @returns the Services that this may change, to be given to `rewrite`; until then they stay as they are.
   */
  setSourceCluster(sourceCluster: string, isLost: boolean): readonly string[] {
    if (isLost) this.#lostClusters.add(sourceCluster)
    else this.#lostClusters.delete(sourceCluster)
    return this.#tables.importsOf(sourceCluster)
  }

  /** The virtual addresses that Services and imports have checked, each with how. */
  checkedAddresses(): Iterable<CheckedAddress> {
    return checkedAddresses(this.#tables)
  }

  /** Says which checked addresses are down (`endpointKey`), and computes again what that touches. */
  setDownEndpoints(down: ReadonlySet<string>): void {
    const touched = servicesBetween(this.#tables, this.#downEndpoints, down)
    this.#downEndpoints = down
    this.rewrite(touched, this.#clock.epochMs())
  }

  /** Computes these Services again. */
  rewrite(keys: readonly string[], originAtMs: number): void {
    const batch = new EditBatch(this.#handWritten.byOwner, this.#copies)
    for (const key of keys) this.#writeService(key, batch)
    this.#pointers.flush(batch)
    this.stats.zoneChangesTotal += batch.apply(originAtMs)
  }

  /**
   * Takes over options that leave the zones themselves as they are: `records` in the same zones, `pods`,
   * `importsInZone`, `nsAddresses`, `clusterName`. False: others differ, nothing was done, and new ClusterZones are
   * needed.
   */
  reconfigure(options: ClusterOptions, originAtMs: number): boolean {
    const old = this.#options
    const handWritten = collectHandWritten(options.records)
    const sameZones =
      isOfSameZones(old, options) && sameTexts(this.#extraApexes(old), this.#extraApexes(options, handWritten))
    const changesNs = [...this.#handWritten.byOwner.values(), ...handWritten.byOwner.values()]
      .flat()
      .some((set) => set.type === RRTYPE.NS && this.zones.get(set.owner) !== null)
    if (!sameZones || changesNs) return false

    const batch = new EditBatch(handWritten.byOwner, this.#copies)
    const oldOwners = this.#handWritten.byOwner
    for (const sets of oldOwners.values()) {
      for (const { owner, type } of sets) batch.setByHand(this.zones.find(owner)!, owner, type, null)
    }
    this.#options = options
    this.#handWritten = handWritten
    for (const [key, pod] of this.#tables.pods) this.#writePod(key, pod, batch)
    for (const key of new Set([...this.#tables.services.keys(), ...this.#tables.imports.keys()])) {
      this.#writeService(key, batch)
    }
    for (const zone of [this.#services, this.#imports, this.exports]) {
      zone.rewrite((owner) => oldOwners.has(owner), batch.alone)
    }
    this.#pointers.touch(oldOwners.keys())
    this.#pointers.flush(batch)
    this.#writeFixed(batch)
    this.#writeHandWritten(batch)
    this.stats.zoneChangesTotal += batch.apply(originAtMs)
    return true
  }

  /** How many objects of each kind are held, in use or not. */
  counts(): Readonly<Record<ObjectKind, number>> {
    return this.#tables.counts()
  }

  /** All objects of one kind, for an audit against their source. */
  objects(kind: ObjectKind): IterableIterator<KubernetesObject> {
    return this.#tables.all(kind)
  }

  /** The objects left out, and those served with a warning; a bounded list, while `stats.rejectedTotal` counts all. */
  leftOut(): readonly LeftOutObject[] {
    return this.#leftOut.list
  }

  /** Generated RRsets of Services and imports that nobody gets, since a hand-written one stands in their place. */
  hiddenByHand(): readonly RRset[] {
    const { byOwner } = this.#handWritten
    const all = byOwner.size === 0 ? [] : [...this.#services.all(), ...this.#imports.all()]
    return all.filter(({ owner, type }) => isHidden(byOwner, owner, type))
  }

  /** What we know of a Service name: as a Service, and as an import. */
  describeService(namespace: string, name: string): ServiceDescription {
    const key = serviceKey(namespace, name)
    const importGroups = this.#tables.groupsOfImport(key)
    const ownGroups = this.#tables.services.has(key) ? this.#tables.groupsOfService(key) : importGroups
    return {
      zone: describeIn(this.#services, key, ownGroups),
      clustersetZone: describeIn(this.#imports, key, importGroups)
    }
  }

  #take(event: ObjectEvent): void {
    if (event.type === 'put') {
      const { object, warning } = event
      this.#tables.put(object)
      if (warning === undefined || warning === null) {
        this.#leftOut.forget(object.kind, object.namespace, object.name)
      } else {
        const { kind, namespace, name } = object
        this.#leftOut.note({ kind, namespace, name, path: 'metadata.annotations', reason: warning, isServed: true })
      }
      return
    }
    const { kind, namespace, name } = event.type === 'delete' ? event : event.identity
    if (isObjectKind(kind)) this.#tables.remove(kind, namespace, name)
    if (event.type === 'delete') {
      this.#leftOut.forget(kind, namespace, name)
      return
    }
    this.stats.rejectedTotal += 1
    this.#leftOut.note({ kind, namespace, name, path: event.path, reason: event.reason, isServed: false })
  }

  #writeTouched(batch: EditBatch): void {
    const touched = this.#tables.takeTouched()
    for (const key of touched.services) {
      if (this.#deferred !== null && this.#tables.waitsForEndpoints(key)) this.#deferred.add(key)
      else {
        this.#deferred?.delete(key)
        this.#writeService(key, batch)
      }
    }
    for (const namespace of touched.namespaces) this.#writeNamespace(namespace, batch)
    for (const key of touched.pods) this.#writePod(key, this.#tables.pods.get(key) ?? null, batch)
    if (touched.nameServer) this.#writeNameServer(batch)
    this.#pointers.flush(batch)
  }

  #writeService(key: string, batch: EditBatch): void {
    this.stats.recomputedServicesTotal += 1
    const service = this.#tables.services.get(key) ?? null
    const serviceImport = this.#tables.imports.get(key) ?? null
    const groups = service === null ? null : this.#tables.groupsOfService(key)
    const importGroups = serviceImport === null ? null : this.#livingGroups(key)
    const objects = { service, groups, serviceImport, importGroups }
    const { own, imported } = recordsInBoth(objects, this.#options, this.#downEndpoints)
    this.#services.replace(key, own, batch.alone)
    this.exports.replace(key, { service, groups: () => this.#tables.groupsOfService(key), records: own }, batch.alone)
    this.#imports.replace(key, imported, batch.alone)
  }

  /** The slices of an import, as far as their clusters are alive; null where it has none at all. */
  #livingGroups(key: string): readonly EndpointGroup[] | null {
    const groups = this.#tables.groupsOfImport(key)
    if (groups === null || this.#lostClusters.size === 0) return groups
    return groups.filter(({ sourceCluster }) => !this.#lostClusters.has(sourceCluster))
  }

  /** A namespace that exists is NODATA, also when it is empty. */
  #writeNamespace(namespace: string, batch: EditBatch): void {
    const exists = this.#tables.namespaceExists(namespace)
    for (const zone of [this.zone, this.clustersetZone]) {
      const owner = nameBelow([namespace, 'svc'], zone.apex)
      if (owner !== null) batch.name(zone, owner, exists)
    }
    const podParent = nameBelow([namespace, 'pod'], this.zone.apex)
    if (podParent === null) return
    batch.name(this.zone, podParent, exists)
    if (exists) this.#podParents.add(podParent)
    else this.#podParents.delete(podParent)
  }

  /** @param pod as it is now; null: its records go. */
  #writePod(key: string, pod: Pod | null, batch: EditBatch): void {
    const { pods, zone, ttlSeconds } = this.#options
    const drafts = pod === null || pods !== 'verified' ? [] : buildPodRecords(pod, zone, ttlSeconds)
    this.#pods.replace(key, drafts, batch)
  }

  #writeNameServer(batch: EditBatch): void {
    const ofService = this.#tables.dnsServiceAddresses()
    const addresses = ofService.length > 0 ? ofService : this.#options.nsAddresses
    for (const zone of [this.zone, this.clustersetZone]) {
      writeNameServer(batch, zone, addresses, this.#options.ttlSeconds)
    }
  }

  /** What each zone has whatever the objects. */
  #writeFixed(batch: EditBatch): void {
    writeFixed(batch, this.zone, this.clustersetZone)
    this.#writeNameServer(batch)
  }

  #writeHandWritten(batch: EditBatch): void {
    writeHandWritten(batch, this.zones, this.#handWritten)
    for (const { name, reason } of this.#handWritten.refused) {
      this.#leftOut.note({ kind: 'records', namespace: '', name, path: '', reason, isServed: false })
    }
  }

  #addZone(apex: DomainName, home: DomainName): ZoneStore {
    const zone = this.#makeZone(apex, home)
    this.zones.add(zone)
    return zone
  }

  #makeZone(apex: DomainName, home: DomainName, epochEnd = ''): ZoneStore {
    const { ttlSeconds, zone } = this.#options
    const synthesize: Synthesize = (qname, qtype) => this.#synthesize(qname, qtype)
    const making = { apex, home, ttlSeconds, epoch: this.#epoch + epochEnd, clock: this.#clock }
    return makeZone(apex === zone ? { ...making, synthesize } : making)
  }

  #extraApexes(options: ClusterOptions, handWritten = collectHandWritten(options.records)): DomainName[] {
    const own = [options.zone, options.clustersetZone, ...reverseZones(options.reverse)]
    return extraApexes(handWritten.byOwner.keys(), own, options.recordZones ?? [])
  }

  #synthesize(qname: DomainName, qtype: number): ZoneLookup | null {
    if (this.#options.pods !== 'insecure') return null
    const parent = parentOf(qname)
    if (parent === null || !this.#podParents.has(parent)) return null
    return synthesizePod(qname, qtype, this.#options.ttlSeconds)
  }
}
