/**
 * What a long list costs, and for how long it keeps the event loop from everything else: 10,000 EndpointSlices with
 * 100,000 endpoints, from a fake API server in another thread, into the zones as in the server.
 *
 *     node --expose-gc bench/micro/reflector.ts [slices, default 10000] [endpoints of each, default 10] [alone: without the zones]
 */
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'
import { systemClock } from '../../src/base/clock.ts'
import { silentLog } from '../../src/base/log.ts'
import { parseNetwork } from '../../src/base/network.ts'
import { ClusterZones } from '../../src/cluster/cluster-zones.ts'
import { plainAccess } from '../../src/cluster/sources/kubernetes/api-access.ts'
import { KubernetesSource } from '../../src/cluster/sources/kubernetes/kubernetes-source.ts'
import { parseName } from '../../src/wire/name.ts'
import { FakeApiServer } from '../../test/support/fake-api-server.ts'
import { settledHeapOctets } from './measure.ts'

const slices = Number(process.argv[2] ?? 10_000)
const endpoints = Number(process.argv[3] ?? 10)
const isAlone = process.argv[4] === 'alone'
const octetsOf = (number: number): string => `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}`

function service(number: number): object {
  const isHeadless = number % 2 === 0
  return {
    apiVersion: 'v1',
    kind: 'Service',
    metadata: { name: `service-${number}`, namespace: `namespace-${number % 100}` },
    spec: {
      type: 'ClusterIP',
      clusterIP: isHeadless ? 'None' : `172.${16 + ((number >> 16) & 15)}.${(number >> 8) & 255}.${number & 255}`,
      ports: ['http', 'grpc'].map((name, at) => ({ name, port: 80 + at, protocol: 'TCP', targetPort: 8080 + at }))
    }
  }
}

/** With the fields that a real slice has, though DNS needs few of them. */
function slice(number: number): object {
  const owner = { apiVersion: 'v1', kind: 'Service', name: `service-${number}`, uid: `uid-${number}`, controller: true }
  return {
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: `service-${number}-abcde`,
      generateName: `service-${number}-`,
      namespace: `namespace-${number % 100}`,
      creationTimestamp: '2026-11-30T12:00:00Z',
      labels: {
        'endpointslice.kubernetes.io/managed-by': 'endpointslice-controller.k8s.io',
        'kubernetes.io/service-name': `service-${number}`
      },
      ownerReferences: [owner]
    },
    addressType: 'IPv4',
    ports: ['http', 'grpc'].map((name, at) => ({ name, port: 8080 + at, protocol: 'TCP' })),
    endpoints: Array.from({ length: endpoints }, (_, at) => ({
      addresses: [octetsOf(number * endpoints + at)],
      conditions: { ready: true, serving: true, terminating: false },
      nodeName: `node-${at}`,
      targetRef: {
        kind: 'Pod',
        namespace: `namespace-${number % 100}`,
        name: `service-${number}-${at}`,
        uid: `pod-${number}-${at}`
      }
    }))
  }
}

async function serve(): Promise<void> {
  const server = await FakeApiServer.start({ knowsProtobuf: true })
  for (let number = 0; number < slices; number++) {
    server.putUntold('/api/v1/services', service(number))
    server.putUntold('/apis/discovery.k8s.io/v1/endpointslices', slice(number))
  }
  // A port within this process, which knows no origins.
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  parentPort?.postMessage(server.url.href)
}

/** CPU time of this thread in milliseconds: what others do on the machine does not count. */
const threadCpuMs = (): number => {
  const { user, system } = process.threadCpuUsage()
  return (user + system) / 1000
}

/** Calls back as often as the event loop lets it, and remembers the longest times between two calls. */
function watchLoop() {
  const longest = { ms: 0, cpuMs: 0 }
  let last = { ms: performance.now(), cpuMs: threadCpuMs() }
  let isStopped = false
  const tick = (): void => {
    const now = { ms: performance.now(), cpuMs: threadCpuMs() }
    longest.ms = Math.max(longest.ms, now.ms - last.ms)
    longest.cpuMs = Math.max(longest.cpuMs, now.cpuMs - last.cpuMs)
    last = now
    if (!isStopped) setImmediate(tick)
  }
  tick()
  return { longest, stop: () => (isStopped = true) }
}

const rounded = (ms: number): string => ms.toFixed(ms < 100 ? 1 : 0)

async function measure(url: URL): Promise<void> {
  const zones = new ClusterZones(
    {
      clusterName: 'bench',
      zone: parseName('cluster.local'),
      clustersetZone: parseName('clusterset.local'),
      ttlSeconds: 5,
      pods: 'insecure',
      reverse: [parseNetwork('10.0.0.0/8')],
      importsInZone: false,
      records: [],
      nsAddresses: ['192.0.2.53']
    },
    systemClock
  )
  zones.deferServices()
  const heapBefore = await settledHeapOctets()
  const applied = { batches: 0, cpuMs: 0, longestCpuMs: 0 }
  const startedAtMs = performance.now()
  const cpuBeforeMs = threadCpuMs()
  const loop = watchLoop()
  await new Promise<void>((resolve) => {
    const source = new KubernetesSource({
      access: plainAccess(url),
      withPods: false,
      clock: systemClock,
      log: silentLog,
      random: Math.random,
      onEvents: (events, originAtMs) => {
        const beganAtMs = threadCpuMs()
        if (!isAlone) zones.apply(events, originAtMs)
        const cpuMs = threadCpuMs() - beganAtMs
        applied.batches++
        applied.cpuMs += cpuMs
        applied.longestCpuMs = Math.max(applied.longestCpuMs, cpuMs)
      },
      onSynced: () => {
        while (zones.writeDeferred(20, Date.now()));
        loop.stop()
        const ms = performance.now() - startedAtMs
        const cpuMs = threadCpuMs() - cpuBeforeMs
        console.log(`${slices} Services, ${slices} EndpointSlices, ${slices * endpoints} endpoints`)
        console.log(`listed, reduced and in the zones: ${rounded(ms)} ms, of CPU ${rounded(cpuMs)} ms`)
        const { batches, longestCpuMs } = applied
        console.log(
          `in the zones alone: CPU ${rounded(applied.cpuMs)} ms in ${batches} batches, at most ${rounded(longestCpuMs)} ms`
        )
        console.log(
          `the event loop was kept for at most ${rounded(loop.longest.ms)} ms, of CPU ${rounded(loop.longest.cpuMs)} ms`
        )
        resolve()
      }
    })
    source.start()
  })
  const heap = (await settledHeapOctets()) - heapBefore
  console.log(`heap, zones included: ${(heap / 1e6).toFixed(1)} MB`)
}

if (isMainThread) {
  const worker = new Worker(new URL(import.meta.url), { argv: process.argv.slice(2), workerData: 'server' })
  worker.once('message', (href: string) => {
    void measure(new URL(href)).then(() => worker.terminate())
  })
} else if (workerData === 'server') {
  await serve()
}
