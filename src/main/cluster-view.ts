/** This cluster as DNS sees it: the zones, and the source that feeds them. */
import type { Clock } from '../base/clock.ts'
import type { ListenAddress } from '../base/host-port.ts'
import type { Logger } from '../base/log.ts'
import type { SourceStatus } from '../admin/inspectable.ts'
import { ClusterZones, type ClusterOptions } from '../cluster/cluster-zones.ts'
import type { Identity } from '../cluster/objects.ts'
import { ManifestsSource, type ManifestProblem } from '../cluster/sources/manifests.ts'
import type { ClusterConfig, Config, RecordConfig } from '../config/config.ts'
import { isAtOrBelow, type DomainName } from '../wire/name.ts'
import type { RRset } from '../wire/rr.ts'

export class ClusterView {
  readonly zones: ClusterZones
  readonly #source: ManifestsSource
  readonly #clock: Clock
  readonly #kind: SourceStatus['kind']
  #lastSignOfLifeMs: number | null = null
  #logged: ReadonlySet<string> = new Set()

  /** @param listen where DNS is served, for the address of `ns.dns.<zone>` as long as no Service tells it. */
  constructor(config: Config, listen: readonly ListenAddress[], clock: Clock, log: Logger) {
    const { source } = config.cluster
    if (source.kind !== 'manifests') throw new Error(`source ${source.kind} is not built yet`)
    this.#clock = clock
    this.#kind = source.kind
    this.zones = new ClusterZones(clusterOptions(config, listen, log), clock)
    this.#source = new ManifestsSource({
      paths: source.paths,
      clock,
      onEvents: (events, originAtMs) => this.zones.apply(events, originAtMs),
      onProblems: (problems) => this.#logNew(problems, log)
    })
  }

  /** Resolves when the whole cluster has been read once. */
  async start(): Promise<void> {
    await this.#source.start()
    this.#lastSignOfLifeMs = this.#clock.nowMs()
    this.zones.markSynced()
  }

  /** Takes over another configuration of the same source; false: a new view is needed. */
  reconfigure(config: Config, listen: readonly ListenAddress[], log: Logger): boolean {
    return this.zones.reconfigure(clusterOptions(config, listen, log), this.#clock.epochMs())
  }

  /** What is wrong with the manifests, each with its place in a file. */
  get manifestProblems(): readonly ManifestProblem[] {
    return this.#source.problems
  }

  close(): void {
    this.#source.close()
  }

  status(): SourceStatus {
    const files = this.#source.problems
    // The source tells of a malformed object where it stands; the zones would tell of it once more.
    const told = new Set(files.flatMap(({ object }) => (object === null ? [] : [identityText(object)])))
    const objects = this.zones.leftOut().filter((object) => !told.has(identityText(object)))
    return {
      kind: this.#kind,
      hasSynced: this.zones.hasSynced,
      objects: this.zones.counts(),
      lastSignOfLifeAgeMs: this.#lastSignOfLifeMs === null ? null : this.#clock.nowMs() - this.#lastSignOfLifeMs,
      problems: [
        ...files.map((problem) => ({ where: placeOf(problem), reason: problem.reason })),
        ...objects.map((object) => ({
          where: `${identityText(object)} ${object.path}`.trimEnd(),
          reason: object.reason
        }))
      ],
      problemsTotal: this.#source.stats.problems + objects.length
    }
  }

  /** Each problem is logged once, though the source gives the whole list whenever it changes. */
  #logNew(problems: readonly ManifestProblem[], log: Logger): void {
    const current = new Set(problems.map(problemKey))
    for (const problem of problems) {
      if (!this.#logged.has(problemKey(problem))) log.warn({ problem }, 'a manifest has a problem')
    }
    this.#logged = current
  }
}

const identityText = ({ kind, namespace, name }: Identity): string => `${kind} ${namespace}/${name}`

const placeOf = ({ file, line, column }: ManifestProblem): string => (line === 0 ? file : `${file}:${line}:${column}`)

const problemKey = (problem: ManifestProblem): string => `${placeOf(problem)} ${problem.reason}`

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
