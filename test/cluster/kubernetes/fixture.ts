/** A source beside a fake API server, and the objects as its events leave them. */
import type { Test } from 'tap'
import type { Logger } from '../../../src/base/log.ts'
import type { ObjectEvent } from '../../../src/cluster/object-event.ts'
import { reduceObject } from '../../../src/cluster/objects.ts'
import type { ObjectKind } from '../../../src/cluster/objects.ts'
import { plainAccess } from '../../../src/cluster/sources/kubernetes/api-access.ts'
import type { ApiAccess } from '../../../src/cluster/sources/kubernetes/api-access.ts'
import { KubernetesSource } from '../../../src/cluster/sources/kubernetes/kubernetes-source.ts'
import type { KubernetesSourceOptions } from '../../../src/cluster/sources/kubernetes/kubernetes-source.ts'
import type { ResourceStatus } from '../../../src/cluster/sources/kubernetes/reflector.ts'
import { FakeApiServer } from '../../support/fake-api-server.ts'
import { sleep, turns } from '../../support/loop-clock.ts'
import { ManualClock } from '../../support/manual-clock.ts'

export const paths = {
  services: '/api/v1/services',
  slices: '/apis/discovery.k8s.io/v1/endpointslices',
  namespaces: '/api/v1/namespaces',
  pods: '/api/v1/pods',
  imports: '/apis/multicluster.x-k8s.io/v1beta1/serviceimports'
} as const

const kindAt: Record<string, ObjectKind> = {
  [paths.services]: 'Service',
  [paths.slices]: 'EndpointSlice',
  [paths.namespaces]: 'Namespace',
  [paths.pods]: 'Pod',
  [paths.imports]: 'ServiceImport'
}

/** `address` is what tells one version of it from another. */
export const service = (name: string, address = '10.0.0.1', namespace = 'shop') => ({
  apiVersion: 'v1',
  kind: 'Service',
  metadata: { name, namespace },
  spec: { type: 'ClusterIP', clusterIP: address, clusterIPs: [address], ports: [{ name: 'http', port: 80 }] }
})

export const serviceImport = (name: string, version = 'v1beta1') => ({
  apiVersion: `multicluster.x-k8s.io/${version}`,
  kind: 'ServiceImport',
  metadata: { name, namespace: 'shop' },
  spec: { type: 'ClusterSetIP', ips: ['10.9.0.1'], ports: [{ port: 80 }] }
})

/** What a listener knows who applies the events one after the other. */
export class Model {
  readonly objects = new Map<string, string>()
  readonly events: ObjectEvent[] = []
  readonly batches: Readonly<{ size: number; originAtMs: number }>[] = []

  readonly take = (events: readonly ObjectEvent[], originAtMs: number): void => {
    this.batches.push({ size: events.length, originAtMs })
    for (const event of events) {
      this.events.push(event)
      if (event.type === 'put') {
        const { kind, namespace, name } = event.object
        this.objects.set(`${kind}/${namespace}/${name}`, JSON.stringify(event.object))
      } else {
        const { kind, namespace, name } = event.type === 'delete' ? event : event.identity
        this.objects.delete(`${kind}/${namespace}/${name}`)
      }
    }
  }

  /** Events since the last call, as `put Service/shop/web`. */
  takeWords(): string[] {
    return this.events.splice(0).map((event) => {
      const { kind, namespace, name } =
        event.type === 'put' ? event.object : event.type === 'delete' ? event : event.identity
      return `${event.type} ${kind}/${namespace}/${name}`
    })
  }
}

/** What a listener should know: the server's objects, reduced. */
export function wantedObjects(
  server: FakeApiServer,
  of: readonly string[] = Object.values(paths)
): Map<string, string> {
  const wanted = new Map<string, string>()
  for (const path of of) {
    for (const object of server.objects(path)) {
      const reduced = reduceObject(object, path.endsWith('/leases') ? 'Lease' : kindAt[path])
      if (!('ok' in reduced)) continue
      const { kind, namespace, name } = reduced.ok
      wanted.set(`${kind}/${namespace}/${name}`, JSON.stringify(reduced.ok))
    }
  }
  return wanted
}

export const sameObjects = (one: ReadonlyMap<string, string>, other: ReadonlyMap<string, string>): boolean =>
  one.size === other.size && [...one].every(([key, value]) => other.get(key) === value)

export type LogLine = Readonly<{ level: string; text: string; fields: Record<string, unknown> }>

/** A log that remembers its lines. */
export function recordingLog(): { log: Logger; lines: LogLine[] } {
  const lines: LogLine[] = []
  const at = (level: string) => (fields: Record<string, unknown>, text: string) =>
    void lines.push({ level, text, fields })
  // The four methods that the source uses.
  const log = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') } as unknown as Logger
  return { log, lines }
}

export type Setup = Readonly<{
  server: FakeApiServer
  source: KubernetesSource
  clock: ManualClock
  model: Model
  lines: LogLine[]
  counts: { synced: number }
  resource: (name: string) => ResourceStatus
  /** Moves time in steps, with real time in between for the sockets, until the condition holds. */
  until: (condition: () => boolean, what: string, stepMs?: number) => Promise<void>
  /** Until the model holds what the server holds, and every watch is there. */
  settled: (stepMs?: number) => Promise<void>
}>

export async function setUp(
  t: Test,
  options: {
    withPods?: boolean
    leases?: KubernetesSourceOptions['leases']
    access?: (server: FakeApiServer, clock: ManualClock) => ApiAccess
    prepare?: (server: FakeApiServer) => void
    start?: boolean
    knowsProtobuf?: boolean
    random?: () => number
  } = {}
): Promise<Setup> {
  const clock = new ManualClock()
  const server = await FakeApiServer.start({ clock, knowsProtobuf: options.knowsProtobuf ?? false })
  options.prepare?.(server)
  const model = new Model()
  const counts = { synced: 0 }
  const { log, lines } = recordingLog()
  const source = new KubernetesSource({
    access: options.access?.(server, clock) ?? plainAccess(server.url),
    withPods: options.withPods ?? false,
    leases: options.leases ?? null,
    clock,
    log,
    random: options.random ?? (() => 0.5),
    onEvents: model.take,
    onSynced: () => counts.synced++
  })
  t.teardown(async () => {
    await source.close()
    await server.stop()
  })
  const until: Setup['until'] = async (condition, what, stepMs = 0) => {
    const startedAtMs = performance.now()
    while (!condition()) {
      if (performance.now() - startedAtMs > 60_000) {
        throw new Error(`never: ${what}; ${JSON.stringify(source.status(), null, 1)}`)
      }
      clock.advance(stepMs)
      // A request and its answer take some turns of the sockets, whatever the time.
      await sleep(2)
      await turns(10)
    }
  }
  const settled: Setup['settled'] = (stepMs = 0) =>
    until(
      () => {
        const { resources } = source.status()
        const isUp = resources.every(({ path, state }) => (path === null ? state === 'waiting' : state === 'watching'))
        return (
          isUp && source.status().hasSynced && sameObjects(model.objects, wantedObjects(server, pathsOf(resources)))
        )
      },
      'settled',
      stepMs
    )
  if (options.start !== false) {
    source.start()
    await settled()
  }
  const resource = (name: string) => source.status().resources.find((it) => it.name === name)!
  return { server, source, clock, model, lines, counts, resource, until, settled }
}

const pathsOf = (resources: readonly ResourceStatus[]): string[] =>
  resources.map(({ path }) => path).filter((path) => path !== null)
