/**
 * The cluster zone as others get it, where that differs from what our own clients see: other addresses of Services, and
 * Services without ready endpoints left out. All but the Services is written to it as to the zone itself.
 */
import { RRTYPE } from '../wire/iana.ts'
import type { DomainName } from '../wire/name.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import type { EditBatch } from './edit-batch.ts'
import type { EndpointGroup } from './endpoint-objects.ts'
import { noHosts } from './plain-hosts.ts'
import { PointerRecords } from './pointer-records.ts'
import { RecordSets } from './record-sets.ts'
import type { Service } from './service-objects.ts'
import { addVirtualAddresses, buildServiceRecords, type ServiceRecords } from './service-records.ts'
import { ServiceZone } from './service-zone.ts'

export type ExportPolicy = Readonly<{
  /** Which addresses of a Service with ClusterIPs others get. */
  address: 'clusterIP' | 'endpoints' | 'loadBalancer'
  /** Whether Services without ready endpoints are left out for servers that are no peerdns. */
  hideEmpty: boolean
}>

/** The zones that differ from the cluster zone; none where the policy gives what our clients see. */
export class ExportZones {
  readonly #own: ZoneStore
  readonly #forPeerdns: ExportZone | null
  readonly #forOthers: ExportZone | null
  readonly #all: readonly ExportZone[]

  /** @param make an empty zone like the cluster zone; the text goes behind its epoch. */
  constructor(
    own: ZoneStore,
    options: Readonly<{ exports?: ExportPolicy; ttlSeconds: number }>,
    make: (epochEnd: string) => ZoneStore
  ) {
    const { address, hideEmpty } = options.exports ?? { address: 'clusterIP', hideEmpty: false }
    const { ttlSeconds } = options
    this.#own = own
    this.#forPeerdns =
      address === 'clusterIP' ? null : new ExportZone(make('-peerdns'), ttlSeconds, { address, hideEmpty: false })
    this.#forOthers = hideEmpty ? new ExportZone(make('-others'), ttlSeconds, { address, hideEmpty }) : this.#forPeerdns
    this.#all = [...new Set([this.#forPeerdns, this.#forOthers])].filter((zone) => zone !== null)
  }

  get stores(): readonly ZoneStore[] {
    return this.#all.map(({ store }) => store)
  }

  given(toPeerdns: boolean): ZoneStore {
    return (toPeerdns ? this.#forPeerdns : this.#forOthers)?.store ?? this.#own
  }

  /** See ExportZone. `groups` are only asked for where they are needed. */
  replace(
    key: string,
    made: Readonly<{
      service: Service | null
      groups: () => readonly EndpointGroup[] | null
      records: ServiceRecords | null
    }>,
    batch: EditBatch
  ): void {
    if (this.#all.length === 0) return
    const { service, records } = made
    const groups = service === null ? null : made.groups()
    for (const zone of this.#all) zone.replace(key, { service, groups, records }, batch)
  }

  rewrite(isWanted: (owner: DomainName) => boolean, batch: EditBatch): void {
    for (const zone of this.#all) zone.rewrite(isWanted, batch)
  }

  /** Goes on behind the serials of others, in whose place these stand now. */
  takeOverFrom(others: ExportZones): void {
    for (const toPeerdns of [true, false]) {
      const store = this.given(toPeerdns)
      if (store !== this.#own) store.takeOverFrom(others.given(toPeerdns))
    }
  }

  close(): void {
    for (const { store } of this.#all) store.close()
  }
}

class ExportZone {
  readonly store: ZoneStore
  readonly #address: ExportPolicy['address']
  readonly #hidesEmpty: boolean
  readonly #ttlSeconds: number
  readonly #services: ServiceZone

  constructor(store: ZoneStore, ttlSeconds: number, policy: ExportPolicy) {
    this.store = store
    this.#ttlSeconds = ttlSeconds
    this.#address = policy.address
    this.#hidesEmpty = policy.hideEmpty
    this.#services = new ServiceZone(store, new PointerRecords(), 0)
  }

  /**
   * Puts what others get of a Service in the place of what they got.
   * @param service null for an import that is answered as if it were one.
   * @param records what the zone itself has; null: there is no such Service.
   */
  replace(
    key: string,
    made: Readonly<{
      service: Service | null
      groups: readonly EndpointGroup[] | null
      records: ServiceRecords | null
    }>,
    batch: EditBatch
  ): void {
    const { service, groups, records } = made
    const exported = records === null ? null : this.#exported(service, groups, records)
    this.#services.replace(key, exported === null ? null : { ...exported, pointers: [] }, batch)
  }

  /** Writes again all RRsets at owners that fit. */
  rewrite(isWanted: (owner: DomainName) => boolean, batch: EditBatch): void {
    this.#services.rewrite(isWanted, batch)
  }

  #exported(
    service: Service | null,
    groups: readonly EndpointGroup[] | null,
    records: ServiceRecords
  ): ServiceRecords | null {
    if (this.#hidesEmpty && records.state === 'empty') return null
    if (service === null || service.serviceType !== 'clusterIP' || this.#address === 'clusterIP') return records
    const made =
      this.#address === 'endpoints'
        ? // As of a headless Service, with the ports that the endpoints listen on.
          buildServiceRecords({ ...service, serviceType: 'headless' }, groups, this.store.apex, this.#ttlSeconds)!
        : { ...records, sets: loadBalancerSets(service, records).finish(), hosts: noHosts }
    // The Service exists, also where it has no such address.
    return made.sets.length === 0 ? { ...made, names: [records.owner] } : { ...made, names: [] }
  }
}

function loadBalancerSets(service: Service, { owner, ttlSeconds }: ServiceRecords): RecordSets {
  const sets = new RecordSets(ttlSeconds)
  const { loadBalancerIPs, loadBalancerName } = service
  if (loadBalancerIPs.length > 0) addVirtualAddresses(sets, owner, loadBalancerIPs, service.ports, [])
  else if (loadBalancerName !== null) sets.add(owner, RRTYPE.CNAME, loadBalancerName)
  return sets
}
