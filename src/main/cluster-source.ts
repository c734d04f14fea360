/** Where this cluster's objects come from, as one shape for the view: built from `cluster.source`. */
import type { Clock } from '../base/clock.ts'
import type { ResourceHealth, SourceClustersHealth, SourceStatus } from '../admin/inspectable.ts'
import type { ClusterZones } from '../cluster/cluster-zones.ts'
import { LeasePattern } from '../cluster/lease-objects.ts'
import { inPodAccess, kubeconfigAccess, type ApiAccess } from '../cluster/sources/kubernetes/api-access.ts'
import { KubernetesSource } from '../cluster/sources/kubernetes/kubernetes-source.ts'
import { ManifestsSource, type ManifestProblem } from '../cluster/sources/manifests.ts'
import type { ClusterConfig } from '../config/config.ts'
import type { ZoneStore } from '../zone/zone-store.ts'
import { letMemoryGrow } from './memory.ts'
import type { TransferParts } from './mirror-set.ts'
import { mirrorSource } from './mirror-source.ts'

/** Where the kubelet puts the service account's files. */
const serviceAccountFolder = '/var/run/secrets/kubernetes.io/serviceaccount'

/** Services that are computed in one go at the end of the first reading: those without endpoints. */
const servicesPerTurn = 20

export interface ClusterSource {
  readonly kind: SourceStatus['kind']
  /**
   * Begins to tell. Resolves when there is nothing to wait for in a moment's time: manifests have been looked at, an
   * API server is asked for as long as it takes. Never rejects.
   * @param onWhole called once, when everything has been told; never while an API server, or a configured path, is
   * away.
   */
  start(onWhole: () => void): Promise<void>
  close(): Promise<void>
  /** Since the source last proved that it follows its cluster, in milliseconds; null before the first time. */
  signOfLifeAgeMs(): number | null
  /** For copies of a hub's zones: how long it has been silent, once that is longer than its lease; else null. */
  silentForMs?(): number | null
  /** Kinds that are followed one by one; empty for manifests. */
  resources(): readonly ResourceHealth[]
  /**
   * Source clusters that renew a Lease here, and how often one was lost and came back; null where nobody looks at
   * Leases.
   */
  sourceClusters(): SourceClustersHealth | null
  /** Paths of manifests that have not been there yet; empty for other sources. */
  readonly unreadManifests: readonly string[]
  /** What is wrong with manifests; empty for other sources. */
  readonly problems: readonly ManifestProblem[]
  readonly problemsTotal: number
  /**
   * Whether a zone has been read, where that comes zone by zone; else all zones are read when everything has been told.
   */
  hasRead?(zone: ZoneStore): boolean
}

export type SourceParts = TransferParts & Readonly<{ zones: ClusterZones }>

export function clusterSource(cluster: ClusterConfig, parts: SourceParts): ClusterSource {
  const { source } = cluster
  if (source.kind === 'manifests') return manifestsSource(source.paths, parts)
  if (source.kind === 'kubernetes') {
    const access = apiAccess(source.kubeconfig, source.context, parts.clock)
    return kubernetesSource(access, cluster, parts)
  }
  return mirrorSource(source, parts)
}

function manifestsSource(paths: readonly string[], { zones, clock, log }: SourceParts): ClusterSource {
  let logged: ReadonlySet<string> = new Set()
  let tellWhole: (() => void) | null = null
  const source = new ManifestsSource({
    paths,
    clock,
    onEvents: (events, originAtMs) => zones.apply(events, originAtMs),
    onComplete: () => tellWhole?.(),
    onEmptied: (file, objects) =>
      log.warn({ file, objects }, 'a manifest holds nothing any more: its objects are gone'),
    onProblems: (problems) => {
      // The whole list comes whenever it changes; each problem is logged once.
      for (const problem of problems) {
        if (!logged.has(problemKey(problem))) log.warn({ problem }, 'a manifest has a problem')
      }
      logged = new Set(problems.map(problemKey))
    }
  })
  return {
    kind: 'manifests',
    start: async (onWhole) => {
      tellWhole = onWhole
      await source.start()
    },
    close: async () => source.close(),
    // The kernel tells of changes, and a poll beside it: what is served is what the files say, as long as they are
    // there.
    signOfLifeAgeMs: () => source.seenWholeAgoMs,
    resources: () => [],
    sourceClusters: () => null,
    get unreadManifests() {
      return source.unread
    },
    get problems() {
      return source.problems
    },
    get problemsTotal() {
      return source.stats.problems
    }
  }
}

const problemKey = ({ file, line, column, reason }: ManifestProblem): string => `${file}:${line}:${column} ${reason}`

function kubernetesSource(access: ApiAccess, cluster: ClusterConfig, parts: SourceParts): ClusterSource {
  const { zones, clock, log, random } = parts
  let tellWhole: (() => void) | null = null
  const source = new KubernetesSource({
    access,
    withPods: cluster.pods === 'verified',
    leases:
      cluster.leases === null
        ? null
        : {
            pattern: new LeasePattern(cluster.leases),
            onChange: (sourceCluster, isLost) => zones.setSourceCluster(sourceCluster, isLost),
            rewrite: (services) => zones.rewrite(services, clock.epochMs())
          },
    clock,
    log,
    random,
    onEvents: (events, originAtMs) => zones.apply(events, originAtMs),
    onSynced: () =>
      void source
        .inTurns(() => zones.writeDeferred(servicesPerTurn, clock.epochMs()))
        .then((isWhole) => (isWhole ? tellWhole?.() : undefined))
  })
  zones.deferServices()
  return {
    kind: 'kubernetes',
    start: async (onWhole) => {
      tellWhole = onWhole
      letMemoryGrow()
      source.start()
    },
    close: async () => source.close(),
    signOfLifeAgeMs: () => source.signOfLifeAgeMs(),
    resources: () => source.status().resources,
    sourceClusters: () => {
      if (cluster.leases === null) return null
      const { sourceClusters, sourceClusterChanges } = source.status()
      return { ...sourceClusterChanges, clusters: sourceClusters }
    },
    unreadManifests: [],
    problems: [],
    problemsTotal: 0
  }
}

/** How an API server is reached: by a kubeconfig, or from the pod that we run in. */
export function apiAccess(kubeconfig: string | null, context: string | null, clock: Clock): ApiAccess {
  if (kubeconfig !== null) return kubeconfigAccess({ file: kubeconfig, context, clock })
  return inPodAccess({
    host: process.env['KUBERNETES_SERVICE_HOST'] ?? 'kubernetes.default.svc',
    port: Number(process.env['KUBERNETES_SERVICE_PORT'] ?? 443),
    tokenFile: `${serviceAccountFolder}/token`,
    caFile: `${serviceAccountFolder}/ca.crt`,
    namespaceFile: `${serviceAccountFolder}/namespace`,
    clock
  })
}
