/** This cluster as DNS sees it: the zones, and the source that feeds them. */
import type { Clock } from '../base/clock.ts'
import type { ListenAddress } from '../base/host-port.ts'
import type { Logger } from '../base/log.ts'
import type { SourceStatus } from '../admin/inspectable.ts'
import { ClusterZones, type ClusterOptions } from '../cluster/cluster-zones.ts'
import { identityToText } from '../cluster/objects.ts'
import type { ManifestProblem } from '../cluster/sources/manifests.ts'
import type { ClusterConfig, Config, RecordConfig } from '../config/config.ts'
import { clusterSource, type ClusterSource, type SourceParts } from './cluster-source.ts'
import { isAtOrBelow, type DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'
import type { ZoneChange } from '../zone/zone-change.ts'
import type { ZoneStore } from '../zone/zone-store.ts'

/** How long an age that is asked for with each query stays good: it is taken from several places. */
const ageGoodForMs = 100

export type ClusterViewParts = Omit<SourceParts, 'zones'> &
  Readonly<{
    /** A change of the cluster's or the clusterset's Services is in its zone. */
    onStored?: (change: ZoneChange) => void
  }>

export class ClusterView {
  readonly zones: ClusterZones
  readonly #source: ClusterSource
  readonly #clock: Clock
  readonly #leases: string | null
  #ageMs: number | null = null
  #ageTakenAtMs = Number.NEGATIVE_INFINITY
  #silentForMs: number | null = null
  #silenceTakenAtMs = Number.NEGATIVE_INFINITY

  /** @param listen where DNS is served, for the address of `ns.dns.<zone>` as long as no Service tells it. */
  constructor(config: Config, listen: readonly ListenAddress[], parts: ClusterViewParts) {
    this.#clock = parts.clock
    this.#leases = config.cluster.leases
    this.zones = new ClusterZones(clusterOptions(config, listen, parts.log), parts.clock)
    this.#source = clusterSource(config.cluster, { ...parts, zones: this.zones })
    for (const zone of [this.zones.zone, this.zones.clustersetZone]) {
      // What was there at the start has not changed now.
      zone.subscribe((change) => this.zones.hasSynced && change.isWhole !== true && parts.onStored?.(change))
    }
  }

  /**
   * Begins to read the cluster. Resolves when there is nothing to wait for in a moment's time: see ClusterSource.
   * @param onWhole called once, when the whole cluster has been read.
   */
  async start(onWhole: () => void = () => {}): Promise<void> {
    await this.#source.start(() => {
      this.zones.markSynced()
      onWhole()
    })
  }

  get kind(): SourceStatus['kind'] {
    return this.#source.kind
  }

  /** Whether a zone may be answered from: before that, nothing may be denied. */
  hasSynced(zone: ZoneStore): boolean {
    return this.zones.hasSynced || this.#source.hasRead?.(zone) === true
  }

  /** Takes over another configuration of the same source; false: a new view is needed. */
  reconfigure(config: Config, listen: readonly ListenAddress[], log: Logger): boolean {
    const before = this.zones.options
    // What comes by transfer is made elsewhere: all that is ours to say is which zones.
    if (this.#source.kind === 'mirror') return zonesOf(before) === zonesOf(clusterOptions(config, listen, log))
    // Pods and Leases are only followed where they are needed.
    const needsOtherKinds =
      this.#source.kind === 'kubernetes' &&
      ((before.pods === 'verified') !== (config.cluster.pods === 'verified') || this.#leases !== config.cluster.leases)
    return !needsOtherKinds && this.zones.reconfigure(clusterOptions(config, listen, log), this.#clock.epochMs())
  }

  /** Since the source last proved that it follows its cluster, in milliseconds; null before the first time. */
  signOfLifeAgeMs(): number | null {
    const nowMs = this.#clock.nowMs()
    if (nowMs - this.#ageTakenAtMs > ageGoodForMs) {
      this.#ageMs = this.#source.signOfLifeAgeMs()
      this.#ageTakenAtMs = nowMs
    }
    return this.#ageMs
  }

  /**
   * How long the hub of a node's copies has been silent, once that is longer than its lease; null: it is not, or there
   * is none.
   */
  silentForMs(): number | null {
    if (this.#source.silentForMs === undefined) return null
    const nowMs = this.#clock.nowMs()
    if (nowMs - this.#silenceTakenAtMs > ageGoodForMs) {
      this.#silentForMs = this.#source.silentForMs()
      this.#silenceTakenAtMs = nowMs
    }
    return this.#silentForMs
  }

  /** Configured paths of manifests that have not been there yet. */
  get unreadManifests(): readonly string[] {
    return this.#source.unreadManifests
  }

  /** What is wrong with the manifests, each with its place in a file. */
  get manifestProblems(): readonly ManifestProblem[] {
    return this.#source.problems
  }

  async close(): Promise<void> {
    await this.#source.close()
    this.zones.zones.close()
    this.zones.exports.close()
  }

  status(): SourceStatus {
    const files = this.#source.problems
    // The source tells of a malformed object where it stands; the zones would tell of it once more.
    const told = new Set(files.flatMap(({ object }) => (object === null ? [] : [identityToText(object)])))
    const objects = this.zones.leftOut().filter((object) => !told.has(identityToText(object)))
    return {
      kind: this.#source.kind,
      hasSynced: this.zones.hasSynced,
      objects: this.zones.counts(),
      lastSignOfLifeAgeMs: this.#source.signOfLifeAgeMs(),
      resources: this.#source.resources(),
      sourceClusters: this.#source.sourceClusters(),
      problems: [
        ...files.map((problem) => ({ where: placeOf(problem), reason: problem.reason })),
        ...objects.map((object) => ({
          where: `${identityToText(object)} ${object.path}`.trimEnd(),
          reason: object.reason
        }))
      ],
      problemsTotal: this.#source.problemsTotal + objects.length
    }
  }
}

const zonesOf = ({ zone, clustersetZone, reverse }: ClusterOptions): string =>
  JSON.stringify([zone, clustersetZone, reverse])

const placeOf = ({ file, line, column }: ManifestProblem): string => (line === 0 ? file : `${file}:${line}:${column}`)

function clusterOptions(config: Config, listen: readonly ListenAddress[], log: Logger): ClusterOptions {
  const { cluster } = config
  return {
    clusterName: cluster.name,
    zone: cluster.zone,
    clustersetZone: cluster.clustersetZone,
    ttlSeconds: cluster.ttlSeconds,
    pods: cluster.pods,
    reverse: cluster.reverse,
    importsInZone: cluster.importsInZone,
    records: recordSets(cluster),
    recordZones: recordZones(config),
    exports: { address: config.transfer.export.address, hideEmpty: config.transfer.export.hideEmpty },
    nsAddresses: listen.map(({ address }) => address).filter((address) => address !== '0.0.0.0' && address !== '::'),
    onLeftOut: (object) =>
      log.warn({ object }, object.isServed ? 'a value of an object is passed over' : 'an object is left out')
  }
}

function recordSets({ records }: ClusterConfig): RRset[] {
  const sets = new Map<string, RecordConfig[]>()
  for (const record of records) {
    const key = `${record.type} ${record.owner}`
    sets.set(key, [...(sets.get(key) ?? []), record])
  }
  return [...sets.values()].map((same) => ({
    owner: same[0]!.owner,
    type: same[0]!.type,
    ttlSeconds: Math.min(...same.map(({ ttlSeconds }) => ttlSeconds)),
    rdata: same.map(({ rdata }) => rdata)
  }))
}

/** Hand-written records outside of our zones lie in a zone of the policy's dnsName that lets `local` answer them. */
function recordZones({ policies, cluster }: Config): DomainName[] {
  const dnsNames = policies
    .filter(({ targets }) => targets.some(({ kind }) => kind === 'local'))
    .flatMap((policy) => policy.dnsNames)
  return dnsNames.filter((dnsName) => cluster.records.some(({ owner }) => isAtOrBelow(owner, dnsName)))
}
